// Reductions: their indices, the type that they add in, and what `skip` leaves out of them.
#include <fmt/format.h>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"

namespace tilewright {

Dtype FnBuilder::accumulator(const AstReduction& ast) {
  const ValueType body = type_of(ast.body);
  switch (ast.word) {
    case ReductionWord::Any:
    case ReductionWord::All:
      return Dtype::Bool;
    case ReductionWord::Count:
      return ast.accumulator.value_or(Dtype::I32);
    case ReductionWord::Mean:
      return ast.accumulator.value_or(body.is(Dtype::F64) ? Dtype::F64 : Dtype::F32);
    case ReductionWord::Sum:
    case ReductionWord::Prod:
    case ReductionWord::Max:
    case ReductionWord::Min:
      break;
    case ReductionWord::ArgMax:
    case ReductionWord::ArgMin:
      return accumulator_of(settled(body));  // what is compared; a stated type is the result's
  }
  return ast.accumulator.value_or(accumulator_of(settled(body)));
}

namespace {

CombineOp combine_of(ReductionWord word) {
  switch (word) {
    case ReductionWord::Sum:
    case ReductionWord::Count:
    case ReductionWord::Mean:
      return CombineOp::Add;
    case ReductionWord::Prod:
      return CombineOp::Mul;
    case ReductionWord::Max:
    case ReductionWord::ArgMax:
      return CombineOp::Max;
    case ReductionWord::Min:
    case ReductionWord::ArgMin:
      return CombineOp::Min;
    case ReductionWord::Any:
      return CombineOp::Or;
    case ReductionWord::All:
      return CombineOp::And;
  }
  internal_error("a reduction that is none");
}

}  // namespace

// A scan is a reduction up to where its statement stands: over j in 0 .. i + 1 for `j <= i`, and from the end, with
// E - 1 - j in j's place, over 0 .. E - i for `j >= i`.
Expr FnBuilder::scanned(BinaryOp scan, const Axis& axis, const Expr& limit, const Expr& whole) {
  const bool is_forward = scan == BinaryOp::Le || scan == BinaryOp::Lt;
  const Expr& extent = axis.hi;
  Expr terms = is_forward ? limit : extent - limit;
  if (scan == BinaryOp::Le) terms = terms + 1;
  if (scan == BinaryOp::Gt) terms = terms + -1;
  if (!facts_.proves_not_negative(extent - terms)) terms = binary(BinaryOp::Min, terms, extent);
  const Reduce& node = *as<Reduce>(whole);
  const auto turned = [&](const Expr& part) {
    return is_forward ? part : substitute(part, {{axis.name, extent - var(axis.name) + -1}});
  };
  std::vector<Expr> where;
  for (const Expr& condition : node.where) where.push_back(turned(condition));
  return reduce(node.op, {Axis{axis.name, integer(0), terms, {}, axis.span}}, std::move(where), turned(node.body), whole->dtype, whole->span);
}

Expr FnBuilder::reduction(const AstReduction& ast, Span span) {
  const std::size_t outer = indices_.size();
  const std::size_t known = facts_.mark();
  const auto leave = [&](Expr result) {
    indices_.resize(outer);
    facts_.forget_since(known);
    return result;
  };
  Expr limit;
  if (ast.scan) {
    limit = leaf(ast.axes[0].hi, Dtype::Index);
    if (!limit) return leave({});
  }
  for (const AstRange& axis : ast.axes) {
    std::vector<Use> uses;
    collect_uses(ast.body, axis.name.text, false, uses);
    const std::string help = ast.scan ? fmt::format("a scan goes along a dimension that its index alone subscripts, as in `X[{}]`", axis.name.text)
                                      : fmt::format("state its range: `{}[{} in 0..n]`", name_of(ast.word), axis.name.text);
    if (!open_index(axis, uses, help)) return leave({});
  }
  const Dtype dtype = accumulator(ast);
  skips_.push_back(Skips{{}, guards_.size()});
  Expr body = ast.word == ReductionWord::Count ? value(ast.body) : leaf(ast.body, dtype);
  const std::vector<Expr> where = std::move(skips_.back().where);
  skips_.pop_back();
  if (!body) return leave({});
  body = cast(dtype, body, ast.body->span);
  std::vector<Axis> axes = axes_of(outer);
  if (ast.scan) return leave(scanned(*ast.scan, axes[0], limit, reduce(combine_of(ast.word), axes, where, std::move(body), dtype, span)));
  if (ast.word == ReductionWord::ArgMax || ast.word == ReductionWord::ArgMin)
    return leave(reduce(combine_of(ast.word), axes, where, std::move(body), ast.accumulator.value_or(Dtype::I32), span, true));
  Expr result = reduce(combine_of(ast.word), axes, where, std::move(body), dtype, span);
  if (ast.word != ReductionWord::Mean) return leave(std::move(result));
  // The terms that are there: counted one by one where some are skipped, else the product of the extents.
  Expr count;
  if (!where.empty()) {
    count = reduce(CombineOp::Add, axes, where, integer(1, Dtype::I32), Dtype::I32, span);
  } else {
    count = integer(1);
    for (const Axis& axis : axes) {
      Expr extent = axis.hi - axis.lo;
      if (!facts_.proves_not_negative(extent)) extent = binary(BinaryOp::Max, extent, integer(0));
      count = count * extent;
    }
  }
  return leave(binary(BinaryOp::Div, result, cast(dtype, count, span), span));
}

}  // namespace tilewright
