// Golden files of the finishing passes. `tests/passes/finish/<case>.ir` is a plan of the tile stage, in front of it
//
//   // arch: sm_80            (instead of sm_90a)
//   // after: split_roles     (instead of the last pass)
//   // sizes: M 130, N 264, K 72
//
// and `<case>.expected` the plan finished, or for `fail_*` the diagnostic. What every pass makes verifies and comes back
// from its own text. What a pass named by `after` made of a kernel without roles gives the same bits in the tile
// interpreter. With `sizes` the finished plan runs in the simulator on small integers, and gives the bits that the tile
// interpreter gives the plan. TILEWRIGHT_UPDATE=1 rewrites the expectations.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/locations.h"
#include "tests/passes/golden_case.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

// Element e is (e*7 + seed) % 5 - 2, so that every sum is exact.
std::map<std::string, HostTensor> exact_inputs(const Plan& plan, const Sizes& sizes) {
  std::map<std::string, HostTensor> result;
  std::vector<std::pair<std::string, std::int64_t>> dims(sizes.begin(), sizes.end());
  std::int64_t seed = 1;
  for (const Param& param : plan.params) {
    if (param.kind == ParamKind::Out) continue;
    HostTensor tensor = make_tensor(param.dtype, shape_of(param.shape, dims));
    for (std::int64_t e = 0; e < tensor.elements(); ++e) {
      std::int64_t value = (e * 7 + seed) % 5 - 2;
      if (is_float(param.dtype)) write_real(tensor, e, static_cast<double>(value));
      else write_integer(tensor, e, value);
    }
    seed += 2;
    result.emplace(param.name, std::move(tensor));
  }
  return result;
}

void check_in_simulator(const Plan& plan, const Plan& finished, const Sizes& sizes) {
  INFO("sizes ", in_text(sizes));
  Arguments expected = bind_arguments(plan, exact_inputs(plan, sizes), sizes);
  for (const std::string& fault : interpret(plan, expected).faults) FAIL_CHECK(fault);
  for (std::uint64_t seed : {1U, 2U}) {
    Arguments arguments = bind_arguments(finished, exact_inputs(plan, sizes), sizes);
    SimulatorOptions options;
    options.seed = seed;
    for (const std::string& fault : simulate(finished, arguments, options).faults) FAIL_CHECK(fault);
    for (const Param& param : plan.params) {
      bool same = arguments.tensors.at(param.name).data == expected.tensors.at(param.name).data;
      CHECK_MESSAGE(same, param.name, " differs");
    }
  }
}

// What stands behind `// word: ` in front of a case; empty where it is not stated.
std::vector<std::string> all_stated(const std::string& text, const std::string& word) {
  std::vector<std::string> result;
  std::istringstream in(text);
  const std::string start = "// " + word + ": ";
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start)) result.push_back(line.substr(start.size()));
  return result;
}

std::string stated(const std::string& text, const std::string& word) {
  std::vector<std::string> all = all_stated(text, word);
  return all.empty() ? std::string() : all.front();
}

std::string finished_text(const std::string& name, const std::string& text) {
  try {
    std::vector<std::pair<std::string, Plan>> after;
    Plan plan = read_plan(text);
    std::string arch = stated(text, "arch");
    Plan finished = finish(plan, arch.empty() ? Target{} : target_for(arch), &after);
    for (const auto& step : after) {
      INFO("after ", step.first);
      check_plan(step.second);
    }
    for (const std::string& sizes : all_stated(text, "sizes")) check_in_simulator(plan, finished, read_sizes(sizes));
    std::string wanted = stated(text, "after");
    for (const auto& [pass, result] : after) {
      if (pass != wanted) continue;
      check_same_results(plan, result, {}, Device::Interpreter);
      return print(result);
    }
    return print(finished);
  } catch (const UserError& error) {
    return render(error.diagnostics(), {SourceFile{name, text}});
  }
}

void run_case(const fs::path& path) {
  std::string name = path.filename().string();
  INFO("case ", name);
  std::string text = finished_text(name, read_file(path));
  bool was_refused = text.starts_with("error");
  CHECK_MESSAGE(was_refused == name.starts_with("fail_"), text);
  fs::path expected = fs::path(path).replace_extension(".expected");
  if (updates_expectations())
    std::ofstream(expected, std::ios::binary) << text;
  else if (fs::exists(expected))
    CHECK(text == read_file(expected));
  else
    FAIL_CHECK(expected.string() << " is missing; TILEWRIGHT_UPDATE=1 writes it");
}

}  // namespace

TEST_CASE("finished plans are as their golden files say") {
  const std::vector<fs::path> cases = golden_cases(source_root() / "tests" / "passes" / "finish");
  REQUIRE(!cases.empty());
  for (const fs::path& path : cases) {
    SUBCASE(path.stem().string().c_str()) { run_case(path); }
  }
}

}  // namespace tilewright
