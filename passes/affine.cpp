// Intervals, divisibility and linear forms of index expressions.
#include "passes/affine.h"

#include <algorithm>
#include <numeric>

namespace tilewright {

namespace {

using Bound = std::optional<std::int64_t>;

// Every bound stays far from overflow; what leaves this range counts as unbounded.
constexpr std::int64_t largest = std::int64_t{1} << 60;

Bound limited(std::int64_t value) { return value > largest || value < -largest ? std::nullopt : Bound(value); }

Bound product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : limited(result);
}

Bound add(Bound a, Bound b) { return a && b ? limited(*a + *b) : std::nullopt; }
Bound negate(Bound a) { return a ? Bound(-*a) : std::nullopt; }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Interval multiply(const Interval& a, const Interval& b) {
  auto scaled = [](const Interval& x, std::int64_t factor) -> Interval {
    Bound lo = x.lo ? product(*x.lo, factor) : std::nullopt;
    Bound hi = x.hi ? product(*x.hi, factor) : std::nullopt;
    if (factor == 0) return {0, 0};
    return factor > 0 ? Interval{lo, hi} : Interval{hi, lo};
  };
  if (a.lo && a.lo == a.hi) return scaled(b, *a.lo);
  if (b.lo && b.lo == b.hi) return scaled(a, *b.lo);
  bool both_nonnegative = a.lo && *a.lo >= 0 && b.lo && *b.lo >= 0;
  if (!both_nonnegative) return {};
  return {product(*a.lo, *b.lo),
          a.hi && b.hi ? product(*a.hi, *b.hi) : std::nullopt};
}

Interval of_binary(const Binary& node, const Ranges& ranges) {
  Interval a = interval_of(node.lhs, ranges);
  Interval b = interval_of(node.rhs, ranges);
  switch (node.op) {
    case BinaryOp::Add: return {add(a.lo, b.lo), add(a.hi, b.hi)};
    case BinaryOp::Sub: return {add(a.lo, negate(b.hi)), add(a.hi, negate(b.lo))};
    case BinaryOp::Mul: return multiply(a, b);
    case BinaryOp::Div:
      if (b.lo && b.lo == b.hi && *b.lo > 0)
        return {a.lo ? Bound(floor_div(*a.lo, *b.lo)) : std::nullopt, a.hi ? Bound(floor_div(*a.hi, *b.lo)) : std::nullopt};
      return a.lo && *a.lo >= 0 && b.lo && *b.lo >= 0 ? Interval{0, a.hi} : Interval{};
    case BinaryOp::Mod:
      if (b.lo && b.lo == b.hi && *b.lo > 0) {
        if (a.lo && a.hi && *a.lo >= 0 && *a.hi < *b.lo) return a;
        return {0, *b.lo - 1};
      }
      return {};
    case BinaryOp::Min: {
      Interval result;
      if (a.lo && b.lo) result.lo = std::min(*a.lo, *b.lo);
      result.hi = a.hi && b.hi ? Bound(std::min(*a.hi, *b.hi)) : (a.hi ? a.hi : b.hi);
      return result;
    }
    case BinaryOp::Max: {
      Interval result;
      if (a.hi && b.hi) result.hi = std::max(*a.hi, *b.hi);
      result.lo = a.lo && b.lo ? Bound(std::max(*a.lo, *b.lo)) : (a.lo ? a.lo : b.lo);
      return result;
    }
    case BinaryOp::And: case BinaryOp::Or: case BinaryOp::Eq: case BinaryOp::Ne: case BinaryOp::Lt: case BinaryOp::Le:
    case BinaryOp::Gt: case BinaryOp::Ge: case BinaryOp::BitAnd: case BinaryOp::BitOr: case BinaryOp::BitXor: case BinaryOp::Shl:
    case BinaryOp::Shr: return {};
  }
  return {};
}

}  // namespace

Interval interval_of(const Expr& expr, const Ranges& ranges) {
  if (auto value = integer_value(expr)) return {*value, *value};
  if (const Var* variable = as<Var>(expr)) {
    auto found = ranges.find(variable->name);
    return found == ranges.end() ? Interval{} : found->second;
  }
  if (expr->dtype != Dtype::Index) {  // only types whose arithmetic cannot wrap are followed further
    if (const Load* element = as<Load>(expr); element && is_unsigned(expr->dtype) && info(expr->dtype).bits <= 32)
      return {0, (std::int64_t{1} << info(expr->dtype).bits) - 1};
    return {};
  }
  if (const Binary* node = as<Binary>(expr)) return of_binary(*node, ranges);
  if (const Unary* node = as<Unary>(expr); node && node->op == UnaryOp::Neg) {
    Interval inner = interval_of(node->operand, ranges);
    return {negate(inner.hi), negate(inner.lo)};
  }
  if (const Cast* node = as<Cast>(expr)) {
    if (is_integer(node->operand->dtype) && info(node->operand->dtype).bits <= 32) return interval_of(node->operand, ranges);
    return {};
  }
  if (const Select* node = as<Select>(expr)) {
    Interval a = interval_of(node->if_true, ranges);
    Interval b = interval_of(node->if_false, ranges);
    return {a.lo && b.lo ? Bound(std::min(*a.lo, *b.lo)) : std::nullopt, a.hi && b.hi ? Bound(std::max(*a.hi, *b.hi)) : std::nullopt};
  }
  if (const Call* node = as<Call>(expr); node && node->function == "ceildiv") {
    Interval a = interval_of(node->arguments[0], ranges);
    Interval b = interval_of(node->arguments[1], ranges);
    if (b.lo && b.lo == b.hi && *b.lo > 0)
      return {a.lo ? Bound(-floor_div(-*a.lo, *b.lo)) : std::nullopt, a.hi ? Bound(-floor_div(-*a.hi, *b.lo)) : std::nullopt};
  }
  return {};
}

std::optional<bool> decide(const Expr& condition, const Ranges& ranges) {
  if (const Const* known = as<Const>(condition)) return known->bits != 0;
  if (const Unary* node = as<Unary>(condition); node && node->op == UnaryOp::Not) {
    auto inner = decide(node->operand, ranges);
    return inner ? std::optional<bool>(!*inner) : std::nullopt;
  }
  const Binary* node = as<Binary>(condition);
  if (!node) return std::nullopt;
  if (node->op == BinaryOp::And || node->op == BinaryOp::Or) {
    auto a = decide(node->lhs, ranges);
    auto b = decide(node->rhs, ranges);
    bool settles = node->op == BinaryOp::Or;
    if (a == settles || b == settles) return settles;
    if (a && b) return !settles;
    return std::nullopt;
  }
  if (node->lhs->dtype != Dtype::Index) return std::nullopt;
  Interval difference = interval_of(node->lhs - node->rhs, ranges);
  bool below = difference.hi && *difference.hi < 0;
  bool at_most = difference.hi && *difference.hi <= 0;
  bool above = difference.lo && *difference.lo > 0;
  bool at_least = difference.lo && *difference.lo >= 0;
  switch (node->op) {
    case BinaryOp::Lt: if (below) return true; if (at_least) return false; return std::nullopt;
    case BinaryOp::Le: if (at_most) return true; if (above) return false; return std::nullopt;
    case BinaryOp::Gt: if (above) return true; if (at_most) return false; return std::nullopt;
    case BinaryOp::Ge: if (at_least) return true; if (below) return false; return std::nullopt;
    case BinaryOp::Eq: if (at_most && at_least) return true; if (below || above) return false; return std::nullopt;
    case BinaryOp::Ne: if (below || above) return true; if (at_most && at_least) return false; return std::nullopt;
    case BinaryOp::Add: case BinaryOp::Sub: case BinaryOp::Mul: case BinaryOp::Div: case BinaryOp::Mod: case BinaryOp::Min:
    case BinaryOp::Max: case BinaryOp::And: case BinaryOp::Or: case BinaryOp::BitAnd: case BinaryOp::BitOr:
    case BinaryOp::BitXor: case BinaryOp::Shl: case BinaryOp::Shr: return std::nullopt;
  }
  return std::nullopt;
}

Divisors divisors_of(const std::vector<Fact>& facts) {
  Divisors result;
  for (const Fact& fact : facts) {
    if (fact.kind != Fact::Kind::Condition) continue;
    const Binary* equal = as<Binary>(fact.condition);
    if (!equal || equal->op != BinaryOp::Eq || !is_integer_constant(equal->rhs, 0)) continue;
    const Binary* modulo = as<Binary>(equal->lhs);
    if (!modulo || modulo->op != BinaryOp::Mod) continue;
    const Var* dim = as<Var>(modulo->lhs);
    auto divisor = integer_value(modulo->rhs);
    if (dim && divisor && *divisor > 0) {
      std::int64_t& known = result.emplace(dim->name, 1).first->second;
      known = std::lcm(known, *divisor);
    }
  }
  return result;
}

std::int64_t known_divisor(const Expr& expr, const Divisors& divisors) {
  if (auto value = integer_value(expr)) return std::abs(*value);
  if (const Var* variable = as<Var>(expr)) {
    auto found = divisors.find(variable->name);
    return found == divisors.end() ? 1 : found->second;
  }
  if (const Binary* node = as<Binary>(expr)) {
    std::int64_t a = known_divisor(node->lhs, divisors);
    std::int64_t b = known_divisor(node->rhs, divisors);
    if (node->op == BinaryOp::Add || node->op == BinaryOp::Sub) return std::gcd(a, b);
    if (node->op == BinaryOp::Mul) return product(a, b).value_or(a);
  }
  return 1;
}

std::optional<LinearIn> linear_in(const Expr& expr, const std::string& name) {
  if (!uses_var(expr, name)) return LinearIn{0, expr};
  if (as<Var>(expr)) return LinearIn{1, integer(0)};
  if (const Binary* node = as<Binary>(expr)) {
    auto a = linear_in(node->lhs, name);
    auto b = linear_in(node->rhs, name);
    if (!a || !b) return std::nullopt;
    if (node->op == BinaryOp::Add) return LinearIn{a->coefficient + b->coefficient, a->rest + b->rest};
    if (node->op == BinaryOp::Sub) return LinearIn{a->coefficient - b->coefficient, a->rest - b->rest};
    if (node->op == BinaryOp::Mul) {
      auto x = integer_value(node->lhs);
      auto y = integer_value(node->rhs);
      if (x) return LinearIn{b->coefficient * *x, b->rest * *x};
      if (y) return LinearIn{a->coefficient * *y, a->rest * *y};
    }
  }
  return std::nullopt;
}

namespace {

// For expr = a*n + b: a*n as `multiple` (a), the rest b; by walking the sum.
struct Split {
  Expr quotient;
  Expr rest;
};
Split split_by(const Expr& expr, std::int64_t n) {
  if (auto value = integer_value(expr)) {
    std::int64_t q = floor_div(*value, n);
    return {integer(q), integer(*value - q * n)};
  }
  if (const Binary* node = as<Binary>(expr)) {
    if (node->op == BinaryOp::Add) {
      Split a = split_by(node->lhs, n);
      Split b = split_by(node->rhs, n);
      return {a.quotient + b.quotient, a.rest + b.rest};
    }
    auto factor = node->op == BinaryOp::Mul ? integer_value(node->rhs) : std::nullopt;
    if (factor && *factor % n == 0) return {node->lhs * (*factor / n), integer(0)};
    if (factor && *factor > 0 && n % *factor == 0) {  // (a*m + b)*f is a*(m*f) + b*f
      Split inner = split_by(node->lhs, n / *factor);
      return {inner.quotient, inner.rest * *factor};
    }
  }
  return {integer(0), expr};
}

Expr simplify_node(const Expr& expr, const Ranges& ranges) {
  if (expr->dtype == Dtype::Bool) {
    if (auto known = decide(expr, ranges)) return boolean(*known);
    if (const Binary* node = as<Binary>(expr)) {
      const Const* a = as<Const>(node->lhs);
      const Const* b = as<Const>(node->rhs);
      if (node->op == BinaryOp::And && a && a->bits) return node->rhs;
      if (node->op == BinaryOp::And && b && b->bits) return node->lhs;
      if (node->op == BinaryOp::Or && a && !a->bits) return node->rhs;
      if (node->op == BinaryOp::Or && b && !b->bits) return node->lhs;
    }
    return expr;
  }
  const Binary* node = as<Binary>(expr);
  if (!node || expr->dtype != Dtype::Index) return expr;
  auto n = integer_value(node->rhs);
  if ((node->op == BinaryOp::Div || node->op == BinaryOp::Mod) && n && *n > 0) {
    Split split = split_by(node->lhs, *n);
    Interval rest = interval_of(split.rest, ranges);
    bool rest_inside = rest.lo && *rest.lo >= 0 && rest.hi && *rest.hi < *n;
    if (rest_inside) return node->op == BinaryOp::Div ? split.quotient : split.rest;
    const Binary* term = as<Binary>(split.rest);
    auto by = term ? integer_value(term->rhs) : std::nullopt;
    if (term && term->op == BinaryOp::Mul && by && *by > 1 && *n % *by == 0) {  // x*f / n is x / (n/f)
      Expr unit = integer(*n / *by);
      if (node->op == BinaryOp::Div) return split.quotient + simplify_node(binary(BinaryOp::Div, term->lhs, unit), ranges);
      return simplify_node(binary(BinaryOp::Mod, term->lhs, unit), ranges) * *by;
    }
    if (node->op == BinaryOp::Mod && term && term->op == BinaryOp::Mod && by && *by % *n == 0)  // x % 32 % 8 is x % 8
      return simplify_node(binary(BinaryOp::Mod, term->lhs, node->rhs, expr->span), ranges);
    if (node->op == BinaryOp::Mod && !is_integer_constant(split.quotient, 0)) return binary(BinaryOp::Mod, split.rest, node->rhs, expr->span);
  }
  if (node->op == BinaryOp::Min || node->op == BinaryOp::Max) {
    bool smaller_left = decide(binary(BinaryOp::Le, node->lhs, node->rhs), ranges).value_or(false);
    bool smaller_right = decide(binary(BinaryOp::Le, node->rhs, node->lhs), ranges).value_or(false);
    bool takes_min = node->op == BinaryOp::Min;
    if (smaller_left) return takes_min ? node->lhs : node->rhs;
    if (smaller_right) return takes_min ? node->rhs : node->lhs;
  }
  return expr;
}

}  // namespace

Expr simplify_expr(const Expr& expr, const Ranges& ranges) {
  return rewrite(expr, [&](const Expr& node) { return simplify_node(node, ranges); });
}

}  // namespace tilewright
