// The words of PTX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::ptx {

struct Token {
  enum class Kind : std::uint8_t { Name, Number, Text, Sign, End };
  Kind kind = Kind::End;
  std::string_view text;  // of a Text without its quotes
  int line = 0;
  bool is(std::string_view what) const { return text == what && kind != Kind::Text; }
};

// Names hold dots and, inside, `::`: `ld.global.L1::no_allocate`, `%tid.x`, `.visible`. The last token is End.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace tilewright::ptx
