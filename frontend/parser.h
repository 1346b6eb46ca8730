// The parser: recursive descent over tokens, to the program as written. A fault ends its statement; reading goes on at
// the next one.
//
//   parser.cpp        fns, their signatures and statements
//   parse_expr.cpp    expressions
//   parse_items.cpp   schedules, hand items, benches
#pragma once

#include <functional>
#include <set>

#include "frontend/ast.h"
#include "frontend/lexer.h"

namespace tilewright {

class ProgramParser {
 public:
  ProgramParser(const std::vector<Lexeme>& tokens, Sink& sink)
      : tokens_(tokens), sink_(sink), misread_(sink.lines_with_faults()) {}

  AstProgram parse_program();
  // The whole text as schedule lines, or as the steps of a hand item.
  std::vector<ScheduleLine> parse_all_lines();
  std::vector<AstHandStep> parse_all_hand_steps();

 private:
  // Ends the statement at hand; its fault is in the sink already.
  struct Abandoned {};

  // ---- Tokens.
  const Lexeme& here() const { return tokens_[at_]; }
  const Lexeme& ahead(std::size_t count = 1) const { return tokens_[std::min(at_ + count, tokens_.size() - 1)]; }
  bool at(std::string_view text) const { return is(here(), text); }
  bool at_end() const { return here().kind == LexemeKind::End; }
  static bool is(const Lexeme& token, std::string_view text) {
    return (token.kind == LexemeKind::Punct || token.kind == LexemeKind::Name) && token.text == text;
  }
  Lexeme take();
  bool take_if(std::string_view text);
  void expect(std::string_view text, std::string_view where);
  AstWord expect_name(std::string_view what);
  AstWord expect_string(std::string_view what);
  std::int64_t expect_integer(std::string_view what);
  Span previous_span() const { return at_ > 0 ? tokens_[at_ - 1].span : here().span; }
  std::string seen() const;  // the token at hand, in words
  [[noreturn]] void fail(Span span, std::string message, std::string help = {});
  [[noreturn]] void fail_expected(std::string_view what, std::string_view where);
  // `open` element, element `close`; the opening one is taken already.
  void parse_list(std::string_view close, std::string_view what, const std::function<void()>& element);

  // ---- Items.
  void parse_item(AstProgram& program);
  void skip_to_item();
  AstFn parse_fn();
  AstParam parse_param(ParamKind kind);
  void parse_outputs(AstFn& fn);
  Dtype parse_dtype();
  std::vector<Ast> parse_shape();
  // The statements between `{` and `}`, each by `statement`.
  void parse_body(const std::function<void()>& statement);
  void parse_statement(AstStatement& statement);
  void parse_let_target(AstStatement& statement);
  void parse_assignment_operator(AstStatement& statement);
  AstRule parse_rule();

  AstSchedule parse_schedule();
  std::vector<AstFact> parse_facts();
  void parse_lines(bool in_braces, std::vector<ScheduleLine>& lines);
  ScheduleLine make_line(std::size_t first, std::size_t end);
  AstHand parse_hand();
  AstHandStep parse_hand_step();
  AstLaunch parse_launch();
  std::vector<Ast> parse_launch_shape(std::string_view what);
  AstBench parse_bench();

  // ---- Expressions.
  Ast parse_expr();
  Ast parse_not(int level);
  Ast parse_binary(int level);
  Ast parse_unary();
  Ast parse_primary();
  Ast parse_access(const Lexeme& name);
  Ast parse_reduction();
  Ast parse_if();
  AstRange parse_range();
  BinaryOp parse_scanned(AstRange& range);
  bool at_reduction() const;
  Ast make(decltype(AstNode::value) value, Span span);
  void check_depth(int depth, Span span);

  const std::vector<Lexeme>& tokens_;
  Sink& sink_;
  std::set<int> misread_;  // lines with faults of the lexer: what grammar says of them is no news
  std::size_t at_ = 0;
  int depth_ = 0;
};

// Words that cannot name a tensor, a dim or an index.
bool is_reserved(std::string_view word);
std::optional<ReductionWord> reduction_by_name(std::string_view word);
std::string_view name_of(ReductionWord word);

}  // namespace tilewright
