// A cursor over the tokens of a schedule line, with errors that point at the token.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/schedule.h"

namespace tilewright {

// The name of a loop or tensor in a line, and where it stands.
struct LineName {
  std::string text;
  Span span;
};

struct LineNumber {
  std::int64_t value = 0;
  Span span;
};

class LineReader {
 public:
  explicit LineReader(const ScheduleLine& line) : line_(line) {}

  std::string_view syntax() const;  // an example of the line, for the help of an error

  bool at_end() const { return at_ == line_.tokens.size(); }
  bool at(std::string_view text) const;
  bool accept(std::string_view text);  // a word or a mark
  void expect(std::string_view text);
  LineName name(std::string_view what);                              // `what`: "a loop", "a tensor"
  LineNumber number(std::string_view what, std::int64_t least = 1);  // refuses one below `least`
  const ScheduleToken& take();
  void end();         // refuses what is left
  Span here() const;  // of the next token, or behind the last

  [[noreturn]] void fail(std::string_view needed) const;

 private:
  const ScheduleLine& line_;
  std::size_t at_ = 0;
};

// `i 16, j 16`
std::vector<std::pair<LineName, LineNumber>> read_sizes(LineReader& reader);

}  // namespace tilewright
