// Golden files of the schedule passes. `tests/passes/<pass>/<case>.ir` is a plan with its lines in front (golden_case.h),
// and `<case>.expected` the plan after them, or for `fail_*` the diagnostic. Of every plan on the way it is checked
// that it comes back from its own text, verifies, and gives the bits that the plan gave before, as long as the lines
// are exact; where sums were reassociated, on data whose sums are exact. That is checked in the tile interpreter with
// parallel loops forwards, backwards and shuffled, and of the last plan, finished, in the simulator.
// TILEWRIGHT_UPDATE=1 rewrites the expectations.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/locations.h"
#include "tests/passes/golden_case.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

// What has held of all lines so far.
struct Kept {
  bool bits = true;
  Agreement agreement = Agreement::AnyData;

  void add(NumericClass numeric) {
    if (numeric == NumericClass::ChangesPrecision) bits = false;
    if (numeric == NumericClass::Reassociates) agreement = Agreement::ExactData;
  }
};

void compare(const fs::path& expected, const std::string& text) {
  if (updates_expectations()) {
    std::ofstream(expected, std::ios::binary) << text;
    return;
  }
  if (fs::exists(expected))
    CHECK(text == read_file(expected));
  else
    FAIL_CHECK(expected.string() << " is missing; TILEWRIGHT_UPDATE=1 writes it");
}

// The plan after all lines; the checks of each on the way.
Plan run_lines(const GoldenCase& test, Kept& kept) {
  Plan first = parse_plan(test.text);
  check_plan(first);
  Plan plan = first;
  for (const ScheduleLine& line : test.lines) {
    INFO("line ", line.text);
    plan = apply_line(plan, line, test.target);
    check_plan(plan);
    kept.add(numeric_class(line.word));
    if (kept.bits && test.runs) check_same_results(first, plan, test.sizes, Device::Interpreter, kept.agreement);
  }
  return plan;
}

void run_case(const fs::path& path) {
  GoldenCase test = read_golden_case(path);
  INFO("case ", path.parent_path().filename().string(), "/", test.name);
  fs::path expected = fs::path(path).replace_extension(".expected");
  bool must_fail = test.name.starts_with("fail_");
  Kept kept;
  try {
    Plan plan = run_lines(test, kept);
    compare(expected, print(plan));
    CHECK_MESSAGE(!must_fail, "was not refused");
    if (!test.finishes) return;
    Plan finished = finish(plan, test.target);
    if (kept.bits && test.runs)
      check_same_results(parse_plan(test.text), finished, test.sizes, Device::Simulator, kept.agreement);
  } catch (const UserError& error) {
    std::string text = render(error.diagnostics(), {SourceFile{test.name, test.text}});
    if (must_fail)
      compare(expected, text);
    else
      FAIL_CHECK(text);
  } catch (const InternalError& error) {
    FAIL_CHECK(std::string(error.what()));
  }
}

void run_folder(const std::string& pass) {
  std::vector<fs::path> cases = golden_cases(source_root() / "tests" / "passes" / pass);
  CHECK_MESSAGE(!cases.empty(), "no case for ", pass);
  for (const fs::path& path : cases) run_case(path);
}

}  // namespace

TEST_CASE("every schedule word has golden files that hold") {
  for (const SchedulePass& pass : schedule_passes()) {
    SUBCASE(std::string(pass.word).c_str()) { run_folder(std::string(pass.word)); }
  }
}

}  // namespace tilewright
