// Instructions: how each row of the table compiles, and the step it becomes. A row that stands in neither table below is
// refused by name.
#include "runtime/sim/instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "runtime/sim/access.h"
#include "runtime/sim/clocks.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/rows.h"

namespace tilewright {

namespace {

// ---- Steps.

// Waits; the scheduler goes on when all have come. Lanes that do not come by are a fault, and counted as if they did.
const WarpOp* run_barrier(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  warp.barrier = 0;
  warp.barrier_threads = 0;  // all of the block
  if (op.code != 0) {
    warp.barrier = static_cast<int>(read_lane(warp, op.a, Dtype::Index, true, 0).i) & (barrier_count - 1);
    warp.barrier_threads = static_cast<int>(read_lane(warp, op.b, Dtype::Index, true, 0).i);
  }
  warp.state = WarpState::Waiting;
  warp.waits = Waits::Barrier;
  warp.waits_at = &op;
  return following(op);
}

// Lanes of a warp run in step, so that a barrier of the warp only checks that all are here.
const WarpOp* run_converge(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  if (warp.clock != nullptr) warp.block->cluster->clocks->join_lanes(*warp.clock, warp.all);
  return following(op);
}

// A warp's accesses take effect in its order; what a fence adds is of interest to the race check alone.
const WarpOp* run_fence(const WarpOp& op, Warp& warp) {
  if (warp.clock == nullptr) return following(op);
  ClusterClocks& clocks = *warp.block->cluster->clocks;
  if (op.code == 1) clocks.fence_objects(*warp.clock, warp.mask);
  else clocks.fence_proxy(*warp.clock, warp.mask, warp.all);
  return following(op);
}

const WarpOp* run_report(const WarpOp& op, Warp& warp) {
  const LaneMask offenders = warp.mask & mask_at(warp, op.c);
  SimCore& core = *warp.block->core;
  if (offenders == 0 || core.has_error) return following(op);
  const int lane = std::countr_zero(offenders);
  core.has_error = true;
  core.error_site = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
  core.error_value = read_lane(warp, op.b, Dtype::Index, (op.uniform & 2) != 0, lane).i;
  return following(op);
}

enum class Exchange : std::uint8_t { First, Xor, Up, Down, Index };

template <Exchange exchange>
const WarpOp* run_exchange(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  const auto source = [&](int lane) {
    if (exchange == Exchange::First) return std::countr_zero(warp.mask);
    const auto by = static_cast<int>(read_lane(warp, op.b, Dtype::Index, (op.uniform & 2) != 0, lane).i & (lane_count - 1));
    if (exchange == Exchange::Xor) return lane ^ by;
    if (exchange == Exchange::Up) return lane - by >= 0 ? lane - by : lane;
    if (exchange == Exchange::Down) return lane + by < lane_count ? lane + by : lane;
    return by;
  };
  if (exchange == Exchange::First) {
    write_uniform(warp, op.dst, op.dtype, read_lane(warp, op.a, op.dtype, (op.uniform & 1) != 0, source(0)));
    return following(op);
  }
  std::array<Scalar, lane_count> values;
  for (int lane = 0; lane < lane_count; ++lane) values[static_cast<std::size_t>(lane)] = read_lane(warp, op.a, op.dtype, (op.uniform & 1) != 0, source(lane));
  for (int lane = 0; lane < lane_count; ++lane) write_lane(warp, op.dst, op.dtype, lane, values[static_cast<std::size_t>(lane)]);
  return following(op);
}

const WarpOp* run_elect(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  mask_at(warp, op.dst) = warp.mask & (~warp.mask + 1);
  return following(op);
}

template <bool all>
const WarpOp* run_vote(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  const LaneMask holds = mask_at(warp, op.a) & warp.mask;
  mask_at(warp, op.dst) = (all ? holds == warp.mask : holds != 0) ? every_lane : 0;
  return following(op);
}

template <Dtype half>
const WarpOp* run_pack(const WarpOp& op, Warp& warp) {
  for (int lane = 0; lane < lane_count; ++lane) {
    std::uint64_t bits[2];
    for (int n = 0; n < 2; ++n) {
      const Scalar value = read_lane(warp, n == 0 ? op.a : op.b, Dtype::F32, (op.uniform >> n & 1) != 0, lane);
      std::uint16_t stored = 0;
      store_scalar(half, &stored, real_scalar(round_to_narrow(half, value.f)));
      bits[n] = stored;
    }
    write_lane(warp, op.dst, Dtype::U32, lane, integer_scalar(static_cast<std::int64_t>(bits[0] | bits[1] << 16)));
  }
  return following(op);
}

// ---- Rows.
void operands_of(WarpOp& op, const std::vector<LaneValue>& operands) {
  Cell* const cells[] = {&op.a, &op.b, &op.c};
  for (std::size_t n = 0; n < operands.size() && n < 3; ++n) {
    *cells[n] = operands[n].at.cell;
    if (operands[n].is_uniform()) op.uniform = static_cast<std::uint8_t>(op.uniform | 1u << n);
  }
}

std::vector<LaneValue> values_of(KernelCompiler& compiler, const std::vector<Expr>& operands) {
  std::vector<LaneValue> values;
  for (const Expr& operand : operands) values.push_back(compiler.value(operand));
  return values;
}

}  // namespace

std::vector<Operand> operands_of(KernelCompiler& compiler, const std::vector<Expr>& operands) {
  std::vector<Operand> result;
  for (const Expr& operand : operands) result.push_back(compiler.value(operand).at);
  return result;
}

const Access& place_of(const Instr& instr, std::size_t operand) {
  const Load* place = as<Load>(instr.operands.at(operand));
  if (place == nullptr) throw UserError(instr.operands[operand]->span, fmt::format("operand {} of `{}` is a place", operand + 1, instr.op));
  return place->access;
}

namespace {

void compile_barrier(KernelCompiler& compiler, const Instr&) { compiler.emit(run_barrier); }

void compile_named_barrier(KernelCompiler& compiler, const Instr& instr) {
  const std::vector<LaneValue> operands = values_of(compiler, instr.operands);
  for (const LaneValue& operand : operands)
    if (!operand.is_uniform()) compiler.unsupported("`barrier.named` with a number that differs between lanes");
  WarpOp& op = compiler.emit(run_barrier);
  op.code = 1;
  operands_of(op, operands);
}

void compile_converge(KernelCompiler& compiler, const Instr&) { compiler.emit(run_converge); }

void compile_fence(KernelCompiler& compiler, const Instr& instr) { compiler.emit(run_fence).code = instr.op.ends_with("init") ? 1 : 0; }

void compile_report(KernelCompiler& compiler, const Instr& instr) {
  const std::vector<LaneValue> operands = values_of(compiler, instr.operands);
  emit_report(compiler, compiler.value(boolean(true)), operands.at(0), operands.at(1));
}

void compile_vector(KernelCompiler& compiler, const Instr& instr) {
  const bool is_store = instr.op.starts_with("store");
  const Load* registers = as<Load>(instr.operands.at(is_store ? 1 : 0));
  const Load* memory = as<Load>(instr.operands.at(is_store ? 0 : 1));
  if (registers == nullptr || memory == nullptr) internal_error(fmt::format("the operands of `{}` are no places", instr.op));
  VectorSite site;
  site.width = std::stoi(instr.op.substr(instr.op.find(".v") + 2));
  Operand element;
  Operand first;
  site.memory = compiler.memory_site(memory->access, element);
  site.registers = compiler.register_site(registers->access, first);
  if (!first.is_uniform) compiler.unsupported(fmt::format("`{}` of registers whose number differs between lanes", instr.op));
  compiler.program().vector_sites.push_back(std::move(site));
  WarpOp& op = compiler.emit(is_store ? run_vector_store : run_vector_load);
  op.object = &compiler.program().vector_sites.back();
  op.a = element.cell;
  op.b = first.cell;
  op.uniform = element.is_uniform ? 3 : 2;
  compiler.count_access(is_store ? AccessKind::Store : AccessKind::Load, memory->access, compiler.program().vector_sites.back().memory, compiler.program().vector_sites.back().width);
}

LaneValue compile_simple(KernelCompiler& compiler, const Call& call, Dtype dtype, WarpOp::Run run, bool is_uniform) {
  const std::vector<LaneValue> operands = values_of(compiler, call.arguments);
  const Operand result = compiler.new_operand(dtype, is_uniform);
  WarpOp& op = compiler.emit(run);
  operands_of(op, operands);
  op.dst = result.cell;
  op.dtype = dtype;
  return {result, false, std::nullopt};
}

struct StatementRow {
  std::string_view name;
  void (*compile)(KernelCompiler&, const Instr&);
};
constexpr auto statement_rows = std::to_array<StatementRow>({
    {"barrier.block", compile_barrier}, {"barrier.named", compile_named_barrier}, {"barrier.warp", compile_converge},
    {"load.v2", compile_vector}, {"load.v4", compile_vector}, {"load.v8", compile_vector}, {"load.v16", compile_vector},
    {"store.v2", compile_vector}, {"store.v4", compile_vector}, {"store.v8", compile_vector}, {"store.v16", compile_vector},
    {"error.report", compile_report},
    {"cp.async", compile_element_copy}, {"cp.async.fill", compile_element_copy}, {"cp.async.commit", compile_element_commit}, {"cp.async.wait", compile_element_wait},
    {"mbarrier.init", compile_mbarrier_init}, {"mbarrier.arrive", compile_mbarrier_arrive}, {"mbarrier.arrive.expect_tx", compile_mbarrier_arrive},
    {"mbarrier.arrive.cluster", compile_mbarrier_arrive}, {"mbarrier.wait", compile_mbarrier_wait},
    {"fence.mbarrier_init", compile_fence}, {"fence.proxy.async.shared", compile_fence},
    {"cluster.arrive", compile_cluster_arrive}, {"cluster.arrive.relaxed", compile_cluster_arrive}, {"cluster.wait", compile_cluster_wait},
    {"tma.load.2d", compile_box_load}, {"tma.load.2d.multicast", compile_box_load}, {"tma.store.2d", compile_box_store},
    {"tma.load.1d", compile_box_load}, {"tma.load.1d.multicast", compile_box_load}, {"tma.store.1d", compile_box_store},
    {"tma.load.3d", compile_box_load}, {"tma.load.3d.multicast", compile_box_load}, {"tma.store.3d", compile_box_store},
    {"tma.load.4d", compile_box_load}, {"tma.load.4d.multicast", compile_box_load}, {"tma.store.4d", compile_box_store},
    {"tma.load.5d", compile_box_load}, {"tma.load.5d.multicast", compile_box_load}, {"tma.store.5d", compile_box_store},
    {"bulk.commit", compile_bulk_commit}, {"bulk.wait_group", compile_bulk_wait}, {"bulk.wait_group.read", compile_bulk_wait},
    {"wgmma.fence", compile_wgmma_fence}, {"wgmma.commit", compile_wgmma_commit}, {"wgmma.wait", compile_wgmma_wait},
    {"setmaxnreg.inc", compile_registers}, {"setmaxnreg.dec", compile_registers},
    {"ldmatrix.x4", compile_load_matrix}, {"ldmatrix.x4.trans", compile_load_matrix}, {"mma.m16n8k16.bf16", compile_warp_mma}, {"mma.m16n8k16.f16", compile_warp_mma}, {"stmatrix.x4", compile_store_matrix},
});

struct ValueRow {
  std::string_view name;
  WarpOp::Run run;
  bool is_uniform;  // the result is one for the warp
};
constexpr auto value_rows = std::to_array<ValueRow>({
    {"uniform", run_exchange<Exchange::First>, true}, {"elect", run_elect, false},
    {"shuffle.xor", run_exchange<Exchange::Xor>, false}, {"shuffle.up", run_exchange<Exchange::Up>, false},
    {"shuffle.down", run_exchange<Exchange::Down>, false}, {"shuffle.index", run_exchange<Exchange::Index>, false},
    {"vote.any", run_vote<false>, true}, {"vote.all", run_vote<true>, true},
    {"bf16x2", run_pack<Dtype::BF16>, false}, {"f16x2", run_pack<Dtype::F16>, false},
});

}  // namespace

bool executes_instruction(std::string_view name) {
  const auto has_name = [&](const auto& row) { return row.name == name; };
  return std::any_of(statement_rows.begin(), statement_rows.end(), has_name) || std::any_of(value_rows.begin(), value_rows.end(), has_name) || wgmma_form(name) || name == "desc";
}

void compile_instruction(KernelCompiler& compiler, const Instr& instr) {
  for (const StatementRow& row : statement_rows)
    if (row.name == instr.op) return row.compile(compiler, instr);
  if (wgmma_form(instr.op)) return compile_wgmma(compiler, instr);
  compiler.unsupported(fmt::format("the instruction `{}`", instr.op));
}

LaneValue compile_instruction(KernelCompiler& compiler, const Call& call, Dtype dtype) {
  for (const ValueRow& row : value_rows)
    if (row.name == call.function) return compile_simple(compiler, call, dtype, row.run, row.is_uniform);
  if (call.function == "desc") return compile_descriptor(compiler, call);
  compiler.unsupported(fmt::format("the instruction `{}`", call.function));
}

void emit_report(KernelCompiler& compiler, const LaneValue& condition, const LaneValue& site, const LaneValue& value) {
  WarpOp& op = compiler.emit(run_report);
  operands_of(op, {site, value, condition});
}

}  // namespace tilewright
