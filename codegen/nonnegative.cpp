// A one-bit interval analysis; see nonnegative.h.
#include "codegen/nonnegative.h"

namespace tilewright {

namespace {

using NameTest = std::function<bool(const std::string&)>;

bool binary_is_nonnegative(const Binary& node, const NameTest& test) {
  const bool lhs = is_nonnegative(node.lhs, test);
  const bool rhs = is_nonnegative(node.rhs, test);
  switch (node.op) {
    case BinaryOp::Add:
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Min:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor:
      return lhs && rhs;
    case BinaryOp::Mod:  // takes the sign of the divisor; by zero it is the left side
      return rhs && (lhs || (integer_value(node.rhs) && *integer_value(node.rhs) > 0));
    case BinaryOp::Max:
    case BinaryOp::BitAnd:
      return lhs || rhs;
    case BinaryOp::Shr:
      return lhs;
    case BinaryOp::Sub:
    case BinaryOp::Shl:
      return false;
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge:
      return true;
  }
  return false;
}

}  // namespace

bool is_nonnegative(const Expr& expr, const NameTest& test) {
  if (is_unsigned(expr->dtype) || expr->dtype == Dtype::Bool) return true;
  // Data of the program's own may wrap; only the class promises that index arithmetic does not.
  const bool is_index = expr->dtype == Dtype::Index;
  return match(
      expr, [](const Const& node) { return node.bits >= 0; },
      [&](const Var& node) { return is_index && test(node.name); }, [](const Unary&) { return false; },
      [&](const Binary& node) { return is_index && binary_is_nonnegative(node, test); },
      [&](const Select& node) { return is_nonnegative(node.if_true, test) && is_nonnegative(node.if_false, test); },
      [&](const Cast& node) {
        const Dtype from = node.operand->dtype;
        if (!is_index) return false;
        if (is_unsigned(from)) return bytes_of(from) < 4;  // a u32 may not fit a 32-bit index
        return from == Dtype::Bool || ((is_signed(from) || from == Dtype::Index) && is_nonnegative(node.operand, test));
      },
      [&](const Call& node) {
        if (!is_index || (node.function != "ceildiv" && node.function != "within")) return false;
        return is_nonnegative(node.arguments.at(0), test) && is_nonnegative(node.arguments.at(1), test);
      },
      [](const Load&) { return false; }, [](const Reduce&) { return false; });
}

bool is_from_tensor(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    if (const Load* load = as<Load>(node)) found |= !load->access.index.empty();
    return !found;
  });
  return found;
}

}  // namespace tilewright
