// Construction of expressions and the recursion over them.
#include "ir/expr.h"

#include <fmt/format.h>

#include <bit>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "ir/scalar.h"

namespace tilewright {

bool operator==(const Expr& a, const Expr& b) {
  if (a.node_ == b.node_) return true;
  if (!a.node_ || !b.node_) return false;
  return *a.node_ == *b.node_;
}

Expr make_expr(ExprVariant value, Dtype dtype, Span span) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{std::move(value), dtype, span}));
}

Expr integer(std::int64_t value, Dtype dtype, Span span) { return make_expr(Const{value}, dtype, span); }

Expr real(double value, Dtype dtype, Span span) {
  if (dtype == Dtype::F32) value = static_cast<double>(static_cast<float>(value));
  return make_expr(Const{std::bit_cast<std::int64_t>(value)}, dtype, span);
}

Expr constant(double value, Dtype dtype, Span span) {
  return is_float(dtype) ? real(value, dtype, span) : integer(static_cast<std::int64_t>(value), dtype, span);
}

Expr boolean(bool value) { return integer(value ? 1 : 0, Dtype::Bool); }

Expr var(std::string name, Dtype dtype, Span span) { return make_expr(Var{std::move(name)}, dtype, span); }

Expr unary(UnaryOp op, Expr operand, Span span) {
  Dtype dtype = operand->dtype;
  if (op == UnaryOp::Not && dtype != Dtype::Bool) internal_error("`not` of something that is not a bool");
  if (op == UnaryOp::Neg && dtype == Dtype::Index)
    if (auto value = integer_value(operand)) return integer(-*value, dtype, span);
  return make_expr(Unary{op, std::move(operand)}, dtype, span);
}

namespace {

// Folds Index arithmetic on constants and neutral elements; nothing where it does not apply.
Expr fold_index(BinaryOp op, const Expr& a, const Expr& b) {
  auto x = integer_value(a);
  auto y = integer_value(b);
  if (x && y) {
    std::int64_t result = 0;
    switch (op) {
      case BinaryOp::Add: if (!__builtin_add_overflow(*x, *y, &result)) return integer(result); return {};
      case BinaryOp::Sub: if (!__builtin_sub_overflow(*x, *y, &result)) return integer(result); return {};
      case BinaryOp::Mul: if (!__builtin_mul_overflow(*x, *y, &result)) return integer(result); return {};
      case BinaryOp::Div: if (*y > 0) return integer(floor_divide(*x, *y)); return {};
      case BinaryOp::Mod: if (*y > 0) return integer(*x - floor_divide(*x, *y) * *y); return {};
      case BinaryOp::Min: return integer(std::min(*x, *y));
      case BinaryOp::Max: return integer(std::max(*x, *y));
      case BinaryOp::Eq: return boolean(*x == *y);
      case BinaryOp::Ne: return boolean(*x != *y);
      case BinaryOp::Lt: return boolean(*x < *y);
      case BinaryOp::Le: return boolean(*x <= *y);
      case BinaryOp::Gt: return boolean(*x > *y);
      case BinaryOp::Ge: return boolean(*x >= *y);
      case BinaryOp::And: case BinaryOp::Or: case BinaryOp::BitAnd: case BinaryOp::BitOr: case BinaryOp::BitXor:
      case BinaryOp::Shl: case BinaryOp::Shr: return {};
    }
  }
  if (op == BinaryOp::Add && x == 0) return b;
  if ((op == BinaryOp::Add || op == BinaryOp::Sub) && y == 0) return a;
  if (op == BinaryOp::Mul && x == 1) return b;
  if ((op == BinaryOp::Mul || op == BinaryOp::Div) && y == 1) return a;
  if (op == BinaryOp::Mul && (x == 0 || y == 0)) return integer(0);
  if (op == BinaryOp::Mod && y == 1) return integer(0);
  return {};
}

}  // namespace

Expr binary(BinaryOp op, Expr lhs, Expr rhs, Span span) {
  const BinaryInfo& facts = info(op);
  bool is_shift = op == BinaryOp::Shl || op == BinaryOp::Shr;
  if (lhs->dtype != rhs->dtype && !is_shift)
    internal_error(fmt::format("`{}` of {} and {}", facts.spelling, info(lhs->dtype).name, info(rhs->dtype).name));
  if (facts.is_logical && lhs->dtype != Dtype::Bool) internal_error("`and` or `or` of something that is not a bool");
  if (lhs->dtype == Dtype::Index)
    if (Expr folded = fold_index(op, lhs, rhs)) return folded;
  Dtype dtype = facts.is_comparison || facts.is_logical ? Dtype::Bool : lhs->dtype;
  return make_expr(Binary{op, std::move(lhs), std::move(rhs)}, dtype, span);
}

Expr select(Expr condition, Expr if_true, Expr if_false, Span span) {
  if (condition->dtype != Dtype::Bool || if_true->dtype != if_false->dtype) internal_error("`if` with branches of two dtypes");
  if (const Const* known = as<Const>(condition)) return known->bits ? if_true : if_false;
  Dtype dtype = if_true->dtype;
  return make_expr(Select{std::move(condition), std::move(if_true), std::move(if_false)}, dtype, span);
}

Expr cast(Dtype dtype, Expr operand, Span span) {
  if (operand->dtype == dtype) return operand;
  // Only conversions of constants that no rounding touches are folded here.
  if (auto value = integer_value(operand)) {
    if (is_float(dtype) && !is_narrow_float(dtype) && std::abs(*value) < (1 << 24)) return real(static_cast<double>(*value), dtype, span);
    if (is_float(dtype) && std::abs(*value) <= 8) return real(static_cast<double>(*value), dtype, span);
    if (is_integer(dtype) && *value >= 0 && *value <= 127) return integer(*value, dtype, span);
    if (is_signed(dtype) && info(dtype).bits >= 32 && *value >= INT32_MIN && *value <= INT32_MAX) return integer(*value, dtype, span);
    if (dtype == Dtype::U64 && *value >= 0) return integer(*value, dtype, span);
    if (dtype == Dtype::U32 && *value >= 0 && *value <= UINT32_MAX) return integer(*value, dtype, span);
  }
  if (auto value = real_value(operand)) {
    if (dtype == Dtype::F64 || (dtype == Dtype::F32 && operand->dtype != Dtype::F64)) return real(*value, dtype, span);
    if (is_float(dtype) && (*value == 0 || *value == 1 || *value == -1 || *value == 0.5 || *value == 2)) return real(*value, dtype, span);
    if (is_float(dtype) && dtype != Dtype::E4M3 && *value - *value != 0 && *value == *value) return real(*value, dtype, span);  // infinities
  }
  return make_expr(Cast{std::move(operand)}, dtype, span);
}

Expr call(std::string function, std::vector<Expr> arguments, Dtype dtype, Span span) {
  return make_expr(Call{std::move(function), std::move(arguments)}, dtype, span);
}

Expr load(Access access, Dtype dtype, Span span) { return make_expr(Load{std::move(access)}, dtype, span); }

Expr reduce(CombineOp op, std::vector<Axis> axes, std::vector<Expr> where, Expr body, Dtype dtype, Span span,
            bool gives_index) {
  return make_expr(Reduce{op, std::move(axes), std::move(where), std::move(body), gives_index}, dtype, span);
}

Expr operator+(const Expr& a, const Expr& b) { return binary(BinaryOp::Add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(BinaryOp::Sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(BinaryOp::Mul, a, b); }
Expr operator+(const Expr& a, std::int64_t b) { return a + integer(b); }
Expr operator*(const Expr& a, std::int64_t b) { return a * integer(b); }

Expr ceildiv(const Expr& a, const Expr& b) {
  auto x = integer_value(a);
  auto y = integer_value(b);
  if (x && y && *y > 0) return integer(floor_divide(*x + *y - 1, *y));
  if (y == 1) return a;
  return call("ceildiv", {a, b}, Dtype::Index);
}

std::optional<Expr> exact_quotient(const Expr& expr, std::int64_t divisor) {
  if (divisor == 1) return expr;
  if (const std::optional<std::int64_t> value = integer_value(expr)) {
    if (*value % divisor != 0) return std::nullopt;
    return integer(*value / divisor);
  }
  const Binary* node = as<Binary>(expr);
  if (node == nullptr) return std::nullopt;
  if (node->op == BinaryOp::Add || node->op == BinaryOp::Sub) {
    const std::optional<Expr> lhs = exact_quotient(node->lhs, divisor);
    const std::optional<Expr> rhs = exact_quotient(node->rhs, divisor);
    if (!lhs || !rhs) return std::nullopt;
    return node->op == BinaryOp::Add ? *lhs + *rhs : *lhs - *rhs;
  }
  if (node->op == BinaryOp::Mul) {
    if (const std::optional<Expr> rhs = exact_quotient(node->rhs, divisor)) return node->lhs * *rhs;
    if (const std::optional<Expr> lhs = exact_quotient(node->lhs, divisor)) return *lhs * node->rhs;
  }
  return std::nullopt;
}

Expr less(const Expr& a, const Expr& b) { return binary(BinaryOp::Lt, a, b); }

Expr both(const Expr& a, const Expr& b) {
  if (!a) return b;
  if (!b) return a;
  return binary(BinaryOp::And, a, b);
}

Expr all_of(const std::vector<Expr>& conditions) {
  Expr result;
  for (const Expr& condition : conditions) result = both(result, condition);
  return result;
}

std::optional<std::int64_t> integer_value(const Expr& expr) {
  const Const* value = as<Const>(expr);
  if (!value || is_float(expr->dtype)) return std::nullopt;
  return value->bits;
}

std::optional<double> real_value(const Expr& expr) {
  const Const* value = as<Const>(expr);
  if (!value || !is_float(expr->dtype)) return std::nullopt;
  return std::bit_cast<double>(value->bits);
}

bool is_integer_constant(const Expr& expr, std::int64_t value) { return integer_value(expr) == value; }

namespace {

using ExprFunction = std::function<Expr(const Expr&)>;

Expr map_optional(const Expr& expr, const ExprFunction& f) { return expr ? f(expr) : expr; }

std::vector<Expr> map_all(const std::vector<Expr>& list, const ExprFunction& f) {
  std::vector<Expr> result;
  result.reserve(list.size());
  for (const Expr& item : list) result.push_back(f(item));
  return result;
}

Axis map_axis(const Axis& axis, const ExprFunction& f) {
  return Axis{axis.name, map_optional(axis.lo, f), map_optional(axis.hi, f), map_optional(axis.step, f), axis.span};
}

}  // namespace

Access map_access(const Access& access, const ExprFunction& f) {
  Access result{access.buffer, map_all(access.index, f), access.rule, access.span};
  result.rule.fill = map_optional(access.rule.fill, f);
  return result;
}

Expr map_children(const Expr& expr, const ExprFunction& f) {
  Span span = expr->span;
  Dtype dtype = expr->dtype;
  return match(
      expr, [&](const Const&) { return expr; }, [&](const Var&) { return expr; },
      [&](const Unary& node) { return unary(node.op, f(node.operand), span); },
      [&](const Binary& node) {
        Expr lhs = f(node.lhs);
        return binary(node.op, std::move(lhs), f(node.rhs), span);
      },
      [&](const Select& node) {
        Expr condition = f(node.condition);
        Expr if_true = f(node.if_true);
        return select(std::move(condition), std::move(if_true), f(node.if_false), span);
      },
      [&](const Cast& node) { return cast(dtype, f(node.operand), span); },
      [&](const Call& node) {
        std::vector<Expr> arguments = map_all(node.arguments, f);
        if (node.function == "ceildiv" && arguments.size() == 2 && dtype == Dtype::Index) return ceildiv(arguments[0], arguments[1]);
        return call(node.function, std::move(arguments), dtype, span);
      },
      [&](const Load& node) { return load(map_access(node.access, f), dtype, span); },
      [&](const Reduce& node) {
        std::vector<Axis> axes;
        for (const Axis& axis : node.axes) axes.push_back(map_axis(axis, f));
        std::vector<Expr> where = map_all(node.where, f);
        return reduce(node.op, std::move(axes), std::move(where), f(node.body), dtype, span, node.gives_index);
      });
}

void walk(const Expr& expr, const std::function<bool(const Expr&)>& f) {
  if (!f(expr)) return;
  auto visit = [&](const Expr& child) {
    if (child) walk(child, f);
  };
  match(
      expr, [](const Const&) {}, [](const Var&) {}, [&](const Unary& node) { visit(node.operand); },
      [&](const Binary& node) { visit(node.lhs), visit(node.rhs); },
      [&](const Select& node) { visit(node.condition), visit(node.if_true), visit(node.if_false); },
      [&](const Cast& node) { visit(node.operand); },
      [&](const Call& node) { for (const Expr& argument : node.arguments) visit(argument); },
      [&](const Load& node) {
        for (const Expr& index : node.access.index) visit(index);
        visit(node.access.rule.fill);
      },
      [&](const Reduce& node) {
        for (const Axis& axis : node.axes) visit(axis.lo), visit(axis.hi), visit(axis.step);
        for (const Expr& condition : node.where) visit(condition);
        visit(node.body);
      });
}

Expr rewrite(const Expr& expr, const ExprFunction& f) {
  return f(map_children(expr, [&](const Expr& child) { return rewrite(child, f); }));
}

Expr substitute(const Expr& expr, const std::vector<std::pair<std::string, Expr>>& replacements) {
  if (replacements.empty()) return expr;
  if (const Var* variable = as<Var>(expr)) {
    for (const auto& [name, value] : replacements)
      if (name == variable->name) return value;
    return expr;
  }
  if (const Reduce* node = as<Reduce>(expr)) {
    std::vector<std::pair<std::string, Expr>> inner;
    for (const auto& replacement : replacements) {
      bool bound = false;
      for (const Axis& axis : node->axes) bound |= axis.name == replacement.first;
      if (!bound) inner.push_back(replacement);
    }
    return map_children(expr, [&](const Expr& child) { return substitute(child, inner); });
  }
  return map_children(expr, [&](const Expr& child) { return substitute(child, replacements); });
}

bool uses_var(const Expr& expr, std::string_view name) {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    if (const Var* variable = as<Var>(node)) found |= variable->name == name;
    return !found;
  });
  return found;
}

bool uses_buffer(const Expr& expr, std::string_view name) {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    if (const Load* access = as<Load>(node)) found |= access->access.buffer == name;
    return !found;
  });
  return found;
}

std::size_t hash_value(const Expr& expr) {
  std::size_t seed = expr->value.index() * 31 + static_cast<std::size_t>(expr->dtype);
  auto mix = [&](std::size_t value) { seed = (seed ^ value) * 0x9e3779b97f4a7c15ULL; };
  std::hash<std::string> of_name;
  match(
      expr, [&](const Const& node) { mix(static_cast<std::size_t>(node.bits)); }, [&](const Var& node) { mix(of_name(node.name)); },
      [&](const Unary& node) { mix(static_cast<std::size_t>(node.op)), mix(hash_value(node.operand)); },
      [&](const Binary& node) { mix(static_cast<std::size_t>(node.op)), mix(hash_value(node.lhs)), mix(hash_value(node.rhs)); },
      [&](const Select& node) { mix(hash_value(node.condition)), mix(hash_value(node.if_true)), mix(hash_value(node.if_false)); },
      [&](const Cast& node) { mix(hash_value(node.operand)); },
      [&](const Call& node) {
        mix(of_name(node.function));
        for (const Expr& argument : node.arguments) mix(hash_value(argument));
      },
      [&](const Load& node) {
        mix(of_name(node.access.buffer));
        for (const Expr& index : node.access.index) mix(hash_value(index));
      },
      [&](const Reduce& node) { mix(static_cast<std::size_t>(node.op)), mix(node.gives_index ? 1 : 0), mix(hash_value(node.body)); });
  return seed;
}

}  // namespace tilewright
