// Reading nvdisasm's text; see sass.h.
#include "runtime/library/ladder/sass.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string_view>

namespace tilewright {

namespace {

// An instruction by the beginning of its name, the words behind it that are told apart, and its place in lists.
struct Telling {
  std::string_view name;
  bool is_tensor = false;
};
constexpr auto telling = std::to_array<Telling>({
    {"HGMMA", true}, {"QGMMA", true}, {"IGMMA", true}, {"BGMMA", true}, {"UTCHMMA", true}, {"UTCQMMA", true}, {"UTCIMMA", true},
    {"HMMA", true},  {"QMMA", true},  {"IMMA", true},  {"DMMA", true},  {"UTMALDG"},       {"UTMASTG"},       {"UBLKCP"},
    {"LDGSTS"},      {"LDG"},         {"STG"},         {"RED"},         {"ATOMG"},         {"ATOM"},          {"LDSM"},
    {"STSM"},        {"LDS"},         {"STS"},         {"ATOMS"},       {"LDL"},           {"STL"},           {"FFMA"},
    {"FADD"},        {"FMUL"},        {"DFMA"},        {"DADD"},        {"DMUL"},          {"HFMA2"},         {"MUFU"},
    {"SHFL"},        {"BAR"},         {"SYNCS"},       {"WARPGROUP"},   {"BRA"},
});

// `LDG.E.128.CONSTANT` is `LDG.128`, `HGMMA.64x256x16.F32.BF16` is `HGMMA.64x256x16`, `MUFU.EX2` stays.
std::string short_name(std::string_view name, std::string_view base) {
  std::string result(base);
  std::string_view rest = name.substr(base.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find('.'));
    rest.remove_prefix(word.size());
    const bool is_width = word == "64" || word == "128" || word == "U8" || word == "S8" || word == "U16" || word == "S16" || word == "U" || word == "4";
    const bool is_shape = word.find('x') != std::string_view::npos || (word.size() >= 4 && word.find_first_not_of("0123456789") == std::string_view::npos);
    const bool is_kind = base == "MUFU" || base == "BAR" || base == "SHFL" || base == "SYNCS" || base == "WARPGROUP";
    if (is_shape || (is_kind && result == base) || (is_width && word != "U" && word != "4")) result += "." + std::string(word);
  }
  return result;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

// The instruction of a line of nvdisasm, `@!P0 LDG.E R2, [R4.64]`, without its address and what stands behind it.
std::string_view instruction_in(std::string_view line) {
  const std::size_t open = line.find("/*");
  if (open == std::string_view::npos) return {};
  const std::size_t close = line.find("*/", open);
  const std::size_t end = close == std::string_view::npos ? close : line.find(';', close);
  return end == std::string_view::npos ? std::string_view() : trimmed(line.substr(close + 2, end - close - 2));
}

std::string_view name_in(std::string_view instruction) {
  if (instruction.starts_with('@')) instruction = trimmed(instruction.substr(std::min(instruction.size(), instruction.find(' '))));
  return instruction.substr(0, instruction.find_first_of(" ;"));
}

// `//## File "k.cu", line 12 inlined at "k.cu", line 30`: the line that a reader knows is the last one.
int line_in_mark(std::string_view line) {
  const std::size_t at = line.rfind("line ");
  return at == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(at + 5)).c_str());
}

}  // namespace

std::vector<std::pair<std::string, int>> instructions_of(const std::string& sass, const std::string& entry) {
  std::map<std::pair<std::size_t, std::string>, int> counts;
  std::istringstream lines(sass);
  bool is_wanted = entry.empty();
  for (std::string line; std::getline(lines, line);) {
    if (!entry.empty() && line.starts_with(".text.")) is_wanted = line.substr(6, line.find(':') - 6) == entry;
    if (!is_wanted) continue;
    const std::string_view name = name_in(instruction_in(line));
    const std::string_view base = name.substr(0, name.find('.'));
    const auto row = std::find_if(telling.begin(), telling.end(), [&](const Telling& each) { return each.name == base; });
    if (row == telling.end() || name == "HFMA2.MMA") continue;  // that one moves constants about
    ++counts[{static_cast<std::size_t>(row - telling.begin()), short_name(name, base)}];
  }
  std::vector<std::pair<std::string, int>> result;
  for (const auto& [key, count] : counts) result.emplace_back(key.second, count);
  return result;
}

bool has_tensor_instructions(const std::vector<std::pair<std::string, int>>& instructions) {
  return std::any_of(instructions.begin(), instructions.end(), [](const auto& each) {
    const std::string base = each.first.substr(0, each.first.find('.'));
    return std::any_of(telling.begin(), telling.end(), [&](const Telling& row) { return row.is_tensor && row.name == base; });
  });
}

SassText readable_sass(const std::string& sass) {
  SassText result;
  std::istringstream lines(sass);
  int source = 0;
  const auto put = [&](std::string_view text, int line) {
    result.text.append(text).push_back('\n');
    result.source_lines.push_back(line);
  };
  for (std::string line; std::getline(lines, line);) {
    const std::string_view body = trimmed(line);
    if (body.starts_with("//##")) {
      source = line_in_mark(body);
      continue;
    }
    if (const std::string_view instruction = instruction_in(line); !instruction.empty()) {
      const std::size_t open = line.find("/*");
      put("  " + line.substr(open + 2, line.find("*/") - open - 2) + "  " + std::string(instruction), source);
      continue;
    }
    const std::string_view label = trimmed(body.substr(0, body.find("//")));
    if (label.ends_with(':') && !label.starts_with(".text.")) put(label, 0);
  }
  return result;
}

}  // namespace tilewright
