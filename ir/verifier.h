// What the parts of the verifier share. Users take verify() of ir/plan.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "ir/tensor.h"

namespace tilewright {

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan) {}
  std::vector<Diagnostic> run();
  // Of a tensor fn, whose signature is that of the plan.
  std::vector<Diagnostic> run(const TensorFn& fn);

 private:
  enum class Kind : std::uint8_t { Dim, Loop, Let, Tensor, Register, Shared, Chain, Pipe, Role, Map };

  struct Symbol {
    Kind kind;
    Dtype dtype = Dtype::Index;
    std::size_t rank = 0;             // of a tensor or buffer
    const Buffer* buffer = nullptr;   // Register and Shared
    const Pipe* pipe = nullptr;       // Pipe
    bool is_writable = true;
    bool is_private = false;          // declared inside `each`
    LoopKind loop = LoopKind::Serial; // Loop
  };

  // Where a pipe stands in the text.
  struct Window {
    bool is_acquired = false;
    bool is_waited = false;
    friend bool operator==(const Window&, const Window&) = default;
  };

  static bool continues(const std::map<std::string, Window>& before, const std::map<std::string, Window>& after);

  // ---- Reporting and names (verifier.cpp)
  void fault(std::string message, Span span = {});
  void declare(const std::string& name, Symbol symbol);
  void replace(const std::string& name, Symbol symbol);  // without the check that the name is new
  const Symbol* find(const std::string& name) const;
  const Symbol* find_buffer(const std::string& name) const;  // the innermost tensor, register or shared buffer
  void leave_scope(std::size_t mark);
  bool at_thread_stage() const { return kernel_ && kernel_->stage == Stage::Thread; }

  // ---- Plans and headers (verifier.cpp)
  void names_of_plan();
  void size_expr(const Expr& expr, const std::string& where);
  void shape(const std::vector<Expr>& extents, const std::string& name);
  void facts();
  void step(const Clear& clear);
  void step(const Table& table);
  void step(const Kernel& kernel);
  void header(const Kernel& kernel);
  void launch(const LaunchHeader& launch);

  // ---- Expressions (verifier_expr.cpp)
  void check(const Expr& expr);
  void check_typed(const Expr& expr, Dtype dtype, std::string_view what);
  void check_integer(const Expr& expr, std::string_view what);  // of any integer dtype
  void check_condition(const Expr& expr);
  void check_const(const Const& node, Dtype dtype);
  void check_var(const Var& node, Dtype dtype);
  void check_unary(const Unary& node);
  void check_binary(const Binary& node, Dtype dtype);
  void check_call(const Call& node, Dtype dtype);
  void check_load(const Load& node, Dtype dtype);
  // Indices and rule; gives the place's symbol, or nothing (with a fault) where it is not declared.
  const Symbol* check_access(const Access& access);
  void check_rule(const Rule& rule, Dtype dtype);

  // ---- Tensor IR (verifier_tensor.cpp)
  void check(const TensorStmt& stmt);
  void check_reduce(const Reduce& node, Dtype dtype);
  void declare_axes(const std::vector<Axis>& axes);

  // ---- Statements of both stages (verifier_stmt.cpp)
  void check(const Block& body);
  void check(const Stmt& stmt);
  void check_loop(const Loop& node);
  void check_place_of_loop(LoopKind kind);
  void check_constant_bounds(const Axis& axis, std::string_view word);
  void check_buffer(const Buffer& node);
  void check_let(const Let& node);
  void check_store(const Store& node);
  void check_instr(const Instr& node);
  void check_branch(const If& node);
  void check_where(const std::vector<Expr>& where);
  bool needs_tile_stage(std::string_view what);
  bool needs_block_level(std::string_view what);

  // ---- Tile operations, pipes and layouts (verifier_tile.cpp)
  struct NamedAxis {
    std::string name;
    std::optional<std::int64_t> extent;  // nothing where it is not constant
  };
  void check_copy(const Copy& node);
  void check_fill(const Fill& node);
  void check_mma(const Mma& node);
  void check_fold(const Fold& node);
  void check_pipe(const Pipe& node);
  void check_verb(const Verb& node);
  void check_role(const Role& node);
  void check_labelled(const Labelled& node);
  void check_chain(const Chain& node);
  void check_publish(const Publish& node);
  void check_lookback(const Lookback& node);
  // Declares the bare new names among the indices and adds them to `axes`; the extents of a name must agree.
  void new_names(const Access& access, std::vector<NamedAxis>& axes);
  void check_layout(const Layout& layout, const std::vector<NamedAxis>& axes, std::string_view what, std::string_view places);
  void check_window(const std::string& pipe, bool is_in);

  const Plan& plan_;
  const Kernel* kernel_ = nullptr;
  std::string tensor_stmt_;        // text of the statement of tensor IR that is looked at, empty in a plan
  std::vector<const Stmt*> path_;  // the statement that is looked at, innermost last
  std::vector<LoopKind> loops_;    // around it
  bool in_each_ = false;
  std::string label_;
  bool whole_arrays_ = false;      // an array without indices may stand for all of it
  std::map<std::string, Window> windows_;
  std::map<std::string, std::vector<Symbol>, std::less<>> symbols_;
  std::vector<std::string> declared_;
  std::vector<Diagnostic> found_;
};

// Whether no two elements of the layout share a place, by its strides; by enumeration where these do not tell and the
// layout is small.
bool is_one_to_one(const Layout& layout);

}  // namespace tilewright
