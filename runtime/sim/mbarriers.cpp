// A barrier object counts the arrivals and bytes that its phase still lacks; at none of both the next phase begins. A wait
// names the parity of the phase whose end it waits for: the phase before the first counts as ended, with parity 1.
#include "runtime/sim/mbarriers.h"

#include <fmt/format.h>

#include <bit>

#include "ir/diagnostic.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/rows.h"

namespace tilewright {

namespace {

const InstrSite& site_of(const WarpOp& op) { return *static_cast<const InstrSite*>(op.object); }

std::string object_text(const Warp& warp, const BarrierSite& site, int lane) { return site.name + indices_text(warp, site.index, lane); }

void end_phase_if_complete(SimBlock& block, Mbarrier& object) {
  if (object.pending != 0 || object.bytes != 0) return;
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
    warp.block->mbarriers[static_cast<std::size_t>(site.barrier.first + element)] = {true, count, count, 0, 0};
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

const WarpOp* run_wait(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  bool waits = false;
  each_lane(warp.mask, [&](int lane) {
    const Mbarrier* object = find_mbarrier(warp, op, site.barrier, lane, *warp.block);
    waits |= object != nullptr && !has_ended(*object, read_lane(warp, site.operands[0], lane).i);
  });
  return waits ? wait_at(op, warp, Waits::Mbarrier) : following(op);
}

InstrSite& new_site(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  site.barrier = compiler.barrier_site(place_of(instr, 0));
  site.operands = operands_of(compiler, {instr.operands.begin() + 1, instr.operands.end()});
  return compiler.program().instr_sites.emplace_back(std::move(site));
}

}  // namespace

Mbarrier* find_mbarrier(Warp& warp, const WarpOp& op, const BarrierSite& site, int lane, SimBlock& block) {
  const std::int64_t element = read_lane(warp, site.element, lane).i;
  FaultLog& faults = *warp.block->core->faults;
  if (element < 0 || element >= site.elements) {
    faults.add(warp, op, FaultKind::OutOfRange, 1u << lane, [&](int) {
      return fmt::format("{} uses `{}`, outside `{}` of {} objects", thread_text(warp, lane), object_text(warp, site, lane), site.name, site.elements);
    });
    return nullptr;
  }
  Mbarrier& object = block.mbarriers[static_cast<std::size_t>(site.first + element)];
  if (object.is_initialised) return &object;
  faults.add(warp, op, FaultKind::Unwritten, 1u << lane, [&](int) {
    return fmt::format("{} uses `{}` of {}, which is not initialised", thread_text(warp, lane), object_text(warp, site, lane), block_text(block));
  });
  return nullptr;
}

void complete_bytes(SimBlock& block, Mbarrier& object, std::int64_t bytes) {
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
    return fmt::format("`{}` with parity {}: of the phase that runs {} of {} arrivals and {} bytes are missing", object_text(warp, site.barrier, lane), parity, object.pending,
                       object.expected, object.bytes);
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
