// Facts about operators and functions: one row each, read by printer, parser, evaluator and both generators.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace tilewright {

struct BinaryInfo {
  std::string_view spelling;  // in the IR and the language
  int precedence;             // higher binds tighter; infix only
  bool commutative;
  bool is_infix;              // min and max are written as calls
  bool is_comparison;         // gives Bool
  bool is_logical;            // takes Bool
};
const BinaryInfo& info(BinaryOp op);
std::optional<BinaryOp> binary_by_spelling(std::string_view spelling);

struct CombineInfo {
  std::string_view spelling;  // "+", "*", "max", "min", "&", "|"
  BinaryOp binary;            // And and Or are those of bits, of Bool too
};
const CombineInfo& info(CombineOp op);
Expr identity_of(CombineOp op, Dtype dtype);           // -inf for max of floats, lowest for integers, …
Expr combine(CombineOp op, const Expr& a, const Expr& b);

// How a function's result dtype follows: Same as its first argument, or fixed.
enum class FunctionGroup : std::uint8_t {
  Exact,     // one correctly rounded or exact result everywhere: fma, sqrt, abs, floor, ceil, trunc, round, ceildiv, …
  Library,   // CUDA's standard library accuracy: exp, log, sin, …
  Fast,      // hardware approximation of f32, made by `math fast`: exp.fast, …
  Structural // meaning beyond arithmetic: within(v, n, id), resident(kernel), and the tables of a plan
};

struct FunctionInfo {
  std::string_view name;     // in the IR; without a dot also in the language
  int arity;
  FunctionGroup group;
  bool takes_float;          // f32 or f64 (narrow floats are widened before)
  bool takes_integer;        // any integer or Index
  std::string_view cuda_f32; // spelling in CUDA C, empty where the generator writes it otherwise
  std::string_view cuda_f64;
  std::string_view libdevice_f32;  // __nv_… or empty where LLVM has an intrinsic
  std::string_view libdevice_f64;
  std::optional<Dtype> result = std::nullopt;  // fixed; none: the dtype of the first argument
};
// All arguments have one dtype, but those of Structural functions. `round` is to nearest even (CUDA's rint); `ceildiv(a, b)`
// rounds the quotient up and is 0 for b = 0; `within(v, n, id)` cuts a bound read from a tensor (any integer) to 0 .. n as Index
// and reports to site `id` where it had to.
// `fma` is the contraction decided at lowering (`contract off` takes it apart); `fma.kept` is the program's own fma call.
const FunctionInfo* find_function(std::string_view name);
std::span<const FunctionInfo> all_functions();

}  // namespace tilewright
