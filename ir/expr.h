// Expressions: immutable, shared, compared by value (spans never differ, constants by their bits).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/match.h"
#include "ir/span.h"

namespace tilewright {

struct ExprNode;

// A handle to an expression. Empty only as "none" where a comment says so.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* operator->() const { return node_.get(); }
  const void* identity() const { return node_.get(); }
  friend bool operator==(const Expr& a, const Expr& b);

 private:
  std::shared_ptr<const ExprNode> node_;
};

// Not: boolean. BitNot: integers. Neg: integers wrap, floats flip the sign.
enum class UnaryOp : std::uint8_t { Neg, Not, BitNot };

// Both sides have one dtype (shifts: any integer count, taken modulo the width). Integers wrap. Div and Mod of
// integers floor; by zero: Div gives 0 and Mod the left side. Div of floats is IEEE. Min and Max propagate NaN.
// Comparisons give Bool and are false on NaN, but Ne. And and Or are boolean and evaluate the right side only if needed.
enum class BinaryOp : std::uint8_t {
  Add, Sub, Mul, Div, Mod, Min, Max, And, Or, Eq, Ne, Lt, Le, Gt, Ge, BitAnd, BitOr, BitXor, Shl, Shr
};

// What combines the terms of a reduction, a scatter, a scan.
enum class CombineOp : std::uint8_t { Add, Mul, Max, Min, And, Or };

// What an access does where an index is out of range. None: it cannot be (the frontend or a `where` saw to it).
// Fill: the value `fill`. Skip: a store is left out; a load with Skip stands only in tensor IR under a reduction,
// and lowering makes conditions of it. Check: counts as 0 (or is not written) and goes to the error word under `check_id`.
struct Rule {
  enum class Kind : std::uint8_t { None, Fill, Clamp, Wrap, Mirror, Skip, Check };
  Kind kind = Kind::None;
  Expr fill;          // Fill only
  int check_id = 0;   // Check only
  friend bool operator==(const Rule&, const Rule&) = default;
};

// `buffer[index…; rule]`: a tensor parameter, temporary, table, or shared or register buffer. Indices are integers of any
// dtype. At tile stage they are coordinates; at thread stage one flat element, or slot and element. A scalar has none.
struct Access {
  std::string buffer;
  std::vector<Expr> index;
  Rule rule;
  Span span;
  friend bool operator==(const Access&, const Access&) = default;
};

// `name in lo .. hi step step`: hi is exclusive, step a positive expression, empty for 1.
struct Axis {
  std::string name;
  Expr lo;
  Expr hi;
  Expr step;
  Span span;
  friend bool operator==(const Axis&, const Axis&) = default;
};

struct Const {
  std::int64_t bits = 0;  // an integer (u64 as its bit pattern, bool 0 or 1), or the bits of a double for float dtypes
  friend bool operator==(const Const&, const Const&) = default;
};
// A dim, loop variable, `let`, `thread.x`, `block.x`, `lane`, `warp`, `p.in`, …; never a buffer (that is a Load).
struct Var {
  std::string name;
  friend bool operator==(const Var&, const Var&) = default;
};
struct Unary {
  UnaryOp op;
  Expr operand;
  friend bool operator==(const Unary&, const Unary&) = default;
};
struct Binary {
  BinaryOp op;
  Expr lhs;
  Expr rhs;
  friend bool operator==(const Binary&, const Binary&) = default;
};
// `if condition then a else b`: only the branch taken is evaluated.
struct Select {
  Expr condition;
  Expr if_true;
  Expr if_false;
  friend bool operator==(const Select&, const Select&) = default;
};
// Conversion to the node's dtype: to nearest even; float to integer truncates, saturates, NaN is 0; integers wrap;
// to bool: != 0.
struct Cast {
  Expr operand;
  friend bool operator==(const Cast&, const Cast&) = default;
};
// A function of the table in ir/operators.h (`exp`, `fma`, `ceildiv`, …) or an instruction with a result (ir/instructions.h).
struct Call {
  std::string function;
  std::vector<Expr> arguments;
  friend bool operator==(const Call&, const Call&) = default;
};
struct Load {
  Access access;
  friend bool operator==(const Load&, const Load&) = default;
};
// Tensor IR only. Folds `body` over all points of `axes` where every condition holds, in index order, in the node's
// dtype; over none it is the identity. `gives_index`, of Max and Min over one axis: the index of the first extreme, of the
// first NaN where one is there, and -1 over none; the body has a dtype of its own.
struct Reduce {
  CombineOp op;
  std::vector<Axis> axes;
  std::vector<Expr> where;
  Expr body;
  bool gives_index = false;
  friend bool operator==(const Reduce&, const Reduce&) = default;
};

using ExprVariant = std::variant<Const, Var, Unary, Binary, Select, Cast, Call, Load, Reduce>;

struct ExprNode {
  ExprVariant value;
  Dtype dtype;
  Span span;
  friend bool operator==(const ExprNode&, const ExprNode&) = default;
};

Expr make_expr(ExprVariant value, Dtype dtype, Span span = {});

template <class T>
const T* as(const Expr& expr) {
  return expr ? std::get_if<T>(&expr->value) : nullptr;
}

template <class... F>
decltype(auto) match(const Expr& expr, F&&... functions) {
  return match_variant(expr->value, std::forward<F>(functions)...);
}

// ---- Construction. These check dtypes (internal_error) and fold constants and neutral elements of Index arithmetic only.
Expr integer(std::int64_t value, Dtype dtype = Dtype::Index, Span span = {});
Expr real(double value, Dtype dtype, Span span = {});
Expr constant(double value, Dtype dtype, Span span = {});  // of any dtype: integer dtypes take the truncated value
Expr boolean(bool value);
Expr var(std::string name, Dtype dtype = Dtype::Index, Span span = {});
Expr unary(UnaryOp op, Expr operand, Span span = {});
Expr binary(BinaryOp op, Expr lhs, Expr rhs, Span span = {});
Expr select(Expr condition, Expr if_true, Expr if_false, Span span = {});
Expr cast(Dtype dtype, Expr operand, Span span = {});  // a cast to its own dtype is the operand; of a constant, a constant
Expr call(std::string function, std::vector<Expr> arguments, Dtype dtype, Span span = {});
Expr load(Access access, Dtype dtype, Span span = {});
Expr reduce(CombineOp op, std::vector<Axis> axes, std::vector<Expr> where, Expr body, Dtype dtype, Span span = {},
            bool gives_index = false);

// Index arithmetic with folding (0 + x, 1 * x, constants).
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, std::int64_t b);
Expr operator*(const Expr& a, std::int64_t b);
Expr ceildiv(const Expr& a, const Expr& b);
// `expr` / `divisor`, of index arithmetic that does not overflow, where every term is a multiple by its form (a constant
// factor or a constant that `divisor` divides); nothing elsewhere.
std::optional<Expr> exact_quotient(const Expr& expr, std::int64_t divisor);
Expr less(const Expr& a, const Expr& b);
Expr both(const Expr& a, const Expr& b);                 // and, with an empty side dropped
Expr all_of(const std::vector<Expr>& conditions);        // empty Expr for none

std::optional<std::int64_t> integer_value(const Expr& expr);  // of an integer constant
std::optional<double> real_value(const Expr& expr);           // of a float constant
bool is_integer_constant(const Expr& expr, std::int64_t value);

// ---- Recursion lives here.
// A copy with every direct child expression replaced by f(child) (indices, rule fills, bounds of axes and conditions too).
Expr map_children(const Expr& expr, const std::function<Expr(const Expr&)>& f);
Access map_access(const Access& access, const std::function<Expr(const Expr&)>& f);
// Calls f on expr and everything below, parents first; f returns false to leave out what is below.
void walk(const Expr& expr, const std::function<bool(const Expr&)>& f);
// Bottom-up rewrite: children first, then f on the rebuilt node.
Expr rewrite(const Expr& expr, const std::function<Expr(const Expr&)>& f);
// Replaces variables by name (simultaneously). Names bound by a Reduce are not replaced below it.
Expr substitute(const Expr& expr, const std::vector<std::pair<std::string, Expr>>& replacements);
bool uses_var(const Expr& expr, std::string_view name);
bool uses_buffer(const Expr& expr, std::string_view name);

std::size_t hash_value(const Expr& expr);

}  // namespace tilewright
