// The verifier's rules of tensor IR: typed statements whose indices have ranges.
#include <fmt/format.h>

#include <algorithm>

#include "ir/operators.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace tilewright {

namespace {

// A plan with the fn's signature, for the rules that both share.
Plan signature_of(const TensorFn& fn) {
  Plan plan;
  plan.name = fn.name;
  for (const std::string& name : fn.dims) plan.dims.push_back(Dim{name, {}});
  plan.params = fn.params;
  plan.temps = fn.lets;
  plan.errors = fn.errors;
  if (!fn.errors.empty()) plan.error_name = "error";
  return plan;
}

}  // namespace

void Verifier::declare_axes(const std::vector<Axis>& axes) {
  for (const Axis& axis : axes) {
    check_integer(axis.lo, "a bound");
    check_integer(axis.hi, "a bound");
    if (axis.step) check_integer(axis.step, "a step");
    declare(axis.name, {Kind::Loop});
  }
}

void Verifier::check_reduce(const Reduce& node, Dtype dtype) {
  const std::size_t mark = declared_.size();
  declare_axes(node.axes);
  for (const Expr& condition : node.where) check_condition(condition);
  if (!node.gives_index) {
    check_typed(node.body, dtype, "the body of a reduction");
  } else {
    check(node.body);
    if (!is_integer(dtype) || (node.op != CombineOp::Max && node.op != CombineOp::Min) || node.axes.size() != 1 || (node.body && node.body->dtype == Dtype::Bool))
      fault("the index of an extreme is an integer, over one axis, of numbers");
  }
  leave_scope(mark);
}

void Verifier::check(const TensorStmt& stmt) {
  tensor_stmt_ = print(stmt);
  const std::size_t mark = declared_.size();
  declare_axes(stmt.axes);
  const Symbol* target = check_access(Access{stmt.target, stmt.index, stmt.rule, stmt.span});
  for (const Expr& condition : stmt.where) check_condition(condition);
  check(stmt.value);
  if (target && stmt.value && stmt.value->dtype != target->dtype)
    fault(fmt::format("`{}` of {} is given {}", stmt.target, info(target->dtype).name, info(stmt.value->dtype).name), stmt.span);
  if (target && !target->is_writable) fault(fmt::format("`{}` is an input and is written", stmt.target), stmt.span);
  if (target && stmt.rule.kind == Rule::Kind::Check) check_rule(stmt.rule, target->dtype);
  if (stmt.rule.kind != Rule::Kind::None && stmt.rule.kind != Rule::Kind::Skip && stmt.rule.kind != Rule::Kind::Check)
    fault(fmt::format("the target `{}` skips or checks", stmt.target), stmt.span);
  if (!stmt.combine) {
    std::vector<std::string> names;
    for (const Expr& index : stmt.index)
      if (const Var* name = as<Var>(index)) names.push_back(name->name);
    std::vector<std::string> axes;
    for (const Axis& axis : stmt.axes) axes.push_back(axis.name);
    const bool is_plain = names.size() == stmt.index.size();
    std::sort(names.begin(), names.end());
    std::sort(axes.begin(), axes.end());
    if (!is_plain || names != axes) fault("`=` does not have each of its axes once on its left side", stmt.span);
  }
  leave_scope(mark);
  tensor_stmt_.clear();
}

std::vector<Diagnostic> Verifier::run(const TensorFn& fn) {
  names_of_plan();
  for (const TensorStmt& stmt : fn.statements) check(stmt);
  return std::move(found_);
}

std::vector<std::string> verify(const TensorFn& fn) {
  const Plan plan = signature_of(fn);
  std::vector<std::string> texts;
  for (Diagnostic& diagnostic : Verifier(plan).run(fn)) texts.push_back(std::move(diagnostic.message));
  return texts;
}

}  // namespace tilewright
