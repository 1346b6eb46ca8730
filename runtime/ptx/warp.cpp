// The loop over a warp's operations, and what its lanes wait for.
#include "runtime/ptx/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/ptx/access.h"
#include "runtime/ptx/counts.h"
#include "runtime/ptx/faults.h"

namespace tilewright::ptx {

namespace {

constexpr std::int64_t turn_length = 4096;  // operations of one group of lanes while another one could go on

const Op& op_at(const Warp& warp, std::uint32_t pc) { return warp.core->launch->program->code[pc]; }

void set_pc(Warp& warp, LaneMask lanes, std::uint32_t pc) {
  for_lanes(lanes, [&](int lane) { warp.pc[static_cast<std::size_t>(lane)] = pc; });
}

// Lanes that can go on and stand together, and the place nearest behind them where another one stands.
struct Group {
  LaneMask lanes = 0;
  std::uint32_t pc = 0;
  std::uint32_t next = ~0u;
};

Group choose_group(Warp& warp, bool takes_turns) {
  Group group;
  const LaneMask ready = warp.alive & ~warp.blocked;
  const auto at = [&](int lane) { return warp.pc[static_cast<std::size_t>(lane)]; };
  if (!takes_turns || (ready & ~warp.served) == 0) warp.served = 0;
  group.pc = ~0u;
  for_lanes(ready & ~warp.served, [&](int lane) { group.pc = std::min(group.pc, at(lane)); });
  for_lanes(ready, [&](int lane) {
    if (at(lane) == group.pc) group.lanes |= 1u << lane;
    else if (at(lane) > group.pc) group.next = std::min(group.next, at(lane));
  });
  warp.served |= group.lanes;
  return group;
}

// All lanes that the members' masks name, and that still live, stand at this operation.
bool is_complete(Warp& warp, const Op& op, LaneMask lanes) {
  bool complete = true;
  for_lanes(lanes, [&](int lane) {
    const LaneMask members = warp.row<LaneMask>(op.d)[lane];
    if ((members >> lane & 1) == 0)
      warp.core->faults->add(warp, op, FaultKind::Divergent, 1u << lane, [&](int) {
        return fmt::format("{} executes `{}` with the mask 0x{:x}, which does not name it", thread_text(warp, lane), warp.core->launch->program->places[op.instruction].text, members);
      });
    complete &= (members & warp.alive & ~lanes) == 0;
  });
  return complete;
}

// Runs the operation for those of the lanes that have the same mask, mask by mask.
void run_together(Warp& warp, const Op& op, LaneMask lanes) {
  while (lanes != 0) {
    const LaneMask members = warp.row<LaneMask>(op.d)[std::countr_zero(lanes)];
    LaneMask group = 0;
    for_lanes(lanes, [&](int lane) { group |= warp.row<LaneMask>(op.d)[lane] == members ? 1u << lane : 0u; });
    op.run(op, warp, group);
    lanes &= ~group;
  }
}

// Lanes come to a WarpSync: they go on once all have come.
bool synchronise(Warp& warp, const Op& op, std::uint32_t pc, LaneMask lanes) {
  LaneMask here = lanes;
  for_lanes(warp.blocked, [&](int lane) {
    if (warp.pc[static_cast<std::size_t>(lane)] == pc) here |= 1u << lane;
  });
  set_pc(warp, lanes, pc);
  if (!is_complete(warp, op, here)) {
    warp.blocked |= lanes;
    return false;
  }
  warp.blocked &= ~here;
  run_together(warp, op, here);
  set_pc(warp, here, pc + 1);
  return true;
}

// Lanes that wait at a WarpSync for lanes that have ended meanwhile.
bool recheck_blocked(Warp& warp) {
  LaneMask left = warp.blocked;
  while (left != 0) {
    const std::uint32_t pc = warp.pc[static_cast<std::size_t>(std::countr_zero(left))];
    LaneMask here = 0;
    for_lanes(left, [&](int lane) { here |= warp.pc[static_cast<std::size_t>(lane)] == pc ? 1u << lane : 0u; });
    left &= ~here;
    if (op_at(warp, pc).step == Step::WarpSync && is_complete(warp, op_at(warp, pc), here)) {
      synchronise(warp, op_at(warp, pc), pc, 0);
      return true;
    }
  }
  return false;
}

void end_lanes(Warp& warp, LaneMask lanes) {
  finish_copies(warp, lanes, -1);
  warp.alive &= ~lanes;
  warp.block->live_threads -= std::popcount(lanes);
  release_barriers(*warp.block);
}

// A guard that is not defined: it decides what is done, so it is reported, unless the result takes the mark over.
void check_guard(Warp& warp, const Op& op, LaneMask lanes) {
  const LaneMask bad = warp.undefined_of(op.guard) & lanes;
  if (bad == 0) return;
  if (op.step == Step::Plain && op.dst != 0) return;
  report_undefined(warp, op, op.guard, bad, op.step == Step::Branch ? "which way it goes" : fmt::format("whether it executes `{}`", warp.core->launch->program->places[op.instruction].text));
}

}  // namespace

std::int64_t run_warp(Warp& warp, std::int64_t most) {
  const Op* const code = warp.core->launch->program->code.data();
  Counter* const counter = warp.core->counter;
  std::int64_t done = 0;
  bool takes_turns = false;
  while (done < most) {
    if ((warp.alive & ~warp.blocked) == 0 && !recheck_blocked(warp)) break;
    Group group = choose_group(warp, takes_turns);
    std::uint32_t pc = group.pc;
    const LaneMask all = group.lanes;
    const bool is_alone = all == warp.alive;
    const std::int64_t end = is_alone ? most : std::min(most, done + turn_length);
    bool goes_on = true;
    while (goes_on && done < end) {
      const Op& op = code[pc];
      ++done;
      LaneMask lanes = all;
      if (op.guard != 0) {
        check_guard(warp, op, all);
        lanes &= op.is_guard_negated ? ~warp.predicate(op.guard) : warp.predicate(op.guard);
      }
      if (counter != nullptr) [[unlikely]] counter->note(warp, op, pc, lanes);
      switch (op.step) {
        case Step::Plain:
          if (lanes != 0) {
            op.run(op, warp, lanes);
            if (!op.marks_itself) propagate(op, warp, lanes);
          }
          if (op.guard != 0 && op.dst != 0 && (warp.undefined_of(op.guard) & all) != 0) {
            const LaneMask bad = warp.undefined_of(op.guard) & all;
            warp.mark(op.dst, bad, bad, warp.origin_of(op.guard));
          }
          ++pc;
          break;
        case Step::Branch:
          if (lanes == all) {
            pc = op.target;
          } else if (lanes == 0) {
            ++pc;
          } else {
            set_pc(warp, lanes, op.target);
            set_pc(warp, all & ~lanes, pc + 1);
            goes_on = false;
          }
          break;
        case Step::Call:
          for_lanes(lanes, [&](int lane) { warp.row<std::uint32_t>(op.dst)[lane] = pc + 1; });
          set_pc(warp, lanes, op.target);
          set_pc(warp, all & ~lanes, pc + 1);
          goes_on = false;
          break;
        case Step::Return:
          for_lanes(lanes, [&](int lane) { warp.pc[static_cast<std::size_t>(lane)] = warp.row<std::uint32_t>(op.a)[lane]; });
          set_pc(warp, all & ~lanes, pc + 1);
          goes_on = false;
          break;
        case Step::Exit:
          set_pc(warp, all & ~lanes, pc + 1);
          end_lanes(warp, lanes);
          goes_on = false;
          break;
        case Step::Trap:
          if (lanes == 0) {
            ++pc;
            break;
          }
          warp.core->faults->add(warp, op, FaultKind::Trap, lanes, [&](int lane) { return fmt::format("{} executes a trap", thread_text(warp, lane)); });
          throw Stopped{};
        case Step::WarpSync:
          if (lanes == all && synchronise(warp, op, pc, lanes)) {
            // Others that waited come along only by a new choice.
            if (warp.alive == all) ++pc;
            else goes_on = false;
            break;
          }
          if (lanes != all) {
            set_pc(warp, all & ~lanes, pc + 1);
            if (lanes != 0) synchronise(warp, op, pc, lanes);
          }
          goes_on = false;
          break;
        case Step::Barrier:
          set_pc(warp, all & ~lanes, pc + 1);
          set_pc(warp, lanes, pc);
          if (lanes != 0) arrive_at_barrier(warp, op, lanes);
          goes_on = false;
          break;
      }
      if (goes_on && pc >= group.next) {
        set_pc(warp, all, pc);
        goes_on = false;
      }
    }
    if (goes_on) set_pc(warp, all, pc);  // the turn is over
    takes_turns = goes_on && !is_alone;
  }
  return done;
}

}  // namespace tilewright::ptx
