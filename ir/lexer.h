// Tokens of the IR's text. Used by the parser only.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace tilewright {

struct Token {
  // Name: dotted, `thread.x`, `i.block`. Integer also hexadecimal. Newline: the end of a line that holds something.
  enum class Kind : std::uint8_t { Name, Integer, Real, String, Punct, Newline, End };
  Kind kind = Kind::End;
  std::string text;  // of a String: without quotes and escapes
  Span span;
};

// Faults (a stray byte, an open string, a number too large) go to `faults`; the rest of the text is read all the same.
std::vector<Token> lex_ir(const std::string& text, int file, std::vector<Diagnostic>& faults);

}  // namespace tilewright
