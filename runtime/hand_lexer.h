// The top-level pieces of a C++ file: just enough of the language to tell where a function ends.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

struct HandToken {
  std::string text;
  bool is_word = false;
};

// Space, Comment and Directive are text between the others. Scope: the opening or closing of `namespace x {` or
// `extern "C" {`, whose content is cut into pieces of its own. Function: with a body. Declaration: everything that ends
// with a semicolon. `tokens` are those outside the braces of a function's body (inside them too for types).
struct HandPiece {
  enum class Kind : std::uint8_t { Space, Comment, Directive, Scope, Function, Declaration };
  Kind kind;
  std::string text;
  std::vector<HandToken> tokens;
  int line = 0;       // of the first token
  std::string scope;  // "book::"
  bool is_extern_c = false;
};

// The texts of the pieces, one behind the other, are the file.
std::vector<HandPiece> cut_hand_source(const std::string& text);

}  // namespace tilewright
