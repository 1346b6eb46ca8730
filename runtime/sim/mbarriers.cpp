// A barrier object counts the arrivals and bytes that its phase still lacks; at none of both the next phase begins. A wait
// names the parity of the phase whose end it waits for: the phase before the first counts as ended, with parity 1.
#include "runtime/sim/mbarriers.h"

#include <fmt/format.h>

#include <bit>

#include "ir/diagnostic.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/race_report.h"
#include "runtime/sim/rows.h"

namespace tilewright {

namespace {

const InstrSite& site_of(const WarpOp& op) { return *static_cast<const InstrSite*>(op.object); }

std::string object_text(const Warp& warp, const BarrierSite& site, int lane) { return site.name + indices_text(warp, site.index, lane); }

std::size_t number_in_cluster(const SimBlock& block, const Mbarrier& object) {
  return static_cast<std::size_t>(block.rank) * block.mbarriers.size() + static_cast<std::size_t>(&object - block.mbarriers.data());
}

void end_phase_if_complete(SimBlock& block, Mbarrier& object) {
  if (object.pending != 0 || object.bytes != 0) return;
  if (ClusterClocks* clocks = block.cluster->clocks.get(); clocks != nullptr) {
    const std::size_t number = number_in_cluster(block, object);
    clocks->join(clocks->done(number), clocks->pending(number));
    clocks->clear(clocks->pending(number));
  }
  ++object.phase;
  object.pending = object.expected;
  wake(block, Waits::Mbarrier);
}

void arrive(Warp& warp, const WarpOp& op, int lane, SimBlock& block, Mbarrier& object) {
  if (object.pending == 0) {
    warp.block->core->faults->add(warp, op, FaultKind::Participation, 1u << lane, [&](int) {
      return fmt::format("{} arrives at `{}`, whose phase has had all of its {} arrivals", thread_text(warp, lane), object_text(warp, site_of(op).barrier, lane), object.expected);
    });
    return;
  }
  if (warp.clock != nullptr) {
    ClusterClocks& clocks = *block.cluster->clocks;
    if (&block != warp.block) clocks.note_visit(static_cast<std::size_t>(block.rank), warp.clock->first_thread + static_cast<Party>(lane), warp.clock->time, op.statement);
    clocks.release(*warp.clock, 1u << lane, clocks.pending(number_in_cluster(block, object)));
  }
  --object.pending;
  end_phase_if_complete(block, object);
}

const WarpOp* run_init(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  each_lane(warp.mask, [&](int lane) {
    const std::int64_t element = read_lane(warp, site.barrier.element, lane).i;
    if (element < 0 || element >= site.barrier.elements) {
      find_mbarrier(warp, op, site.barrier, lane, *warp.block);
      return;
    }
    const std::int64_t count = read_lane(warp, site.operands[0], lane).i;
    if (count < 1 || count >= std::int64_t{1} << 20)
      warp.block->core->faults->add(warp, op, FaultKind::Participation, 1u << lane, [&](int) {
        return fmt::format("{} initialises `{}` for {} arrivals, and 1 to 1048575 are possible", thread_text(warp, lane), object_text(warp, site.barrier, lane), count);
      });
    Mbarrier& object = warp.block->mbarriers[static_cast<std::size_t>(site.barrier.first + element)];
    const Mbarrier before = object;
    object = {true, count, count, 0, 0, 0, 0, op.statement};
    if (warp.clock == nullptr) return;
    if (before.is_initialised && !warp.block->cluster->clocks->knows(*warp.clock, lane, before.initialised_by, before.initialised_at))
      report_race(*warp.block->cluster->clocks, {&warp, &op, lane, Use::Initialise, object_text(warp, site.barrier, lane), before.initialised_by, before.initialised_at, before.initialised_in, Use::Initialise});
    object.initialised_by = warp.clock->first_thread + static_cast<Party>(lane);
    object.initialised_at = warp.clock->time;
  });
  return following(op);
}

// op.code: 0 plain, 1 with bytes, 2 in another block of the cluster.
const WarpOp* run_arrive(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  each_lane(warp.mask, [&](int lane) {
    SimBlock* block = warp.block;
    if (op.code == 2) {
      const std::int64_t rank = read_lane(warp, site.operands[0], lane).i;
      const auto blocks = static_cast<std::int64_t>(block->cluster->blocks.size());
      if (rank < 0 || rank >= blocks) {
        block->core->faults->add(warp, op, FaultKind::OutOfRange, 1u << lane, [&](int) {
          return fmt::format("{} names block {} of a cluster of {}", thread_text(warp, lane), rank, blocks);
        });
        return;
      }
      block = &block->cluster->blocks[static_cast<std::size_t>(rank)];
      if (block->is_done()) {
        block->core->faults->add(warp, op, FaultKind::Ended, 1u << lane, [&](int) {
          return fmt::format("{} arrives at `{}` of {}, which has ended", thread_text(warp, lane), object_text(warp, site.barrier, lane), block_text(*block));
        });
        return;
      }
    }
    Mbarrier* object = find_mbarrier(warp, op, site.barrier, lane, *block);
    if (object == nullptr) return;
    if (op.code == 1) object->bytes += read_lane(warp, site.operands[0], lane).i;
    arrive(warp, op, lane, *block, *object);
  });
  return following(op);
}

bool has_ended(const Mbarrier& object, std::int64_t parity) { return (object.phase & 1) != static_cast<std::uint32_t>(parity & 1); }

// What the phases that ended handed on. Lanes that wait for one object learn at once.
void learn_phases(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  ClusterClocks& clocks = *warp.block->cluster->clocks;
  for (LaneMask rest = warp.mask; rest != 0;) {
    const std::int64_t element = read_lane(warp, site.barrier.element, std::countr_zero(rest)).i;
    LaneMask same = 0;
    each_lane(rest, [&](int lane) { same |= static_cast<LaneMask>(read_lane(warp, site.barrier.element, lane).i == element) << lane; });
    rest &= ~same;
    if (element < 0 || element >= site.barrier.elements) continue;
    const Mbarrier& object = warp.block->mbarriers[static_cast<std::size_t>(site.barrier.first + element)];
    clocks.acquire(*warp.clock, same, warp.all, clocks.done(number_in_cluster(*warp.block, object)));
  }
}

const WarpOp* run_wait(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  bool waits = false;
  each_lane(warp.mask, [&](int lane) {
    const Mbarrier* object = find_mbarrier(warp, op, site.barrier, lane, *warp.block);
    waits |= object != nullptr && !has_ended(*object, read_lane(warp, site.operands[0], lane).i);
  });
  if (waits) return wait_at(op, warp, Waits::Mbarrier);
  if (warp.clock != nullptr) learn_phases(op, warp);
  return following(op);
}

InstrSite& new_site(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  site.barrier = compiler.barrier_site(place_of(instr, 0));
  site.operands = operands_of(compiler, {instr.operands.begin() + 1, instr.operands.end()});
  return compiler.program().instr_sites.emplace_back(std::move(site));
}

}  // namespace

Mbarrier* find_mbarrier(Warp& warp, const WarpOp& op, const BarrierSite& site, int lane, SimBlock& block, bool for_copy) {
  const std::int64_t element = read_lane(warp, site.element, lane).i;
  FaultLog& faults = *warp.block->core->faults;
  if (element < 0 || element >= site.elements) {
    faults.add(warp, op, FaultKind::OutOfRange, 1u << lane, [&](int) {
      return fmt::format("{} uses `{}`, outside `{}` of {} objects", thread_text(warp, lane), object_text(warp, site, lane), site.name, site.elements);
    });
    return nullptr;
  }
  Mbarrier& object = block.mbarriers[static_cast<std::size_t>(site.first + element)];
  if (object.is_initialised) {
    const ClusterClocks* clocks = block.cluster->clocks.get();
    if (clocks != nullptr && !clocks->knows_object(*warp.clock, lane, object.initialised_by, object.initialised_at, for_copy)) {
      const bool is_unfenced = clocks->knows(*warp.clock, lane, object.initialised_by, object.initialised_at);
      report_race(*clocks, {&warp, &op, lane, Use::Use, object_text(warp, site, lane), object.initialised_by, object.initialised_at, object.initialised_in, Use::Initialise, for_copy, is_unfenced});
    }
    return &object;
  }
  faults.add(warp, op, FaultKind::Unwritten, 1u << lane, [&](int) {
    return fmt::format("{} uses `{}` of {}, which is not initialised", thread_text(warp, lane), object_text(warp, site, lane), block_text(block));
  });
  return nullptr;
}

void complete_bytes(SimBlock& block, std::size_t number, std::int64_t bytes) {
  Mbarrier& object = block.mbarriers[number];
  if (ClusterClocks* clocks = block.cluster->clocks.get(); clocks != nullptr) {
    const std::size_t in_cluster = number_in_cluster(block, object);
    Time& known = clocks->pending(in_cluster)[clocks->parties().objects + in_cluster];
    known = std::max(known, clocks->start() + 1 + object.phase);
  }
  object.bytes -= bytes;
  end_phase_if_complete(block, object);
}

std::string missing_text(const Warp& warp, const WarpOp& op) {
  const InstrSite& site = site_of(op);
  for (LaneMask rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::int64_t element = read_lane(warp, site.barrier.element, lane).i;
    if (element < 0 || element >= site.barrier.elements) continue;
    const Mbarrier& object = warp.block->mbarriers[static_cast<std::size_t>(site.barrier.first + element)];
    const std::int64_t parity = read_lane(warp, site.operands[0], lane).i & 1;
    if (!object.is_initialised || has_ended(object, parity)) continue;
    return fmt::format("`{}` with parity {}: of the phase that runs {} of {} arrivals are missing and {} bytes {}", object_text(warp, site.barrier, lane), parity, object.pending,
                       object.expected, std::abs(object.bytes), object.bytes < 0 ? "too many have come" : "are to come");
  }
  return {};
}

void compile_mbarrier_init(KernelCompiler& compiler, const Instr& instr) {
  InstrSite& site = new_site(compiler, instr);
  compiler.emit(run_init).object = &site;
}

void compile_mbarrier_arrive(KernelCompiler& compiler, const Instr& instr) {
  InstrSite& site = new_site(compiler, instr);
  WarpOp& op = compiler.emit(run_arrive);
  op.object = &site;
  op.code = instr.op.ends_with("expect_tx") ? 1 : instr.op.ends_with("cluster") ? 2 : 0;
}

void compile_mbarrier_wait(KernelCompiler& compiler, const Instr& instr) {
  InstrSite& site = new_site(compiler, instr);
  compiler.emit(run_wait).object = &site;
}

}  // namespace tilewright
