// Operators, conversions and functions on lanes. f32, i32 and indices have steps of their own; the rest goes through Scalar
// one lane after the other. Every lane is computed, active or not: nothing here traps.
#include "runtime/sim/arithmetic.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

template <Dtype D>
using LaneOf = std::conditional_t<D == Dtype::F32, float, std::int64_t>;

constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::Eq && op <= BinaryOp::Ge; }

template <Dtype D>
inline std::int64_t wrapped(std::uint64_t value) {
  if constexpr (D == Dtype::I32) return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
  else return static_cast<std::int64_t>(value);
}

// The same as integer_binary and apply of ir/scalar.h, with the operator known (tests/sim compares them).
template <BinaryOp op, Dtype D>
inline LaneOf<D> combine_lane(LaneOf<D> a, LaneOf<D> b) {
  if constexpr (D == Dtype::F32) {
    if constexpr (op == BinaryOp::Add) return a + b;
    else if constexpr (op == BinaryOp::Sub) return a - b;
    else if constexpr (op == BinaryOp::Mul) return a * b;
    else if constexpr (op == BinaryOp::Div) return a / b;
    else return static_cast<float>(apply(op, D, real_scalar(static_cast<double>(a)), real_scalar(static_cast<double>(b))).f);
  } else {
    const auto ua = static_cast<std::uint64_t>(a);
    const auto ub = static_cast<std::uint64_t>(b);
    constexpr std::uint64_t last_bit = D == Dtype::I32 ? 31 : 63;
    if constexpr (op == BinaryOp::Add) return wrapped<D>(ua + ub);
    else if constexpr (op == BinaryOp::Sub) return wrapped<D>(ua - ub);
    else if constexpr (op == BinaryOp::Mul) return wrapped<D>(ua * ub);
    else if constexpr (op == BinaryOp::Div) return wrapped<D>(static_cast<std::uint64_t>(floor_divide(a, b)));
    else if constexpr (op == BinaryOp::Mod) return floor_modulo(a, b);
    else if constexpr (op == BinaryOp::Min) return a < b ? a : b;
    else if constexpr (op == BinaryOp::Max) return a > b ? a : b;
    else if constexpr (op == BinaryOp::BitAnd) return a & b;
    else if constexpr (op == BinaryOp::BitOr) return a | b;
    else if constexpr (op == BinaryOp::BitXor) return a ^ b;
    else if constexpr (op == BinaryOp::Shl) return wrapped<D>(ua << (ub & last_bit));
    else if constexpr (op == BinaryOp::Shr) return a >> (ub & last_bit);
    else return 0;
  }
}

template <BinaryOp op, class T>
inline bool compare_lane(T a, T b) {
  if constexpr (op == BinaryOp::Eq) return a == b;
  else if constexpr (op == BinaryOp::Ne) return a != b;
  else if constexpr (op == BinaryOp::Lt) return a < b;
  else if constexpr (op == BinaryOp::Le) return a <= b;
  else if constexpr (op == BinaryOp::Gt) return a > b;
  else return a >= b;
}

// One operand: its lanes, or one value in a register.
template <class T, bool uniform>
struct Input {
  explicit Input(const T* cell) {
    if constexpr (uniform) value = *cell;
    else at = cell;
  }
  T operator[](int lane) const {
    if constexpr (uniform) return value;
    else return at[lane];
  }
  union {
    const T* at;
    T value;
  };
};

template <BinaryOp op, Dtype D, bool ua, bool ub>
const WarpOp* run_binary(const WarpOp& step, Warp& warp) {
  using T = LaneOf<D>;
  const Input<T, ua> a(lanes<T>(warp, step.a));
  const Input<T, ub> b(lanes<T>(warp, step.b));
  if constexpr (is_comparison(op)) {
    if constexpr (ua && ub) {
      mask_at(warp, step.dst) = compare_lane<op>(a[0], b[0]) ? every_lane : 0;
    } else {
      LaneMask mask = 0;
      for (int lane = 0; lane < lane_count; ++lane) mask |= static_cast<LaneMask>(compare_lane<op>(a[lane], b[lane])) << lane;
      mask_at(warp, step.dst) = mask;
    }
  } else {
    T* dst = lanes<T>(warp, step.dst);
    if constexpr (ua && ub) {
      *dst = combine_lane<op, D>(a[0], b[0]);
    } else if constexpr ((op == BinaryOp::Div || op == BinaryOp::Mod) && ub && D != Dtype::F32) {
      // Division by a power of two, which deals and swizzles are made of.
      const auto divisor = static_cast<std::uint64_t>(b[0]);
      if (std::has_single_bit(divisor) && b[0] > 0) {
        const int shift = std::countr_zero(divisor);
        for (int lane = 0; lane < lane_count; ++lane)
          dst[lane] = op == BinaryOp::Div ? a[lane] >> shift : a[lane] & static_cast<std::int64_t>(divisor - 1);
      } else {
        for (int lane = 0; lane < lane_count; ++lane) dst[lane] = combine_lane<op, D>(a[lane], b[lane]);
      }
    } else {
      for (int lane = 0; lane < lane_count; ++lane) dst[lane] = combine_lane<op, D>(a[lane], b[lane]);
    }
  }
  return following(step);
}

template <BinaryOp op, Dtype D>
WarpOp::Run binary_of_shape(bool a_uniform, bool b_uniform) {
  if (a_uniform) return b_uniform ? run_binary<op, D, true, true> : run_binary<op, D, true, false>;
  return b_uniform ? run_binary<op, D, false, true> : run_binary<op, D, false, false>;
}

template <Dtype D>
WarpOp::Run binary_of_dtype(BinaryOp op, bool ua, bool ub) {
  switch (op) {
    case BinaryOp::Add: return binary_of_shape<BinaryOp::Add, D>(ua, ub);
    case BinaryOp::Sub: return binary_of_shape<BinaryOp::Sub, D>(ua, ub);
    case BinaryOp::Mul: return binary_of_shape<BinaryOp::Mul, D>(ua, ub);
    case BinaryOp::Div: return binary_of_shape<BinaryOp::Div, D>(ua, ub);
    case BinaryOp::Mod: return binary_of_shape<BinaryOp::Mod, D>(ua, ub);
    case BinaryOp::Min: return binary_of_shape<BinaryOp::Min, D>(ua, ub);
    case BinaryOp::Max: return binary_of_shape<BinaryOp::Max, D>(ua, ub);
    case BinaryOp::Eq: return binary_of_shape<BinaryOp::Eq, D>(ua, ub);
    case BinaryOp::Ne: return binary_of_shape<BinaryOp::Ne, D>(ua, ub);
    case BinaryOp::Lt: return binary_of_shape<BinaryOp::Lt, D>(ua, ub);
    case BinaryOp::Le: return binary_of_shape<BinaryOp::Le, D>(ua, ub);
    case BinaryOp::Gt: return binary_of_shape<BinaryOp::Gt, D>(ua, ub);
    case BinaryOp::Ge: return binary_of_shape<BinaryOp::Ge, D>(ua, ub);
    case BinaryOp::BitAnd: case BinaryOp::BitOr: case BinaryOp::BitXor: case BinaryOp::Shl: case BinaryOp::Shr: break;
    case BinaryOp::And: case BinaryOp::Or: return nullptr;
  }
  if constexpr (D != Dtype::F32) {
    if (op == BinaryOp::BitAnd) return binary_of_shape<BinaryOp::BitAnd, D>(ua, ub);
    if (op == BinaryOp::BitOr) return binary_of_shape<BinaryOp::BitOr, D>(ua, ub);
    if (op == BinaryOp::BitXor) return binary_of_shape<BinaryOp::BitXor, D>(ua, ub);
    if (op == BinaryOp::Shl) return binary_of_shape<BinaryOp::Shl, D>(ua, ub);
    if (op == BinaryOp::Shr) return binary_of_shape<BinaryOp::Shr, D>(ua, ub);
  }
  return nullptr;
}

// Runs `f` for one lane where the result is uniform, for all otherwise.
template <class F>
void over_result(const WarpOp& step, Warp& warp, Dtype result, F&& f) {
  if ((step.uniform & 8) != 0) {
    write_uniform(warp, step.dst, result, f(0));
    return;
  }
  for (int lane = 0; lane < lane_count; ++lane) write_lane(warp, step.dst, result, lane, f(lane));
}

bool a_uniform(const WarpOp& step) { return (step.uniform & 1) != 0; }
bool b_uniform(const WarpOp& step) { return (step.uniform & 2) != 0; }
bool c_uniform(const WarpOp& step) { return (step.uniform & 4) != 0; }

const WarpOp* run_general_binary(const WarpOp& step, Warp& warp) {
  const auto op = static_cast<BinaryOp>(step.code);
  over_result(step, warp, is_comparison(op) ? Dtype::Bool : step.dtype, [&](int lane) {
    return apply(op, step.dtype, read_lane(warp, step.a, step.dtype, a_uniform(step), lane), read_lane(warp, step.b, step.from, b_uniform(step), lane));
  });
  return following(step);
}

// Bools are masks: 32 lanes at once.
template <BinaryOp op>
const WarpOp* run_mask_binary(const WarpOp& step, Warp& warp) {
  const LaneMask a = mask_at(warp, step.a);
  const LaneMask b = mask_at(warp, step.b);
  LaneMask& dst = mask_at(warp, step.dst);
  switch (op) {
    case BinaryOp::And: case BinaryOp::BitAnd: case BinaryOp::Min: case BinaryOp::Mul: dst = a & b; break;
    case BinaryOp::Or: case BinaryOp::BitOr: case BinaryOp::Max: dst = a | b; break;
    case BinaryOp::Ne: case BinaryOp::BitXor: dst = a ^ b; break;
    case BinaryOp::Eq: dst = ~(a ^ b); break;
    case BinaryOp::Lt: dst = ~a & b; break;
    case BinaryOp::Le: dst = ~a | b; break;
    case BinaryOp::Gt: dst = a & ~b; break;
    case BinaryOp::Ge: dst = a | ~b; break;
    case BinaryOp::Add: case BinaryOp::Sub: case BinaryOp::Div: case BinaryOp::Mod: case BinaryOp::Shl: case BinaryOp::Shr: dst = 0; break;
  }
  return following(step);
}

WarpOp::Run mask_binary(BinaryOp op) {
  switch (op) {
    case BinaryOp::And: case BinaryOp::BitAnd: case BinaryOp::Min: return run_mask_binary<BinaryOp::And>;
    case BinaryOp::Or: case BinaryOp::BitOr: case BinaryOp::Max: return run_mask_binary<BinaryOp::Or>;
    case BinaryOp::Ne: case BinaryOp::BitXor: return run_mask_binary<BinaryOp::Ne>;
    case BinaryOp::Eq: return run_mask_binary<BinaryOp::Eq>;
    case BinaryOp::Lt: return run_mask_binary<BinaryOp::Lt>;
    case BinaryOp::Le: return run_mask_binary<BinaryOp::Le>;
    case BinaryOp::Gt: return run_mask_binary<BinaryOp::Gt>;
    case BinaryOp::Ge: return run_mask_binary<BinaryOp::Ge>;
    case BinaryOp::Add: case BinaryOp::Sub: case BinaryOp::Mul: case BinaryOp::Div: case BinaryOp::Mod: case BinaryOp::Shl: case BinaryOp::Shr:
      return run_general_binary;
  }
  return nullptr;
}

const WarpOp* run_not(const WarpOp& step, Warp& warp) {
  mask_at(warp, step.dst) = ~mask_at(warp, step.a);
  return following(step);
}

const WarpOp* run_negate_float(const WarpOp& step, Warp& warp) {
  const float* a = lanes<float>(warp, step.a);
  float* dst = lanes<float>(warp, step.dst);
  const int count = a_uniform(step) ? 1 : lane_count;
  for (int lane = 0; lane < count; ++lane) dst[lane] = -a[lane];
  return following(step);
}

const WarpOp* run_general_unary(const WarpOp& step, Warp& warp) {
  over_result(step, warp, step.dtype, [&](int lane) {
    return apply(static_cast<UnaryOp>(step.code), step.dtype, read_lane(warp, step.a, step.dtype, a_uniform(step), lane));
  });
  return following(step);
}

const WarpOp* run_cast(const WarpOp& step, Warp& warp) {
  over_result(step, warp, step.dtype, [&](int lane) { return convert(step.dtype, step.from, read_lane(warp, step.a, step.from, a_uniform(step), lane)); });
  return following(step);
}

// f32 to bf16: the upper half, rounded to nearest even; a NaN stays one.
const WarpOp* run_cast_bf16(const WarpOp& step, Warp& warp) {
  const float* a = lanes<float>(warp, step.a);
  float* dst = lanes<float>(warp, step.dst);
  const int count = a_uniform(step) ? 1 : lane_count;
  for (int lane = 0; lane < count; ++lane) {
    const auto bits = std::bit_cast<std::uint32_t>(a[lane]);
    const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    dst[lane] = std::bit_cast<float>(std::isnan(a[lane]) ? bits | 0x00400000u : rounded);
  }
  return following(step);
}

const WarpOp* run_cast_index_f32(const WarpOp& step, Warp& warp) {
  const std::int64_t* a = lanes<std::int64_t>(warp, step.a);
  float* dst = lanes<float>(warp, step.dst);
  const int count = a_uniform(step) ? 1 : lane_count;
  for (int lane = 0; lane < count; ++lane) dst[lane] = static_cast<float>(a[lane]);
  return following(step);
}

// `fmaf` is one instruction on every machine of the last ten years, but a call for the portable x86-64.
inline void fma_lanes(const float* a, int a_step, const float* b, int b_step, const float* c, int c_step, float* dst, int count) {
  for (int lane = 0; lane < count; ++lane) dst[lane] = std::fmaf(a[lane * a_step], b[lane * b_step], c[lane * c_step]);
}

const WarpOp* run_fma(const WarpOp& step, Warp& warp) {
  fma_lanes(lanes<float>(warp, step.a), a_uniform(step) ? 0 : 1, lanes<float>(warp, step.b), b_uniform(step) ? 0 : 1,
            lanes<float>(warp, step.c), c_uniform(step) ? 0 : 1, lanes<float>(warp, step.dst), (step.uniform & 8) != 0 ? 1 : lane_count);
  return following(step);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] const WarpOp* run_fma_avx2(const WarpOp& step, Warp& warp) {
  const float* a = lanes<float>(warp, step.a);
  const float* b = lanes<float>(warp, step.b);
  const float* c = lanes<float>(warp, step.c);
  float* dst = lanes<float>(warp, step.dst);
  if ((step.uniform & 15) == 0) {
    for (int lane = 0; lane < lane_count; ++lane) dst[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    return following(step);
  }
  const int a_step = a_uniform(step) ? 0 : 1;
  const int b_step = b_uniform(step) ? 0 : 1;
  const int c_step = c_uniform(step) ? 0 : 1;
  const int count = (step.uniform & 8) != 0 ? 1 : lane_count;
  for (int lane = 0; lane < count; ++lane) dst[lane] = __builtin_fmaf(a[lane * a_step], b[lane * b_step], c[lane * c_step]);
  return following(step);
}
#endif

WarpOp::Run best_fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_fma_avx2;
#endif
  return run_fma;
}

// Costly functions only where a lane is active.
const WarpOp* run_function(const WarpOp& step, Warp& warp) {
  const auto function = reinterpret_cast<ScalarFunction>(reinterpret_cast<std::uintptr_t>(step.object));
  const auto value = [&](int lane) {
    const Scalar arguments[3] = {read_lane(warp, step.a, step.dtype, a_uniform(step), lane), read_lane(warp, step.b, step.dtype, b_uniform(step), lane),
                                 read_lane(warp, step.c, step.dtype, c_uniform(step), lane)};
    return function(step.dtype, arguments);
  };
  if ((step.uniform & 8) != 0) write_uniform(warp, step.dst, step.from, value(0));
  else each_lane(warp.mask, [&](int lane) { write_lane(warp, step.dst, step.from, lane, value(lane)); });
  return following(step);
}

// ---- Moves.
template <class T>
const WarpOp* run_blend(const WarpOp& step, Warp& warp) {
  const LaneMask mask = mask_at(warp, step.c);
  const T* a = lanes<T>(warp, step.a);
  const T* b = lanes<T>(warp, step.b);
  T* dst = lanes<T>(warp, step.dst);
  if ((step.uniform & 8) != 0) {
    *dst = mask != 0 ? *a : *b;
    return following(step);
  }
  const int a_step = a_uniform(step) ? 0 : 1;
  const int b_step = b_uniform(step) ? 0 : 1;
  for (int lane = 0; lane < lane_count; ++lane) dst[lane] = (mask >> lane & 1) != 0 ? a[lane * a_step] : b[lane * b_step];
  return following(step);
}

const WarpOp* run_blend_mask(const WarpOp& step, Warp& warp) {
  const LaneMask mask = mask_at(warp, step.c);
  mask_at(warp, step.dst) = (mask_at(warp, step.a) & mask) | (mask_at(warp, step.b) & ~mask);
  return following(step);
}

template <class T>
const WarpOp* run_move(const WarpOp& step, Warp& warp) {
  const T* a = lanes<T>(warp, step.a);
  T* dst = lanes<T>(warp, step.dst);
  if ((step.uniform & 8) != 0) {
    *dst = *a;
  } else if (a_uniform(step)) {
    const T value = *a;
    each_lane(warp.mask, [&](int lane) { dst[lane] = value; });
  } else if (warp.mask == every_lane) {
    std::memcpy(dst, a, sizeof(T) * lane_count);
  } else {
    each_lane(warp.mask, [&](int lane) { dst[lane] = a[lane]; });
  }
  return following(step);
}

const WarpOp* run_move_mask(const WarpOp& step, Warp& warp) {
  LaneMask& dst = mask_at(warp, step.dst);
  const LaneMask mask = (step.uniform & 8) != 0 ? every_lane : warp.mask;
  dst = (dst & ~mask) | (mask_at(warp, step.a) & mask);
  return following(step);
}

}  // namespace

WarpOp::Run run_of_binary(BinaryOp op, Dtype dtype, bool ua, bool ub) {
  WarpOp::Run run = nullptr;
  if (dtype == Dtype::Bool) run = mask_binary(op);
  else if (dtype == Dtype::F32) run = binary_of_dtype<Dtype::F32>(op, ua, ub);
  else if (dtype == Dtype::I32) run = binary_of_dtype<Dtype::I32>(op, ua, ub);
  else if (dtype == Dtype::Index || dtype == Dtype::I64) run = binary_of_dtype<Dtype::Index>(op, ua, ub);
  return run != nullptr ? run : run_general_binary;
}

WarpOp::Run run_of_unary(UnaryOp op, Dtype dtype) {
  if (op == UnaryOp::Not) return run_not;
  if (op == UnaryOp::Neg && is_float_cell(dtype)) return run_negate_float;
  return run_general_unary;
}

bool is_same_cell(Dtype to, Dtype from) {
  if (to == from) return true;
  if (to == Dtype::F32) return is_narrow_float(from);
  if (!is_integer(to) || !is_integer(from)) return false;
  const int to_bits = info(to).bits;
  const int from_bits = info(from).bits;
  if (to_bits == 64) return true;  // the pattern, extended as the source says
  if (is_signed(from)) return is_signed(to) && to_bits >= from_bits;
  return to_bits > from_bits || (is_unsigned(to) && to_bits == from_bits);
}

WarpOp::Run run_of_cast(Dtype to, Dtype from) {
  if (to == Dtype::BF16 && from == Dtype::F32) return run_cast_bf16;
  if (to == Dtype::F32 && is_integer(from) && from != Dtype::U64) return run_cast_index_f32;
  return run_cast;
}

WarpOp::Run run_of_function(std::string_view name, Dtype dtype) {
  static const WarpOp::Run fma = best_fma();
  if ((name == "fma" || name == "fma.kept") && dtype == Dtype::F32) return fma;
  return run_function;
}

WarpOp::Run run_of_blend(Dtype dtype) {
  if (dtype == Dtype::Bool) return run_blend_mask;
  return is_float_cell(dtype) ? run_blend<float> : run_blend<std::int64_t>;
}

WarpOp::Run run_of_move(Dtype dtype) {
  if (dtype == Dtype::Bool) return run_move_mask;
  return is_float_cell(dtype) ? run_move<float> : run_move<std::int64_t>;
}

const void* object_of(ScalarFunction function) { return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(function)); }

}  // namespace tilewright
