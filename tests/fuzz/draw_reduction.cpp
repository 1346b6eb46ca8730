// Draws reductions: their words, ranges of every kind, and bodies.
#include <fmt/format.h>

#include "tests/fuzz/draw_scope.h"

namespace tilewright::fuzz {

namespace {

// True where an access without a rule subscripts a dimension by the name alone: then its range need not be written. What
// stands in a branch counts for less.
bool is_bounded_by(const Term& term, const std::string& name, const std::string& extent, bool is_certain) {
  if (term.kind == TermKind::Access && term.rule.empty() && is_certain)
    for (const Term& index : term.kids)
      if (index.kind == TermKind::Literal && index.text == name) return true;
  for (std::size_t n = 0; n < term.kids.size(); ++n) {
    const bool is_branch = (term.kind == TermKind::If && n > 0) || (term.kind == TermKind::Binary && n > 0 && (term.text == "and" || term.text == "or"));
    if (is_bounded_by(term.kids[n], name, extent, is_certain && !is_branch)) return true;
  }
  return false;
}

// The range of a reduced index: over an extent, constant, up to another index, around 0, or from a tensor.
Range draw_range(Scope& scope, DrawnIndex& index) {
  Random& random = scope.random();
  Range range{index.name, {}, false};
  const auto between = [&](Term lo, Term hi, bool is_inclusive) {
    range.bounds = {std::move(lo), std::move(hi)};
    range.is_inclusive = is_inclusive;
  };
  std::vector<DrawnIndex> plain;
  for (const DrawnIndex& each : scope.indices)
    if (!each.extent.empty()) plain.push_back(each);
  switch (random.weighted({62, 12, plain.empty() ? 0 : 6, 8, plain.empty() ? 0 : 6, 4})) {
    case 0:
      index.extent = scope.extent();
      between(literal("0"), literal(index.extent), false);
      break;
    case 1:
      index.extent = std::to_string(1 + random.below(4));
      between(literal("0"), literal(index.extent), false);
      break;
    case 2: {  // a triangle: the index stays inside of what the other one subscripts
      const DrawnIndex& other = random.pick(plain);
      between(literal("0"), literal(other.name), random.chance(60));
      break;
    }
    case 3: {
      const std::string reach = std::to_string(1 + random.below(2));
      between(literal("-" + reach), literal(reach), true);
      break;
    }
    case 4: {
      const DrawnIndex& row = random.pick(plain);
      const std::string name = scope.tensor(Dtype::I32, {row.extent + " + 1"}).name;
      Term next = make_term(TermKind::Access, name, {make_term(TermKind::Binary, "+", {literal(row.name), literal("1")})});
      between(make_term(TermKind::Access, name, {literal(row.name)}), std::move(next), false);
      break;
    }
    default: between(literal("0"), literal(scope.scalar(Dtype::I32)), random.chance(50)); break;
  }
  return range;
}

// What the terms of a reduction of this value may be of, and the suffix that it needs.
Dtype term_dtype(Random& random, Dtype dtype, std::string& suffix) {
  const auto with_suffix = [&](std::initializer_list<Dtype> own, std::initializer_list<Dtype> widened) {
    if (random.chance(75)) return random.pick(own);
    suffix = "." + std::string(info(dtype).name);
    return random.pick(widened);
  };
  if (dtype == Dtype::F32) return with_suffix({Dtype::F32, Dtype::F32, Dtype::F16, Dtype::BF16}, {Dtype::F32, Dtype::I32, Dtype::U8});
  if (dtype == Dtype::F64) return with_suffix({Dtype::F64}, {Dtype::F32, Dtype::F16, Dtype::I32});
  if (dtype == Dtype::I32) return random.pick({Dtype::I32, Dtype::I32, Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::Bool});
  if (dtype == Dtype::I64) return with_suffix({Dtype::I64}, {Dtype::I32, Dtype::U32, Dtype::U8});
  if (dtype == Dtype::U64) return with_suffix({Dtype::U64}, {Dtype::U32, Dtype::U8});
  return dtype;
}

}  // namespace

Term draw_reduction(Scope& scope, Dtype dtype, int depth) {
  Random& random = scope.random();
  const bool has_own_accumulator = dtype == Dtype::Bool || info(dtype).bits >= 32;
  if (!has_own_accumulator) return make_term(TermKind::Call, std::string(info(dtype).name), {draw_reduction(scope, is_float(dtype) ? Dtype::F32 : Dtype::I32, depth)});
  Term result = make_term(TermKind::Reduction, "", {});
  const std::size_t outer = scope.indices.size();
  const bool was_skipping = scope.may_skip;
  const std::size_t count = random.weighted({0, 75, 25});
  std::vector<DrawnIndex> drawn;
  for (std::size_t n = 0; n < count; ++n) {
    DrawnIndex index{scope.fresh_index(), ""};
    result.ranges.push_back(draw_range(scope, index));
    drawn.push_back(index);
  }
  scope.indices.insert(scope.indices.end(), drawn.begin(), drawn.end());
  ++scope.reductions;
  std::string suffix;
  if (dtype == Dtype::Bool) {
    result.text = random.pick({"any", "all"});
    result.kids = {draw_condition(scope, depth)};
  } else if ((dtype == Dtype::I32 && random.chance(16)) || (dtype == Dtype::I64 && random.chance(25))) {
    result.text = random.pick({"argmax", "argmin"}) + std::string(dtype == Dtype::I64 ? ".i64" : "");
    result.kids = {draw_value(scope, random.pick({Dtype::F32, Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16, Dtype::I32, Dtype::I64, Dtype::U8, Dtype::I16, Dtype::U32}), depth)};
  } else if (dtype == Dtype::I32 && random.chance(20)) {
    result.text = "count";
    scope.may_skip = true;
    result.kids = {draw_condition(scope, depth)};
  } else if (is_float(dtype) && random.chance(12)) {
    result.text = "mean";
    scope.may_skip = true;
    result.kids = {draw_value(scope, dtype, depth)};
  } else {
    const Dtype terms = term_dtype(random, dtype, suffix);
    scope.may_skip = true;
    result.text = random.pick({"sum", "sum", "sum", "max", "min", "prod"}) + suffix;
    result.kids = {draw_value(scope, terms, depth)};
  }
  scope.may_skip = was_skipping;
  --scope.reductions;
  scope.indices.resize(outer);
  for (std::size_t n = 0; n < count; ++n)
    if (!drawn[n].extent.empty() && random.chance(60) && is_bounded_by(result.kids[0], drawn[n].name, drawn[n].extent, true)) result.ranges[n].bounds.clear();
  return result;
}

}  // namespace tilewright::fuzz
