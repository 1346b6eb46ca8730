// From one fn as written to tensor IR: names, types, ranges, and the proof that no access leaves its tensor.
//
//   signature.cpp        dims, parameters, results
//   fn_statements.cpp    statements, their free indices and targets
//   fn_updates.cpp       `+=` and its kin: reductions and scatters
//   fn_ranges.cpp        what an index ranges over
//   fn_types.cpp         the type of every expression
//   fn_values.cpp        expressions
//   fn_reductions.cpp    reductions
//   fn_access.cpp        accesses, their rules and the proof
//   fn_calls.cpp         functions, conversions, scalar fns put in place of their calls
//   fn_inline.cpp        tensor fns put in place of their calls
//
// A fault gives an empty Expr, which stays silent above: one fault is reported once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/ast.h"
#include "frontend/linear.h"
#include "frontend/sink.h"
#include "frontend/types.h"
#include "ir/tensor.h"

namespace tilewright {

class FnTable;

// The dims and parameters of a fn; no statements. Nothing where it has faults.
std::optional<TensorFn> declare_signature(const AstFn& ast, Sink& sink);

class FnBuilder {
 public:
  // `signature` as declare_signature gives it. `table` holds the other fns of the program; may be null.
  FnBuilder(TensorFn signature, FnTable* table, Sink& sink);

  // The whole fn; nothing where it has faults.
  std::optional<TensorFn> build(const AstFn& ast);

  // For what stands outside of a fn's body: an integer expression of its dims and integer scalars; a condition on its
  // dims.
  Expr size_expression(const Ast& ast);
  Expr size_condition(const Ast& ast);
  bool has_dim(const std::string& name) const;

 private:
  struct Tensor {
    ParamKind kind = ParamKind::In;
    bool is_let = false;
    Dtype dtype = Dtype::F32;
    std::vector<Expr> shape;
    Span span;
    bool is_defined = false;
    bool is_faulty = false;  // its definition has a fault: uses of it are silent
    std::optional<CombineOp> scattered;
    bool is_scalar_input() const { return kind != ParamKind::Out && !is_let && shape.empty(); }
  };
  struct Index {
    std::string name;
    Span span;
    Expr lo;  // both empty while types are found
    Expr hi;
    bool is_from_data = false;  // a bound is read from a tensor
  };
  // A dimension that an index alone subscripts.
  struct Use {
    Span span;  // of the access
    std::string tensor;
    Expr extent;
    bool is_secondary = false;  // under a condition or with a rule: asked only where no other use says a range
  };
  // Conditions of skipped terms go to the innermost reduction (or scatter) around.
  struct Skips {
    std::vector<Expr> where;
    std::size_t first_guard = 0;
  };

  // ---- Statements (fn_statements.cpp).
  void build_statement(const AstStatement& statement);
  void build_definition(const AstStatement& statement, Tensor* output);
  void build_scatter(const AstStatement& statement, Tensor& output, const std::vector<AstWord>& free);
  ValueType free_type_of(const std::vector<AstWord>& free, const Ast& value);
  bool open_free_indices(const std::vector<AstWord>& free, const AstStatement& statement, const Tensor* output);
  std::vector<AstWord> free_indices_of(const AstStatement& statement);
  bool has_plain_target(const AstStatement& statement);
  Tensor* find_output(const AstStatement& statement);
  void note_definition(const AstStatement& statement, Tensor& output);
  bool check_new_index(const AstWord& word);
  std::vector<Axis> axes_of(std::size_t first_index) const;
  static std::vector<Expr> variables_of(const std::vector<Axis>& axes);
  void check_outputs(const AstFn& ast);
  void poison(const AstStatement& statement);

  // ---- Ranges (fn_ranges.cpp).
  void collect_uses(const Ast& ast, const std::string& name, bool is_secondary, std::vector<Use>& uses);
  void collect_use(const AstWord& tensor, const std::vector<Ast>& index, Span span, const std::string& name,
                   bool is_secondary, std::vector<Use>& uses);
  // The extent that the uses agree on; empty, and reported, where there is none or several.
  Expr extent_of(const AstWord& index, const std::vector<Use>& uses, const std::string& help);
  // Puts the index in scope.
  bool open_index(const AstRange& range, const std::vector<Use>& uses, const std::string& help);
  Expr bound(const Ast& ast, const std::vector<Use>& uses, std::int64_t offset);
  void push_index(Index index);

  // ---- Types (fn_types.cpp).
  ValueType type_of(const Ast& ast);
  ValueType find_type(const Ast& ast);
  ValueType type_of_name(const AstName& name, Span span);
  ValueType type_of_unary(const AstUnary& unary);
  ValueType type_of_binary(const AstBinary& binary, Span span);
  ValueType type_of_compare(const AstCompare& compare);
  ValueType type_of_if(const AstIf& branch, Span span);
  ValueType type_of_reduction(const AstReduction& reduction, Span span);
  ValueType type_of_call(const AstCall& call, Span span);
  ValueType type_of_call_once(const AstCall& call, Span span);
  ValueType type_of_inlined(const AstCall& call, Span span);
  ValueType meet(const Ast& a, ValueType type_a, const Ast& b, ValueType type_b);
  // What a value of this type cannot be given to a target of this dtype for; empty where it can.
  bool check_assignable(const Ast& ast, ValueType type, Dtype target, const std::string& what);
  Dtype comparison_type(const Ast& lhs, const Ast& rhs);
  bool has_names(const Ast& ast);

  // ---- Values (fn_values.cpp).
  // In its own type.
  Expr value(const Ast& ast);
  // In its own type, then converted.
  Expr value_as(const Ast& ast, Dtype dtype);
  // Rounded or wrapped to the target, the one conversion that may lose value.
  Expr assigned(const Ast& ast, Dtype dtype);
  // Evaluated in this type, narrow operands widened at the leaf; Index: as integers are inside of brackets.
  Expr leaf(const Ast& ast, Dtype dtype);
  Expr leaf_number(const AstNumber& number, Dtype dtype, Span span, bool is_negative);
  Expr leaf_name(const AstName& name, Dtype dtype, Span span);
  Expr leaf_binary(const AstBinary& binary, Dtype dtype, Span span);
  Expr comparison(const AstCompare& compare);
  Expr logical(const AstBinary& binary, Span span);
  Expr conditional(const AstIf& branch, const std::function<Expr(const Ast&)>& build, Span span);
  Expr own_binary(const AstBinary& binary, Dtype dtype, Span span);
  bool check_integer_division(const Ast& ast);
  void unknown_name(const std::string& name, Span span);

  // ---- Reductions (fn_reductions.cpp).
  Expr reduction(const AstReduction& reduction, Span span);
  Expr scanned(BinaryOp scan, const Axis& axis, const Expr& limit, const Expr& whole);
  Dtype accumulator(const AstReduction& reduction);

  // ---- Accesses (fn_access.cpp).
  Expr access(const AstAccess& ast, Span span);
  Tensor* readable(const AstWord& word, const std::vector<Ast>& index, Span span);
  std::vector<Expr> indices(const std::vector<Ast>& index);
  // The sides of the dims that could not be shown to stay inside.
  struct Escape {
    std::size_t dim;
    bool is_below;
  };
  std::vector<Escape> escapes(const std::vector<Expr>& index, const std::vector<Expr>& shape);
  bool is_from_data(const Expr& expr);
  void report_escape(const AstWord& tensor, const std::vector<Ast>& index, const std::vector<Expr>& built,
                     const std::vector<Escape>& open, const Tensor& symbol, Span span);
  std::string farthest(const Expr& expr, bool is_below);
  int new_error_site(Expr load);
  void skip(const std::vector<Expr>& index, const std::vector<Expr>& shape, const std::vector<Escape>& open);

  // ---- Calls (fn_calls.cpp).
  Expr call(const AstCall& call, Dtype dtype, bool is_leaf, Span span);
  Expr inlined_call(const AstCall& call, Span span);
  bool is_tensor_call(const Ast& ast);
  void build_tensor_call(const AstStatement& statement);
  struct Binding {
    std::vector<std::pair<std::string, Expr>> dims;
    std::map<std::string, std::string> tensors;
    std::map<std::string, Expr> scalars;
  };
  std::optional<Binding> bind_arguments(const TensorFn& callee, const AstCall& call);
  bool bind_shape(const TensorFn& callee, const Param& param, const std::vector<Expr>& shape, const Ast& argument,
                  Binding& binding);
  Expr rebound(const Expr& expr, const Binding& binding, int first_error) const;
  void append_callee(const TensorFn& callee, const Binding& binding);

  TensorFn fn_;
  FnTable* table_;
  Sink& sink_;
  bool is_well_ = true;
  bool may_miss_outputs_ = false;  // a statement's target is not known
  std::map<std::string, Tensor> tensors_;
  Facts facts_;
  std::vector<Index> indices_;  // in scope
  std::vector<Skips> skips_;    // reductions around, outermost first
  std::vector<Expr> guards_;    // conditions around
  const AstStatement* statement_ = nullptr;
  std::unordered_map<const AstNode*, ValueType> types_;
  std::unordered_map<const AstCall*, ValueType> call_types_;
};

// Loads of the named values replaced by them; empty where the result would be too large to be of use.
Expr put_in_place(const Expr& expr, const std::map<std::string, Expr>& values);

// The fns of a program: each is built once, when it is first needed.
class FnTable {
 public:
  FnTable(const std::vector<AstFn>& fns, Sink& sink);

  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  // The declaration, whatever its body is worth; null where the signature has faults.
  const TensorFn* signature(const std::string& name) const;
  // Null where it has faults, or (reported at `use`) where it is being built already, because it calls itself.
  const TensorFn* built(const std::string& name, Span use);
  // Only scalars go in and one comes out: calls stand in expressions.
  bool is_scalar_fn(const std::string& name) const;
  // The result of a scalar fn in terms of loads of its parameters; empty where it has faults.
  Expr inlined_result(const std::string& name, Span use);
  std::vector<std::string> names() const;
  // Called by another fn.
  bool is_called(const std::string& name) const;

 private:
  enum class State : std::uint8_t { NotBuilt, Building, Built };
  struct Entry {
    const AstFn* ast = nullptr;
    std::optional<TensorFn> signature;
    std::optional<TensorFn> fn;
    State state = State::NotBuilt;
    bool is_called = false;
  };
  std::map<std::string, Entry> entries_;
  Sink& sink_;
};

}  // namespace tilewright
