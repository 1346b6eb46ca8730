// Draws terms of the language, by the dtype that they shall have.
#include <fmt/format.h>

#include <array>

#include "frontend/types.h"
#include "tests/fuzz/draw_scope.h"

namespace tilewright::fuzz {

namespace {

constexpr std::array all_dtypes = {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I64, Dtype::I32, Dtype::I16,
                                   Dtype::I8,  Dtype::U64, Dtype::U32, Dtype::U16,  Dtype::U8,  Dtype::Bool};

Dtype any_dtype(Random& random) { return all_dtypes[random.below(all_dtypes.size())]; }
std::string name_of(Dtype dtype) { return std::string(info(dtype).name); }

// Indices whose names may stand in an expression: all in scope.
Term draw_index_name(Scope& scope) {
  if (scope.indices.empty()) return literal(std::to_string(scope.random().below(4)));
  return literal(scope.random().pick(scope.indices).name);
}

Term draw_leaf(Scope& scope, Dtype dtype) {
  Random& random = scope.random();
  switch (random.weighted({60, 10, 8, 14})) {
    case 0: return draw_access(scope, dtype);
    case 1: return literal(scope.scalar(dtype));
    case 2: return call(name_of(dtype), {dtype == Dtype::Bool || scope.indices.empty() ? draw_number(scope, Dtype::I32) : random.chance(75) ? draw_index_name(scope) : literal(scope.dim())});
    default: return call(name_of(dtype), {draw_access(scope, any_dtype(random))});
  }
}

const std::vector<std::string> float_functions = {"sqrt", "abs", "floor", "ceil", "round", "trunc", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt", "sin", "cos", "tan",
                                                  "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc"};

Term draw_float_call(Scope& scope, Dtype dtype, int depth) {
  Random& random = scope.random();
  switch (random.weighted({30, 12, 15, 15, 10, dtype == Dtype::F32 && !scope.helpers.empty() ? 12 : 0})) {
    case 0: return call(random.chance(50) ? random.pick({"sqrt", "abs", "floor", "ceil", "round", "trunc"}) : random.pick(float_functions), {draw_value(scope, dtype, depth - 1)});
    case 1: return call(random.pick({"pow", "atan2"}), {draw_value(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1)});
    case 2: return call("min", {draw_value(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1)});
    case 3: {
      Term extremum = call("max", {draw_value(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1)});
      if (random.chance(25)) extremum.kids.push_back(draw_operand(scope, dtype, 0));
      return extremum;
    }
    case 4: return call("fma", {draw_value(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1)});
    default: return call(random.pick(scope.helpers), {draw_value(scope, dtype, depth - 1)});
  }
}

Term draw_if(Scope& scope, Dtype dtype, int depth) {
  Term condition = draw_condition(scope, depth - 1);
  Term branch = draw_value(scope, dtype, depth - 1);
  return make_term(TermKind::If, "", {std::move(condition), std::move(branch), draw_operand(scope, dtype, depth - 1)});
}

// `if 0 <= e < N then A[e, …] else c`: an access without a rule, proved by the condition.
Term draw_guarded(Scope& scope, Dtype dtype) {
  Random& random = scope.random();
  const std::string extent = scope.dim();
  const DrawnTensor tensor = scope.tensor(dtype, {extent});
  Term index = binary(random.pick({"+", "-"}), draw_index_name(scope), literal(std::to_string(random.below(4))));
  Term condition = make_term(TermKind::Compare, "<=", {literal("0"), index, literal(tensor.shape[0])});
  condition.second = "<";
  Term access = make_term(TermKind::Access, tensor.name, {index});
  if (tensor.shape.size() > 1) return draw_access(scope, dtype);
  return make_term(TermKind::If, "", {condition, access, draw_number(scope, dtype)});
}

Term draw_float(Scope& scope, Dtype dtype, int depth) {
  Random& random = scope.random();
  switch (random.weighted({45, 18, 12, 8, 4, scope.reductions < 2 ? 14 : 0, 6})) {
    case 0: {
      Term a = draw_value(scope, dtype, depth - 1), b = draw_operand(scope, dtype, depth - 1);
      if (random.chance(30)) std::swap(a, b);
      return binary(random.pick({"+", "+", "-", "*", "*", "/"}), std::move(a), std::move(b));
    }
    case 1: return draw_float_call(scope, dtype, depth);
    case 2: return draw_if(scope, dtype, depth);
    case 3: return make_term(TermKind::Unary, "-", {draw_value(scope, dtype, depth - 1)});
    case 4: return call(name_of(dtype), {draw_value(scope, any_dtype(random), depth - 1)});
    case 5: return draw_reduction(scope, dtype, depth - 1);
    default: return draw_guarded(scope, dtype);
  }
}

Term draw_integer(Scope& scope, Dtype dtype, int depth) {
  Random& random = scope.random();
  switch (random.weighted({40, 14, 10, 10, 6, 5, 6, scope.reductions < 2 ? 14 : 0, 5})) {
    case 0: {
      Term a = draw_value(scope, dtype, depth - 1), b = draw_operand(scope, dtype, depth - 1);
      if (random.chance(30)) std::swap(a, b);
      return binary(random.pick({"+", "-", "*", "/", "%", "&", "|", "^"}), std::move(a), std::move(b));
    }
    case 1: return binary(random.pick({"<<", ">>"}), draw_value(scope, dtype, depth - 1), random.chance(60) ? literal(std::to_string(random.below(9))) : draw_value(scope, dtype, depth - 1));
    case 2: return call(random.pick({"min", "max"}), {draw_value(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1)});
    case 3: return draw_if(scope, dtype, depth);
    case 4: return make_term(TermKind::Unary, random.pick({"-", "~"}), {draw_value(scope, dtype, depth - 1)});
    case 5: return random.chance(60) ? call("abs", {draw_value(scope, dtype, depth - 1)}) : call("ceildiv", {draw_value(scope, dtype, depth - 1), literal(random.pick({"1", "3", "7"}))});
    case 6: return call(name_of(dtype), {draw_value(scope, any_dtype(random), depth - 1)});
    case 7: return draw_reduction(scope, dtype, depth - 1);
    default: return draw_guarded(scope, dtype);
  }
}

}  // namespace

Term draw_number(Scope& scope, Dtype dtype) {
  Random& random = scope.random();
  if (dtype == Dtype::Bool) return literal(random.pick({"true", "false"}));
  if (is_float(dtype)) return literal(random.pick({"0", "1", "2", "0.5", "-1.5", "3.0", "0.1", "100.0", "-0.0", "1e-3", "inf", "-inf", "nan", "0.0", "1.0"}));
  if (is_signed(dtype) && random.chance(15)) return literal(random.pick({"-1", "-2", "-7", "-128"}));
  if (random.chance(8)) return literal(info(dtype).bits == 8 ? "127" : info(dtype).bits == 16 ? "32767" : "2147483647");
  return literal(std::to_string(random.below(random.chance(80) ? 5 : 101)));
}

Term draw_index(Scope& scope, const std::string& extent, bool& is_from_data) {
  Random& random = scope.random();
  const Term index = draw_index_name(scope);
  const auto number = [&](std::size_t most) { return literal(std::to_string(random.below(most) + 1)); };
  switch (random.weighted({24, 10, 8, 8, 6, 8, 5, 5, 20, 4})) {
    case 0: return binary(random.pick({"+", "-"}), index, number(3));
    case 1: return binary("+", binary("*", number(3), index), literal(std::to_string(random.below(3))));
    case 2: return binary(random.pick({"+", "-"}), index, draw_index_name(scope));
    case 3: return literal(std::to_string(random.below(4)));
    case 4: return binary("-", binary("-", literal(extent), literal("1")), index);
    case 5: return binary(random.pick({"/", "%"}), index, number(3));
    case 6: return binary("+", index, literal(scope.scalar(Dtype::I32)));
    case 7: return call(random.pick({"min", "max"}), {index, number(3)});
    case 8: {
      is_from_data = true;
      const Dtype dtype = random.pick({Dtype::I32, Dtype::I32, Dtype::U8, Dtype::I64, Dtype::U32, Dtype::I8, Dtype::U16});
      std::vector<DrawnIndex> plain;
      for (const DrawnIndex& each : scope.indices)
        if (!each.extent.empty()) plain.push_back(each);
      if (plain.empty()) return literal(scope.scalar(dtype));
      const DrawnIndex& along = random.pick(plain);
      const DrawnTensor tensor = scope.tensor(dtype, {along.extent});
      Term read = make_term(TermKind::Access, tensor.name, std::vector<Term>(tensor.shape.size(), literal(along.name)));
      if (random.chance(80)) return read;
      return binary("+", std::move(read), number(2));
    }
    default: return literal(scope.dim());
  }
}

Term draw_access(Scope& scope, Dtype dtype) {
  Random& random = scope.random();
  std::vector<DrawnIndex> plain;
  for (const DrawnIndex& each : scope.indices)
    if (!each.extent.empty()) plain.push_back(each);
  // A tensor over some of the indices in scope, in any order.
  std::vector<std::string> shape;
  std::vector<std::string> names;
  const std::size_t rank = plain.empty() ? (random.chance(50) ? 0 : 1) : std::min<std::size_t>(plain.size(), random.weighted({2, 60, 40, 8}));
  for (std::size_t n = 0; n < rank; ++n) {
    if (plain.empty()) {
      shape.push_back(scope.extent());
      names.emplace_back();
      continue;
    }
    const std::size_t position = random.below(plain.size());
    shape.push_back(plain[position].extent);
    names.push_back(plain[position].name);
    if (random.chance(95)) plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(position));
  }
  if (rank > 0 && random.chance(8)) {
    shape.push_back(scope.extent());
    names.emplace_back();
  }
  const DrawnTensor tensor = scope.tensor(dtype, shape, !random.chance(12));
  Term access = make_term(TermKind::Access, tensor.name, {});
  bool needs_rule = false, may_go_unruled = true;
  for (std::size_t n = 0; n < tensor.shape.size(); ++n) {
    if (n < shape.size() && shape[n] == tensor.shape[n] && !names[n].empty() && random.chance(82)) {
      access.kids.push_back(literal(names[n]));
      continue;
    }
    bool is_from_data = false;
    access.kids.push_back(draw_index(scope, tensor.shape[n], is_from_data));
    needs_rule = true;
    may_go_unruled = may_go_unruled && is_from_data;
  }
  if (!needs_rule && random.chance(96)) return access;
  if (needs_rule && may_go_unruled && random.chance(50)) return access;
  switch (random.weighted({35, 20, 15, 15, scope.may_skip ? 25 : 0})) {
    case 0: access.rule = print(draw_number(scope, dtype)); break;
    case 1: access.rule = "clamp"; break;
    case 2: access.rule = "wrap"; break;
    case 3: access.rule = "mirror"; break;
    default: access.rule = "skip"; break;
  }
  return access;
}

Term draw_operand(Scope& scope, Dtype dtype, int depth) {
  Random& random = scope.random();
  if (dtype != Dtype::Bool && random.chance(30)) return draw_number(scope, dtype);
  if (!random.chance(20)) return draw_value(scope, dtype, depth);
  std::vector<Dtype> narrower;
  for (const Dtype other : all_dtypes)
    if (other != Dtype::Bool && other != dtype && holds(dtype, other)) narrower.push_back(other);
  return draw_value(scope, narrower.empty() ? dtype : random.pick(narrower), depth);
}

Term draw_condition(Scope& scope, int depth) {
  Random& random = scope.random();
  const auto ordering = [&] { return random.pick({"<", "<=", ">", ">=", "==", "!="}); };
  switch (random.weighted({45, scope.indices.empty() ? 0 : 18, depth > 0 ? 18 : 0, depth > 0 ? 6 : 0, 8, 6, scope.reductions < 2 && depth > 0 ? 8 : 0})) {
    case 0: {
      Dtype dtype = any_dtype(random);
      if (dtype == Dtype::Bool) return make_term(TermKind::Compare, random.pick({"==", "!="}), {draw_value(scope, dtype, depth - 1), draw_value(scope, dtype, depth - 1)});
      Term compare = make_term(TermKind::Compare, ordering(), {draw_value(scope, dtype, depth - 1), draw_operand(scope, dtype, depth - 1)});
      if (random.chance(15)) {
        compare.kids.push_back(draw_operand(scope, dtype, depth - 1));
        compare.second = ordering();
      }
      return compare;
    }
    case 1: return make_term(TermKind::Compare, ordering(), {draw_index_name(scope), random.chance(50) ? draw_index_name(scope) : random.chance(50) ? literal(std::to_string(random.below(5))) : binary("-", literal(scope.dim()), literal("1"))});
    case 2: return binary(random.pick({"and", "or", "&", "|", "^"}), draw_condition(scope, depth - 1), draw_condition(scope, depth - 1));
    case 3: return make_term(TermKind::Unary, "not", {draw_condition(scope, depth - 1)});
    case 4: return random.chance(50) ? draw_access(scope, Dtype::Bool) : literal(scope.scalar(Dtype::Bool));
    case 5: return call(random.pick({"isnan", "isinf"}), {draw_value(scope, random.pick({Dtype::F32, Dtype::F64, Dtype::F16}), depth - 1)});
    default: return draw_reduction(scope, Dtype::Bool, depth - 1);
  }
}

Term draw_value(Scope& scope, Dtype dtype, int depth) {
  if (depth <= 0 || scope.random().chance(15)) return draw_leaf(scope, dtype);
  if (dtype == Dtype::Bool) return draw_condition(scope, depth);
  if (is_narrow_float(dtype)) return scope.random().chance(60) ? draw_leaf(scope, dtype) : call(name_of(dtype), {draw_value(scope, Dtype::F32, depth - 1)});
  return is_float(dtype) ? draw_float(scope, dtype, depth) : draw_integer(scope, dtype, depth);
}

}  // namespace tilewright::fuzz
