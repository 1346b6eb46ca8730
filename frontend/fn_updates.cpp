// `T[…] op= value`: its free indices, and whether it is a reduction or an update of single elements.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"
#include "ir/scalar.h"

namespace tilewright {

bool FnBuilder::has_plain_target(const AstStatement& statement) {
  std::set<std::string> seen;
  return statement.rule.kind == Rule::Kind::None &&
         std::all_of(statement.index.begin(), statement.index.end(), [&](const Ast& index) {
           const AstName* name = as<AstName>(index);
           return name && !is_reserved(name->name) && !has_dim(name->name) && tensors_.count(name->name) == 0 && seen.insert(name->name).second;
         });
}

// Of a scatter: the target's plain names, then every name that is nothing else and alone subscripts something.
std::vector<AstWord> FnBuilder::free_indices_of(const AstStatement& statement) {
  std::vector<AstWord> free;
  std::vector<std::string> bound;
  const auto add = [&](const std::string& name, Span span) {
    const bool is_taken = has_dim(name) || tensors_.count(name) > 0 || is_reserved(name) ||
                          std::find(bound.begin(), bound.end(), name) != bound.end() ||
                          std::any_of(free.begin(), free.end(), [&](const AstWord& word) { return word.text == name; });
    if (!is_taken) free.push_back(AstWord{name, span});
  };
  for (const Ast& index : statement.index)
    if (const AstName* name = as<AstName>(index)) add(name->name, index->span);
  const std::function<void(const Ast&)> look = [&](const Ast& ast) {
    if (!ast) return;
    match(
        ast, [](const AstNumber&) {}, [](const AstName&) {},
        [&](const AstAccess& access) {
          for (const Ast& index : access.index) {
            if (const AstName* name = as<AstName>(index)) add(name->name, index->span);
            look(index);
          }
        },
        [&](const AstCall& call) {
          for (const Ast& argument : call.arguments) look(argument);
        },
        [&](const AstUnary& unary) { look(unary.operand); },
        [&](const AstBinary& binary) {
          look(binary.lhs);
          look(binary.rhs);
        },
        [&](const AstCompare& compare) {
          for (const Ast& operand : compare.operands) look(operand);
        },
        [&](const AstIf& branch) {
          look(branch.condition);
          look(branch.if_true);
          look(branch.if_false);
        },
        [&](const AstReduction& reduction) {
          for (const AstRange& axis : reduction.axes) {
            look(axis.lo);
            look(axis.hi);
          }
          const std::size_t outer = bound.size();
          for (const AstRange& axis : reduction.axes) bound.push_back(axis.name.text);
          look(reduction.body);
          bound.resize(outer);
        });
  };
  for (const Ast& index : statement.index) look(index);
  look(statement.value);
  return free;
}

// `T[…] op= value`: a reduction over the other indices where the target has plain ones, else an update of single
// elements.
void FnBuilder::build_scatter(const AstStatement& statement, Tensor& output, const std::vector<AstWord>& free) {
  const AstWord& name = statement.targets.front();
  const CombineOp op = *statement.combine;
  const ValueType type = free_type_of(free, statement.value);
  if (type.is_unknown()) return;
  if ((op == CombineOp::And || op == CombineOp::Or) && !type.is_any_integer() && !type.is(Dtype::Bool)) {
    sink_.error(statement.value->span,
                fmt::format("`{}=` of {}, but integers or bools are needed", info(op).spelling, describe(type)));
    return;
  }
  if (!check_assignable(statement.value, type, output.dtype, fmt::format("`{}`", name.text))) return;
  if (!open_free_indices(free, statement, &output)) return;
  if (!has_plain_target(statement)) {
    const std::vector<Axis> axes = axes_of(0);
    std::vector<Expr> index = indices(statement.index);
    if (index.size() != output.shape.size()) return;
    Rule rule;
    const std::vector<Escape> open = escapes(index, output.shape);
    if (statement.rule.kind == Rule::Kind::Skip) {
      if (!open.empty()) rule.kind = Rule::Kind::Skip;
    } else if (statement.rule.kind != Rule::Kind::None) {
      sink_.error(statement.rule.span, "the rule of an update is `skip`: what lies outside is not written");
      return;
    } else if (!open.empty()) {
      Span span = join(name.span, statement.index.back()->span);
      ++span.end_column;
      std::vector<Escape> affine;
      for (const Escape& side : open)
        if (!is_from_data(index[side.dim])) affine.push_back(side);
      if (!affine.empty()) return report_escape(name, statement.index, index, affine, output, span);
      rule = Rule{Rule::Kind::Check, {}, new_error_site(load(Access{name.text, index, {}, span}, output.dtype, span))};
    }
    skips_.push_back(Skips{{}, 0});
    Expr value = assigned(statement.value, output.dtype);
    if (!value) return;
    fn_.statements.push_back(TensorStmt{name.text, axes, std::move(index), std::move(rule), skips_.back().where,
                                        std::move(value), op, statement.span});
    output.scattered = op;
    output.is_defined = true;
    return;
  }
  const std::size_t targets = statement.index.size();
  const std::vector<Axis> all = axes_of(0);
  const std::vector<Axis> axes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(targets));
  const std::vector<Axis> reduced(all.begin() + static_cast<std::ptrdiff_t>(targets), all.end());
  // An inout is updated in the wider of both types and rounded once.
  const bool is_update = output.kind == ParamKind::InOut;
  const Dtype arithmetic = is_narrow_float(output.dtype) ? Dtype::F32 : output.dtype;
  Dtype dtype = output.dtype;
  Expr value;
  if (reduced.empty()) {
    if (is_update) dtype = arithmetic;
    value = assigned(statement.value, dtype);
  } else {
    const bool is_logical = type.is(Dtype::Bool) && (op == CombineOp::And || op == CombineOp::Or);
    const Dtype accumulator = is_logical ? Dtype::Bool : accumulator_of(settled(type));
    skips_.push_back(Skips{{}, 0});
    value = leaf(statement.value, accumulator);
    if (is_update) dtype = holds(accumulator, arithmetic) ? accumulator : arithmetic;
    if (value)
      value = cast(dtype, reduce(op, reduced, skips_.back().where, value, accumulator, statement.span), statement.span);
  }
  if (!value) return;
  const std::vector<Expr> index = variables_of(axes);
  if (is_update) {
    const Expr before = cast(dtype, load(Access{name.text, index, {}, name.span}, output.dtype, name.span));
    value = cast(output.dtype, binary(binary_of(op, dtype), before, value, statement.span));
  }
  fn_.statements.push_back(TensorStmt{name.text, axes, index, {}, {}, std::move(value), std::nullopt, statement.span});
  output.is_defined = true;
}

}  // namespace tilewright
