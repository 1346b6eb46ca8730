// Refusals: the tests' cases of what a frontend or a pass refuses, as they stand and with a word, a number or a line changed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/check.h"
#include "tests/fuzz/random.h"

namespace tilewright::fuzz {

inline constexpr const char* kind_of_changed_case = "a case of the tests";

// A failing case of the tests: a program, or a plan with lines in front.
struct RefusalCase {
  std::filesystem::path path;
  std::string text;
  bool is_plan = false;
};

// The `fail_*` cases below a folder of tests, sorted.
std::vector<RefusalCase> read_refusal_cases(const std::filesystem::path& tests);

// Reads a case and counts what is refused, by its words. Whatever else leaves a reader or a pass is a finding.
std::optional<Finding> draw_refusal(const RefusalCase& drawn, Tally& tally);
// The same with something changed: a number, a word, the order of lines.
std::optional<Finding> draw_changed_refusal(Random& random, const RefusalCase& drawn, Tally& tally);

// Each refusal of the cases becomes one that a long run is to meet.
void expect_refusals(const std::vector<RefusalCase>& cases, Tally& tally);

}  // namespace tilewright::fuzz
