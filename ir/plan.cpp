// Look-ups in a plan and the evaluation of its shape expressions.
#include "ir/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace tilewright {

const Param* find_param(const Plan& plan, const std::string& name) {
  const auto found = std::find_if(plan.params.begin(), plan.params.end(), [&](const Param& param) { return param.name == name; });
  return found == plan.params.end() ? nullptr : &*found;
}

std::optional<TensorInfo> find_tensor(const Plan& plan, const std::string& name) {
  for (const Param& param : plan.params)
    if (param.name == name) return TensorInfo{param.dtype, param.shape};
  for (const Temp& temp : plan.temps)
    if (temp.name == name) return TensorInfo{temp.dtype, temp.shape};
  for (const Step& step : plan.steps)
    if (const Table* table = std::get_if<Table>(&step); table && table->name == name) return TensorInfo{table->dtype, table->shape};
  return std::nullopt;
}

std::vector<const Kernel*> kernels_of(const Plan& plan) {
  std::vector<const Kernel*> result;
  for (const Step& step : plan.steps)
    if (const Kernel* kernel = std::get_if<Kernel>(&step)) result.push_back(kernel);
  return result;
}

bool is_thread_stage(const Plan& plan) {
  const std::vector<const Kernel*> kernels = kernels_of(plan);
  return !kernels.empty() && kernels.front()->stage == Stage::Thread;
}

Plan map_kernels(const Plan& plan, const std::function<Kernel(const Kernel&)>& f) {
  Plan result = plan;
  for (Step& step : result.steps)
    if (const Kernel* kernel = std::get_if<Kernel>(&step)) step = f(*kernel);
  return result;
}

namespace {

// `value` is a reference: it is read behind the call that fills it.
std::int64_t checked(bool overflow, const std::int64_t& value, Span span) {
  if (overflow) throw UserError(span, "a size or an index leaves 64 bits");
  return value;
}

std::int64_t evaluate_binary(BinaryOp op, std::int64_t a, std::int64_t b, Span span) {
  std::int64_t result = 0;
  switch (op) {
    case BinaryOp::Add: return checked(__builtin_add_overflow(a, b, &result), result, span);
    case BinaryOp::Sub: return checked(__builtin_sub_overflow(a, b, &result), result, span);
    case BinaryOp::Mul: return checked(__builtin_mul_overflow(a, b, &result), result, span);
    case BinaryOp::Div: return floor_divide(a, b);
    case BinaryOp::Mod: return b == 0 ? a : a - floor_divide(a, b) * b;
    case BinaryOp::Min: return std::min(a, b);
    case BinaryOp::Max: return std::max(a, b);
    case BinaryOp::And: return a && b;
    case BinaryOp::Or: return a || b;
    case BinaryOp::Eq: return a == b;
    case BinaryOp::Ne: return a != b;
    case BinaryOp::Lt: return a < b;
    case BinaryOp::Le: return a <= b;
    case BinaryOp::Gt: return a > b;
    case BinaryOp::Ge: return a >= b;
    case BinaryOp::BitAnd: return a & b;
    case BinaryOp::BitOr: return a | b;
    case BinaryOp::BitXor: return a ^ b;
    case BinaryOp::Shl: return b >= 0 && b < 63 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b) : 0;
    case BinaryOp::Shr: return b >= 0 && b < 63 ? a >> b : (a < 0 ? -1 : 0);
  }
  return 0;
}

}  // namespace

std::int64_t evaluate_index(const Expr& expr, const std::vector<std::pair<std::string, std::int64_t>>& names) {
  auto again = [&](const Expr& child) { return evaluate_index(child, names); };
  auto refuse = [&](const char* what) -> std::int64_t { throw UserError(expr->span, fmt::format("{} cannot stand in a size", what)); };
  return match(
      expr, [&](const Const& node) -> std::int64_t { return is_float(expr->dtype) ? refuse("a float") : node.bits; },
      [&](const Var& node) -> std::int64_t {
        for (const auto& [name, value] : names)
          if (name == node.name) return value;
        throw UserError(expr->span, fmt::format("`{}` has no value here", node.name));
      },
      [&](const Unary& node) -> std::int64_t {
        std::int64_t value = again(node.operand);
        switch (node.op) {
          case UnaryOp::Neg: return checked(value == INT64_MIN, -value, expr->span);
          case UnaryOp::Not: return value == 0;
          case UnaryOp::BitNot: return ~value;
        }
        return 0;
      },
      [&](const Binary& node) -> std::int64_t {
        std::int64_t lhs = again(node.lhs);
        return evaluate_binary(node.op, lhs, again(node.rhs), expr->span);
      },
      [&](const Select& node) -> std::int64_t { return again(node.condition) ? again(node.if_true) : again(node.if_false); },
      [&](const Cast& node) -> std::int64_t { return is_float(expr->dtype) ? refuse("a float") : again(node.operand); },
      [&](const Call& node) -> std::int64_t {
        if (node.function == "ceildiv" && node.arguments.size() == 2) {
          std::int64_t a = again(node.arguments[0]);
          std::int64_t b = again(node.arguments[1]);
          return b == 0 ? 0 : -floor_divide(-a, b);
        }
        return refuse("a function call");
      },
      [&](const Load&) -> std::int64_t { return refuse("a tensor's element"); },
      [&](const Reduce&) -> std::int64_t { return refuse("a reduction"); });
}

}  // namespace tilewright
