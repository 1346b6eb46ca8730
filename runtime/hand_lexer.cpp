// Cuts C++ into top-level pieces; see hand_lexer.h.
#include "runtime/hand_lexer.h"

#include <algorithm>
#include <cctype>

namespace tilewright {

namespace {

bool is_word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Cutter {
 public:
  explicit Cutter(const std::string& text) : text_(text) {}

  std::vector<HandPiece> cut() {
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      const int line = line_;
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) advance();
        add(HandPiece::Kind::Space, begin, line, {});
      } else if (starts("//") || starts("/*")) {
        skip_comment();
        add(HandPiece::Kind::Comment, begin, line, {});
      } else if (text_[at_] == '#') {
        skip_directive();
        add(HandPiece::Kind::Directive, begin, line, {});
      } else if (text_[at_] == '}' && !scopes_.empty()) {
        advance();
        scopes_.pop_back();
        add(HandPiece::Kind::Scope, begin, line, {});
      } else {
        cut_declaration();
      }
    }
    return std::move(pieces_);
  }

 private:
  struct Scope {
    std::string name;
    bool is_extern_c;
  };

  bool starts(const char* what) const { return text_.compare(at_, std::char_traits<char>::length(what), what) == 0; }

  void advance() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }

  void add(HandPiece::Kind kind, std::size_t begin, int line, std::vector<HandToken> tokens) {
    HandPiece piece;
    piece.kind = kind;
    piece.text = text_.substr(begin, at_ - begin);
    piece.tokens = std::move(tokens);
    piece.line = line;
    for (const Scope& scope : scopes_) {
      if (!scope.name.empty()) piece.scope += scope.name + "::";
      piece.is_extern_c = piece.is_extern_c || scope.is_extern_c;
    }
    pieces_.push_back(std::move(piece));
  }

  void skip_comment() {
    if (starts("//")) {
      while (at_ < text_.size() && text_[at_] != '\n') advance();
      return;
    }
    advance();
    advance();
    while (at_ < text_.size() && !starts("*/")) advance();
    for (int n = 0; n < 2 && at_ < text_.size(); ++n) advance();
  }

  // To the end of the line that does not end with a backslash.
  void skip_directive() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (starts("//") || starts("/*")) {
        skip_comment();
        continue;
      }
      const bool continues = text_[at_] == '\\';
      advance();
      if (continues && at_ < text_.size() && text_[at_] == '\r') advance();
      if (continues && at_ < text_.size()) advance();
    }
  }

  void skip_literal(char quote) {
    advance();
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') advance();
      if (at_ < text_.size()) advance();
    }
    if (at_ < text_.size()) advance();
  }

  void skip_raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string::npos) return advance();
    const std::string end = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
    const std::size_t close = text_.find(end, open);
    const std::size_t stop = close == std::string::npos ? text_.size() : close + end.size();
    while (at_ < stop) advance();
  }

  HandToken next_token() {
    const std::size_t begin = at_;
    if (starts("R\"")) {
      skip_raw_string();
    } else if (is_word_start(text_[at_])) {
      while (at_ < text_.size() && is_word_part(text_[at_])) advance();
      return {text_.substr(begin, at_ - begin), true};
    } else if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      // 1'000 is one number, not a character literal.
      while (at_ < text_.size() && (is_word_part(text_[at_]) || text_[at_] == '.' || text_[at_] == '\'')) advance();
    } else if (text_[at_] == '"' || text_[at_] == '\'') {
      skip_literal(text_[at_]);
    } else {
      advance();
    }
    return {text_.substr(begin, at_ - begin), false};
  }

  static bool has(const std::vector<HandToken>& tokens, const char* word) {
    return std::any_of(tokens.begin(), tokens.end(), [&](const HandToken& token) { return token.text == word; });
  }

  // What the brace that was just read opens, by the tokens in front of it.
  enum class Brace : std::uint8_t { Namespace, ExternC, Body, Other };
  static Brace brace_kind(const std::vector<HandToken>& tokens) {
    const std::size_t count = tokens.size() - 1;  // the last is the brace
    if (count > 0 &&
        (tokens[0].text == "namespace" || (tokens[0].text == "inline" && count > 1 && tokens[1].text == "namespace")))
      return Brace::Namespace;
    if (count == 2 && tokens[0].text == "extern" && tokens[1].text == "\"C\"") return Brace::ExternC;
    // A function: a parameter list at the top, no `=` in front of it, and the brace not right behind a type's name.
    int depth = 0;
    bool has_list = false;
    for (std::size_t at = 0; at < count; ++at) {
      const std::string& text = tokens[at].text;
      if (text == "=" && depth == 0 && !(at > 0 && tokens[at - 1].text == "operator")) return Brace::Other;
      if (text == "(" || text == "[") ++depth;
      if (text == ")" || text == "]") --depth;
      if (text == "(" && depth == 1 && at > 0) {
        const std::string& before = tokens[at - 1].text;
        has_list = has_list || (before != "__align__" && before != "alignas" && before != "__attribute__");
      }
    }
    return has_list ? Brace::Body : Brace::Other;
  }

  void cut_declaration() {
    const std::size_t begin = at_;
    const int line = line_;
    std::vector<HandToken> tokens;
    int depth = 0;      // of ( [ {
    int body_from = 0;  // depth of the function's body, 0 outside
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        advance();
        continue;
      }
      if (starts("//") || starts("/*")) {
        skip_comment();
        continue;
      }
      if (text_[at_] == '#') {
        skip_directive();
        continue;
      }
      const HandToken token = next_token();
      if (body_from == 0) tokens.push_back(token);
      const char c = token.is_word || token.text.size() != 1 ? '\0' : token.text[0];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == '{' && depth == 1 && body_from == 0) {
        const Brace brace = brace_kind(tokens);
        if (brace == Brace::Namespace || brace == Brace::ExternC) {
          add(HandPiece::Kind::Scope, begin, line, tokens);
          const bool is_named = brace == Brace::Namespace && tokens.size() >= 3 && tokens[tokens.size() - 2].is_word &&
                                tokens[tokens.size() - 2].text != "namespace";
          scopes_.push_back({is_named ? tokens[tokens.size() - 2].text : "", brace == Brace::ExternC});
          return;
        }
        if (brace == Brace::Body) body_from = 1;
      }
      if (c == ')' || c == ']' || c == '}') --depth;
      if (c == '}' && depth <= 0 && body_from == 1) return add(HandPiece::Kind::Function, begin, line, tokens);
      if (c == ';' && depth <= 0) return add(HandPiece::Kind::Declaration, begin, line, tokens);
      if (depth < 0)
        return add(HandPiece::Kind::Declaration, begin, line, tokens);  // a brace too many: the compiler will say so
    }
    add(HandPiece::Kind::Declaration, begin, line, tokens);
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Scope> scopes_;
  std::vector<HandPiece> pieces_;
};

}  // namespace

std::vector<HandPiece> cut_hand_source(const std::string& text) { return Cutter(text).cut(); }

}  // namespace tilewright
