// Tokens of the IR's text.
#include "ir/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace tilewright {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_printable(unsigned char byte) { return byte > 0x20 && byte < 0x7f; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

// Longer ones first.
constexpr std::array<std::string_view, 34> puncts = {"..", "<-", "+=", "*=", "&=", "|=", "<<", ">>", "<=", ">=", "==", "!=",
                                                     "+",  "-",  "*",  "/",  "%",  "<",  ">",  "=",  "(",  ")",  "{",  "}",
                                                     "[",  "]",  ",",  ";",  ":",  "@",  "^",  "&",  "|",  "~"};

class Lexer {
 public:
  Lexer(const std::string& text, int file, std::vector<Diagnostic>& faults) : text_(text), file_(file), faults_(faults) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) next();
    start_ = at_;
    add(Token::Kind::End, "");
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  Span span() const {
    const int column = static_cast<int>(start_ - line_start_) + 1;
    const int width = static_cast<int>(at_ > start_ ? at_ - start_ : 1);
    return Span{file_, line_, column, line_, column + width};
  }

  void add(Token::Kind kind, std::string text) { tokens_.push_back(Token{kind, std::move(text), span()}); }
  void fault(std::string message) {
    constexpr std::size_t most = 20;
    if (faults_.size() < most) faults_.push_back(Diagnostic{span(), std::move(message), {}, {}});
  }

  void next() {
    start_ = at_;
    const char c = peek();
    if (c == '\n') {
      ++at_;
      if (!tokens_.empty() && tokens_.back().kind != Token::Kind::Newline) add(Token::Kind::Newline, "the end of the line");
      ++line_;
      line_start_ = at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (is_letter(c)) {
      name();
    } else if (is_digit(c)) {
      number();
    } else if (c == '"') {
      string();
    } else {
      punct();
    }
  }

  // Parts behind a dot may begin with a digit: `acc.2`, `A.0`.
  void name() {
    while (is_word(peek())) ++at_;
    while (peek() == '.' && is_word(peek(1)))
      for (++at_; is_word(peek());) ++at_;
    add(Token::Kind::Name, text_.substr(start_, at_ - start_));
  }

  void number() {
    bool is_real = false;
    if (peek() == '0' && peek(1) == 'x') {
      at_ += 2;
      while (is_word(peek())) ++at_;
      check_integer(start_ + 2, 16);
      return;
    }
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && is_digit(peek(1))) {
      is_real = true;
      for (++at_; is_digit(peek());) ++at_;
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      is_real = true;
      for (at_ += 1 + sign; is_digit(peek());) ++at_;
    }
    if (is_real)
      add(Token::Kind::Real, text_.substr(start_, at_ - start_));
    else
      check_integer(start_, 10);
  }

  void check_integer(std::size_t from, int base) {
    std::uint64_t value = 0;
    const char* end = text_.data() + at_;
    const auto result = std::from_chars(text_.data() + from, end, value, base);
    std::string digits = text_.substr(start_, at_ - start_);
    if (result.ec != std::errc() || result.ptr != end) {
      fault(fmt::format("`{}` is no integer of 64 bits", digits.substr(0, 40)));
      digits = "0";
    }
    add(Token::Kind::Integer, std::move(digits));
  }

  void string() {
    std::string value;
    ++at_;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') {
      if (peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_++];
    }
    if (peek() == '"')
      ++at_;
    else
      fault("the string has no closing `\"`");
    add(Token::Kind::String, std::move(value));
  }

  void punct() {
    for (std::string_view candidate : puncts)
      if (text_.compare(at_, candidate.size(), candidate) == 0) {
        at_ += candidate.size();
        add(Token::Kind::Punct, std::string(candidate));
        return;
      }
    const auto byte = static_cast<unsigned char>(peek());
    ++at_;
    if (is_printable(byte)) return fault(fmt::format("`{}` has no meaning here", static_cast<char>(byte)));
    // One fault for a run of bytes, as in a character of UTF-8 or a binary file.
    while (at_ < text_.size() && !is_printable(static_cast<unsigned char>(peek())) && peek() != '\n' && peek() != ' ' && peek() != '\t') ++at_;
    fault(fmt::format("byte 0x{:02x} has no meaning in an IR text", byte));
  }

  const std::string& text_;
  int file_;
  std::vector<Diagnostic>& faults_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> lex_ir(const std::string& text, int file, std::vector<Diagnostic>& faults) { return Lexer(text, file, faults).run(); }

}  // namespace tilewright
