// The cursor over a schedule line.
#include "passes/line_reader.h"

#include <fmt/format.h>

#include "passes/pass.h"

namespace tilewright {

std::string_view LineReader::syntax() const {
  for (const SchedulePass& pass : schedule_passes())
    if (pass.word == line_.word) return pass.syntax;
  return line_.word;
}

bool LineReader::at(std::string_view text) const {
  return !at_end() && line_.tokens[at_].text == text && line_.tokens[at_].kind != ScheduleToken::Kind::String;
}

bool LineReader::accept(std::string_view text) {
  if (!at(text)) return false;
  ++at_;
  return true;
}

void LineReader::expect(std::string_view text) {
  if (!accept(text)) fail(fmt::format("`{}`", text));
}

LineName LineReader::name(std::string_view what) {
  if (at_end() || line_.tokens[at_].kind != ScheduleToken::Kind::Name) fail(what);
  const ScheduleToken& token = line_.tokens[at_++];
  return {token.text, token.span};
}

LineNumber LineReader::number(std::string_view what, std::int64_t least) {
  if (at_end() || line_.tokens[at_].kind != ScheduleToken::Kind::Number) fail(what);
  const ScheduleToken& token = line_.tokens[at_++];
  if (token.number < least)
    throw UserError(token.span, fmt::format("{} is {}, it must be at least {}", what, token.number, least));
  return {token.number, token.span};
}

const ScheduleToken& LineReader::take() {
  if (at_end()) fail("more");
  return line_.tokens[at_++];
}

void LineReader::end() {
  if (!at_end()) fail("the end of the line");
}

Span LineReader::here() const {
  if (!at_end()) return line_.tokens[at_].span;
  Span span = line_.tokens.empty() ? line_.span : line_.tokens.back().span;
  if (!span.is_known()) return span;
  span.line = span.end_line;
  span.column = span.end_column;
  span.end_column = span.column + 1;
  return span;
}

void LineReader::fail(std::string_view needed) const {
  std::string seen = at_end() ? "the line ends" : fmt::format("`{}` stands", line_.tokens[at_].text);
  throw UserError(here(), fmt::format("{} where `{}` needs {}", seen, line_.word, needed),
                  fmt::format("as in `{}`", syntax()));
}

std::vector<std::pair<LineName, LineNumber>> read_sizes(LineReader& reader) {
  std::vector<std::pair<LineName, LineNumber>> result;
  do {
    LineName name = reader.name("the name of a loop");
    LineNumber size = reader.number("a constant size");
    result.emplace_back(std::move(name), size);
  } while (reader.accept(","));
  return result;
}

}  // namespace tilewright
