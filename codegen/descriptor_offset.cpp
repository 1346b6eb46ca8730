// Exact division of index expressions; see descriptor_offset.h.
#include "codegen/descriptor_offset.h"

#include "ir/dtype.h"

namespace tilewright {

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

std::optional<Expr> descriptor_offset(const Access& access, Dtype dtype, const std::vector<std::int64_t>& extents) {
  const std::int64_t elements = 16 / bytes_of(dtype);
  Expr flat = integer(0);
  for (std::size_t axis = 0; axis < access.index.size(); ++axis) {
    if (axis > 0) flat = flat * extents.at(axis);
    flat = flat + cast(Dtype::Index, access.index[axis]);
  }
  return exact_quotient(flat, elements);
}

}  // namespace tilewright
