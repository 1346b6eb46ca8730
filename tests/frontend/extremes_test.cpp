// argmax and argmin: the first extreme, the first NaN, -1 of nothing; by the oracle and by the tile interpreter.
#include <doctest/doctest.h>

#include <limits>
#include <map>

#include "frontend/program.h"
#include "passes/pass.h"
#include "runtime/execute.h"
#include "runtime/interpreter_machine.h"
#include "runtime/oracle.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

// The index that the program's only output, a scalar, gets of `values`.
std::int64_t index_of(const std::string& body, Dtype dtype, const std::vector<double>& values) {
  const Program program = parse_program("fn f(X: " + std::string(info(dtype).name) + "[N]) -> I: i32 { I = " + body + " }", "f.tw");
  const TensorFn& fn = program.fns.at(0);
  const Plan plan = lower(fn);
  check_plan(plan);
  HostTensor x = make_tensor(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t n = 0; n < values.size(); ++n) write_real(x, static_cast<std::int64_t>(n), values[n]);
  const std::map<std::string, std::int64_t> dims = {{"N", static_cast<std::int64_t>(values.size())}};
  Arguments arguments = bind_arguments(plan, {{"X", x}}, dims);
  const OracleResult oracle = evaluate(fn, arguments, {});
  CHECK(interpret(plan, arguments).faults.empty());
  const std::int64_t found = read_integer(arguments.tensors.at("I"), 0);
  CHECK(static_cast<std::int64_t>(oracle.outputs.at(0).values.at(0).i) == found);
  return found;
}

}  // namespace

TEST_CASE("frontend: argmax and argmin give the first extreme, the first NaN, and -1 of nothing") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16}) {
    CAPTURE(info(dtype).name);
    CHECK(index_of("argmax[k] X[k]", dtype, {1, 5, 2, 5}) == 1);
    CHECK(index_of("argmin[k] X[k]", dtype, {1, -5, 2, -5}) == 1);
    CHECK(index_of("argmax[k] X[k]", dtype, {1, nan, inf, nan}) == 1);
    CHECK(index_of("argmin[k] X[k]", dtype, {-inf, 3, nan, nan}) == 2);
    CHECK(index_of("argmax[k] X[k]", dtype, {-inf, -inf}) == 0);
    CHECK(index_of("argmin[k] X[k]", dtype, {inf}) == 0);
    CHECK(index_of("argmax[k] X[k]", dtype, {0, -0.0}) == 0);
    CHECK(index_of("argmax[k] X[k]", dtype, {-0.0, 0}) == 0);  // neither is greater
    CHECK(index_of("argmax[k in 1..N] X[k]", dtype, {9, 1, 2}) == 2);
    CHECK(index_of("argmax[k] X[k]", dtype, {}) == -1);
  }
  CHECK(index_of("argmax[k] X[k]", Dtype::U8, {3, 255, 255}) == 1);
  CHECK(index_of("argmin[k] X[k]", Dtype::I64, {3, -9, 4}) == 1);
  CHECK(index_of("argmin[k] X[k]", Dtype::I32, {2147483647, 2147483647}) == 0);
  CHECK(index_of("argmax[k in -2..=2] X[k; skip]", Dtype::F32, {4, 7, 5}) == 1);
  CHECK(index_of("argmax[k in -2..0] X[k; skip]", Dtype::F32, {4, 7, 5}) == -1);
}

}  // namespace tilewright
