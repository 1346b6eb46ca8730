// Sections of documents, and which of them explains a message.
#include "tools/documents.h"

#include <sstream>

namespace tilewright {

namespace {

constexpr std::string_view gap = "…";

std::vector<std::string> parts_of(std::string_view pattern) {
  std::vector<std::string> parts = {""};
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern.substr(at).starts_with(gap)) {
      parts.emplace_back();
      at += gap.size();
    } else {
      parts.back() += pattern[at++];
    }
  }
  return parts;
}

std::size_t letters_of(std::string_view pattern) {
  std::size_t letters = 0;
  for (const std::string& part : parts_of(pattern)) letters += part.size();
  return letters;
}

}  // namespace

std::vector<Section> sections_of(std::string_view document) {
  std::vector<Section> sections;
  std::istringstream lines{std::string(document)};
  bool is_pattern = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      sections.push_back({line.substr(3), {}, {}});
      is_pattern = false;
    } else if (sections.empty()) {
      continue;
    } else if (line == "```" && (is_pattern || (sections.back().patterns.empty() && sections.back().text.find("```") == std::string::npos))) {
      is_pattern = !is_pattern;
    } else if (is_pattern) {
      sections.back().patterns.push_back(line);
    } else if (!line.empty() || !sections.back().text.empty()) {
      sections.back().text += line + "\n";
    }
  }
  for (Section& section : sections)
    while (section.text.ends_with("\n\n")) section.text.pop_back();
  return sections;
}

bool is_of_kind(std::string_view message, std::string_view pattern) {
  const std::vector<std::string> parts = parts_of(pattern);
  if (!message.starts_with(parts.front())) return false;
  std::size_t at = parts.front().size();
  for (std::size_t n = 1; n < parts.size(); ++n) {
    const bool is_last = n + 1 == parts.size();
    if (at >= message.size()) return false;
    if (parts[n].empty()) return is_last || at + 1 <= message.size();
    const std::size_t found = is_last ? message.rfind(parts[n]) : message.find(parts[n], at + 1);
    if (found == std::string_view::npos || found < at + 1) return false;
    at = found + parts[n].size();
  }
  return at == message.size();
}

const Section* section_of_message(const std::vector<Section>& sections, std::string_view message) {
  const Section* best = nullptr;
  std::size_t most = 0;
  for (const Section& section : sections)
    for (const std::string& pattern : section.patterns)
      if (is_of_kind(message, pattern) && letters_of(pattern) > most) {
        most = letters_of(pattern);
        best = &section;
      }
  return best;
}

}  // namespace tilewright
