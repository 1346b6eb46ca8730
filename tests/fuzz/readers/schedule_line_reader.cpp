// The reader of schedule lines: apart, for it needs the passes.
#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "passes/pass.h"
#include "tests/fuzz/readers/readers.h"

namespace tilewright::fuzz {

namespace {

const Plan& plan_of_product() {
  static const Plan plan = lower(parse_program("fn f(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] { C[i, j] = sum[k] A[i, k] * B[k, j] }", "product.tw").fns.front());
  return plan;
}

}  // namespace

std::string read_as_schedule_line(const std::string& bytes) {
  try {
    const Plan plan = apply_line(plan_of_product(), tokenize_line(bytes), Target{});
    if (parse_plan(print(plan)) != plan) internal_error("another plan comes back from the text\n" + print(plan));
  } catch (const UserError& error) {
    return message_of(error, bytes);
  }
  return {};
}

}  // namespace tilewright::fuzz
