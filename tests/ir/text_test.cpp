// The IR's text: the ladder of tests/ir/ladder prints, parses and verifies; tests/ir/verify holds what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "ir/plan.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file, "cannot read ", path.string());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& extension) {
  std::set<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) found.insert(entry.path());
  return {found.begin(), found.end()};
}

// Without `//` comments and the lines that hold nothing else.
std::string without_comments(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find("//"));
    line.erase(line.find_last_not_of(" \t") + 1);
    if (!line.empty()) result += line + "\n";
  }
  return result;
}

std::string messages_of(const std::string& text) {
  std::string result;
  try {
    for (const std::string& message : verify(parse_plan(text))) result += message + "\n";
  } catch (const UserError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) result += diagnostic.message + "\n";
  }
  return result;
}

Plan parse_or_fail(const std::string& text, const std::string& name) {
  try {
    return parse_plan(text);
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{name, text}}));
  }
  return {};
}

}  // namespace

TEST_SUITE("ir text") {
  TEST_CASE("the ladder parses, prints back and verifies") {
    const std::vector<fs::path> files = files_in(source_root() / "tests/ir/ladder", ".ir");
    CHECK(files.size() >= 20);
    for (const fs::path& path : files) {
      CAPTURE(path.filename().string());
      const std::string text = read_text(path);
      const Plan plan = parse_or_fail(text, path.filename().string());
      CHECK(print(plan) == without_comments(text));
      CHECK(parse_or_fail(print(plan), path.filename().string()) == plan);
      CHECK(fmt::format("{}", fmt::join(verify(plan), "\n")) == "");
    }
  }

  TEST_CASE("what a plan must satisfy: each broken rule is named") {
    const std::vector<fs::path> files = files_in(source_root() / "tests/ir/verify", ".ir");
    CHECK(files.size() >= 90);
    for (const fs::path& path : files) {
      CAPTURE(path.filename().string());
      const std::string seen = messages_of(read_text(path));
      fs::path expectation = path;
      expectation.replace_extension(".txt");
      CHECK(seen != "");
      if (updates_expectations())
        std::ofstream(expectation) << seen;
      else
        CHECK(seen == read_text(expectation));
    }
  }

  TEST_CASE("what is no text of the IR: each fault with its place") {
    const std::vector<fs::path> files = files_in(source_root() / "tests/ir/parse", ".ir");
    CHECK(files.size() >= 15);
    for (const fs::path& path : files) {
      CAPTURE(path.filename().string());
      const std::string text = read_text(path);
      std::string seen;
      try {
        parse_plan(text);
      } catch (const UserError& error) {
        seen = render(error.diagnostics(), {{path.filename().string(), text}});
      }
      CHECK(seen != "");
      fs::path expectation = path;
      expectation.replace_extension(".txt");
      if (updates_expectations())
        std::ofstream(expectation) << seen;
      else
        CHECK(seen == read_text(expectation));
    }
  }

  TEST_CASE("each message of the verifier has its case") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    std::string seen;
    for (const fs::path& path : files_in(source_root() / "tests/ir/verify", ".txt")) seen += read_text(path);
    // Faults that no text can hold, for the parser would not make them.
    const std::string built_only = "an expression is missing, a statement is missing, a loop without axes, a declaration without a name, "
                                   "`: a reduction stands in tensor IR only, gives a bool, and is read as ";
    const std::regex pattern("fault\\((?:fmt::format\\()?\"((?:[^\"\\\\]|\\\\.)*)\"");
    for (const char* name : {"verifier.cpp", "verifier_expr.cpp", "verifier_stmt.cpp", "verifier_tile.cpp"}) {
      const std::string source = read_text(source_root() / "ir" / name);
      for (std::sregex_iterator found(source.begin(), source.end(), pattern), end; found != end; ++found) {
        // The longest part between placeholders must have been seen.
        std::string part;
        std::string longest;
        for (char c : (*found)[1].str() + "{") {
          if (c == '{') {
            if (part.size() > longest.size()) longest = part;
            part.clear();
          } else if (c == '}') {
            part.clear();
          } else {
            part += c;
          }
        }
        const bool has_case = seen.find(longest) != std::string::npos || built_only.find(longest) != std::string::npos;
        CHECK_MESSAGE(has_case, name, " has a fault without a case: ", (*found)[1].str());
      }
    }
  }

  TEST_CASE("every line of a printed statement is known") {
    const std::string text = read_text(source_root() / "tests/ir/ladder/matmul.09.persist.ir");
    const Plan plan = parse_plan(text, 3);
    std::vector<PrintedLine> lines;
    const std::string printed = print(plan, lines);
    int statements = 0;
    walk(kernels_of(plan).at(0)->body, [&](const Stmt& stmt) {
      statements += as<Labelled>(stmt) ? 0 : 1;
      return true;
    });
    CHECK(static_cast<int>(lines.size()) == statements);
    // The file has one line of comment in front, or two.
    const int shift = lines.at(0).span.line - lines.at(0).line;
    CHECK((shift == 1 || shift == 2));
    for (const PrintedLine& line : lines) CHECK(line.span.line - line.line == shift);
    CHECK(lines.at(0).span.file == 3);
  }
}

}  // namespace tilewright
