// Texts that are no programs: each gets a diagnostic, none a crash.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "frontend/program.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

// The first message; empty where the text is a program. Anything else than a UserError fails the test.
std::string first_fault(const std::string& text) {
  try {
    parse_program(text, "test.tw");
  } catch (const UserError& error) {
    REQUIRE_FALSE(error.diagnostics().empty());
    CHECK_FALSE(render(error.diagnostics(), {SourceFile{"test.tw", text}}).empty());
    return error.diagnostics().front().message;
  }
  return {};
}

std::string repeated(const std::string& part, std::size_t count) {
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text += part;
  return text;
}

std::string with_value(const std::string& value) { return "fn f(A: f32[N]) -> B: f32[N] { B[i] = " + value + " }"; }

}  // namespace

TEST_CASE("frontend: deep and long texts are refused") {
  const std::string too_deep = "the expression has more than 200 levels";
  CHECK(first_fault(with_value(repeated("(", 100000) + "A[i]" + repeated(")", 100000))) == too_deep);
  CHECK(first_fault(with_value(repeated("-", 100000) + "A[i]")) == too_deep);
  CHECK(first_fault(with_value(repeated("not ", 100000) + "true")) == too_deep);
  CHECK(first_fault(with_value(repeated("if true then 0.0 else ", 100000) + "A[i]")) == too_deep);
  CHECK(first_fault(with_value(repeated("A[", 100000) + "i" + repeated("]", 100000))) == too_deep);
  CHECK(first_fault(with_value(repeated("exp(", 100000) + "A[i]" + repeated(")", 100000))) == too_deep);
  CHECK(first_fault(with_value("A[i]" + repeated(" + A[i]", 100000))) == too_deep);
  CHECK(first_fault(with_value(repeated("sum[k] ", 100000) + "A[i]")) == too_deep);
  CHECK(first_fault(with_value("A[i; " + repeated("(", 100000))) == too_deep);
  CHECK(first_fault(repeated("{", 100000)).find("item begins") != std::string::npos);
  CHECK(first_fault(with_value("A[i]" + repeated(" + A[i]", 150))).empty());
  const std::string long_line = first_fault(repeated("x", 10 << 20));
  CHECK(long_line == "the program text has 10485760 bytes, but at most 4194304 are read");
  CHECK(first_fault(repeated("x ", 2 << 20)).find("found `x`") == 0);
  CHECK(
      first_fault("fn f(A: f32[" + repeated("9", 100000) + "]) -> B: f32[N] { }").find("larger than the largest i64") !=
      std::string::npos);
  CHECK(first_fault(repeated("\"", 100001)) != "");
}

TEST_CASE("frontend: numbers that do not fit stay faults") {
  CHECK(first_fault("fn f(A: f32[9223372036854775807, N]) -> B: f32[N] { B[i] = A[9223372036854775807 + "
                    "9223372036854775807, i] }") != "");
  CHECK(first_fault("fn f(A: f32[N * 9223372036854775807 * 4]) -> B: f32[N] { B[i] = 0.0 }") != "x");
  CHECK(first_fault("fn f(A: f32[N]) -> B: f32[N] { B[i] = A[i / 0] + A[i % 0] + A[0 / 0] }") != "");
  CHECK(first_fault(with_value("1e999")).find("largest f64") != std::string::npos);
}

TEST_CASE("frontend: inlining that would explode is refused") {
  std::string text = "fn f0(x: f32) -> y: f32 { y = x * x }\n";
  for (int k = 1; k < 60; ++k) {
    const std::string below = "f" + std::to_string(k - 1);
    text +=
        "fn f" + std::to_string(k) + "(x: f32) -> y: f32 { y = " + below + "(x) + " + below + "(" + below + "(x)) }\n";
  }
  CHECK(first_fault(text).find("becomes too large") != std::string::npos);
  std::string lets = "fn f(x: f32) -> y: f32 {\n let a0 = x\n";
  for (int k = 1; k < 60; ++k)
    lets += " let a" + std::to_string(k) + " = a" + std::to_string(k - 1) + " * a" + std::to_string(k - 1) + "\n";
  CHECK(first_fault(lets + " y = a59 }\nfn g(A: f32[N]) -> B: f32[N] { B[i] = f(A[i]) }").find("becomes too large") !=
        std::string::npos);
  CHECK(first_fault("fn f(x: f32) -> y: f32 { y = g(x) }\nfn g(x: f32) -> y: f32 { y = f(x) }").find("calls itself") !=
        std::string::npos);
}

// The golden programs with a piece lost, doubled, or replaced by another's.
TEST_CASE("frontend: damaged programs are refused or read, never a crash") {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests" / "frontend"))
    if (entry.path().extension() == ".tw") {
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      if (text.str().size() > 20) texts.push_back(text.str());
    }
  REQUIRE_FALSE(texts.empty());
  std::mt19937_64 random(20240607);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  const int rounds = runs_full_tests() ? 20000 : 300;
  for (int round = 0; round < rounds; ++round) {
    std::string text = texts[below(texts.size())];
    const std::string& other = texts[below(texts.size())];
    for (std::size_t faults = 1 + below(3); faults > 0; --faults) {
      const std::size_t at = below(text.size());
      const std::size_t from = below(other.size());
      switch (below(4)) {
        case 0:
          text.erase(at, 1 + below(6));
          break;
        case 1:
          text.insert(at, text.substr(at, 1 + below(12)));
          break;
        case 2:
          text.insert(at, other.substr(from, 1 + below(10)));
          break;
        default:
          text[at] = static_cast<char>(below(128));
      }
      if (text.empty()) text = " ";
    }
    CAPTURE(round);
    CHECK_NOTHROW(first_fault(text));
  }
}

}  // namespace tilewright
