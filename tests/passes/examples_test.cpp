// Every schedule of every example: after each line the plan verifies and, as long as the lines are exact, gives the
// bits of the naive plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/program.h"
#include "tests/locations.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

void run_schedule(const TensorFn& fn, const Schedule& schedule) {
  INFO("fn ", fn.name, ", schedule ", schedule.name);
  Plan plan = lower(fn);
  plan.facts = schedule.when;
  Plan naive = plan;
  bool exact = true;
  for (const ScheduleLine& line : schedule.lines) {
    INFO("line ", line.text);
    plan = apply_line(plan, line, Target{});
    check_plan(plan);
    exact = exact && numeric_class(line.word) == NumericClass::Exact;
  }
  if (exact) check_same_results(naive, plan, {}, Device::Interpreter);
}

}  // namespace

TEST_CASE("every schedule of the examples keeps the results, line by line") {
  for (const fs::directory_entry& folder : fs::directory_iterator(source_root() / "examples")) {
    if (!folder.is_directory()) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
      if (file.path().extension() != ".tw") continue;
      std::stringstream text;
      text << std::ifstream(file.path(), std::ios::binary).rdbuf();
      INFO("file ", file.path().filename().string());
      try {
        Program program = parse_program(text.str(), file.path().filename().string());
        for (const Schedule& schedule : program.schedules)
          for (const TensorFn& fn : program.fns)
            if (fn.name == schedule.fn) run_schedule(fn, schedule);
      } catch (const UserError& error) {
        FAIL_CHECK(render(error.diagnostics(), {SourceFile{file.path().filename().string(), text.str()}}));
      } catch (const InternalError& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
  }
}

}  // namespace tilewright
