// Scans: each is the fold of what stands in front (or behind), by the oracle and by the plan that carries it along.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "frontend/program.h"
#include "passes/pass.h"
#include "runtime/execute.h"
#include "runtime/interpreter_machine.h"
#include "runtime/oracle.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

using Operation = std::function<float(float, float)>;

// What the scan should give: folded in order from the beginning, or from the end.
std::vector<float> folded(const std::vector<float>& x, std::size_t results, float identity, const Operation& fold, bool is_inclusive, bool is_from_end) {
  std::vector<float> result;
  for (std::size_t i = 0; i < results; ++i) {
    float sum = identity;
    const std::size_t count = is_from_end ? x.size() - i - (is_inclusive ? 0 : 1) : i + (is_inclusive ? 1 : 0);
    for (std::size_t n = 0; n < count; ++n) sum = fold(sum, is_from_end ? x[x.size() - 1 - n] : x[n]);
    result.push_back(sum);
  }
  return result;
}

void check_scan(const std::string& word, const std::string& compare, const char* results, const std::vector<float>& x, const std::vector<float>& expected) {
  CAPTURE(word);
  CAPTURE(compare);
  CAPTURE(x.size());
  const Program program = parse_program("fn f(X: f32[N]) -> P: f32[" + std::string(results) + "] { P[i] = " + word + "[j " + compare + " i] X[j] }", "f.tw");
  const TensorFn& fn = program.fns.at(0);
  const Plan plan = lower(fn);
  check_plan(plan);
  HostTensor input = make_tensor(Dtype::F32, {static_cast<std::int64_t>(x.size())});
  for (std::size_t n = 0; n < x.size(); ++n) write_real(input, static_cast<std::int64_t>(n), x[n]);
  const std::map<std::string, std::int64_t> dims = {{"N", static_cast<std::int64_t>(x.size())}};
  Arguments arguments = bind_arguments(plan, {{"X", input}}, dims);
  OracleOptions options;
  options.mode = FloatMode::Typed;
  const OracleResult oracle = evaluate(fn, arguments, options);
  CHECK(interpret(plan, arguments).faults.empty());
  for (std::size_t n = 0; n < expected.size(); ++n) {
    const auto found = static_cast<float>(read_real(arguments.tensors.at("P"), static_cast<std::int64_t>(n)));
    const auto defined = static_cast<float>(oracle.outputs.at(0).values.at(n).f);
    const bool is_same = std::isnan(expected[n]) ? std::isnan(found) && std::isnan(defined) : found == expected[n] && defined == expected[n];
    CHECK_MESSAGE(is_same, "P[" << n << "] is " << found << ", by the oracle " << defined << ", and should be " << expected[n]);
  }
}

}  // namespace

TEST_CASE("frontend: scans are folds in order, whole and without their own term, from both ends") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto larger = [](float a, float b) { return std::isnan(a) || std::isnan(b) ? nan : std::max(a, b); };
  const auto smaller = [](float a, float b) { return std::isnan(a) || std::isnan(b) ? nan : std::min(a, b); };
  const std::map<std::string, std::pair<float, Operation>> words = {
      {"cumsum", {0, [](float a, float b) { return a + b; }}}, {"cumprod", {1, [](float a, float b) { return a * b; }}},
      {"cummax", {-inf, larger}}, {"cummin", {inf, smaller}}};
  // Sums that depend on their order, what overflows, what is no number.
  for (const std::vector<float>& x : {std::vector<float>{}, {3}, {1e8f, 1, -1e8f, 1}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f}, {2, nan, -1, 5}, {inf, 1, -inf}})
    for (const auto& [word, meaning] : words)
      for (const auto& [compare, is_inclusive, is_from_end] : {std::tuple("<=", true, false), {"<", false, false}, {">=", true, true}, {">", false, true}})
        check_scan(word, compare, "N", x, folded(x, x.size(), meaning.first, meaning.second, is_inclusive, is_from_end));
  for (const std::vector<float>& x : {std::vector<float>{}, {3}, {3, 1, 4, 1, 5}})
    check_scan("cumsum", "<", "N + 1", x, folded(x, x.size() + 1, 0, words.at("cumsum").second, false, false));
}

}  // namespace tilewright
