// The cases that the fuzzer has found, each checked again.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/files.h"
#include "runtime/toolkit.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/shrink.h"
#include "tests/locations.h"

namespace tilewright::fuzz {

namespace {

namespace fs = std::filesystem;

// The terms of this kind in a program.
int count_terms(const Term& term, TermKind kind) {
  int count = term.kind == kind ? 1 : 0;
  for (const Term& kid : term.kids) count += count_terms(kid, kind);
  return count;
}

}  // namespace

TEST_SUITE("fuzz") {
  TEST_CASE("fuzz: a sample of programs and schedules gives the same everywhere") {
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    const double most_seconds = runs_full_tests() ? 300 : 20;
    Tally tally;
    Devices devices;
    devices.ptx = find_tool(Tool::Nvrtc) && find_tool(Tool::Libdevice);
    std::uint64_t number = 0;
    const std::uint64_t most_programs = runs_full_tests() ? 1'000'000 : 250;  // the same ones on a fast machine
    for (; seconds() < most_seconds && number < most_programs; ++number) {
      const auto failed = draw_and_check(2024, number, devices, tally);
      CHECK_MESSAGE(!failed, "program ", number, (failed ? ": " + failed->finding.kind + ": " + failed->finding.text + "\n" + to_text(failed->drawn) : ""));
      if (failed) break;
    }
    MESSAGE(number << " programs in " << seconds() << " s");
    CHECK(number >= 3);
    CHECK(tally.total("program", "accepted") * 10 > static_cast<std::int64_t>(number) * 7);
    CHECK(tally.total("compared", "sim") > 0);
    CHECK(tally.total("compared", "rung") > 0);
  }

  TEST_CASE("fuzz: the same number draws the same case; a failing case becomes small") {
    int shrunk = 0;
    for (std::uint64_t number = 0; shrunk < 3; ++number) {
      REQUIRE(number < 1000);
      Tally tally;
      const Case drawn = draw_case(77, number, tally, nullptr);
      const Case again = draw_case(77, number, tally, nullptr);
      REQUIRE((drawn.runs.empty() || to_text(drawn) == to_text(again)));
      // As if every program with a reduction of a product under a `tile` were wrong.
      const StillFails has_reduction = [](const Case& candidate) {
        std::string refusal;
        if (!compile(print(candidate.program), candidate.index_bits, &refusal)) return false;
        int reductions = 0;
        for (const Statement& statement : candidate.program.main().statements) reductions += count_terms(statement.value, TermKind::Reduction);
        const auto is_tile = [](const std::string& line) { return line.find("tile ") != std::string::npos; };
        return reductions > 0 && std::any_of(candidate.program.lines.begin(), candidate.program.lines.end(), is_tile);
      };
      if (drawn.runs.empty() || !has_reduction(drawn)) continue;
      const Case small = shrink(drawn, has_reduction);
      INFO(to_text(small));
      CHECK(has_reduction(small));
      CHECK(small.program.lines.size() == 1);
      CHECK(small.program.main().statements.size() <= 2);
      CHECK(to_text(small).size() <= to_text(drawn).size());
      ++shrunk;
    }
  }

  TEST_CASE("fuzz: what was found stays mended") {
    int cases = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(source_root() / "tests" / "fuzz" / "found")) {
      if (entry.path().extension() != ".tw") continue;
      INFO(entry.path().filename().string());
      const std::string text = read_whole_file(entry.path());
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
