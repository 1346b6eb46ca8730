// Text of expressions: fewest parentheses, literals that parse to the same bits.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/plan.h"
#include "ir/printer.h"
#include "ir/scalar.h"

namespace tilewright {

namespace {

using Expected = std::optional<Dtype>;

bool is_literal(const Expr& expr) { return as<Const>(expr) && expr->dtype != Dtype::Bool; }

std::string hexadecimal(const Const& value) { return fmt::format("0x{:x}", static_cast<std::uint64_t>(value.bits)); }

std::string print_literal(const Expr& expr, Expected expected, bool with_dtype) {
  const Const& value = *as<Const>(expr);
  const Dtype dtype = expr->dtype;
  if (dtype == Dtype::Bool) return value.bits ? "true" : "false";
  std::string digits = print_digits(value, dtype);
  if (expected == Dtype::Bool) expected.reset();
  const bool is_plain = expected ? *expected == dtype : dtype == Dtype::Index || dtype == Dtype::F32;
  const bool is_hexadecimal = digits.compare(0, 2, "0x") == 0;
  if (is_plain && !with_dtype && !is_hexadecimal) return digits;
  return fmt::format("{}({})", info(dtype).name, digits);
}

// What a literal beside `other` is taken to be.
Expected beside(const Expr& other, Expected otherwise) { return is_literal(other) ? otherwise : Expected(other->dtype); }

bool is_bitwise(BinaryOp op) {
  return op == BinaryOp::BitAnd || op == BinaryOp::BitOr || op == BinaryOp::BitXor || op == BinaryOp::Shl || op == BinaryOp::Shr;
}

// Parentheses that the grammar does not need but a reader does: `(t / 32)*16`, `(a + b) ^ (c % 8)`, `(a < b) == c`.
int lhs_strength(const Binary& node) {
  const BinaryInfo& facts = info(node.op);
  const Binary* inner = as<Binary>(node.lhs);
  if (facts.is_comparison) return facts.precedence + 1;
  if (!inner) return facts.precedence;
  if (is_bitwise(node.op) && inner->op != node.op) return unary_strength;
  if (node.op == BinaryOp::Mul && (inner->op == BinaryOp::Div || inner->op == BinaryOp::Mod)) return unary_strength;
  return facts.precedence;
}

std::string print_binary(const Binary& node, Expected expected, int strength) {
  const BinaryInfo& facts = info(node.op);
  const bool is_shift = node.op == BinaryOp::Shl || node.op == BinaryOp::Shr;
  const Expected outer = facts.is_comparison || facts.is_logical ? Expected() : expected;
  const Expected for_lhs = is_literal(node.lhs) && !is_shift ? beside(node.rhs, outer) : outer;
  Expected for_rhs = is_shift ? Expected() : outer;
  if (is_literal(node.rhs)) for_rhs = is_shift ? Expected(node.lhs->dtype) : beside(node.lhs, outer);
  if (!facts.is_infix) return fmt::format("{}({}, {})", facts.spelling, print_expr(node.lhs, for_lhs), print_expr(node.rhs, for_rhs));
  const char* space = node.op == BinaryOp::Mul ? "" : " ";
  std::string text = fmt::format("{}{}{}{}{}", print_expr(node.lhs, for_lhs, lhs_strength(node)), space, facts.spelling, space,
                                 print_expr(node.rhs, for_rhs, is_bitwise(node.op) ? unary_strength : facts.precedence + 1));
  return facts.precedence < strength ? "(" + text + ")" : text;
}

std::string print_unary(const Unary& node, Expected expected, int strength) {
  std::string operand = is_literal(node.operand) ? "(" + print_expr(node.operand, expected) + ")"
                                                 : print_expr(node.operand, expected, unary_strength);
  const char* sign = node.op == UnaryOp::Neg ? "-" : node.op == UnaryOp::Not ? "not " : "~";
  return unary_strength < strength ? "(" + (sign + operand) + ")" : sign + operand;
}

std::string print_call(const Call& node, Expected expected) {
  const ArgumentRule rule = argument_rule(node.function);
  const Expected outer = rule == ArgumentRule::Value ? expected : Expected();
  Expected for_literals = outer;
  if (rule != ArgumentRule::Plain)
    for (auto argument = node.arguments.rbegin(); argument != node.arguments.rend(); ++argument)
      if (!is_literal(*argument)) for_literals = (*argument)->dtype;
  std::string text = node.function + "(";
  for (std::size_t n = 0; n < node.arguments.size(); ++n)
    text += (n ? ", " : "") + print_expr(node.arguments[n], is_literal(node.arguments[n]) ? for_literals : outer);
  return text + ")";
}

// In the words of the language; the conditions behind the ranges are what its rules made.
std::string print_reduce(const Reduce& node, Dtype dtype, int strength) {
  std::string_view word;
  switch (node.op) {
    case CombineOp::Add: word = "sum"; break;
    case CombineOp::Mul: word = "prod"; break;
    case CombineOp::Max: word = "max"; break;
    case CombineOp::Min: word = "min"; break;
    case CombineOp::And: word = "all"; break;
    case CombineOp::Or: word = "any"; break;
  }
  std::string text = fmt::format("{}{}{}[", node.gives_index ? "arg" : "", word, node.gives_index && dtype != Dtype::I32 ? fmt::format(".{}", info(dtype).name) : "");
  for (std::size_t n = 0; n < node.axes.size(); ++n) text += (n ? ", " : "") + print_axis(node.axes[n]);
  text += print_where(node.where) + "] " + print_expr(node.body, node.gives_index ? node.body->dtype : dtype, unary_strength - 1);
  return strength > 0 ? "(" + text + ")" : text;
}

std::string print_rule(const Rule& rule) {
  switch (rule.kind) {
    case Rule::Kind::None: return "";
    case Rule::Kind::Fill: {
      std::string value = print_expr(rule.fill, rule.fill->dtype);
      for (const char* word : {"clamp", "wrap", "mirror", "skip", "check"})
        if (value == word) return "; (" + value + ")";
      return "; " + value;
    }
    case Rule::Kind::Clamp: return "; clamp";
    case Rule::Kind::Wrap: return "; wrap";
    case Rule::Kind::Mirror: return "; mirror";
    case Rule::Kind::Skip: return "; skip";
    case Rule::Kind::Check: return fmt::format("; check {}", rule.check_id);
  }
  return "";
}

}  // namespace

std::string print_digits(const Const& value, Dtype dtype) {
  if (dtype == Dtype::U64) return fmt::format("{}", static_cast<std::uint64_t>(value.bits));
  if (!is_float(dtype)) return fmt::format("{}", value.bits);
  const double number = std::bit_cast<double>(value.bits);
  if (std::isnan(number)) {
    const bool is_usual = value.bits == std::bit_cast<std::int64_t>(std::numeric_limits<double>::quiet_NaN());
    return is_usual ? "nan" : hexadecimal(value);
  }
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string digits = dtype == Dtype::F64 ? fmt::format("{}", number) : fmt::format("{}", static_cast<float>(number));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  // A value that the dtype has not, for the verifier to refuse, still prints as what it is.
  if (literal_of(digits, false, dtype, {}) != make_expr(value, dtype)) return hexadecimal(value);
  return digits;
}

Expr literal_of(const std::string& digits, bool is_negative, Dtype dtype, Span span) {
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  if (digits.size() > 2 && digits[0] == '0' && digits[1] == 'x') {
    std::uint64_t bits = 0;
    std::from_chars(begin + 2, end, bits, 16);
    if (is_negative) bits = 0 - bits;
    return make_expr(Const{static_cast<std::int64_t>(bits)}, dtype, span);
  }
  if (!is_float(dtype)) {
    std::uint64_t magnitude = 0;
    const bool is_signed_text = *begin == '-';
    std::from_chars(begin + (is_signed_text ? 1 : 0), end, magnitude);
    if (is_negative != is_signed_text) magnitude = 0 - magnitude;
    return make_expr(Const{static_cast<std::int64_t>(magnitude)}, dtype, span);
  }
  double number = 0;
  const auto result = std::from_chars(begin, end, number);
  if (result.ec == std::errc::result_out_of_range) number = std::strtod(digits.c_str(), nullptr);  // 0 or infinity
  if (dtype == Dtype::F32) {
    float narrow = 0;  // straight from the text: rounded once
    if (std::from_chars(begin, end, narrow).ec != std::errc()) narrow = static_cast<float>(number);
    number = static_cast<double>(narrow);
  } else if (std::isfinite(number)) {
    number = round_to(dtype, number);
  }
  return make_expr(Const{std::bit_cast<std::int64_t>(is_negative ? -number : number)}, dtype, span);
}

ArgumentRule argument_rule(std::string_view function) {
  if (const FunctionInfo* row = find_function(function)) {
    if (row->group == FunctionGroup::Structural) return ArgumentRule::Plain;
    return row->result ? ArgumentRule::Operand : ArgumentRule::Value;
  }
  return find_instruction(function) ? ArgumentRule::Plain : ArgumentRule::Value;
}

std::string print_access(const Access& access) {
  if (access.index.empty() && access.rule.kind == Rule::Kind::None) return access.buffer;
  std::string text = access.buffer + "[";
  for (std::size_t n = 0; n < access.index.size(); ++n) text += (n ? ", " : "") + print_expr(access.index[n]);
  return text + print_rule(access.rule) + "]";
}

std::string print_axis(const Axis& axis) {
  std::string text = axis.name + " in ";
  if (!is_integer_constant(axis.lo, 0) || axis.lo->dtype != Dtype::Index) text += print_expr(axis.lo) + " .. ";
  text += print_expr(axis.hi);
  if (axis.step) text += " step " + print_expr(axis.step);
  return text;
}

std::string print_where(const std::vector<Expr>& conditions) {
  std::string text;
  for (const Expr& condition : conditions) text += (text.empty() ? " where " : ", ") + print_expr(condition);
  return text;
}

std::string print_type(Dtype dtype, const std::vector<Expr>& shape) {
  std::string text{info(dtype).name};
  for (std::size_t n = 0; n < shape.size(); ++n) text += (n ? ", " : "[") + print_expr(shape[n]);
  return shape.empty() ? text : text + "]";
}

std::string print_expr(const Expr& expr, Expected expected, int strength) {
  return match(
      expr, [&](const Const&) { return print_literal(expr, expected, false); }, [](const Var& node) { return node.name; },
      [&](const Unary& node) { return print_unary(node, expected, strength); },
      [&](const Binary& node) { return print_binary(node, expected, strength); },
      [&](const Select& node) {
        const Expected for_true = is_literal(node.if_true) ? beside(node.if_false, expected) : expected;
        const Expected for_false = is_literal(node.if_false) ? beside(node.if_true, expected) : expected;
        std::string text = fmt::format("if {} then {} else {}", print_expr(node.condition, {}, 1), print_expr(node.if_true, for_true),
                                       print_expr(node.if_false, for_false));
        return strength > 0 ? "(" + text + ")" : text;
      },
      [&](const Cast& node) {
        std::string operand = is_literal(node.operand) ? print_literal(node.operand, {}, true) : print_expr(node.operand);
        return fmt::format("{}({})", info(expr->dtype).name, operand);
      },
      [&](const Call& node) { return print_call(node, expected); }, [](const Load& node) { return print_access(node.access); },
      [&](const Reduce& node) { return print_reduce(node, expr->dtype, strength); });
}

std::string print(const Expr& expr) { return print_expr(expr); }

}  // namespace tilewright
