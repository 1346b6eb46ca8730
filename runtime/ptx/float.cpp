// Arithmetic of f32 and f64, and the approximate functions. Those are computed in f64 and rounded to nearest, so they are
// within half an ulp, where a card is within 2 ulp (ex2, rcp, rsqrt, div.approx, div.full, sqrt.approx), 2^-22 (lg2 below 1/2 or
// above 2: relative), 2^-20.5 (sin, cos: absolute, in -pi .. pi) and 2^-11 (tanh: relative). Bits of results that use
// them may differ from a card's.
#include "runtime/ptx/lanes.h"
#include "runtime/ptx/rounding.h"

namespace tilewright::ptx {

Rounding rounding_of(const Instruction& instruction) {
  for (const std::string& word : instruction.words) {
    if (word == "rn" || word == "rni") return Rounding::Nearest;
    if (word == "rz" || word == "rzi") return Rounding::Zero;
    if (word == "rm" || word == "rmi") return Rounding::Down;
    if (word == "rp" || word == "rpi") return Rounding::Up;
    if (word == "rna") return Rounding::NearestAway;
  }
  return Rounding::Nearest;
}

namespace {

struct FloatAdd {
  template <class T> T operator()(T a, T b, T) const { return a + b; }
};
struct FloatSub {
  template <class T> T operator()(T a, T b, T) const { return a - b; }
};
struct FloatMul {
  template <class T> T operator()(T a, T b, T) const { return a * b; }
};
struct FloatDiv {
  template <class T> T operator()(T a, T b, T) const { return a / b; }
};
struct FloatFma {
  template <class T> T operator()(T a, T b, T c) const { return std::fma(a, b, c); }
};
struct FloatSqrt {
  template <class T> T operator()(T a, T, T) const { return std::sqrt(a); }
};
struct FloatRcp {
  template <class T> T operator()(T a, T, T) const { return T{1} / a; }
};

// `number` is the rounding. Only the forms without modifiers are worth a loop of their own.
template <class T, class F>
void run_float(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  const T* c = warp.row<T>(op.c);
  if (op.number == 0 && !op.flushes && !op.saturates) {
    for_lanes(lanes, [&](int lane) { d[lane] = canonical(F{}(a[lane], b[lane], c[lane])); });
    return;
  }
  const auto rounding = static_cast<Rounding>(op.number);
  for_lanes(lanes, [&](int lane) {
    T x = a[lane], y = b[lane], z = c[lane];
    if (op.flushes) x = flushed(x), y = flushed(y), z = flushed(z);
    T result = in_direction(rounding, F{}, x, y, z);
    if (op.flushes) result = flushed(result);
    d[lane] = op.saturates ? saturated(result) : canonical(result);
  });
}

// fmaf is one instruction on the machines of the last ten years, but a call for the portable x86-64.
void run_fma(const Op& op, Warp& warp, LaneMask lanes) { run_float<float, FloatFma>(op, warp, lanes); }
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void run_fma_avx2(const Op& op, Warp& warp, LaneMask lanes) {
  if (lanes != every_lane || op.number != 0 || op.flushes || op.saturates) return run_fma(op, warp, lanes);
  auto* d = warp.row<float>(op.dst);
  const auto* a = warp.row<float>(op.a);
  const auto* b = warp.row<float>(op.b);
  const auto* c = warp.row<float>(op.c);
#ifndef __clang__  // which does not know it
#pragma GCC ivdep
#endif
  for (int lane = 0; lane < lane_count; ++lane) {
    const float result = __builtin_fmaf(a[lane], b[lane], c[lane]);
    d[lane] = result == result ? result : __builtin_bit_cast(float, 0x7fffffffu);
  }
}
#endif
Op::Run best_fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_fma_avx2;
#endif
  return run_fma;
}

// min and max: of two NaNs a NaN, of one the other operand, unless .NaN; -0 is below +0.
enum MinMaxBits { is_max = 1, keeps_nan = 2 };
template <class T>
void run_min_max(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  for_lanes(lanes, [&](int lane) {
    T x = a[lane], y = b[lane];
    if (op.flushes) x = flushed(x), y = flushed(y);
    const bool takes_max = (op.number & is_max) != 0;
    T result = 0;
    if (x != x || y != y) {
      const bool both = x != x && y != y;
      result = both || (op.number & keeps_nan) != 0 ? std::numeric_limits<T>::quiet_NaN() : x != x ? y : x;
    } else if (x == y) {
      result = std::signbit(x) == takes_max ? y : x;
    } else {
      result = (x < y) == takes_max ? y : x;
    }
    d[lane] = canonical(result);
  });
}

template <bool IsAbs, class T>
void run_sign(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  for_lanes(lanes, [&](int lane) {
    const T x = op.flushes ? flushed(a[lane]) : a[lane];
    d[lane] = IsAbs ? std::fabs(x) : -x;
  });
}

// copysign takes the sign of its first operand.
template <class T>
void run_copysign(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  for_lanes(lanes, [&](int lane) { d[lane] = std::copysign(b[lane], a[lane]); });
}

// ---- Approximate functions of f32, by `number`.
enum class Approximation : std::uint8_t { Rcp, Sqrt, Rsqrt, Sin, Cos, Lg2, Ex2, Tanh };
double approximate(Approximation function, double x) {
  switch (function) {
    case Approximation::Rcp: return 1 / x;
    case Approximation::Sqrt: return std::sqrt(x);
    case Approximation::Rsqrt: return 1 / std::sqrt(x);
    case Approximation::Sin: return std::sin(x);
    case Approximation::Cos: return std::cos(x);
    case Approximation::Lg2: return std::log2(x);
    case Approximation::Ex2: return std::exp2(x);
    case Approximation::Tanh: return std::tanh(x);
  }
  return x;
}
void run_approximation(const Op& op, Warp& warp, LaneMask lanes) {
  auto* d = warp.row<float>(op.dst);
  const auto* a = warp.row<float>(op.a);
  for_lanes(lanes, [&](int lane) {
    const float x = op.flushes ? flushed(a[lane]) : a[lane];
    const auto result = static_cast<float>(approximate(static_cast<Approximation>(op.number), static_cast<double>(x)));
    d[lane] = canonical(op.flushes ? flushed(result) : result);
  });
}
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the upper 32 bits of the result, the others zero; denormals are zeros.
template <bool IsRoot>
void run_approximation_f64(const Op& op, Warp& warp, LaneMask lanes) {
  auto* d = warp.row<double>(op.dst);
  const auto* a = warp.row<double>(op.a);
  for_lanes(lanes, [&](int lane) {
    const auto flush = [](double value) { return std::fabs(value) < std::numeric_limits<double>::min() ? std::copysign(0.0, value) : value; };
    const double x = flush(a[lane]);
    const double result = flush(IsRoot ? 1 / std::sqrt(x) : 1 / x);
    d[lane] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(result) & 0xffffffff00000000u);
  });
}

template <class F>
Op::Run of_float(Type type) {
  return type == Type::F32 ? run_float<float, F> : type == Type::F64 ? run_float<double, F> : nullptr;
}

Op& add_float(Builder& builder, const Instruction& at, Op::Run run, std::size_t operands) {
  const int bits = bits_of(builder.type_of(at));
  Op& op = add_plain(builder, at, run, bits, bits, operands);
  op.number = static_cast<std::int32_t>(rounding_of(at));
  op.flushes = at.has("ftz");
  op.saturates = at.has("sat");
  return op;
}

void decode_root(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const std::string& word = at.words[0];
  if (type == Type::F64 && at.has("approx")) {
    if (word == "sqrt") builder.unsupported();
    add_plain(builder, at, word == "rcp" ? run_approximation_f64<false> : run_approximation_f64<true>, 64, 64, 1);
  } else if (at.has("approx") || word == "rsqrt") {
    if (type != Type::F32) builder.unsupported("this type");
    add_float(builder, at, run_approximation, 1).number = static_cast<std::int32_t>(word == "rcp" ? Approximation::Rcp : word == "sqrt" ? Approximation::Sqrt : Approximation::Rsqrt);
  } else {
    add_float(builder, at, word == "rcp" ? of_float<FloatRcp>(type) : of_float<FloatSqrt>(type), 1);
  }
}

void decode_function(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const std::string& word = at.words[0];
  if (type != Type::F32 && is_float(type) && (word == "ex2" || word == "tanh")) return decode_narrow_float(builder, at);
  if (type != Type::F32) builder.unsupported("this type");
  const Approximation function = word == "sin" ? Approximation::Sin : word == "cos" ? Approximation::Cos : word == "lg2" ? Approximation::Lg2 : word == "ex2" ? Approximation::Ex2 : Approximation::Tanh;
  add_float(builder, at, run_approximation, 1).number = static_cast<std::int32_t>(function);
}

void decode_fma(Builder& builder, const Instruction& at) { decode_float(builder, at); }

void decode_copysign(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  add_plain(builder, at, type == Type::F32 ? run_copysign<float> : type == Type::F64 ? run_copysign<double> : nullptr, bits_of(type), bits_of(type), 2);
}

constexpr DecodeRow rows[] = {
    {"fma", decode_fma}, {"rcp", decode_root}, {"sqrt", decode_root}, {"rsqrt", decode_root}, {"sin", decode_function}, {"cos", decode_function},
    {"lg2", decode_function}, {"ex2", decode_function}, {"tanh", decode_function}, {"copysign", decode_copysign},
};

}  // namespace

std::span<const DecodeRow> float_rows() { return rows; }

void decode_float(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (bits_of(type) < 32 || type == Type::F16x2 || type == Type::BF16x2) return decode_narrow_float(builder, at);
  const std::string& word = at.words[0];
  if (at.has("xorsign") || at.has("f32x2")) builder.unsupported();
  static const Op::Run fma = best_fma();
  if (word == "add") add_float(builder, at, of_float<FloatAdd>(type), 2);
  else if (word == "sub") add_float(builder, at, of_float<FloatSub>(type), 2);
  else if (word == "mul") add_float(builder, at, of_float<FloatMul>(type), 2);
  else if (word == "div") add_float(builder, at, of_float<FloatDiv>(type), 2);
  else if (word == "fma" || word == "mad") add_float(builder, at, type == Type::F32 ? fma : of_float<FloatFma>(type), 3);
  else if (word == "abs") add_float(builder, at, type == Type::F32 ? run_sign<true, float> : run_sign<true, double>, 1);
  else if (word == "neg") add_float(builder, at, type == Type::F32 ? run_sign<false, float> : run_sign<false, double>, 1);
  else if (word == "min" || word == "max") {
    Op& op = add_float(builder, at, type == Type::F32 ? run_min_max<float> : run_min_max<double>, 2);
    op.number = (word == "max" ? is_max : 0) | (at.has("NaN") ? keeps_nan : 0);
    if (at.operands.size() > 3) builder.unsupported("three operands");
  } else builder.unsupported();
}

}  // namespace tilewright::ptx
