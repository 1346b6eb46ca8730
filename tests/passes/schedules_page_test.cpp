// docs/schedules.md is what the passes' own headers say and what their tests see refused, a section a line. TILEWRIGHT_UPDATE=1
// rewrites it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "passes/headers.h"
#include "passes/pass.h"
#include "tests/locations.h"
#include "tests/passes/golden_case.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string numeric_words(NumericClass numeric) {
  switch (numeric) {
    case NumericClass::Exact: return "Not a bit of a result changes.";
    case NumericClass::Reassociates: return "Sums are made in another order.";
    case NumericClass::ChangesPrecision: return "Other roundings or functions.";
  }
  return "";
}

// A header as Markdown: what is indented is code.
std::string header_as_markdown(std::string_view header) {
  std::istringstream lines{std::string(header)};
  std::string out, line;
  std::getline(lines, line);  // the first sentence, "word: …"
  out = "The pass: " + line.substr(line.find(": ") + 2) + "\n";
  bool is_code = false;
  while (std::getline(lines, line)) {
    const bool indented = line.starts_with("  ");
    if (indented != is_code && !line.empty()) {
      out += is_code ? "```\n\n" : "\n```\n";
      is_code = indented;
    }
    if (!line.empty() || !is_code) out += line.substr(indented ? 2 : 0) + "\n";
  }
  if (is_code) out += "```\n";
  for (std::size_t at = 0; (at = out.find("\n\n\n", at)) != std::string::npos;) out.erase(at, 1);
  return out;
}

std::string cell(const std::string& text) {
  std::string out;
  for (const char letter : text) out += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return out;
}

// The line that a diagnostic points into, and what it says: a row for each case that is refused.
std::string refusals_of(const std::string& word) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(source_root() / "tests/passes" / word))
    if (entry.path().filename().string().starts_with("fail_") && entry.path().extension() == ".expected") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string out;
  for (const fs::path& file : files) {
    std::istringstream text(read_file(file));
    std::string line, error, help, seen;
    while (std::getline(text, line)) {
      if (line.starts_with("error: ") && error.empty()) error = line.substr(7);
      if (line.starts_with("help: ") && help.empty()) help = line.substr(6);
      if (const std::size_t at = line.find("| // line: "); at != std::string::npos && seen.empty()) seen = line.substr(at + 11);
    }
    if (!seen.empty()) out += fmt::format("| `{}` | {}{} |\n", cell(seen), cell(error), help.empty() ? "" : "; help: " + cell(help));
  }
  return out.empty() ? out : "| refused | because |\n|---|---|\n" + out;
}

std::string schedules_page() {
  std::string out =
      "# The lines of a schedule\n\nIn the order in which the compiler lists them; `tilewright help WORD` prints the same. This page is made from the headers of the passes and from what their tests\n"
      "see refused: `TILEWRIGHT_UPDATE=1 build/release/tilewright_tests -tc='docs: schedules*'` writes it.\n\n";
  for (const SchedulePass& pass : schedule_passes()) out += fmt::format("- [`{}`](#{}): {}\n", pass.word, pass.word, pass.summary);
  for (const SchedulePass& pass : schedule_passes()) {
    const std::string word(pass.word);
    out += fmt::format("\n## {}\n\n`{}`: {}. {}\n\n{}", word, pass.syntax, pass.summary, numeric_words(pass.numeric), header_as_markdown(header_comment(word)));
    const std::string refusals = refusals_of(word);
    if (!refusals.empty()) out += "\n" + refusals;
  }
  return out;
}

}  // namespace

TEST_SUITE("passes") {
  TEST_CASE("docs: schedules.md is made from the headers of the passes and their refusals") {
    const fs::path page = source_root() / "docs/schedules.md";
    for (const SchedulePass& pass : schedule_passes()) {
      CAPTURE(pass.word);
      const std::string_view header = header_comment(pass.word);
      for (const char* part : {"\n  before ", "\n  after "}) CHECK(header.find(part) != std::string_view::npos);
      CHECK((header.find("Needs: ") != std::string_view::npos || header.find("Needs nothing") != std::string_view::npos));
      CHECK_FALSE(refusals_of(std::string(pass.word)).empty());
    }
    const std::string text = schedules_page();
    if (updates_expectations()) std::ofstream(page, std::ios::binary) << text;
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    CHECK_MESSAGE(text == read_file(page), "docs/schedules.md is not what the headers say; TILEWRIGHT_UPDATE=1 writes it");
  }
}

}  // namespace tilewright
