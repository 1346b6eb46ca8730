// Rendering of diagnostics: message, place, the line with a caret, notes, help.
#include "ir/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

std::string_view line_of(std::string_view text, int line) {
  std::size_t start = 0;
  for (int n = 1; n < line; ++n) {
    std::size_t next = text.find('\n', start);
    if (next == std::string_view::npos) return {};
    start = next + 1;
  }
  std::string_view rest = text.substr(std::min(start, text.size()));
  return rest.substr(0, rest.find('\n'));
}

// How many bytes the UTF-8 character at the front has; 0 where there is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length > text.size()) return 0;
  for (std::size_t n = 1; n < length; ++n)
    if ((static_cast<unsigned char>(text[n]) & 0xC0) != 0x80) return 0;
  return length;
}

// Control characters become spaces, bytes of no character question marks.
void make_printable(std::string& line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = character_length(std::string_view(line).substr(at));
    if (length == 0) line[at] = '?';
    else if (length == 1 && static_cast<unsigned char>(line[at]) < 0x20) line[at] = ' ';
    at += std::max<std::size_t>(length, 1);
  }
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A very long line is shown around the caret only.
void render_place(std::string& out, const Span& span, const std::vector<SourceFile>& files) {
  if (!span.is_known() || static_cast<std::size_t>(span.file) >= files.size()) return;
  const SourceFile& file = files[static_cast<std::size_t>(span.file)];
  std::string number = std::to_string(span.line);
  std::string pad(number.size(), ' ');
  out += fmt::format("{}--> {}:{}:{}\n", std::string(number.size() + 1, ' '), file.name, span.line, span.column);
  std::string line{line_of(file.text, span.line)};
  std::size_t column = static_cast<std::size_t>(std::max(span.column, 1)) - 1;
  std::size_t width = span.end_line == span.line && span.end_column > span.column
                          ? static_cast<std::size_t>(span.end_column - span.column) : 1;
  constexpr std::size_t widest = 160;
  if (line.size() > widest) {
    std::size_t from = column > widest / 2 ? column - widest / 2 : 0;
    line = line.substr(std::min(from, line.size()), widest);
    column -= from;
  }
  make_printable(line);
  width = std::max<std::size_t>(1, std::min(width, line.size() > column ? line.size() - column : 1));
  width = std::max<std::size_t>(1, characters_in(std::string_view(line).substr(std::min(column, line.size()), width)));
  column = std::min(column, line.size()) == column ? characters_in(std::string_view(line).substr(0, column)) : column;
  out += fmt::format(" {} |\n {} | {}\n {} | {}{}\n", pad, number, line, pad, std::string(column, ' '), std::string(width, '^'));
}

}  // namespace

std::string render(const Diagnostic& diagnostic, const std::vector<SourceFile>& files) {
  std::string out = "error: " + diagnostic.message + "\n";
  render_place(out, diagnostic.span, files);
  for (const Note& note : diagnostic.notes) {
    out += "note: " + note.text + "\n";
    render_place(out, note.span, files);
  }
  if (!diagnostic.help.empty()) out += "help: " + diagnostic.help + "\n";
  return out;
}

std::string render(const std::vector<Diagnostic>& diagnostics, const std::vector<SourceFile>& files) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!out.empty()) out += "\n";
    out += render(diagnostic, files);
  }
  return out;
}

UserError::UserError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(diagnostics.empty() ? "error" : diagnostics.front().message), diagnostics_(std::move(diagnostics)) {}

UserError::UserError(Span span, std::string message, std::string help)
    : UserError(std::vector<Diagnostic>{Diagnostic{span, std::move(message), {}, std::move(help)}}) {}

void internal_error(std::string message) { throw InternalError("internal error: " + std::move(message)); }

}  // namespace tilewright
