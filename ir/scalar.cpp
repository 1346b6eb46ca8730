// Scalar meaning: narrow floats, conversions and the functions.
#include "ir/scalar.h"

#include <array>
#include <cstring>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

// A narrow float format: significant bits with the hidden one, exponent of the smallest normal, the largest value.
struct NarrowFormat {
  int precision;
  int least_exponent;
  double largest;
  bool saturates;
};

constexpr NarrowFormat format_of(Dtype dtype) {
  if (dtype == Dtype::F16) return {11, -14, 65504.0, false};
  if (dtype == Dtype::BF16) return {8, -126, 3.3895313892515355e38, false};
  if (dtype == Dtype::E4M3) return {4, -6, 448.0, true};
  return {3, -14, 57344.0, true};
}

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

int exponent_of(double value) { return static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7ff) - 1023; }

// Bits of an IEEE-like format with the mantissa below the exponent; `value` is one of its values.
std::uint32_t encode(double value, int exponent_bits, int mantissa_bits, int least_exponent) {
  const std::uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + mantissa_bits) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int exponent = exponent_of(magnitude);
  if (exponent < least_exponent)
    return sign | static_cast<std::uint32_t>(magnitude * power_of_two(mantissa_bits - least_exponent));
  const auto fraction = static_cast<std::uint32_t>((std::bit_cast<std::uint64_t>(magnitude) & 0xfffffffffffffULL) >>
                                                   (52 - mantissa_bits));
  return sign | static_cast<std::uint32_t>(exponent - least_exponent + 1) << mantissa_bits | fraction;
}

double decode(std::uint32_t bits, int exponent_bits, int mantissa_bits, int least_exponent) {
  const std::uint32_t exponent = bits >> mantissa_bits & ((1U << exponent_bits) - 1);
  const std::uint32_t fraction = bits & ((1U << mantissa_bits) - 1);
  const double unit = power_of_two(least_exponent - mantissa_bits);
  const double magnitude =
      exponent == 0 ? fraction * unit
                    : (fraction + static_cast<double>(1U << mantissa_bits)) * unit * power_of_two(static_cast<int>(exponent) - 1);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

std::uint16_t encode_f16(double value) {
  if (std::isnan(value)) return 0x7fff;
  if (std::isinf(value)) return value < 0 ? 0xfc00 : 0x7c00;
  return static_cast<std::uint16_t>(encode(value, 5, 10, -14));
}

double decode_f16(std::uint16_t bits) {
  if ((bits & 0x7c00) == 0x7c00) {
    if (bits & 0x3ff) return std::numeric_limits<double>::quiet_NaN();
    return bits & 0x8000 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  return decode(bits, 5, 10, -14);
}

std::uint8_t encode_e4m3(double value) {
  return std::isnan(value) ? 0x7f : static_cast<std::uint8_t>(encode(value, 4, 3, -6));
}
double decode_e4m3(std::uint8_t bits) {
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<double>::quiet_NaN() : decode(bits, 4, 3, -6);
}

std::uint8_t encode_e5m2(double value) {
  if (std::isnan(value)) return 0x7f;
  if (std::isinf(value)) return value < 0 ? 0xfc : 0x7c;
  return static_cast<std::uint8_t>(encode(value, 5, 2, -14));
}
double decode_e5m2(std::uint8_t bits) {
  if ((bits & 0x7c) == 0x7c) {
    if (bits & 3) return std::numeric_limits<double>::quiet_NaN();
    return bits & 0x80 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  return decode(bits, 5, 2, -14);
}

template <class T>
T read_as(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}
template <class T, class V>
void write_as(void* memory, V value) {
  const T typed = static_cast<T>(value);
  std::memcpy(memory, &typed, sizeof typed);
}

// Saturating truncation to an integer dtype.
std::int64_t truncate(Dtype dtype, double value) {
  if (std::isnan(value)) return 0;
  if (dtype == Dtype::U64) {
    if (value <= 0) return 0;
    if (value >= 18446744073709551616.0) return -1;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
  }
  const int bits = info(dtype).bits;
  const double above = power_of_two(is_unsigned(dtype) ? bits : bits - 1);  // one past the largest
  const std::int64_t least = is_unsigned(dtype) ? 0 : bits == 64 ? std::numeric_limits<std::int64_t>::min() : -(std::int64_t{1} << (bits - 1));
  const std::int64_t most = bits == 64 ? std::numeric_limits<std::int64_t>::max()
                                       : (std::int64_t{1} << (is_unsigned(dtype) ? bits : bits - 1)) - 1;
  if (value >= above) return most;
  if (value <= static_cast<double>(least)) return least;
  return static_cast<std::int64_t>(value);
}

double integer_to_float(Dtype to, Dtype from, std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(value);
  if (to == Dtype::F64) return from == Dtype::U64 ? static_cast<double>(magnitude) : static_cast<double>(value);
  if (to == Dtype::F32)
    return static_cast<double>(from == Dtype::U64 ? static_cast<float>(magnitude) : static_cast<float>(value));
  // Round to odd on the way to f64, so that the second rounding is the only one that counts.
  if (from == Dtype::U64 && value < 0) {
    const std::uint64_t odd = magnitude >> 11 | ((magnitude & 0x7ff) != 0 ? 1 : 0);
    return round_to_narrow(to, static_cast<double>(odd) * 2048.0);
  }
  if (value > (std::int64_t{1} << 53) || value < -(std::int64_t{1} << 53)) {
    const std::int64_t odd = value >> 11 | ((value & 0x7ff) != 0 ? 1 : 0);
    return round_to_narrow(to, static_cast<double>(odd) * 2048.0);
  }
  return round_to_narrow(to, static_cast<double>(value));
}

}  // namespace

double round_to_narrow(Dtype dtype, double value) {
  if (dtype == Dtype::F64) return value;
  if (dtype == Dtype::F32) return static_cast<double>(static_cast<float>(value));
  if (std::isnan(value) || value == 0) return value;
  const NarrowFormat format = format_of(dtype);
  if (std::isinf(value)) return format.saturates ? std::copysign(format.largest, value) : value;
  const double magnitude = std::fabs(value);
  const int exponent = std::max(exponent_of(magnitude), format.least_exponent);
  double rounded = magnitude;
  if (exponent < 900) {
    // Adding 1.5·2^52 units leaves no bits below the unit; the addition itself rounds to even.
    const double magic = 1.5 * power_of_two(exponent - format.precision + 1 + 52);
    rounded = (magnitude + magic) - magic;
  }
  if (rounded > format.largest)
    rounded = format.saturates ? format.largest : std::numeric_limits<double>::infinity();
  return std::copysign(rounded, value);
}

Scalar convert(Dtype to, Dtype from, Scalar value) {
  if (to == from) return value;
  if (is_float(from)) {
    if (is_float(to)) return real_scalar(round_to(to, value.f));
    if (to == Dtype::Bool) return integer_scalar(value.f != 0);
    return integer_scalar(truncate(to, value.f));
  }
  if (is_float(to)) return real_scalar(integer_to_float(to, from, value.i));
  return integer_scalar(wrap(to, value.i));
}

Scalar load_scalar(Dtype dtype, const void* memory) {
  switch (dtype) {
    case Dtype::F64: return real_scalar(read_as<double>(memory));
    case Dtype::F32: return real_scalar(static_cast<double>(read_as<float>(memory)));
    case Dtype::F16: return real_scalar(decode_f16(read_as<std::uint16_t>(memory)));
    case Dtype::BF16:
      return real_scalar(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(read_as<std::uint16_t>(memory)) << 16)));
    case Dtype::E4M3: return real_scalar(decode_e4m3(read_as<std::uint8_t>(memory)));
    case Dtype::E5M2: return real_scalar(decode_e5m2(read_as<std::uint8_t>(memory)));
    case Dtype::I64: case Dtype::U64: case Dtype::Index: case Dtype::Mbarrier:
      return integer_scalar(read_as<std::int64_t>(memory));
    case Dtype::I32: return integer_scalar(read_as<std::int32_t>(memory));
    case Dtype::I16: return integer_scalar(read_as<std::int16_t>(memory));
    case Dtype::I8: return integer_scalar(read_as<std::int8_t>(memory));
    case Dtype::U32: return integer_scalar(read_as<std::uint32_t>(memory));
    case Dtype::U16: return integer_scalar(read_as<std::uint16_t>(memory));
    case Dtype::U8: return integer_scalar(read_as<std::uint8_t>(memory));
    case Dtype::Bool: return integer_scalar(read_as<std::uint8_t>(memory) != 0);
  }
  internal_error("load of an unknown dtype");
}

void store_scalar(Dtype dtype, void* memory, Scalar value) {
  switch (dtype) {
    case Dtype::F64: return write_as<double>(memory, value.f);
    case Dtype::F32: return write_as<float>(memory, value.f);
    case Dtype::F16: return write_as<std::uint16_t>(memory, encode_f16(value.f));
    case Dtype::BF16: return write_as<std::uint16_t>(memory, std::bit_cast<std::uint32_t>(static_cast<float>(value.f)) >> 16);
    case Dtype::E4M3: return write_as<std::uint8_t>(memory, encode_e4m3(value.f));
    case Dtype::E5M2: return write_as<std::uint8_t>(memory, encode_e5m2(value.f));
    case Dtype::I64: case Dtype::U64: case Dtype::Index: case Dtype::Mbarrier:
      return write_as<std::int64_t>(memory, value.i);
    case Dtype::I32: case Dtype::U32: return write_as<std::int32_t>(memory, value.i);
    case Dtype::I16: case Dtype::U16: return write_as<std::int16_t>(memory, value.i);
    case Dtype::I8: case Dtype::U8: return write_as<std::int8_t>(memory, value.i);
    case Dtype::Bool: return write_as<std::uint8_t>(memory, value.i != 0 ? 1 : 0);
  }
  internal_error("store of an unknown dtype");
}

Scalar fused_multiply_add(Dtype dtype, Scalar a, Scalar b, Scalar c) {
  if (!is_float(dtype))
    return integer_scalar(integer_binary(BinaryOp::Add, dtype, integer_binary(BinaryOp::Mul, dtype, a.i, b.i), c.i));
  if (dtype == Dtype::F64) return real_scalar(std::fma(a.f, b.f, c.f));
  const double result =
      static_cast<double>(std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)));
  return real_scalar(dtype == Dtype::F32 ? result : round_to_narrow(dtype, result));
}

BinaryOp binary_of(CombineOp op, Dtype) {
  switch (op) {
    case CombineOp::Add: return BinaryOp::Add;
    case CombineOp::Mul: return BinaryOp::Mul;
    case CombineOp::Max: return BinaryOp::Max;
    case CombineOp::Min: return BinaryOp::Min;
    case CombineOp::And: return BinaryOp::BitAnd;
    case CombineOp::Or: return BinaryOp::BitOr;
  }
  internal_error("unknown combining operator");
}

Scalar identity_scalar(CombineOp op, Dtype dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case CombineOp::Add: case CombineOp::Or: return Scalar{};
    case CombineOp::Mul: return is_float(dtype) ? real_scalar(1) : integer_scalar(1);
    case CombineOp::And: return integer_scalar(dtype == Dtype::Bool ? 1 : wrap(dtype, -1));
    case CombineOp::Max: case CombineOp::Min: {
      const bool is_max = op == CombineOp::Max;
      if (dtype == Dtype::E4M3) return real_scalar(is_max ? -448.0 : 448.0);
      if (is_float(dtype)) return real_scalar(is_max ? -infinity : infinity);
      if (dtype == Dtype::Bool) return integer_scalar(is_max ? 0 : 1);
      if (dtype == Dtype::U64) return integer_scalar(is_max ? 0 : -1);
      return integer_scalar(truncate(dtype, is_max ? -infinity : infinity));
    }
  }
  internal_error("unknown combining operator");
}

std::optional<Scalar> constant_scalar(const Expr& expr) {
  const auto value_of = [](const Expr& child) { return constant_scalar(child); };
  return match(
      expr, [](const Const& node) { return std::optional(integer_scalar(node.bits)); },
      [](const Var&) { return std::optional<Scalar>(); },
      [&](const Unary& node) -> std::optional<Scalar> {
        const auto operand = value_of(node.operand);
        if (!operand) return std::nullopt;
        return apply(node.op, node.operand->dtype, *operand);
      },
      [&](const Binary& node) -> std::optional<Scalar> {
        const auto lhs = value_of(node.lhs);
        if (!lhs) return std::nullopt;
        const auto rhs = value_of(node.rhs);
        if (!rhs) return std::nullopt;
        return apply(node.op, node.lhs->dtype, *lhs, *rhs);
      },
      [&](const Select& node) -> std::optional<Scalar> {
        const auto condition = value_of(node.condition);
        if (!condition) return std::nullopt;
        return value_of(condition->i != 0 ? node.if_true : node.if_false);
      },
      [&](const Cast& node) -> std::optional<Scalar> {
        const auto operand = value_of(node.operand);
        if (!operand) return std::nullopt;
        return convert(expr->dtype, node.operand->dtype, *operand);
      },
      [&](const Call& node) -> std::optional<Scalar> {
        const ScalarFunction function = find_scalar_function(node.function);
        std::array<Scalar, 4> arguments;
        if (function == nullptr || node.arguments.empty() || node.arguments.size() > arguments.size()) return std::nullopt;
        for (std::size_t position = 0; position < node.arguments.size(); ++position) {
          const auto argument = value_of(node.arguments[position]);
          if (!argument) return std::nullopt;
          arguments[position] = *argument;
        }
        return function(node.arguments.front()->dtype, arguments.data());
      },
      [](const Load&) { return std::optional<Scalar>(); }, [](const Reduce&) { return std::optional<Scalar>(); });
}

Expr constant_of(Scalar value, Dtype dtype, Span span) { return make_expr(Const{value.i}, dtype, span); }

}  // namespace tilewright
