// Types of values: what stands beside what, and which conversions happen unasked.
#pragma once

#include <optional>
#include <string>

#include "ir/dtype.h"

namespace tilewright {

// The type of an expression as written. A whole number (a literal, a size, an index) and a real number (a float
// literal) take the type of the value beside them. Unknown: a fault was reported already.
struct ValueType {
  enum class Kind : std::uint8_t { Unknown, WholeNumber, RealNumber, Typed };
  Kind kind = Kind::Unknown;
  Dtype dtype = Dtype::F32;  // Typed only

  static ValueType unknown() { return {}; }
  static ValueType whole() { return {Kind::WholeNumber, Dtype::Index}; }
  static ValueType real() { return {Kind::RealNumber, Dtype::F32}; }
  static ValueType of(Dtype dtype) { return {Kind::Typed, dtype}; }

  bool is_unknown() const { return kind == Kind::Unknown; }
  bool is_whole() const { return kind == Kind::WholeNumber; }
  bool is_real() const { return kind == Kind::RealNumber; }
  bool is_typed() const { return kind == Kind::Typed; }
  bool is(Dtype other) const { return is_typed() && dtype == other; }
  bool is_any_float() const { return is_real() || (is_typed() && is_float(dtype)); }
  bool is_any_integer() const { return is_whole() || (is_typed() && is_integer(dtype)); }
};

// As messages say it: "f32", "a whole number", "a float literal".
std::string describe(ValueType type);

// Every value of `from` is one of `to`: such conversions happen unasked.
bool holds(Dtype to, Dtype from);

// The type that two operands meet in: the wider of two floats (two different narrow ones: f32), the integer that holds
// both (two different narrow ones: i32), the float that holds an integer. None where a conversion must be written.
std::optional<ValueType> common_type(ValueType a, ValueType b);

// The type that arithmetic on a value is carried out in: f32 for narrow floats, else its own.
ValueType arithmetic_type(ValueType type);

// Without a value beside it: a whole number is an i64, a float literal an f32.
Dtype settled(ValueType type);

// Whether a literal of this value can be of an integer dtype.
bool fits(std::int64_t value, Dtype dtype);

}  // namespace tilewright
