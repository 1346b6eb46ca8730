// contract: take the multiply-adds of lowering apart.
//
//   contract off
//   before   acc = fma(A[i, k], B[k, j], acc)
//   after    acc = A[i, k]*B[k, j] + acc
//
// Two roundings instead of one.
//
// Needs: nothing. Leaves alone: a fma that the program itself calls.
#include "passes/loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

Expr apart(const Expr& expr) {
  const Call* fused = as<Call>(expr);
  if (!fused || fused->function != "fma") return expr;
  Expr product = binary(BinaryOp::Mul, fused->arguments[0], fused->arguments[1], expr->span);
  return binary(BinaryOp::Add, product, fused->arguments[2], expr->span);
}

}  // namespace

Plan contract(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  reader.expect("off");
  reader.end();
  return map_kernels_with(plan, line, {}, [](const Kernel& kernel) {
    Kernel result = kernel;
    result.body = rewrite_expressions(kernel.body, apart);
    return result;
  });
}

}  // namespace tilewright
