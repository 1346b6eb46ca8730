// What the printers of ir/ share. Users take print() of ir/plan.h and ir/tensor.h.
#pragma once

#include <optional>
#include <string>

#include "ir/expr.h"

namespace tilewright {

// Where nothing else says so, an integer literal is an Index and one with a point an f32. A place may state another dtype,
// `expected`: the target of a store, the buffer of a fill. Inside, a literal takes the dtype of the operand beside it.
// Printer and parser follow the same rules (docs/ir.md, "Literals"), so a literal needs its dtype in front, `bf16(0.5)`,
// only where they would give it another one. `strength` is the least precedence that needs no parentheses.
std::string print_expr(const Expr& expr, std::optional<Dtype> expected = std::nullopt, int strength = 0);

std::string print_access(const Access& access);
std::string print_axis(const Axis& axis);          // `k in 0 .. 8 step 2`
std::string print_where(const std::vector<Expr>& conditions);  // ` where a, b`, empty for none
std::string print_type(Dtype dtype, const std::vector<Expr>& shape);  // `f32[M, N]`

// The digits of a constant of this dtype, without its dtype.
std::string print_digits(const Const& value, Dtype dtype);

// The number in a literal's text as a constant of `dtype`: rounded to nearest, or the exact bits where the text is hexadecimal.
Expr literal_of(const std::string& digits, bool is_negative, Dtype dtype, Span span);

// How the literals among the arguments of a function find their dtype.
enum class ArgumentRule : std::uint8_t {
  Value,    // from the arguments beside them, else from what is expected of the call
  Operand,  // from the arguments beside them only: the result has a dtype of its own
  Plain     // each for itself
};
ArgumentRule argument_rule(std::string_view function);

constexpr int unary_strength = 10;

}  // namespace tilewright
