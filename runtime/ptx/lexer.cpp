// Cutting PTX into words.
#include "runtime/ptx/lexer.h"

#include <fmt/format.h>

#include "ir/diagnostic.h"

namespace tilewright::ptx {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  std::size_t at = 0;
  const auto peek = [&](std::size_t ahead) { return at + ahead < text.size() ? text[at + ahead] : '\0'; };
  const auto add = [&](Token::Kind kind, std::size_t from, std::size_t to) { tokens.push_back({kind, text.substr(from, to - from), line}); };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0') {
      ++at;
    } else if (c == '/' && peek(1) == '/') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (c == '/' && peek(1) == '*') {
      while (at < text.size() && !(text[at] == '*' && peek(1) == '/')) line += text[at++] == '\n' ? 1 : 0;
      at = std::min(at + 2, text.size());
    } else if (c == '"') {
      const std::size_t close = text.find('"', at + 1);
      if (close == std::string_view::npos) throw MachineError(fmt::format("PTX line {}: a text without its end", line));
      add(Token::Kind::Text, at + 1, close);
      at = close + 1;
    } else if (is_letter(c)) {
      const std::size_t start = at;
      while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]) || (text[at] == ':' && peek(1) == ':' && is_letter(peek(2))) ||
                                  (text[at] == ':' && at > start && text[at - 1] == ':' && is_letter(peek(1)))))
        ++at;
      add(Token::Kind::Name, start, at);
    } else if (is_digit(c)) {
      const std::size_t start = at;
      while (at < text.size() && (is_letter(text[at]) || is_digit(text[at])) && text[at] != '%') ++at;
      add(Token::Kind::Number, start, at);
    } else {
      add(Token::Kind::Sign, at, at + 1);
      ++at;
    }
  }
  tokens.push_back({Token::Kind::End, "end of the text", line});
  return tokens;
}

}  // namespace tilewright::ptx
