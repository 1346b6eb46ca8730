// The cluster's barrier, and the registers that warpgroups hand to each other.
#include <fmt/format.h>

#include "runtime/sim/clocks.h"
#include "runtime/sim/clusters.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/rows.h"

namespace tilewright {

namespace {

const WarpOp* run_cluster_arrive(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  SimCluster& cluster = *warp.block->cluster;
  if (warp.has_arrived)
    warp.block->core->faults->add(warp, op, FaultKind::Participation, warp.mask, [&](int) {
      return fmt::format("{} of {} arrive at the cluster's barrier and have not waited for the last time", threads_text(warp, warp.mask), block_text(*warp.block));
    });
  if (warp.clock != nullptr) {
    ClusterClocks& clocks = *cluster.clocks;
    if (op.code == 1) clocks.release_objects(*warp.clock, warp.mask, clocks.cluster_barrier(cluster.barrier_phase & 1));
    else clocks.release(*warp.clock, warp.mask, clocks.cluster_barrier(cluster.barrier_phase & 1));
  }
  warp.has_arrived = true;
  warp.cluster_phase = cluster.barrier_phase;
  ++cluster.barrier_arrived;
  complete_cluster_barrier(cluster);
  return following(op);
}

const WarpOp* run_cluster_wait(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  if (!warp.has_arrived) {
    warp.block->core->faults->add(warp, op, FaultKind::Participation, warp.mask, [&](int) {
      return fmt::format("{} of {} wait at the cluster's barrier and have not arrived", threads_text(warp, warp.mask), block_text(*warp.block));
    });
    return following(op);
  }
  if (warp.block->cluster->barrier_phase == warp.cluster_phase) return wait_at(op, warp, Waits::Cluster);
  warp.has_arrived = false;
  if (warp.clock != nullptr) {
    ClusterClocks& clocks = *warp.block->cluster->clocks;
    clocks.acquire(*warp.clock, warp.mask, warp.all, clocks.cluster_barrier(warp.cluster_phase & 1));
  }
  return following(op);
}

// op.jump: registers a thread; op.code 1: more.
const WarpOp* run_registers(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  SimBlock& block = *warp.block;
  const int wanted = op.jump;
  const bool is_more = op.code == 1;
  if (is_more ? wanted < warp.registers : wanted > warp.registers) {
    block.core->faults->add(warp, op, FaultKind::Registers, warp.mask, [&](int) {
      return fmt::format("{} of {} have {} registers a thread, and ask for {} {}", threads_text(warp, warp.mask), block_text(block), warp.registers, is_more ? "up to" : "no more than", wanted);
    });
    return following(op);
  }
  const std::int64_t change = static_cast<std::int64_t>(wanted - warp.registers) * lane_count;
  if (change > block.free_registers) return wait_at(op, warp, Waits::Registers);
  block.free_registers -= change;
  warp.registers = wanted;
  if (change < 0) wake(block, Waits::Registers);
  return following(op);
}

}  // namespace

void complete_cluster_barrier(SimCluster& cluster) {
  if (cluster.barrier_arrived == 0 || cluster.barrier_arrived < cluster.live_warps) return;
  cluster.barrier_arrived = 0;
  ++cluster.barrier_phase;
  if (cluster.clocks) cluster.clocks->clear(cluster.clocks->cluster_barrier(cluster.barrier_phase & 1));  // all have taken what it held
  for (SimBlock& block : cluster.blocks) wake(block, Waits::Cluster);
}

void leave_cluster(Warp& warp) {
  SimCluster& cluster = *warp.block->cluster;
  --cluster.live_warps;
  if (warp.has_arrived && warp.cluster_phase == cluster.barrier_phase) --cluster.barrier_arrived;
  complete_cluster_barrier(cluster);
}

void compile_cluster_arrive(KernelCompiler& compiler, const Instr& instr) { compiler.emit(run_cluster_arrive).code = instr.op.ends_with("relaxed") ? 1 : 0; }

void compile_cluster_wait(KernelCompiler& compiler, const Instr&) { compiler.emit(run_cluster_wait); }

void compile_registers(KernelCompiler& compiler, const Instr& instr) {
  const std::optional<std::int64_t> count = integer_value(instr.operands.at(0));
  if (!count || *count % 8 != 0 || *count < 24 || *count > 256) compiler.refuse(fmt::format("`{}` takes a constant multiple of 8 in 24 to 256", instr.op));
  WarpOp& op = compiler.emit(run_registers);
  op.jump = static_cast<std::int32_t>(*count);
  op.code = instr.op.ends_with("inc") ? 1 : 0;
}

}  // namespace tilewright
