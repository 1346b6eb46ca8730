// The recursive-descent parser of the IR's text: what its parts share. Users take parse_plan() of ir/plan.h.
//
// It reads and gives types; what a plan must satisfy beyond its grammar is the verifier's. So an unknown name reads as an
// Index variable, an unknown buffer as f32, and the verifier refuses both.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/lexer.h"
#include "ir/plan.h"

namespace tilewright {

class Parser {
 public:
  Parser(const std::string& text, int file);
  // A plan, or a lone kernel as a plan without parameters. Throws UserError with every fault found.
  Plan run();

 private:
  // Unwinds to the next statement; the fault is already noted.
  struct Recover {};
  using Expected = std::optional<Dtype>;

  // An expression, or a literal that waits for its dtype.
  struct Operand {
    Expr expr;  // empty for a literal
    Token literal;
    bool is_negative = false;
    int height = 1;  // of the tree
  };

  // ---- Tokens (parser.cpp). Newlines are skipped inside brackets.
  const Token& peek(std::size_t ahead = 0);
  Token take();
  bool at(std::string_view text);
  bool eat(std::string_view text);
  void need(std::string_view text, std::string_view where);
  std::string need_name(std::string_view what);
  std::int64_t need_integer(std::string_view what, std::int64_t most = INT64_MAX);
  int need_int(std::string_view what);
  void skip_lines();
  void skip_separators();
  void skip_statement();
  [[noreturn]] void fail(const Span& span, std::string message);
  [[noreturn]] void fail_here(std::string_view needed);
  Span since(const Span& start) const;

  // ---- Names (parser.cpp)
  struct Symbol {
    bool is_buffer;
    bool is_scalar;
    Dtype dtype;
  };
  void declare(const std::string& name, Symbol symbol);
  void declare_var(const std::string& name, Dtype dtype = Dtype::Index) { declare(name, {false, true, dtype}); }
  void declare_buffer(const std::string& name, Dtype dtype, bool is_scalar) { declare(name, {true, is_scalar, dtype}); }
  const Symbol* find(const std::string& name) const;
  Expected buffer_dtype(const std::string& name) const;
  void leave_scope(std::size_t mark);

  // ---- Expressions (parser_expr.cpp)
  Expr expression(Expected expected = std::nullopt);
  Operand operand(Expected expected);
  Operand select_operand(Expected expected);
  Operand binary_operand(int strength, Expected expected);
  Operand unary_operand(Expected expected);
  Operand primary_operand(Expected expected);
  Operand call_operand(const Token& name, Expected expected);
  Operand named_operand(const Token& name);
  Expr settle(const Operand& operand, Expected expected);
  Expr settle_beside(const Operand& operand, const Operand& other, Expected otherwise);
  Operand join(BinaryOp op, const Operand& lhs, const Operand& rhs, Expected expected, const Span& start);
  std::vector<Operand> arguments(Expected expected);
  Operand note_height(Expr expr, int height);
  Access access();
  Access access_of(const Token& name, int* height = nullptr);
  Rule rule(Expected expected);
  std::vector<Expr> expressions(std::string_view close);
  std::vector<Expr> where();
  Axis axis();
  std::vector<Expr> shape();

  // ---- Statements (parser_stmt.cpp)
  Block block();
  Stmt statement();
  Stmt statement_of(const Token& word);
  Stmt loop(LoopKind kind);
  Stmt branch();
  Stmt buffer(Space space);
  Stmt store(bool is_atomic);
  Stmt instruction(const Token& name);
  Stmt tile_operation(const std::string& word);
  Stmt pipe_statement();
  Stmt role_statement();
  Layout layout();
  CombineOp combine_op();
  Dtype dtype(std::string_view where);

  // ---- Plans (parser.cpp)
  void declare_scalars();
  void plan_item(Plan& plan);
  void dims(Plan& plan);
  void facts(Plan& plan);
  void errors(Plan& plan);
  Kernel kernel();
  void launch_part(Kernel& kernel);
  TensorMap tensor_map();
  std::vector<std::int64_t> integers();

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int brackets_ = 0;  // open ( and [ since the last {
  int depth_ = 0;     // of nested expressions and statements
  std::vector<Diagnostic> faults_;
  std::map<std::string, std::vector<Symbol>, std::less<>> symbols_;
  std::vector<std::string> declared_;  // in order, to leave scopes
  bool whole_arrays_ = false;          // an array's name without indices stands for all of it (operands of instructions)
};

}  // namespace tilewright
