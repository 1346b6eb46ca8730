// Control: branches, calls with their parameters, barriers, printf, assertions, traps.
#include <fmt/format.h>

#include "runtime/ptx/access.h"
#include "runtime/ptx/lanes.h"
#include "runtime/ptx/print.h"

namespace tilewright::ptx {

namespace {

void decode_branch(Builder& builder, const Instruction&) { builder.add(nullptr).step = Step::Branch; }

void decode_trap(Builder& builder, const Instruction&) { builder.add(nullptr).step = Step::Trap; }

void run_nothing(const Op&, Warp&, LaneMask) {}

void decode_barrier(Builder& builder, const Instruction& at) {
  if (at.has("warp")) {
    const Row mask = builder.read(at, 0, 32);
    Op& op = builder.add(run_nothing);
    op.step = Step::WarpSync;
    op.marks_itself = true;
    op.d = mask;
    return;
  }
  if (at.has("cluster")) builder.unsupported();
  BarrierSite site;
  site.is_aligned = at.words[0] == "bar" || at.has("aligned");
  site.waits = !at.has("arrive");
  const bool is_reduction = at.has("red");
  std::size_t next = is_reduction ? 1 : 0;
  const std::size_t last = at.operands.size() - (is_reduction ? 1 : 0);  // behind the count
  if (at.operands.size() < next + 1 || last > next + 2) builder.unsupported("this form");
  const Row barrier = builder.read(at, next++, 32);
  site.has_count = next < last;
  const Row count = site.has_count ? builder.read(at, next, 32) : 0;
  Row dst = 0, predicate = 0;
  if (is_reduction) {
    site.reduction = at.has("popc") ? BarrierSite::Reduction::Count : at.has("and") ? BarrierSite::Reduction::All : BarrierSite::Reduction::Any;
    site.negates = at.operands[last].is_negated;
    predicate = builder.read(at, last, 1);
    dst = builder.write(at, 0, site.reduction == BarrierSite::Reduction::Count ? 32 : 1);
  }
  Op& op = builder.add(run_nothing);
  op.step = Step::Barrier;
  op.dst = dst;
  op.a = barrier;
  op.b = count;
  op.c = predicate;
  op.marks_itself = true;
  op.object = builder.keep_object(site);
}

// brx.idx: a comparison and a branch for each target.
void run_is_number(const Op& op, Warp& warp, LaneMask lanes) {
  const auto* a = warp.row<std::uint32_t>(op.a);
  LaneMask result = 0;
  for_lanes(lanes, [&](int lane) { result |= a[lane] == static_cast<std::uint32_t>(op.number) ? 1u << lane : 0u; });
  LaneMask& d = warp.predicate(op.dst);
  d = (d & ~lanes) | result;
}

void decode_indexed_branch(Builder& builder, const Instruction& at) {
  if (at.guard >= 0 || at.operands.size() != 2) builder.unsupported("this form");
  const std::vector<std::string>* targets = builder.function().targets_of(at.operands[1].name);
  if (targets == nullptr) builder.unsupported("its targets are missing");
  const Row index = builder.read(at, 0, 32);
  for (std::size_t n = 0; n < targets->size(); ++n) {
    const Row is_it = builder.scratch(1);
    Op& comparison = builder.add(run_is_number);
    comparison.dst = is_it;
    comparison.a = index;
    comparison.number = static_cast<std::int32_t>(n);
    Op& branch = builder.add(nullptr);
    branch.step = Step::Branch;
    branch.guard = is_it;
    builder.jump_to((*targets)[n]);
  }
}

// Parameters are bytes in local memory: those of the call are copied into those of the function.
struct LocalCopy {
  std::int64_t from = 0, to = 0, bytes = 0;
};
void run_local_copy(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const LocalCopy*>(op.object);
  const std::int64_t size = warp.core->launch->program->local_bytes;
  for_lanes(lanes, [&](int lane) {
    std::memcpy(warp.local.data() + lane * size + site.to, warp.local.data() + lane * size + site.from, static_cast<std::size_t>(site.bytes));
    std::memcpy(warp.local_written.data() + lane * size + site.to, warp.local_written.data() + lane * size + site.from, static_cast<std::size_t>(site.bytes));
  });
}

struct PrintSite {
  std::int64_t arguments[5] = {0, 0, 0, 0, 0};  // places of the call's parameters in local memory
  std::int64_t result = -1;
};
template <class T>
T local_value(Warp& warp, int lane, std::int64_t at) {
  T value{};
  std::memcpy(&value, warp.local.data() + lane * warp.core->launch->program->local_bytes + at, sizeof value);
  return value;
}
void run_print(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const PrintSite*>(op.object);
  for_lanes(lanes, [&](int lane) {
    const int count = print_formatted(warp, op, lane, local_value<std::uint64_t>(warp, lane, site.arguments[0]), local_value<std::uint64_t>(warp, lane, site.arguments[1]));
    if (site.result < 0) return;
    const std::int64_t at = lane * warp.core->launch->program->local_bytes + site.result;
    std::memcpy(warp.local.data() + at, &count, sizeof count);
    std::memset(warp.local_written.data() + at, byte_written, sizeof count);
  });
}
void run_failed_assertion(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const PrintSite*>(op.object);
  warp.core->faults->add(warp, op, FaultKind::Trap, lanes, [&](int lane) {
    return fmt::format("{}: the assertion `{}` failed", thread_text(warp, lane), text_at(warp, op, lane, local_value<std::uint64_t>(warp, lane, site.arguments[0])));
  });
  throw Stopped{};
}

constexpr DecodeRow rows[] = {{"bra", decode_branch}, {"brx", decode_indexed_branch}, {"bar", decode_barrier}, {"barrier", decode_barrier}, {"trap", decode_trap}, {"brkpt", decode_trap}};

}  // namespace

std::span<const DecodeRow> control_rows() { return rows; }

std::int64_t Builder::local_place(const Operand& operand) const {
  if (!is_local_variable(operand)) unsupported("a parameter of this form");
  return placed_.at(function_).locals[static_cast<std::size_t>(operand.index)];
}

void Builder::copy_local(std::int64_t from, std::int64_t to, std::int64_t bytes) { add(run_local_copy).object = keep_object(LocalCopy{from, to, bytes}); }

void Builder::call(const Instruction& at) {
  if (at.operands[0].kind != Operand::Kind::Symbol) unsupported("through a pointer");
  const std::string& name = at.operands[0].name;
  const Function* callee = module_.function(name);
  if (callee == nullptr || callee->is_declaration) {
    if (name != "vprintf" && name != "__assertfail") unsupported(fmt::format("of `{}`, which is not in the PTX", name));
    PrintSite site;
    for (std::size_t n = 0; n < at.arguments.size() && n < std::size(site.arguments); ++n) site.arguments[n] = local_place(at.arguments[n]);
    if (!at.results.empty()) site.result = local_place(at.results[0]);
    Op& op = add(name == "vprintf" ? run_print : run_failed_assertion);
    op.object = keep_object(site);
    return;
  }
  if (at.arguments.size() != callee->parameters.size() || at.results.size() != callee->results.size()) unsupported("with another number of parameters");
  const Placed& placed = placed_.at(callee);
  const auto bytes = [&](int formal) { return static_cast<std::int64_t>(callee->variables[static_cast<std::size_t>(formal)].bytes); };
  const auto place = [&](int formal) { return placed.locals[static_cast<std::size_t>(formal)]; };
  for (std::size_t n = 0; n < at.arguments.size(); ++n) copy_local(local_place(at.arguments[n]), place(callee->parameters[n]), bytes(callee->parameters[n]));
  Op& op = add(nullptr);
  op.step = Step::Call;
  op.target = placed.entry;
  op.dst = placed.return_row;
  for (std::size_t n = 0; n < at.results.size(); ++n) copy_local(place(callee->results[n]), local_place(at.results[n]), bytes(callee->results[n]));
}

}  // namespace tilewright::ptx
