// Pairing of lines; see line_pairs.h.
#include "tools/line_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tilewright {

namespace {

const Form* sass_form_of(const LadderRow& row) {
  const auto form = std::find_if(row.forms.begin(), row.forms.end(), [](const Form& each) { return each.name == "sass"; });
  return form == row.forms.end() ? nullptr : &*form;
}

// `LDG.E.128` of `  00a0  @!P0 LDG.E.128 R4, desc[UR4][R2.64]`: registers and addresses differ between any two codes.
std::string operation_in(const std::string& line) {
  std::size_t at = line.find_first_not_of(' ');
  if (at == std::string::npos || at == 0) return line;  // a label
  at = line.find_first_not_of(' ', line.find(' ', at));
  if (at == std::string::npos) return line;
  if (line[at] == '@') at = line.find_first_not_of(' ', line.find(' ', at));
  return at == std::string::npos ? line : line.substr(at, line.find(' ', at) - at);
}

std::vector<std::string> operations_in(const std::vector<std::string>& lines) {
  std::vector<std::string> operations;
  for (const std::string& line : lines) operations.push_back(operation_in(line));
  return operations;
}

std::string columns(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  constexpr std::size_t width = 58;
  const auto cell = [](const std::vector<std::string>& lines, std::size_t number) {
    const std::string text = number == 0 ? "" : lines[number - 1];
    return text.size() <= width ? text : text.substr(0, width - 2) + "..";
  };
  const std::vector<std::pair<std::size_t, std::size_t>> pairs = pair_lines(operations_in(left), operations_in(right));
  std::string out;
  const auto row = [&](std::size_t n, char mark, std::size_t m) { out += fmt::format("{:<{}} {} {}\n", cell(left, n), width, mark, cell(right, m)); };
  for (std::size_t at = 0; at < pairs.size();) {
    if (pairs[at].first != 0 && pairs[at].second != 0) {
      row(pairs[at].first, '|', pairs[at].second);
      ++at;
      continue;
    }
    // What one has where the other has something else stands beside it.
    std::vector<std::size_t> ours, theirs;
    for (; at < pairs.size() && (pairs[at].first == 0 || pairs[at].second == 0); ++at) (pairs[at].first != 0 ? ours : theirs).push_back(pairs[at].first + pairs[at].second);
    for (std::size_t k = 0; k < std::max(ours.size(), theirs.size()); ++k) row(k < ours.size() ? ours[k] : 0, k >= theirs.size() ? '<' : k >= ours.size() ? '>' : '/', k < theirs.size() ? theirs[k] : 0);
  }
  return out;
}

}  // namespace

std::vector<std::string> lines_of_text(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; start = end + 1, end = text.find('\n', start)) lines.push_back(text.substr(start, end - start));
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::vector<std::pair<std::size_t, std::size_t>> pair_lines(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  const std::size_t width = right.size() + 1;
  std::vector<std::uint32_t> common((left.size() + 1) * width, 0);
  for (std::size_t i = left.size(); i-- > 0;)
    for (std::size_t j = right.size(); j-- > 0;)
      common[i * width + j] = left[i] == right[j] ? common[(i + 1) * width + j + 1] + 1 : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0, j = 0; i < left.size() || j < right.size();) {
    if (i < left.size() && j < right.size() && left[i] == right[j]) pairs.emplace_back(++i, ++j);
    else if (j < right.size() && (i == left.size() || common[i * width + j + 1] > common[(i + 1) * width + j])) pairs.emplace_back(0, ++j);
    else pairs.emplace_back(++i, 0);
  }
  return pairs;
}

std::string sass_columns(const Ladder& ladder) {
  const LadderRow* first = nullptr;
  std::string out;
  for (const LadderRow& row : ladder.rows) {
    const Form* sass = sass_form_of(row);
    if (sass == nullptr) continue;
    if (first == nullptr) {
      first = &row;
      continue;
    }
    out += fmt::format("\nSASS of {} ({}) beside {} ({})\n", first->name, first->backend, row.name, row.backend);
    out += columns(lines_of_text(sass_form_of(*first)->text), lines_of_text(sass->text));
  }
  return out;
}

}  // namespace tilewright
