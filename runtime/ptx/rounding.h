// Rounding of floats as PTX has it: directions, flushing of denormals, saturation, and the one NaN that operations give.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "runtime/ptx/module.h"

namespace tilewright::ptx {

enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up, NearestAway };
// The first of .rn .rz .rm .rp .rna (and the integer forms .rni …) among the words; Nearest where there is none.
Rounding rounding_of(const Instruction& instruction);

inline int host_rounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::Zero: return FE_TOWARDZERO;
    case Rounding::Down: return FE_DOWNWARD;
    case Rounding::Up: return FE_UPWARD;
    case Rounding::Nearest: case Rounding::NearestAway: break;
  }
  return FE_TONEAREST;
}

// The compiler may neither compute nor move what is done to the value across this.
template <class T>
inline T opaque(T value) {
  asm volatile("" : "+m"(value));
  return value;
}

// f(a, b, c) in a direction. The operands are hidden from the compiler between the changes of direction.
template <class F, class... T>
auto in_direction(Rounding rounding, F f, T... operands) {
  if (rounding == Rounding::Nearest) return f(operands...);
  std::fesetround(host_rounding(rounding));
  const auto result = opaque(f(opaque(operands)...));
  std::fesetround(FE_TONEAREST);
  return result;
}

inline float flushed(float value) { return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value; }
inline double flushed(double value) { return value; }  // .ftz is of f32 only

// f32 operations give this NaN, whatever came in; f64 keep the payload, which the host does too.
inline float canonical(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }
inline double canonical(double value) { return value; }

template <class T>
inline T saturated(T value) {
  return value > T{0} ? (value < T{1} ? value : T{1}) : T{0};  // NaN is 0
}

// The sum of two doubles with the last bit odd where the sum is not exact: a second rounding, to 51 bits or fewer, is then
// that of the exact sum.
inline double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double rest = (a - (sum - b_part)) + (b - b_part);  // Knuth's TwoSum
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (rest == 0 || (bits & 1) != 0) return sum;
  const bool away = (rest > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

}  // namespace tilewright::ptx
