// The cases that the fuzzer has found, each checked again.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/fuzz.h"
#include "tests/locations.h"

namespace tilewright::fuzz {

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_SUITE("fuzz") {
  TEST_CASE("fuzz: what was found stays mended") {
    int cases = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(source_root() / "tests" / "fuzz" / "found")) {
      if (entry.path().extension() != ".tw") continue;
      INFO(entry.path().filename().string());
      const std::string text = text_of(entry.path());
      REQUIRE_FALSE(read_runs(text).runs.empty());
      Tally tally;
      std::string refusal;
      const auto finding = check_text(text, Devices{}, tally, &refusal);
      CHECK_MESSAGE(!finding, (finding ? finding->kind + ": " + finding->text : ""));
      // A case of a construct that is refused now says so, and with which words.
      const std::size_t expected = text.find("// refused: ");
      const std::string wanted = expected == std::string::npos ? "" : text.substr(expected + 12, text.find('\n', expected) - expected - 12);
      CHECK(refusal == wanted);
      ++cases;
    }
    CHECK(cases > 0);
  }
}

}  // namespace tilewright::fuzz
