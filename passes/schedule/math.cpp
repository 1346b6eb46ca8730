// math: the hardware's approximations of f32 functions and division.
//
//   math fast
//   before   Y[i] = exp(X[i]) / s
//   after    Y[i] = div.fast(exp.fast(X[i]), s)
//
// Needs: nothing. Leaves alone: other dtypes, and functions without an approximation (docs/numerics.md lists the errors).
#include "ir/operators.h"
#include "passes/loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

Expr approximated(const Expr& expr) {
  if (expr->dtype != Dtype::F32) return expr;
  if (const Call* exact = as<Call>(expr)) {
    std::string fast = exact->function + ".fast";
    const FunctionInfo* known = find_function(fast);
    return known && known->group == FunctionGroup::Fast ? call(fast, exact->arguments, Dtype::F32, expr->span) : expr;
  }
  const Binary* quotient = as<Binary>(expr);
  if (!quotient || quotient->op != BinaryOp::Div) return expr;
  return call("div.fast", {quotient->lhs, quotient->rhs}, Dtype::F32, expr->span);
}

}  // namespace

Plan math(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  reader.expect("fast");
  reader.end();
  return map_kernels_with(plan, line, {}, [](const Kernel& kernel) {
    Kernel result = kernel;
    result.body = rewrite_expressions(kernel.body, approximated);
    return result;
  });
}

}  // namespace tilewright
