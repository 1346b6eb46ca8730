// The rules of DESIGN's "types of values" that need no expression.
#include "frontend/types.h"

#include "ir/diagnostic.h"

namespace tilewright {

std::string describe(ValueType type) {
  switch (type.kind) {
    case ValueType::Kind::Unknown:
      return "unknown";
    case ValueType::Kind::WholeNumber:
      return "a whole number";
    case ValueType::Kind::RealNumber:
      return "a float literal";
    case ValueType::Kind::Typed:
      break;
  }
  return std::string(info(type.dtype).name);
}

bool holds(Dtype to, Dtype from) {
  if (to == from) return true;
  if (to == Dtype::Bool || from == Dtype::Bool) return false;
  if (is_float(to) && is_float(from)) return to == Dtype::F64 || (to == Dtype::F32 && is_narrow_float(from));
  if (is_float(from)) return false;
  const int value_bits = info(from).bits - (is_signed(from) ? 1 : 0);
  if (is_float(to)) return value_bits <= (to == Dtype::F64 ? 53 : to == Dtype::F32 ? 24 : 0);
  if (is_signed(from) && !is_signed(to)) return false;
  return value_bits <= info(to).bits - (is_signed(to) ? 1 : 0);
}

std::optional<ValueType> common_type(ValueType a, ValueType b) {
  if (a.is_unknown() || b.is_unknown()) return ValueType::unknown();
  if (!a.is_typed() && !b.is_typed()) return a.is_real() || b.is_real() ? ValueType::real() : ValueType::whole();
  if (!a.is_typed()) std::swap(a, b);
  if (!b.is_typed()) {
    // A number takes the type of the value beside it, but a bool is no number and 0.5 no integer.
    if (a.dtype == Dtype::Bool || (b.is_real() && !is_float(a.dtype))) return std::nullopt;
    return a;
  }
  if (holds(a.dtype, b.dtype)) return a;
  if (holds(b.dtype, a.dtype)) return b;
  if (is_float(a.dtype) && is_float(b.dtype)) return ValueType::of(Dtype::F32);
  const bool are_narrow =
      is_integer(a.dtype) && is_integer(b.dtype) && info(a.dtype).bits < 32 && info(b.dtype).bits < 32;
  if (are_narrow) return ValueType::of(Dtype::I32);
  const auto meets_in_f32 = [](Dtype narrow, Dtype integer) {
    return is_narrow_float(narrow) && is_integer(integer) && holds(Dtype::F32, integer);
  };
  if (meets_in_f32(a.dtype, b.dtype) || meets_in_f32(b.dtype, a.dtype)) return ValueType::of(Dtype::F32);
  return std::nullopt;
}

ValueType arithmetic_type(ValueType type) {
  return type.is_typed() && is_narrow_float(type.dtype) ? ValueType::of(Dtype::F32) : type;
}

Dtype settled(ValueType type) {
  switch (type.kind) {
    case ValueType::Kind::WholeNumber:
      return Dtype::I64;
    case ValueType::Kind::RealNumber:
      return Dtype::F32;
    case ValueType::Kind::Typed:
      return type.dtype;
    case ValueType::Kind::Unknown:
      break;
  }
  internal_error("the dtype of an expression that has none");
}

bool fits(std::int64_t value, Dtype dtype) {
  const int bits = info(dtype).bits;
  if (!is_signed(dtype)) return value >= 0 && (bits == 64 || value < (std::int64_t{1} << bits));
  return bits == 64 || (value >= -(std::int64_t{1} << (bits - 1)) && value < (std::int64_t{1} << (bits - 1)));
}

}  // namespace tilewright
