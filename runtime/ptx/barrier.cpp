// Barriers of a block. An aligned one counts whole warps: all lanes that live come to the same operation. One without a
// count waits for every thread of the block that has not ended; that some have is reported, for not every GPU lets the
// others go, and most such kernels are mistaken.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/ptx/faults.h"
#include "runtime/ptx/warp.h"

namespace tilewright::ptx {

namespace {

const Op& op_of_lane(const Warp& warp, int lane) { return warp.core->launch->program->code[warp.pc[static_cast<std::size_t>(lane)]]; }

const BarrierSite& site_of(const Op& op) { return *static_cast<const BarrierSite*>(op.object); }

void report_ended(Block& block, Warp& waiting, const Op& op) {
  for (const Warp& warp : block.warps) {
    const LaneMask ended = warp.all & ~warp.alive;
    if (ended == 0) continue;
    waiting.core->faults->add(waiting, op, FaultKind::Divergent, 1, [&](int) {
      return fmt::format("{} of {} ended without this barrier (`{}`), at which the other threads wait", threads_text(warp, ended), block_text(block), waiting.core->launch->program->places[op.instruction].text);
    });
    return;
  }
}

// The predicates of bar.red, of the lanes that arrive.
void combine(Block::BarrierState& state, Warp& warp, const Op& op, LaneMask lanes) {
  const BarrierSite& site = site_of(op);
  if (site.reduction == BarrierSite::Reduction::None) return;
  const LaneMask yes = (site.negates ? ~warp.predicate(op.c) : warp.predicate(op.c)) & lanes;
  state.count += std::popcount(yes);
  state.all &= yes == lanes;
  state.any |= yes != 0;
}

void give_result(const Block::BarrierState& state, Warp& warp, const Op& op, LaneMask lanes) {
  const BarrierSite& site = site_of(op);
  if (site.reduction == BarrierSite::Reduction::None) return;
  warp.mark(op.dst, lanes, 0, 0);
  if (site.reduction == BarrierSite::Reduction::Count) {
    for_lanes(lanes, [&](int lane) { warp.row<std::uint32_t>(op.dst)[lane] = static_cast<std::uint32_t>(state.count); });
    return;
  }
  const bool result = site.reduction == BarrierSite::Reduction::All ? state.all : state.any;
  LaneMask& d = warp.predicate(op.dst);
  d = (d & ~lanes) | (result ? lanes : 0u);
}

bool release(Block& block, int number) {
  Block::BarrierState& state = block.barriers[static_cast<std::size_t>(number)];
  if (state.arrived == 0) return false;
  const int wanted = state.wanted > 0 ? state.wanted : block.live_threads;
  if (state.arrived < wanted) return false;
  if (state.wanted == 0 && block.live_threads < block.core->launch->threads())
    for (Warp& warp : block.warps)
      if (warp.arrived != 0) {
        report_ended(block, warp, op_of_lane(warp, std::countr_zero(warp.arrived)));
        break;
      }
  for (Warp& warp : block.warps) {
    LaneMask go = 0;
    for_lanes(warp.arrived, [&](int lane) { go |= warp.barrier[static_cast<std::size_t>(lane)] == number ? 1u << lane : 0u; });
    for_lanes(go, [&](int lane) { give_result(state, warp, op_of_lane(warp, lane), 1u << lane); });
    for_lanes(go, [&](int lane) { ++warp.pc[static_cast<std::size_t>(lane)]; });
    warp.arrived &= ~go;
    warp.blocked &= ~go;
  }
  state = {};
  return true;
}

}  // namespace

bool release_barriers(Block& block) {
  bool any = false;
  for (int number = 0; number < static_cast<int>(block.barriers.size()); ++number) any |= release(block, number);
  // An aligned barrier may have waited for lanes of its warp that have ended.
  for (Warp& warp : block.warps) {
    const LaneMask partial = warp.blocked & ~warp.arrived;
    if (partial == 0 || partial != warp.alive) continue;
    const Op& op = op_of_lane(warp, std::countr_zero(partial));
    if (op.step == Step::Barrier) any |= arrive_at_barrier(warp, op, 0);
  }
  return any;
}

bool arrive_at_barrier(Warp& warp, const Op& op, LaneMask lanes) {
  const BarrierSite& site = site_of(op);
  Block& block = *warp.block;
  warp.blocked |= lanes;
  LaneMask group = lanes;
  if (site.is_aligned) {
    const auto pc = static_cast<std::uint32_t>(&op - warp.core->launch->program->code.data());
    group = 0;
    for_lanes(warp.blocked & ~warp.arrived, [&](int lane) { group |= warp.pc[static_cast<std::size_t>(lane)] == pc ? 1u << lane : 0u; });
    if (group != (warp.alive & ~warp.arrived)) return false;  // the rest of the warp is to come
  }
  if (group == 0) return false;
  const int first = std::countr_zero(group);
  const std::uint32_t number = warp.row<std::uint32_t>(op.a)[first];
  const std::uint32_t count = site.has_count ? warp.row<std::uint32_t>(op.b)[first] : 0;
  if (number >= block.barriers.size() || (site.has_count && (count == 0 || count % lane_count != 0))) {
    warp.core->faults->add(warp, op, FaultKind::Divergent, 1u << first, [&](int lane) {
      return fmt::format("{} comes to barrier {} of {} threads; barriers are numbered 0 to 15, and counts are multiples of 32", thread_text(warp, lane), number, count);
    });
    throw Stopped{};
  }
  Block::BarrierState& state = block.barriers[number];
  state.wanted = static_cast<int>(count);
  state.arrived += site.is_aligned && site.has_count ? lane_count : std::popcount(group);
  combine(state, warp, op, group);
  if (site.waits) {
    warp.arrived |= group;
    for_lanes(group, [&](int lane) { warp.barrier[static_cast<std::size_t>(lane)] = static_cast<int>(number); });
  } else {
    warp.blocked &= ~group;
    for_lanes(group, [&](int lane) { ++warp.pc[static_cast<std::size_t>(lane)]; });
  }
  return release(block, static_cast<int>(number));
}

}  // namespace tilewright::ptx
