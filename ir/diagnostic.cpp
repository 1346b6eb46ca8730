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
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  width = std::max<std::size_t>(1, std::min(width, line.size() > column ? line.size() - column : 1));
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
