// docs/language.md and docs/errors.md, which the program carries: what `help` prints of a topic and of an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// A file of docs/, as the build has put it into the program: "language.md", "errors.md".
std::string_view document(std::string_view name);

struct Section {
  std::string name;                   // what stands behind `## `
  std::string text;                   // without the patterns
  std::vector<std::string> patterns;  // errors.md: messages, with `…` for what differs
};
std::vector<Section> sections_of(std::string_view document);

// Whether a message is of the pattern's kind; each `…` stands for one character or more.
bool is_of_kind(std::string_view message, std::string_view pattern);
// The section whose patterns say most about the message; null where none fits.
const Section* section_of_message(const std::vector<Section>& sections, std::string_view message);

}  // namespace tilewright
