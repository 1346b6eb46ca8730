// Conditions on indices.
#include "passes/finish/conditions.h"

#include <algorithm>

namespace tilewright {

std::vector<Expr> conjuncts(const Expr& condition) {
  if (!condition) return {};
  if (const Binary* node = as<Binary>(condition); node && node->op == BinaryOp::And) {
    std::vector<Expr> result = conjuncts(node->lhs);
    for (Expr& side : conjuncts(node->rhs)) result.push_back(std::move(side));
    return result;
  }
  if (const Const* known = as<Const>(condition); known && known->bits) return {};
  return {condition};
}

std::vector<Expr> in_range(const std::vector<Expr>& index, const std::vector<Expr>& shape, const Ranges& ranges) {
  std::vector<Expr> result;
  for (std::size_t d = 0; d < index.size() && d < shape.size(); ++d) {
    Expr position = cast(Dtype::Index, index[d]);
    for (const Expr& side : {binary(BinaryOp::Le, integer(0), position), less(position, shape[d])}) {
      Expr simple = simplify_expr(side, ranges);
      for (Expr& part : conjuncts(simple))
        if (std::find(result.begin(), result.end(), part) == result.end()) result.push_back(std::move(part));
    }
  }
  return result;
}

std::vector<Buffer> buffers_in(const Block& body) {
  std::vector<Buffer> result;
  walk(body, [&](const Stmt& stmt) {
    if (const Buffer* buffer = as<Buffer>(stmt)) result.push_back(*buffer);
    return true;
  });
  return result;
}

std::optional<std::vector<Expr>> shape_of_access(const Plan& plan, const std::vector<Buffer>& buffers, const std::string& name) {
  for (const Buffer& buffer : buffers) {
    if (buffer.name != name) continue;
    std::vector<Expr> shape;
    for (const BufferAxis& axis : buffer.axes) shape.push_back(integer(axis.extent));
    return shape;
  }
  if (auto tensor = find_tensor(plan, name)) return tensor->shape;
  return std::nullopt;
}

std::optional<Expr> uniform_over(const Expr& condition, const std::string& name, std::int64_t width, const Divisors& divisors) {
  if (!uses_var(condition, name)) return condition;
  const Binary* node = as<Binary>(condition);
  if (!node) return std::nullopt;
  auto side = linear_in(node->lhs, name);
  bool whole_vector = side && side->coefficient == 1 && known_divisor(side->rest, divisors) % width == 0;
  if (node->op == BinaryOp::Lt && whole_vector && !uses_var(node->rhs, name) && known_divisor(node->rhs, divisors) % width == 0)
    return less(side->rest, node->rhs);
  return std::nullopt;
}

Ranges ranges_of_dims(const Plan& plan) {
  Ranges ranges;
  for (const Dim& dim : plan.dims) ranges[dim.name] = Interval{0, std::nullopt};
  return ranges;
}

void add_axis(Ranges& ranges, const Axis& axis) {
  Interval lo = axis.lo ? interval_of(axis.lo, ranges) : Interval{0, 0};
  Interval hi = interval_of(axis.hi, ranges);
  ranges[axis.name] = Interval{lo.lo, hi.hi ? std::optional<std::int64_t>(*hi.hi - 1) : std::nullopt};
}

}  // namespace tilewright
