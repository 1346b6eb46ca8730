// cvt: between integers, floats and both, with every rounding and saturation; packed forms; cvt.pack is not there.
#include "runtime/ptx/lanes.h"
#include "runtime/ptx/narrow.h"

namespace tilewright::ptx {

namespace {

struct Conversion {
  Type to = Type::U32, from = Type::U32;
  Rounding rounding = Rounding::Nearest;
  bool is_integral = false;  // .rni and its kin between floats
  bool saturates = false;
  bool flushes = false;
  bool relu = false;
};

bool is_float_type(Type type) { return is_float(type) || type == Type::TF32; }

// Out of range gives the nearest value of the range. NaN gives 0, but 2^(n-1) where f64 or 64 bits take part.
std::uint64_t float_to_integer(const Conversion& site, double value) {
  const int bits = bits_of(site.to);
  if (value != value) return site.from != Type::F64 && bits < 64 ? 0 : std::uint64_t{1} << (bits - 1);
  const double whole = rounded_integer(value, site.rounding);
  if (is_signed(site.to)) {
    const double limit = std::ldexp(1.0, bits - 1);
    const std::uint64_t most = (std::uint64_t{1} << (bits - 1)) - 1;
    return whole >= limit ? most : whole < -limit ? ~most : static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
  }
  const std::uint64_t most = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  return whole >= std::ldexp(1.0, bits) ? most : whole <= 0 ? 0 : static_cast<std::uint64_t>(whole);
}

// `value` is extended to 64 bits by the sign of its type.
std::uint64_t integer_to_integer(const Conversion& site, std::uint64_t value) {
  if (!site.saturates) return value;
  const int bits = bits_of(site.to);
  const bool is_negative = is_signed(site.from) && static_cast<std::int64_t>(value) < 0;
  const std::uint64_t most = is_signed(site.to) ? (std::uint64_t{1} << (bits - 1)) - 1 : bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  if (!is_negative) return std::min(value, most);
  if (!is_signed(site.to)) return 0;
  return static_cast<std::int64_t>(value) < static_cast<std::int64_t>(~most) ? ~most : value;
}

std::uint64_t integer_to_float(const Conversion& site, std::uint64_t value) {
  const bool has_sign = is_signed(site.from);
  if (site.to == Type::F64) {
    const double result = has_sign ? in_direction(site.rounding, [](std::int64_t x) { return static_cast<double>(x); }, static_cast<std::int64_t>(value))
                                   : in_direction(site.rounding, [](std::uint64_t x) { return static_cast<double>(x); }, value);
    return std::bit_cast<std::uint64_t>(result);
  }
  const double high = has_sign ? static_cast<double>(static_cast<std::int64_t>(value) >> 32) : static_cast<double>(value >> 32);
  const double result = sum_to_odd(high * 0x1p32, static_cast<double>(value & 0xffffffffu));
  return bits_in(site.to, result == 0 ? 0.0 : result, site.rounding);
}

std::uint64_t float_to_float(const Conversion& site, std::uint64_t bits) {
  double value = value_of(site.from, bits);
  const bool flushes_in = site.flushes && site.from == Type::F32;
  const bool flushes_out = site.flushes && site.to == Type::F32;
  const auto flush = [](double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; };
  if (flushes_in) value = flush(value);
  if (site.is_integral) value = rounded_integer(value, site.rounding);
  if (site.saturates) value = saturated(value);
  if (site.relu && value == value) value = value > 0 ? value : 0;
  if (site.to == Type::F64 && value != value && site.from != Type::F64) return 0x7fffffffe0000000u;  // the canonical f32 NaN, widened
  const std::uint64_t result = bits_in(site.to, value, site.is_integral ? Rounding::Nearest : site.rounding);
  return flushes_out ? bits_in(site.to, flush(value_of(site.to, result)), Rounding::Nearest) : result;
}

std::uint64_t converted(const Conversion& site, std::uint64_t bits) {
  if (is_float_type(site.from)) return is_float_type(site.to) ? float_to_float(site, bits) : float_to_integer(site, site.flushes && site.from == Type::F32 && std::fabs(value_of(site.from, bits)) < 0x1p-126 ? 0.0 : value_of(site.from, bits));
  const int width = bits_of(site.from);
  if (width < 64) {
    bits &= (std::uint64_t{1} << width) - 1;
    if (is_signed(site.from) && (bits >> (width - 1)) != 0) bits |= ~((std::uint64_t{1} << width) - 1);
  }
  return is_float_type(site.to) ? integer_to_float(site, bits) : integer_to_integer(site, bits);
}

std::uint64_t read_row(Warp& warp, Row row, int bits, int lane) {
  if (bits == 64) return warp.row<std::uint64_t>(row)[lane];
  return bits == 32 ? warp.row<std::uint32_t>(row)[lane] : warp.row<std::uint16_t>(row)[lane];
}
// A value of 8 bits fills its row's 16 by its sign.
void write_row(Warp& warp, Row row, Type type, int lane, std::uint64_t value) {
  switch (bits_of(type)) {
    case 64: warp.row<std::uint64_t>(row)[lane] = value; break;
    case 32: warp.row<std::uint32_t>(row)[lane] = static_cast<std::uint32_t>(value); break;
    case 8: warp.row<std::uint16_t>(row)[lane] = is_signed(type) ? static_cast<std::uint16_t>(static_cast<std::int8_t>(value)) : static_cast<std::uint8_t>(value); break;
    default: warp.row<std::uint16_t>(row)[lane] = static_cast<std::uint16_t>(value);
  }
}

void run_conversion(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const Conversion*>(op.object);
  for_lanes(lanes, [&](int lane) { write_row(warp, op.dst, site.to, lane, converted(site, read_row(warp, op.a, bits_of(site.from), lane))); });
}

// d = {a, b} as two narrow floats, a in the upper half.
void run_packing(const Op& op, Warp& warp, LaneMask lanes) {
  Conversion site = *static_cast<const Conversion*>(op.object);
  const Type to = site.to;
  if (to == Type::F16x2) site.to = Type::F16;
  if (to == Type::BF16x2) site.to = Type::BF16;
  for_lanes(lanes, [&](int lane) {
    const std::uint64_t high = warp.row<std::uint32_t>(op.a)[lane], low = warp.row<std::uint32_t>(op.b)[lane];
    if (to == Type::F16x2 || to == Type::BF16x2) {
      warp.row<std::uint32_t>(op.dst)[lane] = static_cast<std::uint32_t>(converted(site, high) << 16 | converted(site, low));
      return;
    }
    const auto fp8 = [&](std::uint64_t bits) {
      const double value = value_of(Type::F32, bits);
      return bits_in_fp8(to == Type::E4M3x2, site.relu && value < 0 ? 0.0 : value);
    };
    warp.row<std::uint16_t>(op.dst)[lane] = static_cast<std::uint16_t>(fp8(high) << 8 | fp8(low));
  });
}

// Two fp8 as two f16, and back.
void run_fp8(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const Conversion*>(op.object);
  const bool is_e4m3 = site.from == Type::E4M3x2 || site.to == Type::E4M3x2;
  for_lanes(lanes, [&](int lane) {
    if (site.to == Type::F16x2) {
      const std::uint16_t both = warp.row<std::uint16_t>(op.a)[lane];
      const std::uint64_t low = bits_in(Type::F16, value_of_fp8(is_e4m3, static_cast<std::uint8_t>(both)), Rounding::Nearest);
      const std::uint64_t high = bits_in(Type::F16, value_of_fp8(is_e4m3, static_cast<std::uint8_t>(both >> 8)), Rounding::Nearest);
      warp.row<std::uint32_t>(op.dst)[lane] = static_cast<std::uint32_t>(high << 16 | low);
      return;
    }
    const std::uint32_t both = warp.row<std::uint32_t>(op.a)[lane];
    const auto low = bits_in_fp8(is_e4m3, value_of(Type::F16, both & 0xffff));
    const auto high = bits_in_fp8(is_e4m3, value_of(Type::F16, both >> 16));
    warp.row<std::uint16_t>(op.dst)[lane] = static_cast<std::uint16_t>(high << 8 | low);
  });
}

// The common conversions between 32 and 64 bits, without a detour.
struct PlainCast {
  template <class T> T operator()(T value) const { return value; }
};
Op::Run direct(const Conversion& site) {
  if (site.saturates || is_float_type(site.from) || is_float_type(site.to)) return nullptr;
  const bool is_wide = bits_of(site.to) == 64;
  if (is_wide && site.from == Type::S32) return run_unary<std::int64_t, std::int32_t, PlainCast>;
  if (is_wide && site.from == Type::U32) return run_unary<std::uint64_t, std::uint32_t, PlainCast>;
  if (bits_of(site.to) == 32 && bits_of(site.from) == 64) return run_unary<std::uint32_t, std::uint64_t, PlainCast>;
  return nullptr;
}

void decode_conversion(Builder& builder, const Instruction& at) {
  std::vector<Type> types;
  for (const std::string& word : at.words)
    if (const auto type = type_by_name(word)) types.push_back(*type);
  if (types.size() != 2) builder.unsupported("two types are needed");
  const bool is_packing = at.operands.size() == 3;
  const bool is_fp8 = types[0] == Type::E4M3x2 || types[0] == Type::E5M2x2 || types[1] == Type::E4M3x2 || types[1] == Type::E5M2x2;
  const bool is_pair = types[0] == Type::F16x2 || types[0] == Type::BF16x2;
  if (at.words[1] == "pack" || at.has("rs") || at.has("scaled") || (at.has("satfinite") && !is_fp8) || at.operands.size() > 3) builder.unsupported();
  if ((is_packing && types[1] != Type::F32) || (!is_packing && is_pair && !is_fp8) || (is_fp8 && types[0] == Type::BF16x2) || (is_fp8 && at.has("relu") && !is_packing)) builder.unsupported();

  Conversion site{types[0], types[1]};
  site.rounding = rounding_of(at);
  for (const char* word : {"rni", "rzi", "rmi", "rpi"}) site.is_integral |= at.has(word);
  site.is_integral &= is_float_type(site.to) && is_float_type(site.from);
  site.saturates = at.has("sat");
  site.flushes = at.has("ftz");
  site.relu = at.has("relu");
  const int to_bits = bits_of(site.to), from_bits = std::max(bits_of(site.from), 16);

  const Row a = builder.read(at, 1, from_bits);
  const Row b = is_packing ? builder.read(at, 2, from_bits) : 0;
  const Row dst = builder.write(at, 0, to_bits, is_signed(site.to));
  const Op::Run fast = direct(site);
  Op& op = builder.add(is_packing ? run_packing : is_fp8 ? run_fp8 : fast != nullptr ? fast : run_conversion);
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.object = builder.keep_object(site);
}

constexpr DecodeRow rows[] = {{"cvt", decode_conversion}};

}  // namespace

std::span<const DecodeRow> convert_rows() { return rows; }

}  // namespace tilewright::ptx
