// Collecting diagnostics, and the words that they quote and suggest.
#include "frontend/sink.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {
constexpr std::size_t most_errors = 40;
constexpr std::size_t longest_quote = 70;
}  // namespace

Sink::Sink(std::string_view text, int file) : text_(text), file_(file) {
  line_starts_.push_back(0);
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] == '\n') line_starts_.push_back(at + 1);
}

void Sink::error(Span span, std::string message, std::string help, std::vector<Note> notes) {
  if (is_full()) return;
  diagnostics_.push_back(Diagnostic{span, std::move(message), std::move(notes), std::move(help)});
}

void Sink::error_once(const std::string& cause, Span span, std::string message, std::string again, std::string help,
                      std::vector<Note> notes) {
  if (is_full()) return;
  const auto [found, is_new] = causes_.try_emplace(cause, diagnostics_.size());
  if (is_new) {
    error(span, std::move(message), std::move(help), std::move(notes));
    return;
  }
  Diagnostic& first = diagnostics_[found->second];
  // One place may be looked at twice.
  const auto is_here = [&](Span other) { return other.line == span.line && other.column == span.column; };
  if (is_here(first.span)) return;
  for (const Note& note : first.notes)
    if (is_here(note.span)) return;
  if (first.notes.size() < most_errors) first.notes.push_back(Note{span, std::move(again)});
}

std::set<int> Sink::lines_with_faults() const {
  std::set<int> lines;
  for (const Diagnostic& diagnostic : diagnostics_) lines.insert(diagnostic.span.line);
  return lines;
}

bool Sink::is_full() const { return diagnostics_.size() >= most_errors; }

std::vector<Diagnostic> Sink::take() {
  std::vector<Diagnostic> result = std::move(diagnostics_);
  diagnostics_.clear();
  causes_.clear();
  std::stable_sort(result.begin(), result.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.span.line, a.span.column) < std::pair(b.span.line, b.span.column);
  });
  return result;
}

std::string Sink::text_of(Span span) const {
  const auto offset = [&](int line, int column) {
    if (line < 1 || static_cast<std::size_t>(line) > line_starts_.size()) return text_.size();
    return std::min(text_.size(),
                    line_starts_[static_cast<std::size_t>(line) - 1] + static_cast<std::size_t>(column) - 1);
  };
  const std::size_t from = offset(span.line, span.column);
  const std::size_t to = std::max(from, offset(span.end_line, span.end_column));
  std::string words;
  for (char c : text_.substr(from, to - from)) {
    const bool is_blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (is_blank && (words.empty() || words.back() == ' ')) continue;
    words += is_blank ? ' ' : c;
    if (words.size() > longest_quote) return words + "…";
  }
  return words;
}

Span join(Span first, Span last) {
  if (!first.is_known()) return last;
  if (!last.is_known()) return first;
  first.end_line = last.end_line;
  first.end_column = last.end_column;
  return first;
}

}  // namespace tilewright
