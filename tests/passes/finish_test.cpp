// Golden files of the finishing passes. `tests/passes/finish/<case>.ir` is a plan of the tile stage, in front of it
//
//   // arch: sm_80        (instead of sm_90a)
//
// and `<case>.expected` the plan finished, or for `fail_*` the diagnostic. What every pass makes verifies and comes back
// from its own text. TILEWRIGHT_UPDATE=1 rewrites the expectations.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/locations.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Target target_of(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("// arch: ")) return target_for(line.substr(9));
  return Target{};
}

std::string finished_text(const std::string& name, const std::string& text) {
  try {
    std::vector<std::pair<std::string, Plan>> after;
    Plan finished = finish(read_plan(text), target_of(text), &after);
    for (const auto& [pass, plan] : after) {
      INFO("after ", pass);
      check_plan(plan);
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
  std::vector<fs::path> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(source_root() / "tests" / "passes" / "finish"))
    if (entry.path().extension() == ".ir") cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  REQUIRE(!cases.empty());
  for (const fs::path& path : cases) {
    SUBCASE(path.stem().string().c_str()) { run_case(path); }
  }
}

}  // namespace tilewright
