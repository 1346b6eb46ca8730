// Tokens of a schedule line.
#include "ir/schedule.h"

#include <fmt/format.h>

#include <cctype>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class LineLexer {
 public:
  LineLexer(const std::string& text, Span start) : text_(text), start_(start) {}

  std::vector<ScheduleToken> tokens() {
    std::vector<ScheduleToken> result;
    while (skip_blanks(), at_ < text_.size()) result.push_back(token());
    return result;
  }

  Span span(std::size_t from, std::size_t to) const {
    if (!start_.is_known()) return {start_.file, 1, static_cast<int>(from) + 1, 1, static_cast<int>(to) + 1};
    return {start_.file, start_.line, start_.column + static_cast<int>(from), start_.line,
            start_.column + static_cast<int>(to)};
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  char ahead(std::size_t n) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }

  ScheduleToken made(ScheduleToken::Kind kind, std::size_t from) const {
    return {kind, text_.substr(from, at_ - from), 0, span(from, at_)};
  }

  ScheduleToken token() {
    std::size_t from = at_;
    char c = text_[at_];
    if (begins_word(c)) {
      // A dot belongs to the name if a letter or digit follows: `k.block`, but `lo..hi`.
      while (begins_word(ahead(0)) || is_decimal(ahead(0)) ||
             (ahead(0) == '.' && (begins_word(ahead(1)) || is_decimal(ahead(1)))))
        ++at_;
      return made(ScheduleToken::Kind::Name, from);
    }
    if (is_decimal(c)) return number();
    if (c == '"') {
      std::size_t end = text_.find('"', at_ + 1);
      if (end == std::string::npos) throw UserError(span(from, text_.size()), "a string without its closing `\"`");
      at_ = end + 1;
      ScheduleToken token = made(ScheduleToken::Kind::String, from);
      token.text = text_.substr(from + 1, end - from - 1);
      return token;
    }
    if (c == '.' && ahead(1) == '.') {
      at_ += 2;
      return made(ScheduleToken::Kind::Punct, from);
    }
    if (std::string_view(",[]()+-*/;:=%|").find(c) == std::string_view::npos)
      throw UserError(span(from, from + 1), fmt::format("`{}` does not belong into a schedule line", c));
    ++at_;
    return made(ScheduleToken::Kind::Punct, from);
  }

  ScheduleToken number() {
    std::size_t from = at_;
    std::int64_t value = 0;
    while (is_decimal(ahead(0))) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        while (is_decimal(ahead(0))) ++at_;
        throw UserError(span(from, at_), "a number too large for 64 bits");
      }
      ++at_;
    }
    ScheduleToken token = made(ScheduleToken::Kind::Number, from);
    token.number = value;
    return token;
  }

  const std::string& text_;
  Span start_;
  std::size_t at_ = 0;
};

std::string collapse_blanks(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (!is_blank(c))
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

}  // namespace

ScheduleLine tokenize_line(const std::string& text, Span span) {
  LineLexer lexer(text, span);
  ScheduleLine line;
  line.text = collapse_blanks(text);
  line.span = lexer.span(0, text.size());
  line.tokens = lexer.tokens();
  auto is_name = [&](std::size_t n) {
    return n < line.tokens.size() && line.tokens[n].kind == ScheduleToken::Kind::Name;
  };
  if (is_name(0) && line.tokens.size() > 1 && line.tokens[1].text == ":") {
    line.target = line.tokens[0].text;
    line.tokens.erase(line.tokens.begin(), line.tokens.begin() + 2);
  }
  if (!is_name(0)) throw UserError(line.span, "a schedule line starts with its word, as `tile` or `bind`");
  line.word = line.tokens[0].text;
  line.tokens.erase(line.tokens.begin());
  return line;
}

}  // namespace tilewright
