// How element types and constants are written in CUDA C; see cuda_types.h.
#include "codegen/cuda_types.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ir/diagnostic.h"

namespace tilewright {

std::string cuda_type(Dtype dtype, int index_bits) {
  switch (dtype) {
    case Dtype::F64:
      return "double";
    case Dtype::F32:
      return "float";
    case Dtype::F16:
    case Dtype::BF16:
      return "unsigned short";
    case Dtype::E4M3:
    case Dtype::E5M2:
      return "unsigned char";
    case Dtype::I64:
      return "long long";
    case Dtype::I32:
      return "int";
    case Dtype::I16:
      return "short";
    case Dtype::I8:
      return "signed char";
    case Dtype::U64:
      return "unsigned long long";
    case Dtype::U32:
      return "unsigned int";
    case Dtype::U16:
      return "unsigned short";
    case Dtype::U8:
      return "unsigned char";
    case Dtype::Bool:
      return "bool";
    case Dtype::Index:
      return index_bits == 64 ? "long long" : "int";
    case Dtype::Mbarrier:
      return "unsigned long long";
  }
  internal_error("cuda_type: an element type without a row");
}

namespace {

// The shortest decimal that reads back as the same value, always with a point or an exponent.
template <class T>
std::string decimal(T value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string float_constant(double value, bool is_f64) {
  if (std::isnan(value)) return is_f64 ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fffffff)";
  if (std::isinf(value)) {
    const std::string infinity = is_f64 ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)";
    return value < 0 ? "-" + infinity : infinity;
  }
  return is_f64 ? decimal(value) : decimal(static_cast<float>(value)) + "f";
}

std::string integer_constant(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
  if (value == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
  const bool fits =
      value > std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
  return fmt::format("{}{}", value, fits ? "" : "ll");
}

}  // namespace

std::string cuda_constant(std::int64_t bits, Dtype dtype) {
  switch (dtype) {
    case Dtype::F64:
      return float_constant(std::bit_cast<double>(bits), true);
    case Dtype::F32:
    case Dtype::F16:
    case Dtype::BF16:
    case Dtype::E4M3:
    case Dtype::E5M2:
      return float_constant(std::bit_cast<double>(bits), false);
    case Dtype::I64:
      return fmt::format(
          "{}", bits == std::numeric_limits<std::int64_t>::min() ? integer_constant(bits) : fmt::format("{}ll", bits));
    case Dtype::U64:
      return fmt::format("{}ull", static_cast<std::uint64_t>(bits));
    case Dtype::U32:
      return fmt::format("{}u", static_cast<std::uint32_t>(bits));
    case Dtype::I32:
    case Dtype::I16:
    case Dtype::I8:
    case Dtype::U16:
    case Dtype::U8:
    case Dtype::Index:
      return integer_constant(bits);
    case Dtype::Bool:
      return bits != 0 ? "true" : "false";
    case Dtype::Mbarrier:
      internal_error("cuda_constant: a barrier object has no literal");
  }
  internal_error("cuda_constant: an element type without a row");
}

std::string cuda_vector_type(Dtype dtype, int elements) {
  const int bytes = bytes_of(dtype) * elements;
  if (dtype == Dtype::F32 && (elements == 2 || elements == 4)) return fmt::format("float{}", elements);
  if (dtype == Dtype::F64 && elements == 2) return "double2";
  if (dtype == Dtype::I32 && (elements == 2 || elements == 4)) return fmt::format("int{}", elements);
  switch (bytes) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned int";
    case 8:
      return "uint2";
    case 16:
      return "uint4";
    default:
      internal_error(
          fmt::format("no machine access moves {} bytes ({} elements of {})", bytes, elements, info(dtype).name));
  }
}

}  // namespace tilewright
