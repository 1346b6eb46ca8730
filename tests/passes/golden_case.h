// A golden case of the passes: a plan, with what is done to it as comments in front.
//
//   // line: tile block i 16, j 16
//   // sizes: M 5, N 33               (instead of the usual small sizes; `none`: the plan is not run)
//   // arch: sm_80                    (instead of sm_90a)
//   // finish: none                   (the last plan has no thread stage yet)
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/passes/plan_runs.h"

namespace tilewright {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct GoldenCase {
  std::string name;
  std::string text;
  std::vector<ScheduleLine> lines;
  std::vector<Sizes> sizes;  // empty: the usual ones
  bool runs = true;
  bool finishes = true;
  Target target;
};

// The `.ir` files of a folder, sorted.
inline std::vector<std::filesystem::path> golden_cases(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> cases;
  if (std::filesystem::exists(folder))
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".ir") cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

inline Sizes read_sizes(const std::string& text) {
  Sizes result;
  std::string blanks = text;
  std::replace(blanks.begin(), blanks.end(), ',', ' ');
  std::istringstream in(blanks);
  std::string name;
  for (std::int64_t value = 0; in >> name >> value;) result[name] = value;
  return result;
}

inline GoldenCase read_golden_case(const std::filesystem::path& path) {
  GoldenCase result{path.filename().string(), read_file(path), {}, {}, true, true, {}};
  std::istringstream in(result.text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.starts_with("// line: "))
      result.lines.push_back(tokenize_line(line.substr(9), Span{0, number, 10, number, 11}));
    if (line.starts_with("// arch: ")) result.target = target_for(line.substr(9));
    if (line.starts_with("// finish: none")) result.finishes = false;
    if (line.starts_with("// sizes: none"))
      result.runs = false;
    else if (line.starts_with("// sizes: "))
      result.sizes.push_back(read_sizes(line.substr(10)));
  }
  return result;
}

}  // namespace tilewright
