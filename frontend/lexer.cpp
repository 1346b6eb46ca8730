// The lexer: text to tokens.
#include "frontend/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace tilewright {

namespace {

constexpr std::size_t most_bytes = std::size_t{4} << 20;

// Longest first, so that the first match is the right one.
constexpr std::array<std::string_view, 40> puncts = {
    "<<<", ">>>", "..=", "+=", "*=", "&=", "|=", "->", "<=", ">=", "==", "!=", "<<", ">>",
    "..",  "(",   ")",   "[",  "]",  "{",  "}",  ",",  ";",  ":",  "=",  "+",  "-",  "*",
    "/",   "%",   "<",   ">",  "&",  "|",  "^",  "~",  "@",  "!",  ".",  "?"};

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Length of the UTF-8 sequence at `at`, 0 where there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return at + k < text.size() ? static_cast<unsigned char>(text[at + k]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xC0) != 0x80) return 0;
  return length;
}

class ProgramLexer {
 public:
  ProgramLexer(std::string_view text, Sink& sink) : text_(text), sink_(sink) {}

  std::vector<Lexeme> run() {
    if (is_readable())
      while (!sink_.is_full() && next()) {
      }
    Lexeme end;
    end.span = span_from(line_, column());
    end.starts_line = true;
    tokens_.push_back(end);
    return std::move(tokens_);
  }

 private:
  // What is no program text at all gets one error, not one a byte.
  bool is_readable() {
    const Span top{sink_.file(), 1, 1, 1, 2};
    if (text_.size() > most_bytes) {
      sink_.error(top, fmt::format("the program text has {} bytes, but at most {} are read", text_.size(), most_bytes));
      return false;
    }
    int line = 1;
    std::size_t line_start = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const auto here = [&] {
        const int column = static_cast<int>(at - line_start) + 1;
        return Span{sink_.file(), line, column, line, column + 1};
      };
      const std::size_t length = utf8_length(text_, at);
      if (text_[at] == '\0') {
        sink_.error(here(), fmt::format("this is not a program text: byte {} is zero", at));
        return false;
      }
      if (length == 0) {
        sink_.error(here(), fmt::format("the text is not UTF-8: byte {} is 0x{:02x}", at,
                                        static_cast<unsigned char>(text_[at])));
        return false;
      }
      if (text_[at] == '\n') {
        ++line;
        line_start = at + 1;
      }
      at += length;
    }
    return true;
  }

  int column() const { return static_cast<int>(at_ - line_start_) + 1; }
  Span span_from(int line, int start_column) const { return Span{sink_.file(), line, start_column, line_, column()}; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (peek() == '\n') {
        ++line_;
        line_start_ = ++at_;
        starts_line_ = true;
        has_blank_ = true;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\r') {
        ++at_;
        has_blank_ = true;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  void add(LexemeKind kind, std::size_t start, int start_column, Lexeme token = {}) {
    token.kind = kind;
    if (token.text.empty()) token.text = text_.substr(start, at_ - start);
    token.span = span_from(line_, start_column);
    token.starts_line = starts_line_;
    token.has_blank_before = has_blank_;
    starts_line_ = false;
    has_blank_ = false;
    tokens_.push_back(token);
  }

  bool next() {
    skip_blanks();
    if (at_ >= text_.size()) return false;
    const char c = peek();
    if (is_name_start(c)) {
      name();
    } else if (is_digit(c)) {
      number();
    } else if (c == '"') {
      string();
    } else {
      punct();
    }
    return true;
  }

  void name() {
    const std::size_t start = at_;
    const int start_column = column();
    while (is_name_part(peek())) ++at_;
    while (peek() == '.' && is_name_part(peek(1))) {
      ++at_;
      while (is_name_part(peek())) ++at_;
    }
    add(LexemeKind::Name, start, start_column);
  }

  void number() {
    const std::size_t start = at_;
    const int start_column = column();
    const bool is_hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    if (is_hex) at_ += 2;
    std::string digits;
    bool is_float = false;
    const auto take_digits = [&] {
      while (is_digit(peek()) || peek() == '_' || (is_hex && std::isxdigit(static_cast<unsigned char>(peek())))) {
        if (peek() != '_') digits += peek();
        ++at_;
      }
    };
    take_digits();
    if (!is_hex && peek() == '.' && is_digit(peek(1))) {
      is_float = true;
      digits += '.';
      ++at_;
      take_digits();
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 2 : 1;
    if (!is_hex && (peek() == 'e' || peek() == 'E') && is_digit(peek(sign))) {
      is_float = true;
      digits.append(text_.substr(at_, sign));
      at_ += sign;
      take_digits();
    }
    Lexeme token;
    if (is_name_part(peek())) {
      while (is_name_part(peek())) ++at_;
      sink_.error(span_from(line_, start_column),
                  fmt::format("`{}` is neither a number nor a name", text_.substr(start, at_ - start)));
    } else if (is_float) {
      token.real = std::strtod(digits.c_str(), nullptr);
      if (token.real > std::numeric_limits<double>::max())
        sink_.error(span_from(line_, start_column), "the number is larger than the largest f64");
    } else {
      const auto [end, code] =
          std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, is_hex ? 16 : 10);
      if (code != std::errc() || end != digits.data() + digits.size())
        sink_.error(span_from(line_, start_column), "the whole number is larger than the largest i64, 2^63 - 1");
      token.real = static_cast<double>(token.integer);
    }
    add(is_float ? LexemeKind::Float : LexemeKind::Integer, start, start_column, token);
  }

  void string() {
    const std::size_t start = at_++;
    const int start_column = column() - 1;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') ++at_;
    Lexeme token;
    token.text = text_.substr(start + 1, at_ - start - 1);
    if (peek() == '"') {
      ++at_;
    } else {
      sink_.error(span_from(line_, start_column), "the string has no closing `\"` on its line");
    }
    // An empty string keeps an empty view, which `add` would take for "not set".
    add(LexemeKind::String, start, start_column, token);
    tokens_.back().text = token.text;
  }

  void punct() {
    const std::size_t start = at_;
    const int start_column = column();
    for (std::string_view candidate : puncts)
      if (text_.substr(at_, candidate.size()) == candidate) {
        at_ += candidate.size();
        add(LexemeKind::Punct, start, start_column);
        return;
      }
    at_ += utf8_length(text_, at_);
    const std::string_view character = text_.substr(start, at_ - start);
    const bool is_control = static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f;
    sink_.error_once(fmt::format("character {}", character), span_from(line_, start_column),
                     is_control
                         ? fmt::format("a character with code {} has no meaning here", static_cast<int>(character[0]))
                         : fmt::format("`{}` has no meaning here", character),
                     "and here");
  }

  std::string_view text_;
  Sink& sink_;
  std::vector<Lexeme> tokens_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
  bool has_blank_ = false;
};

}  // namespace

std::vector<Lexeme> lex_program(std::string_view text, Sink& sink) { return ProgramLexer(text, sink).run(); }

}  // namespace tilewright
