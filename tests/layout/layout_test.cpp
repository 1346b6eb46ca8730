// The arrows between the folders, and how long each folder is.
//
// frontend -> ir <- passes; codegen -> ir; runtime -> ir, codegen (runtime/library: all of them); tools -> all.
// LLVM's headers belong to codegen and runtime.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/locations.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> allowed_includes = {
    {"ir", {"ir"}},
    {"frontend", {"frontend", "ir"}},
    {"passes", {"passes", "ir"}},
    {"codegen", {"codegen", "ir", "llvm"}},
    {"runtime", {"runtime", "codegen", "ir", "llvm"}},
    {"runtime/library", {"runtime", "codegen", "passes", "frontend", "ir"}},
    {"tools", {"tools", "runtime", "codegen", "passes", "frontend", "ir"}},
};

// Lines a folder may take before its design is looked at again.
const std::map<std::string, int> line_budgets = {{"frontend", 4000}, {"ir", 6000},      {"passes", 6000},
                                                 {"codegen", 3000},  {"runtime", 6000}, {"tools", 4000}};

bool is_source(const fs::path& path) { return path.extension() == ".cpp" || path.extension() == ".h"; }

std::vector<fs::path> sources_below(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::exists(folder)) return found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_source(entry.path())) found.push_back(entry.path());
  }
  return found;
}

// The folder that an include line names, `ir` of `#include "ir/expr.h"`; empty where it names no folder.
std::string included_folder(const std::string& line) {
  const std::string start = "#include ";
  if (line.compare(0, start.size(), start) != 0) return {};
  const size_t slash = line.find('/');
  if (slash == std::string::npos || slash <= start.size() + 1) return {};
  return line.substr(start.size() + 1, slash - start.size() - 1);
}

// What a line at the left margin of an unnamed namespace defines: a type, a function or a constant; empty where it is none.
// An alias of the same type may stand twice.
std::string defined_name(const std::string& line) {
  static const std::regex type("^(?:struct|class|enum class) (\\w+)");
  static const std::regex value("^(?!using |template|namespace )\\w.*?\\b(\\w+)(?: = |\\(|\\{|\\[)");
  std::smatch found;
  return std::regex_search(line, found, type) || std::regex_search(line, found, value) ? found[1].str() : std::string();
}

// Files that are compiled one at a time always (runtime/CMakeLists.txt).
bool stands_alone(const std::string& name) {
  static const std::regex pattern("^runtime/((sim|ptx)/|interpreter|oracle|slot_)");
  return std::regex_search(name, pattern);
}

}  // namespace

TEST_SUITE("layout") {
  TEST_CASE("what files keep to themselves has names of its own, so that they can be compiled together") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    for (const auto& entry : allowed_includes) {
      const std::string& folder = entry.first;
      std::map<std::string, std::string> owners;
      for (const fs::path& path : sources_below(source_root() / folder)) {
        const std::string file_name = fs::relative(path, source_root()).generic_string();
        if (path.extension() != ".cpp" || stands_alone(file_name)) continue;
        if (folder == "runtime" && file_name.rfind("runtime/library/", 0) == 0) continue;  // a library of its own
        std::ifstream file(path);
        std::string line;
        bool is_local = false;
        while (std::getline(file, line)) {
          if (line == "namespace {") is_local = true;
          if (line == "}  // namespace") is_local = false;
          const std::string name = is_local ? defined_name(line) : std::string();
          if (name.empty()) continue;
          const auto [place, is_new] = owners.emplace(name, file_name);
          if (!is_new && place->second != file_name)
            FAIL_CHECK(fmt::format("`{}` of {} is also a name of {}", name, file_name, place->second));
        }
      }
      CHECK_MESSAGE(owners.size() > 5, fmt::format("{} has hardly a name of its own", folder));
    }
  }


  TEST_CASE("includes follow the direction of the folders") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    std::set<std::string> restricted = {"llvm"};
    for (const auto& [folder, allowed] : allowed_includes) restricted.insert(folder);
    for (const char* folder : {"frontend", "ir", "passes", "codegen", "runtime", "tools"}) {
      for (const fs::path& path : sources_below(source_root() / folder)) {
        const std::string name = fs::relative(path, source_root()).generic_string();
        const bool is_library = name.rfind("runtime/library/", 0) == 0;
        const std::set<std::string>& allowed = allowed_includes.at(is_library ? "runtime/library" : folder);
        std::ifstream file(path);
        std::string line;
        for (int number = 1; std::getline(file, line); ++number) {
          const std::string target = included_folder(line);
          if (restricted.count(target) == 0 || allowed.count(target) != 0) continue;
          FAIL_CHECK(fmt::format("{}:{}: `{}` must not include `{}`", name, number, folder, target));
        }
      }
    }
  }

  TEST_CASE("source files say what they are for and are no longer than a reader follows") {
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    int compiler_total = 0;  // what a reader of the compiler reads
    for (const auto& [folder, budget] : line_budgets) {
      int total = 0;
      for (const fs::path& path : sources_below(source_root() / folder)) {
        std::ifstream file(path);
        std::string line;
        int lines = 0;
        const std::string name = fs::relative(path, source_root()).generic_string();
        while (std::getline(file, line)) {
          if (++lines == 1)
            CHECK_MESSAGE(line.rfind("//", 0) == 0, fmt::format("{} does not say what it is for", name));
        }
        total += lines;
        CHECK_MESSAGE(lines <= 600, fmt::format("{} has {} lines, 600 is where a reader stops", name, lines));
      }
      fmt::print("lines: {:<9} {:>6} of {}{}\n", folder, total, budget, total > budget ? "  OVER" : "");
      if (folder != "runtime" && folder != "tools") compiler_total += total;
    }
    fmt::print("lines: {:<9} {:>6} of {}{}\n", "compiler", compiler_total, 18000,
               compiler_total > 18000 ? "  OVER" : "");
  }
}

}  // namespace tilewright
