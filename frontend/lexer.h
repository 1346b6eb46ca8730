// Tokens of the language, of schedule lines and of launch comments: one lexer for all three.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/sink.h"

namespace tilewright {

enum class LexemeKind : std::uint8_t { Name, Integer, Float, String, Punct, End };

struct Lexeme {
  LexemeKind kind = LexemeKind::End;
  std::string_view text;  // a name with its dotted parts (`k.block`, `sum.f64`); a string without its quotes
  Span span;
  std::int64_t integer = 0;
  double real = 0;
  bool starts_line = false;
  bool has_blank_before = false;
};

// The tokens of `text`, closed by one End. Faults go to the sink and the reading goes on behind them.
std::vector<Lexeme> lex_program(std::string_view text, Sink& sink);

}  // namespace tilewright
