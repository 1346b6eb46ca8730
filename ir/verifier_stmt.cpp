// The verifier's rules of statements: what stands at which stage and where, names, loops, buffers, stores.
#include <fmt/format.h>

#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace tilewright {

namespace {

bool is_outer(LoopKind kind) {
  return kind == LoopKind::Parallel || kind == LoopKind::Grid || kind == LoopKind::Cluster || kind == LoopKind::Ordered;
}

std::optional<std::int64_t> constant_extent(const Axis& axis) {
  const auto lo = integer_value(axis.lo);
  const auto hi = integer_value(axis.hi);
  const auto step = axis.step ? integer_value(axis.step) : 1;
  if (!lo || !hi || !step || *step <= 0) return std::nullopt;
  return *hi > *lo ? (*hi - *lo + *step - 1) / *step : 0;
}

}  // namespace

// Whether the pipes stand behind a body as they did before it, and those that it declared are closed.
bool Verifier::continues(const std::map<std::string, Window>& before, const std::map<std::string, Window>& after) {
  for (const auto& [pipe, window] : after) {
    const auto found = before.find(pipe);
    if (window != (found == before.end() ? Window{} : found->second)) return false;
  }
  return true;
}

bool Verifier::needs_tile_stage(std::string_view what) {
  if (!at_thread_stage()) return true;
  fault(fmt::format("{} stands at the tile stage only", what));
  return false;
}

bool Verifier::needs_block_level(std::string_view what) {
  if (!needs_tile_stage(what)) return false;
  if (in_each_) fault(fmt::format("{} stands inside `each`, whose body is one thread's own", what));
  return true;
}

void Verifier::check(const Block& body) {
  const std::size_t mark = declared_.size();
  for (const Stmt& stmt : body) check(stmt);
  leave_scope(mark);
}

void Verifier::check(const Stmt& stmt) {
  if (!stmt) return fault("a statement is missing");
  path_.push_back(&stmt);
  match(
      stmt, [&](const Loop& node) { check_loop(node); }, [&](const If& node) { check_branch(node); },
      [&](const Buffer& node) { check_buffer(node); }, [&](const Let& node) { check_let(node); },
      [&](const Store& node) { check_store(node); }, [&](const Copy& node) { check_copy(node); },
      [&](const Fill& node) { check_fill(node); }, [&](const Mma& node) { check_mma(node); },
      [&](const Fold& node) { check_fold(node); }, [&](const Pipe& node) { check_pipe(node); },
      [&](const Verb& node) { check_verb(node); }, [&](const Role& node) { check_role(node); },
      [&](const Labelled& node) { check_labelled(node); }, [&](const Chain& node) { check_chain(node); },
      [&](const Publish& node) { check_publish(node); }, [&](const Lookback& node) { check_lookback(node); },
      [&](const Instr& node) { check_instr(node); });
  path_.pop_back();
}

void Verifier::check_place_of_loop(LoopKind kind) {
  const bool is_new_context = is_outer(kind) || kind == LoopKind::Each;
  if (!is_new_context) return;
  if (at_thread_stage()) return fault("a parallel loop stands at the tile stage only");
  if (in_each_) return fault("a parallel loop stands inside `each`");
  for (LoopKind around : loops_) {
    if (around == LoopKind::Vector) fault("a loop stands inside `vector`, which must be innermost");
    if (is_outer(kind) && kind != LoopKind::Parallel && !is_outer(around)) fault("a loop over blocks stands inside a loop of one block");
  }
  if (kind == LoopKind::Cluster && (loops_.empty() || loops_.back() != LoopKind::Grid)) fault("`cluster` does not stand directly inside `grid`");
}

void Verifier::check_constant_bounds(const Axis& axis, std::string_view word) {
  if (!constant_extent(axis)) fault(fmt::format("`{}` needs constant bounds: `{}`", word, print_axis(axis)));
}

void Verifier::check_loop(const Loop& node) {
  check_place_of_loop(node.kind);
  if (node.axes.empty()) fault("a loop without axes");
  const std::size_t mark = declared_.size();
  std::vector<NamedAxis> axes;
  for (const Axis& axis : node.axes) {
    check_integer(axis.lo, "a bound");
    check_integer(axis.hi, "a bound");
    if (axis.step) {
      check_integer(axis.step, "a step");
      if (const auto step = integer_value(axis.step); step && *step <= 0) fault(fmt::format("step {} is not positive", *step));
    }
    if (node.kind == LoopKind::Unroll) check_constant_bounds(axis, "unroll");
    if (node.kind == LoopKind::Vector) check_constant_bounds(axis, "vector");
    Symbol symbol{Kind::Loop};
    symbol.loop = node.kind;
    declare(axis.name, symbol);
    axes.push_back({axis.name, constant_extent(axis)});
  }
  if (node.kind == LoopKind::Vector)
    walk(node.body, [&](const Stmt& inner) {
      if (as<Loop>(inner)) fault("a loop stands inside `vector`, which must be innermost");
      return true;
    });
  if (node.deal) {
    if (node.kind != LoopKind::Each) fault("only `each` has a deal");
    check_layout(*node.deal, axes, "deal", "thread.x thread.y thread.z thread lane warp warpgroup step vector");
  }
  const auto windows = windows_;
  const bool outer_each = in_each_;
  in_each_ |= node.kind == LoopKind::Each;
  loops_.push_back(node.kind);
  check(node.body);
  loops_.pop_back();
  in_each_ = outer_each;
  if (!continues(windows, windows_)) fault("the verbs of a pipe do not match within the loop");
  windows_ = windows;
  leave_scope(mark);
}

void Verifier::check_branch(const If& node) {
  check_condition(node.condition);
  const auto windows = windows_;
  check(node.then_body);
  const auto after = windows_;
  windows_ = windows;
  check(node.else_body);
  if (!continues(windows, after) || !continues(windows, windows_)) fault("the verbs of a pipe do not match within the branch");
}

void Verifier::check_buffer(const Buffer& node) {
  std::vector<NamedAxis> axes;
  for (const BufferAxis& axis : node.axes) {
    if (axis.extent < 1) fault(fmt::format("extent {} of `{}`", axis.extent, node.name));
    if (axis.name.empty() && !at_thread_stage()) fault(fmt::format("an axis of `{}` has no name", node.name));
    for (const NamedAxis& known : axes)
      if (!axis.name.empty() && known.name == axis.name) fault(fmt::format("two axes of `{}` are named `{}`", node.name, axis.name));
    axes.push_back({axis.name, axis.extent});
  }
  const bool is_shared = node.space == Space::Shared;
  if (is_shared && in_each_) fault(fmt::format("`{}` is shared and declared inside `each`", node.name));
  if (node.dtype == Dtype::Mbarrier && (!is_shared || !at_thread_stage())) fault("an mbarrier is shared, at the thread stage");
  if (node.offset && !is_shared) fault(fmt::format("register buffer `{}` has a byte offset", node.name));
  if (node.offset && !at_thread_stage()) fault("a byte offset stands at the thread stage only");
  if (node.layout) {
    if (needs_tile_stage("a layout"))
      check_layout(*node.layout, axes, "layout", is_shared ? "mem" : "reg lane warp warpgroup thread.x thread.y thread.z thread");
    if (in_each_) fault(fmt::format("`{}` is a thread's own and has a layout", node.name));
  }
  Symbol symbol{is_shared ? Kind::Shared : Kind::Register, node.dtype, node.axes.size(), &node};
  symbol.is_private = in_each_;
  declare(node.name, symbol);
}

void Verifier::check_let(const Let& node) {
  check(node.value);
  if (node.lo) check_integer(node.lo, "a bound");
  if (node.hi) check_integer(node.hi, "a bound");
  Symbol symbol{Kind::Let};
  if (node.value) symbol.dtype = node.value->dtype;
  symbol.is_private = in_each_;
  declare(node.name, symbol);
}

void Verifier::check_where(const std::vector<Expr>& where) {
  if (where.empty() || !needs_tile_stage("`where`")) return;
  for (const Expr& condition : where) check_condition(condition);
}

void Verifier::check_store(const Store& node) {
  const Symbol* symbol = check_access(node.target);
  check(node.value);
  check_where(node.where);
  if (!symbol) return;
  const std::string& name = node.target.buffer;
  if (node.value && node.value->dtype != symbol->dtype)
    fault(fmt::format("`{}` of {} is given {}", name, info(symbol->dtype).name, info(node.value->dtype).name), node.value->span);
  if (!symbol->is_writable) fault(fmt::format("`{}` is an input and is written", name), node.target.span);
  check_rule(node.target.rule, symbol->dtype);
  switch (node.target.rule.kind) {
    case Rule::Kind::None: case Rule::Kind::Skip: case Rule::Kind::Check: break;
    case Rule::Kind::Fill: case Rule::Kind::Clamp: case Rule::Kind::Wrap: case Rule::Kind::Mirror:
      fault(fmt::format("`{}`: the target of a store skips or checks", print_access(node.target)));
  }
  if (!node.atomic) return;
  if (symbol->kind == Kind::Register) fault(fmt::format("`{}` is a register, and `atomic` combines into memory", name));
  const bool is_bitwise = *node.atomic == CombineOp::And || *node.atomic == CombineOp::Or;
  if (is_bitwise && is_float(symbol->dtype)) fault(fmt::format("`{}=` of {}", info(*node.atomic).spelling, info(symbol->dtype).name));
}

void Verifier::check_instr(const Instr& node) {
  const bool is_report = node.op == "error.report";  // `guard` writes it before the thread stage is reached
  if (!at_thread_stage() && !is_report) return fault(fmt::format("instruction `{}` stands at the thread stage only", node.op));
  const InstrInfo* row = find_instruction(node.op);
  whole_arrays_ = true;
  for (const Expr& operand : node.operands) check(operand);
  whole_arrays_ = false;
  if (!row) return fault(fmt::format("instruction `{}` is not known", node.op));
  if (row->result) fault(fmt::format("`{}` gives a value and stands as a statement", node.op));
  const auto count = static_cast<int>(node.operands.size());
  if (count < row->min_operands || count > row->max_operands)
    return fault(fmt::format("`{}` takes {} operands, and {} stand here", node.op, row->min_operands, count));
  for (std::size_t n = 0; n < node.operands.size(); ++n)
    if (takes_constant(*row, n) && !integer_value(node.operands[n]))
      fault(fmt::format("operand {} of `{}` is a constant", n + 1, node.op), node.operands[n]->span);
  if (!node.op.starts_with("load.v") && !node.op.starts_with("store.v")) return;
  const bool is_load = node.op.starts_with("load.v");
  const Load* registers = as<Load>(node.operands[is_load ? 0 : 1]);
  const Load* memory = as<Load>(node.operands[is_load ? 1 : 0]);
  const Symbol* from = registers ? find_buffer(registers->access.buffer) : nullptr;
  const Symbol* to = memory ? find_buffer(memory->access.buffer) : nullptr;
  if (!from || from->kind != Kind::Register || !to || to->kind == Kind::Register)
    return fault(fmt::format("`{}` moves between a register and a place in memory", node.op));
  if (from->dtype != to->dtype) fault(fmt::format("`{}` of {} and {}", node.op, info(from->dtype).name, info(to->dtype).name));
  if (!is_load && !to->is_writable) fault(fmt::format("`{}` is an input and is written", memory->access.buffer));
}

}  // namespace tilewright
