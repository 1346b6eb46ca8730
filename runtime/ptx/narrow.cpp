// Narrow floats: their formats, and the arithmetic of f16 and bf16, alone and in pairs.
#include "runtime/ptx/narrow.h"

#include "ir/scalar.h"
#include "runtime/ptx/lanes.h"

namespace tilewright::ptx {

double rounded_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::Zero: return std::trunc(value);
    case Rounding::Down: return std::floor(value);
    case Rounding::Up: return std::ceil(value);
    case Rounding::NearestAway: return std::round(value);
    case Rounding::Nearest: break;
  }
  return std::nearbyint(value);
}

namespace {

struct Format {
  int precision;     // bits of the significand
  int least;         // exponent of the smallest normal number
  double most;       // largest finite value
  std::uint64_t nan;
};

Format format_of(Type type) {
  if (type == Type::F16) return {11, -14, 65504.0, 0x7fff};
  if (type == Type::BF16) return {8, -126, 0x1.fep127, 0x7fff};
  if (type == Type::TF32) return {11, -126, 0x1.ffcp127, 0x7fffffff};
  if (type == Type::F32) return {24, -126, 0x1.fffffep127, 0x7fffffff};
  internal_error("a type that is no float of 32 bits or fewer");
}

double rounded(const Format& format, double value, Rounding rounding) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int unit = std::max(std::ilogb(value), format.least) - (format.precision - 1);
  const double result = std::copysign(std::ldexp(rounded_integer(std::ldexp(value, -unit), rounding), unit), value);
  if (std::fabs(result) <= format.most) return result;
  const bool to_infinity = rounding == Rounding::Nearest || rounding == Rounding::NearestAway || (rounding == Rounding::Up && value > 0) || (rounding == Rounding::Down && value < 0);
  return std::copysign(to_infinity ? std::numeric_limits<double>::infinity() : format.most, value);
}

}  // namespace

double value_of(Type type, std::uint64_t bits) {
  if (type == Type::F64) return std::bit_cast<double>(bits);
  if (type == Type::F32 || type == Type::TF32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  if (type == Type::BF16) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16)));
  if (type != Type::F16) internal_error("a type that is no float");
  const auto word = static_cast<std::uint16_t>(bits);
  return load_scalar(Dtype::F16, &word).f;
}

std::uint64_t bits_in(Type type, double value, Rounding rounding) {
  if (type == Type::F64) return std::bit_cast<std::uint64_t>(value);
  const Format format = format_of(type);
  if (value != value) return format.nan;
  const double result = rounded(format, value, rounding);
  if (type == Type::F16) {
    std::uint16_t word = 0;
    store_scalar(Dtype::F16, &word, real_scalar(result));
    return word;
  }
  const auto word = std::bit_cast<std::uint32_t>(static_cast<float>(result));
  return type == Type::BF16 ? word >> 16 : word;
}

double value_of_fp8(bool is_e4m3, std::uint8_t bits) { return load_scalar(is_e4m3 ? Dtype::E4M3 : Dtype::E5M2, &bits).f; }

std::uint8_t bits_in_fp8(bool is_e4m3, double value) {
  if (value != value) return 0x7f;
  std::uint8_t result = 0;
  store_scalar(is_e4m3 ? Dtype::E4M3 : Dtype::E5M2, &result, real_scalar(value));
  return result;
}

namespace {

enum class NarrowOp : std::uint8_t { Add, Sub, Mul, Fma, Abs, Neg, Min, Max, MinNan, MaxNan, Ex2, Tanh };

struct NarrowSite {
  NarrowOp op;
  Type type;
  int count = 1;  // of elements in a register
  bool relu = false;
};

std::uint64_t narrow_result(const NarrowSite& site, const Op& op, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t sign = 0x8000;
  if (site.op == NarrowOp::Abs) return a & ~sign;
  if (site.op == NarrowOp::Neg) return a ^ sign;
  double x = value_of(site.type, a), y = value_of(site.type, b), z = value_of(site.type, c);
  const auto flush = [&](double value) { return op.flushes && std::fabs(value) < 0x1p-14 ? std::copysign(0.0, value) : value; };
  x = flush(x), y = flush(y), z = flush(z);
  double result = 0;
  switch (site.op) {
    case NarrowOp::Add: result = sum_to_odd(x, y); break;
    case NarrowOp::Sub: result = sum_to_odd(x, -y); break;
    case NarrowOp::Mul: result = x * y; break;
    case NarrowOp::Fma: result = narrow_fma(x, y, z); break;
    case NarrowOp::Ex2: result = std::exp2(x); break;
    case NarrowOp::Tanh: result = std::tanh(x); break;
    case NarrowOp::Min: case NarrowOp::MinNan: case NarrowOp::Max: case NarrowOp::MaxNan: {
      const bool takes_max = site.op == NarrowOp::Max || site.op == NarrowOp::MaxNan;
      const bool keeps = site.op == NarrowOp::MinNan || site.op == NarrowOp::MaxNan;
      if (x != x && !keeps) x = y;
      if (y != y && !keeps) y = x;
      result = takes_max ? float_max(x, y) : float_min(x, y);
      break;
    }
    case NarrowOp::Abs: case NarrowOp::Neg: break;
  }
  if (op.saturates) result = saturated(result);
  if (site.relu && result == result) result = result > 0 ? result : 0;
  return bits_in(site.type, flush(result), Rounding::Nearest);
}

void run_narrow(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const NarrowSite*>(op.object);
  if (site.count == 1) {
    auto* d = warp.row<std::uint16_t>(op.dst);
    const auto *a = warp.row<std::uint16_t>(op.a), *b = warp.row<std::uint16_t>(op.b), *c = warp.row<std::uint16_t>(op.c);
    for_lanes(lanes, [&](int lane) { d[lane] = static_cast<std::uint16_t>(narrow_result(site, op, a[lane], b[lane], c[lane])); });
    return;
  }
  auto* d = warp.row<std::uint32_t>(op.dst);
  const auto *a = warp.row<std::uint32_t>(op.a), *b = warp.row<std::uint32_t>(op.b), *c = warp.row<std::uint32_t>(op.c);
  for_lanes(lanes, [&](int lane) {
    const std::uint64_t low = narrow_result(site, op, a[lane] & 0xffff, b[lane] & 0xffff, c[lane] & 0xffff);
    const std::uint64_t high = narrow_result(site, op, a[lane] >> 16, b[lane] >> 16, c[lane] >> 16);
    d[lane] = static_cast<std::uint32_t>(low | high << 16);
  });
}

}  // namespace

void decode_narrow_float(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const std::string& word = at.words[0];
  NarrowSite site{NarrowOp::Add, type == Type::F16 || type == Type::F16x2 ? Type::F16 : Type::BF16, type == Type::F16x2 || type == Type::BF16x2 ? 2 : 1, at.has("relu")};
  std::size_t operands = 2;
  if (at.has("xorsign") || at.has("oob") || rounding_of(at) != Rounding::Nearest) builder.unsupported();
  if (word == "add") site.op = NarrowOp::Add;
  else if (word == "sub") site.op = NarrowOp::Sub;
  else if (word == "mul") site.op = NarrowOp::Mul;
  else if (word == "fma") site.op = NarrowOp::Fma, operands = 3;
  else if (word == "abs") site.op = NarrowOp::Abs, operands = 1;
  else if (word == "neg") site.op = NarrowOp::Neg, operands = 1;
  else if (word == "min") site.op = at.has("NaN") ? NarrowOp::MinNan : NarrowOp::Min;
  else if (word == "max") site.op = at.has("NaN") ? NarrowOp::MaxNan : NarrowOp::Max;
  else if (word == "ex2") site.op = NarrowOp::Ex2, operands = 1;
  else if (word == "tanh") site.op = NarrowOp::Tanh, operands = 1;
  else builder.unsupported();
  const int bits = 16 * site.count;
  Op& op = add_plain(builder, at, run_narrow, bits, bits, operands);
  op.object = builder.keep_object(site);
  op.flushes = at.has("ftz");
  op.saturates = at.has("sat");
}

}  // namespace tilewright::ptx
