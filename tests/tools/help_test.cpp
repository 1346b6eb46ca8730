// docs/language.md and docs/errors.md, as `help` prints them: the examples are right, and every message has its kind.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "frontend/program.h"
#include "runtime/files.h"
#include "tests/locations.h"
#include "tools/documents.h"
#include "tools/options.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

struct Said {
  int code = 0;
  std::string out;
};

Said call(std::vector<std::string> words) {
  std::vector<const char*> argv = {"tilewright"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const before_error = std::cerr.rdbuf(out.rdbuf());
  const int code = command_line(static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(before);
  std::cerr.rdbuf(before_error);
  return {code, out.str()};
}

// The ```tw blocks of a document.
std::vector<std::string> programs_in(const std::string& document) {
  std::vector<std::string> programs;
  std::istringstream lines(document);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```tw") programs.emplace_back(), is_inside = true;
    else if (line == "```") is_inside = false;
    else if (is_inside) programs.back() += line + "\n";
  }
  return programs;
}

// Messages that tests hold: `error: …` of the frontend's golden files and of bad_input.txt.
std::vector<std::string> known_messages() {
  std::vector<fs::path> files = {source_root() / "tests/tools/bad_input.txt"};
  for (const fs::directory_entry& entry : fs::directory_iterator(source_root() / "tests/frontend"))
    if (entry.path().extension() == ".expected") files.push_back(entry.path());
  std::vector<std::string> messages;
  for (const fs::path& file : files) {
    std::istringstream lines(read_whole_file(file.string()));
    for (std::string line; std::getline(lines, line);)
      if (std::smatch found; std::regex_match(line, found, std::regex(" *error: (.*)"))) messages.push_back(found[1]);
  }
  return messages;
}

}  // namespace

TEST_SUITE("help") {
  TEST_CASE("the programs of docs/language.md compute what they say") {
    const fs::path file = fs::temp_directory_path() / ("tilewright-language-" + std::to_string(getpid()) + ".tw");
    int checked = 0;
    for (const std::string& text : programs_in(std::string(document("language.md")))) {
      CAPTURE(text);
      std::ofstream(file) << text;
      for (const TensorFn& fn : parse_program(text, "language.md").fns) {
        const Said said = call({"check", file.string(), "--fn", fn.name, "--device", "cpu"});
        CHECK_MESSAGE(said.code == 0, fn.name << ": " << said.out);
        ++checked;
      }
    }
    fs::remove(file);
    CHECK(checked >= 20);
  }

  TEST_CASE("every message of the language and of bad input has its kind in docs/errors.md, and no pattern is left over") {
    const std::vector<Section> sections = sections_of(document("errors.md"));
    const std::vector<std::string> messages = known_messages();
    CHECK(messages.size() > 100);
    for (const std::string& message : messages) CHECK_MESSAGE(section_of_message(sections, message) != nullptr, message);
    for (const Section& section : sections) {
      CHECK_MESSAGE(section.text.size() > 40, section.name);
      CHECK_MESSAGE(!section.patterns.empty(), section.name);
    }
  }

  TEST_CASE("a message is explained by the section of its kind") {
    const std::vector<Section> sections = sections_of(document("errors.md"));
    const auto kind = [&](std::string_view message) {
      const Section* section = section_of_message(sections, message);
      return section ? section->name : "none";
    };
    CHECK(kind("`A[i - 1]` can leave `A`: `i - 1` can be -1") == "outside");
    CHECK(kind("index `k` ranges over 128 in `A[i, k]` but over 64 in `B[k, j]`") == "ranges");
    CHECK(kind("`n / 2` divides integers inside a float expression, and would round down") == "rounding");
    CHECK(kind("found `)`, but an expression is needed") == "syntax");
    CHECK(kind("the moon is full") == "none");
    CHECK(is_of_kind("a b c", "a … c"));
    CHECK(!is_of_kind("a c", "a … c"));
    CHECK(!is_of_kind("a b c d", "a … c"));
    CHECK(is_of_kind("a b c d", "a …"));
  }

  TEST_CASE("help prints topics, kinds of errors, messages, passes and instructions") {
    CHECK(call({"help"}).out.find("outside") != std::string::npos);
    CHECK(call({"help", "outside"}).out.find("`mirror`") != std::string::npos);
    CHECK(call({"help", "outside"}).out.find("Errors of this kind:") != std::string::npos);
    CHECK(call({"help", "error: `A[i - 1]` can leave `A`: `i - 1` can be -1"}).out.find("Say what they count as") != std::string::npos);
    CHECK(call({"help", "there", "is", "no", "tensor", "`Q`"}).out.find("stands for one thing") != std::string::npos);
    CHECK(call({"help", "stage"}).out.find("before") != std::string::npos);
    CHECK(call({"help", "schedules"}).out.find("persist order hilbert") != std::string::npos);
    CHECK(call({"help", "functions"}).out.find("rsqrt") != std::string::npos);
    CHECK(call({"help", "wgmma.commit"}).out.find("wgmma.commit_group.sync.aligned") != std::string::npos);
    CHECK(call({"help", "the moon is full"}).code == 1);
  }
}

}  // namespace tilewright
