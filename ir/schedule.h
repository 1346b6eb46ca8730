// Schedules as the frontend reads them: lines of tokens; each pass reads its own line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

struct ScheduleToken {
  enum class Kind : std::uint8_t { Name, Number, String, Punct };  // Name: dotted, as `k.block`; Punct: one of , [ ] ( ) + - * / ; : .. = % |
  Kind kind;
  std::string text;
  std::int64_t number = 0;
  Span span;
  friend bool operator==(const ScheduleToken&, const ScheduleToken&) = default;
};

// One line, `m: tile block r 4`: target `m` (empty for none), word `tile`, the tokens behind it.
struct ScheduleLine {
  std::string target;
  std::string word;
  std::vector<ScheduleToken> tokens;
  std::string text;  // as written, blanks collapsed, parameters replaced by their values
  Span span;
};

// Reads one line; `span` is where its text starts. Throws UserError for what is no token.
ScheduleLine tokenize_line(const std::string& text, Span span = {});

struct ScheduleParameter {
  std::string name;
  std::int64_t value = 0;
};

// `schedule matmul "ch6" (T = 16) from "ch5" for sm_90a when K % 4 == 0, aligned 16 { … }`; lines of `from` are included.
struct Schedule {
  std::string fn;
  std::string name;
  std::string arch;  // empty: any
  std::vector<ScheduleParameter> parameters;
  std::vector<Fact> when;
  std::vector<ScheduleLine> lines;
  Span span;
};

}  // namespace tilewright
