// f16, bf16 and fp8 as doubles, and any float format's rounding in any direction.
#pragma once

#include <cstdint>

#include "runtime/ptx/module.h"
#include "runtime/ptx/rounding.h"

namespace tilewright::ptx {

// The value of the bits of an f16, bf16, f32, f64 or tf32.
double value_of(Type type, std::uint64_t bits);
// The bits of a double in a type, rounded once. NaN becomes the type's canonical one.
std::uint64_t bits_in(Type type, double value, Rounding rounding);
// The integer that a direction of rounding gives.
double rounded_integer(double value, Rounding rounding);
// One byte of fp8; `saturates` to the largest finite value.
double value_of_fp8(bool is_e4m3, std::uint8_t bits);
std::uint8_t bits_in_fp8(bool is_e4m3, double value);

// a·b + c with one rounding at the end, where a and b are of f16 or bf16: the product is exact in f64.
inline double narrow_fma(double a, double b, double c) { return sum_to_odd(a * b, c); }

}  // namespace tilewright::ptx
