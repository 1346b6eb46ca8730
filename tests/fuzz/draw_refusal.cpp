// Cases of the tests, read again.
#include "tests/fuzz/draw_refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "ir/parser.h"
#include "runtime/files.h"

namespace tilewright::fuzz {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void count_all(const UserError& error, const std::string& category, const std::string& word, Tally& tally) {
  for (const Diagnostic& diagnostic : error.diagnostics()) tally.count(category, word + kind_of_refusal(diagnostic.message));
}

void read_as_program(const std::string& text, Tally& tally) {
  try {
    const Program program = parse_program(text, "case.tw");
    for (const TensorFn& fn : program.fns)
      if (const auto faults = verify(fn); !faults.empty()) internal_error(faults.front());
  } catch (const UserError& error) {
    count_all(error, "frontend refusal", "", tally);
  }
}

void read_as_plan(const std::string& text, Tally& tally) {
  Target target;
  std::string word;
  try {
    Plan plan = parse_plan(text);
    for (const std::string& line : lines_of(text)) {
      if (line.starts_with("// arch: ")) target = target_for(line.substr(9));
      if (!line.starts_with("// line: ")) continue;
      const ScheduleLine next = tokenize_line(line.substr(9));
      word = next.word + ": ";
      plan = apply_line(plan, next, target);
    }
    word = "finish: ";
    finish(plan, target);
  } catch (const UserError& error) {
    if (word == "finish: ") count_all(error, "finishing refusal", "", tally);
    else count_all(error, "refusal", word.empty() ? "plan: " : word, tally);
  }
}

// Something else in one place: a number, a word, or two lines the other way round.
std::string changed(Random& random, const std::string& text, bool is_plan) {
  std::vector<std::string> lines = lines_of(text);
  std::vector<std::size_t> places;
  for (std::size_t n = 0; n < lines.size(); ++n)
    if (is_plan ? lines[n].starts_with("// line: ") : lines[n].find_first_not_of(' ') != std::string::npos) places.push_back(n);
  if (places.empty()) return text;
  const std::size_t at = random.pick(places);
  std::string& line = lines[at];
  std::vector<std::size_t> digits;
  for (std::size_t n = 0; n < line.size(); ++n)
    if (std::isdigit(static_cast<unsigned char>(line[n])) != 0 && (n == 0 || std::isalnum(static_cast<unsigned char>(line[n - 1])) == 0)) digits.push_back(n);
  switch (random.below(4)) {
    case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: std::swap(line, lines[random.pick(places)]); break;
    case 2: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), line); break;
    default:
      if (digits.empty()) break;
      const std::size_t first = random.pick(digits);
      std::size_t last = first;
      while (last < line.size() && std::isdigit(static_cast<unsigned char>(line[last])) != 0) ++last;
      line = line.substr(0, first) + random.pick({"0", "1", "2", "4", "8", "16", "32", "64", "3", "128"}) + line.substr(last);
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::optional<Finding> read_case(const RefusalCase& drawn, const std::string& text, Tally& tally) {
  try {
    drawn.is_plan ? read_as_plan(text, tally) : read_as_program(text, tally);
    return std::nullopt;
  } catch (const std::exception& error) {
    return Finding{kind_of_changed_case, fmt::format("{}: {}\n{}", drawn.path.string(), error.what(), text)};
  }
}

}  // namespace

std::vector<RefusalCase> read_refusal_cases(const fs::path& tests) {
  std::vector<RefusalCase> cases;
  for (const char* folder : {"frontend", "passes"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tests / folder)) {
      const fs::path& path = entry.path();
      if (!path.filename().string().starts_with("fail_") || path.extension() == ".expected") continue;
      cases.push_back(RefusalCase{path, read_whole_file(path), path.extension() == ".ir"});
    }
  std::sort(cases.begin(), cases.end(), [](const RefusalCase& a, const RefusalCase& b) { return a.path < b.path; });
  return cases;
}

std::optional<Finding> draw_refusal(const RefusalCase& drawn, Tally& tally) { return read_case(drawn, drawn.text, tally); }

std::optional<Finding> draw_changed_refusal(Random& random, const RefusalCase& drawn, Tally& tally) {
  return read_case(drawn, changed(random, drawn.text, drawn.is_plan), tally);
}

void expect_refusals(const std::vector<RefusalCase>& cases, Tally& tally) {
  Tally once;
  for (const RefusalCase& each : cases) draw_refusal(each, once);
  for (const char* category : {"refusal", "frontend refusal", "finishing refusal"})
    for (const auto& [name, times] : once.names(category)) tally.expect(category, name);
}

}  // namespace tilewright::fuzz
