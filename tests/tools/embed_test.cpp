// The library as another program uses it: examples/embed, built beside the tests, computes a softmax.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "runtime/process.h"
#include "tests/locations.h"

namespace tilewright {

TEST_CASE("embed: a program of 40 lines compiles a text and calls it; every row of the softmax sums to 1") {
  const std::filesystem::path program = program_folder() / "embed";
  REQUIRE_MESSAGE(std::filesystem::exists(program), program.string(), " was not built");
  const ProcessResult result = run_process({program.string()});
  CHECK(result.status == 0);
  CHECK(result.errors.empty());
  std::istringstream lines(result.output);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    std::istringstream words(line);
    double sum = 0;
    for (double value = 0; words >> value;) {
      CHECK(value > 0);
      sum += value;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-3));  // four digits are printed
    CHECK(line.ends_with("sum 1.000000"));
  }
  CHECK(rows == 3);
}

}  // namespace tilewright
