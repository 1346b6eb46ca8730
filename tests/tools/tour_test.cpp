// docs/tour.md: each block of commands is run, in one folder with the files that the tour writes, and prints what stands there.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <sstream>

#include "runtime/files.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"
#include "tools/line_pairs.h"
#include "tools/options.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

struct Command {
  std::string words;
  std::vector<std::string> expected;
};

// Spaces become one, for columns grow with what stands in them.
std::string squeezed(const std::string& line) {
  std::string out = std::regex_replace(line, std::regex(" +"), " ");
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// `…` inside a line stands for anything.
bool fits(const std::string& expected, const std::string& line) {
  const std::string wanted = squeezed(expected), found = squeezed(line);
  std::size_t at = 0;
  bool is_first = true;
  for (std::size_t start = 0; start <= wanted.size();) {
    const std::size_t end = std::min(wanted.find("…", start), wanted.size());
    std::string piece = wanted.substr(start, end - start);
    const std::size_t place = found.find(piece, at);
    if (place == std::string::npos || (is_first && place != 0)) return false;
    at = place + piece.size();
    is_first = false;
    start = end + std::string("…").size();
    if (end == wanted.size()) return at == found.size() || piece.empty();
  }
  return true;
}

// The first line of the page that has no line of the output, where they must follow each other but for lines `…`; empty: all fit.
std::string first_missing(const std::vector<std::string>& expected, const std::vector<std::string>& output) {
  std::size_t at = 0;
  bool may_skip = false;
  for (const std::string& line : expected) {
    if (line == "…") {
      may_skip = true;
      continue;
    }
    std::size_t found = at;
    while (may_skip && found < output.size() && !fits(line, output[found])) ++found;
    if (found >= output.size() || !fits(line, output[found])) return line;
    at = found + 1;
    may_skip = false;
  }
  return may_skip || at == output.size() ? "" : "(the end, where the output goes on: " + output[at] + ")";
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("docs: what the tour is compared with") {
    CHECK(fits("a …  c", "a   b c"));
    CHECK_FALSE(fits("a … c", "a b d"));
    CHECK_FALSE(fits("b", "a b"));
    CHECK_FALSE(fits("a", "a b"));
    CHECK(fits("a …", "a b"));
    CHECK(first_missing({"a", "…", "d"}, {"a", "b", "d"}).empty());
    CHECK(first_missing({"a", "d"}, {"a", "b", "d"}) == "d");
    CHECK(first_missing({"a"}, {"a", "b"}) == "(the end, where the output goes on: b)");
    CHECK(first_missing({"…", "x", "…"}, {"a", "b"}) == "x");
  }

  TEST_CASE("docs: the tour's commands run and print what it says") {
    const fs::path page = source_root() / "docs/tour.md";
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Nvdisasm)) TILEWRIGHT_SKIP("NVRTC or nvdisasm was not found");
    const fs::path folder = fs::temp_directory_path() / fmt::format("tilewright-tour-{}", getpid()), before = fs::current_path();
    fs::create_directories(folder);
    fs::current_path(folder);
    std::string block, file, content;
    std::vector<Command> commands;
    int run = 0;
    const std::vector<std::string> lines = lines_of_text(read_whole_file(page.string()));
    for (const std::string& line : lines) {
      if (block.empty() && line.starts_with("```")) {
        block = line.substr(3);
        file = block.starts_with("tw ") ? block.substr(3) : "";
        content.clear();
        commands.clear();
        if (block.empty()) block = "text";
      } else if (line == "```") {
        if (!file.empty()) std::ofstream(file) << content;
        for (const Command& command : commands) {
          CAPTURE(command.words);
          const std::vector<std::string> words = words_of(command.words);
          std::vector<const char*> argv;
          for (const std::string& word : words) argv.push_back(word.c_str());
          REQUIRE(words.front() == "tilewright");
          std::ostringstream out;
          std::streambuf* screen = std::cout.rdbuf(out.rdbuf());
          const int code = command_line(static_cast<int>(argv.size()), argv.data());
          std::cout.rdbuf(screen);
          CHECK(code == 0);
          const std::string missing = first_missing(command.expected, lines_of_text(out.str()));
          CHECK_MESSAGE(missing.empty(), missing << "\nis not where the tour has it, in\n" << out.str());
          ++run;
        }
        block.clear();
      } else if (block == "console") {
        if (line.starts_with("$ ")) commands.push_back({line.substr(2), {}});
        else if (!commands.empty()) commands.back().expected.push_back(line);
      } else if (!file.empty()) {
        content += line + "\n";
      }
    }
    fs::current_path(before);
    fs::remove_all(folder);
    CHECK(run >= 9);
  }
}

}  // namespace tilewright
