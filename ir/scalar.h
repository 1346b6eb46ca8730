// What every operator, conversion and function gives at every dtype: the one place of scalar meaning on the host. Constant
// folding, the oracle, the tile interpreter and the simulator share it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "ir/expr.h"

namespace tilewright {

// A value of any dtype in 64 bits: a float of any width as the f64 of the same value, an integer sign- or zero-extended
// (u64 as its bit pattern), a bool as 0 or 1.
union Scalar {
  std::int64_t i = 0;
  double f;
};
static_assert(sizeof(Scalar) == 8);

inline Scalar integer_scalar(std::int64_t value) { return Scalar{.i = value}; }
inline Scalar real_scalar(double value) { return Scalar{.f = value}; }
inline std::int64_t bits_of(Scalar value) { return value.i; }

// The nearest value of a narrow float dtype, ties to even. Beyond the largest: f16 and bf16 give infinity, e4m3 and e5m2
// saturate (as cvt.rn.satfinite does; an infinity too).
double round_to_narrow(Dtype dtype, double value);

// The nearest value of a float dtype.
inline double round_to(Dtype dtype, double value) {
  if (dtype == Dtype::F64) return value;
  if (dtype == Dtype::F32) return static_cast<double>(static_cast<float>(value));
  return round_to_narrow(dtype, value);
}

// The low bits of an integer dtype, extended again. Index counts as 64 bits: a plan's class promises that 32 suffice.
inline std::int64_t wrap(Dtype dtype, std::int64_t value) {
  switch (dtype) {
    case Dtype::I32: return static_cast<std::int32_t>(value);
    case Dtype::I16: return static_cast<std::int16_t>(value);
    case Dtype::I8: return static_cast<std::int8_t>(value);
    case Dtype::U32: return static_cast<std::uint32_t>(value);
    case Dtype::U16: return static_cast<std::uint16_t>(value);
    case Dtype::U8: return static_cast<std::uint8_t>(value);
    case Dtype::Bool: return value != 0 ? 1 : 0;
    case Dtype::I64: case Dtype::U64: case Dtype::Index: case Dtype::Mbarrier:
    case Dtype::F64: case Dtype::F32: case Dtype::F16: case Dtype::BF16: case Dtype::E4M3: case Dtype::E5M2: break;
  }
  return value;
}

// To nearest even; float to integer truncates, saturates, NaN gives 0; integers wrap; to bool: != 0.
Scalar convert(Dtype to, Dtype from, Scalar value);

// One element in memory.
Scalar load_scalar(Dtype dtype, const void* memory);
void store_scalar(Dtype dtype, void* memory, Scalar value);

// Add, Sub, Mul and Div of floats: f32 and narrower operate in f32, one rounding to the dtype.
inline double float_arithmetic(BinaryOp op, Dtype dtype, double a, double b) {
  const auto operate = [op](auto x, auto y) {
    if (op == BinaryOp::Add) return x + y;
    if (op == BinaryOp::Sub) return x - y;
    if (op == BinaryOp::Mul) return x * y;
    return x / y;
  };
  if (dtype == Dtype::F64) return operate(a, b);
  const double result = static_cast<double>(operate(static_cast<float>(a), static_cast<float>(b)));
  return dtype == Dtype::F32 ? result : round_to_narrow(dtype, result);
}

// Min and Max: NaN if either is; -0 is below +0.
inline double float_min(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
inline double float_max(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
// The remainder with the sign of the divisor.
inline double float_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}

inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

inline std::int64_t integer_binary(BinaryOp op, Dtype dtype, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  const bool is_wide_unsigned = dtype == Dtype::U64;  // the only one whose order differs from that of i64
  const auto signed_of = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const auto count = static_cast<unsigned>(ub & static_cast<std::uint64_t>(info(dtype).bits - 1));
  switch (op) {
    case BinaryOp::Add: return wrap(dtype, signed_of(ua + ub));
    case BinaryOp::Sub: return wrap(dtype, signed_of(ua - ub));
    case BinaryOp::Mul: return wrap(dtype, signed_of(ua * ub));
    case BinaryOp::Div:
      if (is_wide_unsigned) return b == 0 ? 0 : signed_of(ua / ub);
      return wrap(dtype, floor_divide(a, b));
    case BinaryOp::Mod:
      if (is_wide_unsigned) return b == 0 ? a : signed_of(ua % ub);
      return floor_modulo(a, b);
    case BinaryOp::Min: return (is_wide_unsigned ? ua < ub : a < b) ? a : b;
    case BinaryOp::Max: return (is_wide_unsigned ? ua > ub : a > b) ? a : b;
    case BinaryOp::And: return a != 0 && b != 0;
    case BinaryOp::Or: return a != 0 || b != 0;
    case BinaryOp::Eq: return a == b;
    case BinaryOp::Ne: return a != b;
    case BinaryOp::Lt: return is_wide_unsigned ? ua < ub : a < b;
    case BinaryOp::Le: return is_wide_unsigned ? ua <= ub : a <= b;
    case BinaryOp::Gt: return is_wide_unsigned ? ua > ub : a > b;
    case BinaryOp::Ge: return is_wide_unsigned ? ua >= ub : a >= b;
    case BinaryOp::BitAnd: return a & b;
    case BinaryOp::BitOr: return a | b;
    case BinaryOp::BitXor: return a ^ b;
    case BinaryOp::Shl: return wrap(dtype, signed_of(ua << count));
    case BinaryOp::Shr: return is_wide_unsigned ? signed_of(ua >> count) : a >> count;
  }
  return 0;
}

// `dtype` is that of the left side (comparisons give Bool). Inline, so that a call with constant arguments is one
// operation.
inline Scalar apply(BinaryOp op, Dtype dtype, Scalar a, Scalar b) {
  if (!is_float(dtype)) return integer_scalar(integer_binary(op, dtype, a.i, b.i));
  switch (op) {
    case BinaryOp::Add: case BinaryOp::Sub: case BinaryOp::Mul: case BinaryOp::Div:
      return real_scalar(float_arithmetic(op, dtype, a.f, b.f));
    case BinaryOp::Mod: return real_scalar(round_to(dtype, float_mod(a.f, b.f)));
    case BinaryOp::Min: return real_scalar(float_min(a.f, b.f));
    case BinaryOp::Max: return real_scalar(float_max(a.f, b.f));
    case BinaryOp::Eq: return integer_scalar(a.f == b.f);
    case BinaryOp::Ne: return integer_scalar(a.f != b.f);
    case BinaryOp::Lt: return integer_scalar(a.f < b.f);
    case BinaryOp::Le: return integer_scalar(a.f <= b.f);
    case BinaryOp::Gt: return integer_scalar(a.f > b.f);
    case BinaryOp::Ge: return integer_scalar(a.f >= b.f);
    case BinaryOp::And: case BinaryOp::Or: case BinaryOp::BitAnd: case BinaryOp::BitOr: case BinaryOp::BitXor:
    case BinaryOp::Shl: case BinaryOp::Shr: break;  // not of floats: make_expr and the verifier see to it
  }
  return real_scalar(std::numeric_limits<double>::quiet_NaN());
}

inline Scalar apply(UnaryOp op, Dtype dtype, Scalar a) {
  switch (op) {
    case UnaryOp::Neg:
      if (is_float(dtype)) return real_scalar(-a.f);
      return integer_scalar(wrap(dtype, static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a.i))));
    case UnaryOp::Not: return integer_scalar(a.i == 0);
    case UnaryOp::BitNot: return integer_scalar(wrap(dtype, ~a.i));
  }
  return a;
}

// fma with one rounding to the dtype (narrow floats: of the f32 result). Of integers: a*b + c.
Scalar fused_multiply_add(Dtype dtype, Scalar a, Scalar b, Scalar c);

// The binary operator that a combining operator applies. And and Or are those of bits, of Bool too: no term is skipped.
BinaryOp binary_of(CombineOp op, Dtype dtype);
// What leaves the other side of `op` as it is.
Scalar identity_scalar(CombineOp op, Dtype dtype);

// A function of ir/operators.h on values of one dtype. Exact functions are correctly rounded; library functions are those
// of f64, rounded once. Null where the name is unknown here (`within` and the instructions have no value of their own).
using ScalarFunction = Scalar (*)(Dtype dtype, const Scalar* arguments);
ScalarFunction find_scalar_function(std::string_view name);

// The value of an expression of constants; nothing where it is not one.
std::optional<Scalar> constant_scalar(const Expr& expr);
Expr constant_of(Scalar value, Dtype dtype, Span span = {});

}  // namespace tilewright
