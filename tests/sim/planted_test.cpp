// tests/sim/faults: kernels with one planted fault each, beside what the simulator says of it. A file is an IR text whose first
// comment gives the dims that its inputs have: `// run M = 32, N = 32` (further ones are for mutation_test.cpp). `right_*` files look alike and are right. With
// TILEWRIGHT_UPDATE set, the expectations are rewritten.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "tests/locations.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

std::string faults_of_file(const Plan& plan, const std::string& text, std::uint64_t seed) {
  SimulatorOptions options;
  options.seed = seed;
  options.sms = 1;  // several may run at once, and then either access of a race between blocks comes first
  options.most_steps = 4000000;
  const std::map<std::string, std::int64_t> dims = dims_of_text(text);
  try {
    return faults_of(plan, exact_inputs(plan, dims), dims, options);
  } catch (const UserError& error) {
    return error.diagnostics().front().message + "\n";
  }
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("planted faults are reported under every order, their right neighbours never") {
    const std::filesystem::path folder = source_root() / "tests/sim/faults";
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".ir") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    CHECK(files.size() >= 40);
    for (const auto& file : files) {
      CAPTURE(file.filename().string());
      const std::string text = read_whole_file(file);
      const Plan plan = plan_of(text);
      if (file.filename().string().starts_with("right_")) {
        for (std::uint64_t seed = 1; seed <= 12; ++seed) CHECK(faults_of_file(plan, text, seed) == "");
        continue;
      }
      std::filesystem::path expected = file;
      expected.replace_extension(".expected");
      const std::string said = faults_of_file(plan, text, 1);
      if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) std::ofstream(expected) << said;
      CHECK(said == read_whole_file(expected));
      const std::uint64_t orders = file.filename().string().starts_with("hopper") ? 3 : 6;
      for (std::uint64_t seed = 2; seed <= orders; ++seed) CHECK_MESSAGE(faults_of_file(plan, text, seed) != "", seed);
    }
  }

  TEST_CASE("each fault in CUDA C has its twin in the IR") {
    std::size_t faults = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests/sim/faults_cuda")) {
      if (entry.path().extension() != ".cu") continue;
      std::istringstream text(read_whole_file(entry.path()));
      const std::string kernel = entry.path().stem().string();
      CHECK(std::filesystem::exists(source_root() / "tests/sim/faults" / ("right_" + kernel + ".ir")));
      for (std::string line; std::getline(text, line);) {
        if (!line.starts_with("// fault ")) continue;
        ++faults;
        const std::string name = line.substr(9, line.find(':') - 9);
        CHECK_MESSAGE(std::filesystem::exists(source_root() / "tests/sim/faults" / (kernel + "_" + name + ".expected")), line);
      }
    }
    CHECK(faults >= 40);
  }
}

}  // namespace tilewright
