// Integer arithmetic: add, sub, mul, mad, div, rem, min, max, abs, neg, sad, with and without carry, dp4a, dp2a.
#include "runtime/ptx/lanes.h"

namespace tilewright::ptx {

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
__extension__ using Wide128 = __int128;
__extension__ using UnsignedWide128 = unsigned __int128;

// Twice the width, with the same sign.
template <class T>
struct Double;
template <> struct Double<std::int16_t> { using type = std::int32_t; };
template <> struct Double<std::uint16_t> { using type = std::uint32_t; };
template <> struct Double<std::int32_t> { using type = std::int64_t; };
template <> struct Double<std::uint32_t> { using type = std::uint64_t; };
template <> struct Double<std::int64_t> { using type = Wide128; };
template <> struct Double<std::uint64_t> { using type = UnsignedWide128; };
template <class T>
using Doubled = typename Double<T>::type;

template <class T>
constexpr T high_half(Doubled<T> value) {
  return static_cast<T>(value >> (8 * sizeof(T)));
}

struct IntegerAdd {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)); }
};
struct IntegerSub {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)); }
};
struct IntegerMulLo {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); }
};
struct IntegerMulHi {
  template <class T> T operator()(T a, T b) const { return high_half<T>(static_cast<Doubled<T>>(a) * static_cast<Doubled<T>>(b)); }
};
struct IntegerMulWide {
  template <class T> Doubled<T> operator()(T a, T b) const { return static_cast<Doubled<T>>(static_cast<Doubled<T>>(a) * static_cast<Doubled<T>>(b)); }
};
struct IntegerMul24Lo {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(product(a, b)); }
  template <class T> static std::int64_t product(T a, T b) {
    if constexpr (std::is_signed_v<T>) return (static_cast<std::int64_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << 8)) >> 8) * (static_cast<std::int64_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(b) << 8)) >> 8);
    else return static_cast<std::int64_t>((static_cast<std::uint64_t>(a) & 0xffffff) * (static_cast<std::uint64_t>(b) & 0xffffff));
  }
};
struct IntegerMadLo {
  template <class T> T operator()(T a, T b, T c) const { return IntegerAdd{}(IntegerMulLo{}(a, b), c); }
};
struct IntegerMadHi {
  template <class T> T operator()(T a, T b, T c) const { return IntegerAdd{}(IntegerMulHi{}(a, b), c); }
};
struct IntegerMadWide {
  template <class T> Doubled<T> operator()(T a, T b, Doubled<T> c) const {
    return static_cast<Doubled<T>>(static_cast<Unsigned<Doubled<T>>>(IntegerMulWide{}(a, b)) + static_cast<Unsigned<Doubled<T>>>(c));
  }
};
struct IntegerMad24Lo {
  template <class T> T operator()(T a, T b, T c) const { return IntegerAdd{}(IntegerMul24Lo{}(a, b), c); }
};
struct IntegerMin {
  template <class T> T operator()(T a, T b) const { return b < a ? b : a; }
};
struct IntegerMax {
  template <class T> T operator()(T a, T b) const { return a < b ? b : a; }
};
struct IntegerAbs {
  template <class T> T operator()(T a) const { return a < 0 ? static_cast<T>(0 - static_cast<Unsigned<T>>(a)) : a; }
};
struct IntegerNeg {
  template <class T> T operator()(T a) const { return static_cast<T>(0 - static_cast<Unsigned<T>>(a)); }
};
struct IntegerSad {
  template <class T> T operator()(T a, T b, T c) const { return IntegerAdd{}(c, a < b ? IntegerSub{}(b, a) : IntegerSub{}(a, b)); }
};

// PTX leaves the result of a division by zero open: it is marked as undefined.
template <class T, bool IsRemainder>
void run_divide(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  LaneMask by_zero = 0;
  const LaneMask bad = (warp.undefined_of(op.a) | warp.undefined_of(op.b)) & lanes;
  propagate(op, warp, lanes);
  for_lanes(lanes, [&](int lane) {
    const T x = a[lane];
    const T y = b[lane];
    if (y == 0) {
      by_zero |= 1u << lane;
      d[lane] = IsRemainder ? x : static_cast<T>(-1);
    } else if (std::is_signed_v<T> && y == static_cast<T>(-1)) {
      d[lane] = IsRemainder ? T{0} : IntegerNeg{}(x);
    } else {
      d[lane] = static_cast<T>(IsRemainder ? x % y : x / y);
    }
  });
  if ((by_zero & ~bad) != 0) warp.mark(op.dst, by_zero, by_zero, warp.new_origin({&op, __builtin_ctz(by_zero), 0, Space::Register}));
}

Type integer_type(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) builder.unsupported("this type");
  return type;
}

template <class F>
Op::Run same_type(Type type) {
  return pick_integer(type, [](auto zero) -> Op::Run { return run_binary<decltype(zero), decltype(zero), F>; });
}
template <class F>
Op::Run same_type_of_three(Type type) {
  return pick_integer(type, [](auto zero) -> Op::Run { return run_ternary<decltype(zero), decltype(zero), decltype(zero), F>; });
}

// Saturating add and sub of s32.
template <int Sign>
struct SaturatingSum {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    const std::int64_t sum = static_cast<std::int64_t>(a) + Sign * static_cast<std::int64_t>(b);
    return static_cast<std::int32_t>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};
struct SaturatingMad {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const { return SaturatingSum<1>{}(IntegerMulHi{}(a, b), c); }
};

// add.cc, addc, sub.cc, subc, mad.cc, madc: `number` says what is added to what. The carry of a subtraction is its borrow.
enum CarryBits { reads_carry = 1, writes_carry = 2, subtracts = 4, multiplies_lo = 8, multiplies_hi = 16 };
template <class T>
void run_carry(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  const T* c = warp.row<T>(op.c);
  for_lanes(lanes, [&](int lane) {
    const LaneMask bit = 1u << lane;
    using U = Unsigned<T>;
    auto x = static_cast<U>(a[lane]);
    auto y = static_cast<U>(b[lane]);
    if ((op.number & multiplies_lo) != 0) x = static_cast<U>(IntegerMulLo{}(a[lane], b[lane])), y = static_cast<U>(c[lane]);
    if ((op.number & multiplies_hi) != 0) x = static_cast<U>(IntegerMulHi{}(a[lane], b[lane])), y = static_cast<U>(c[lane]);
    const UnsignedWide128 carry = (op.number & reads_carry) != 0 && (warp.carry & bit) != 0 ? 1 : 0;
    const UnsignedWide128 sum = (op.number & subtracts) != 0 ? static_cast<UnsignedWide128>(x) - y - carry : static_cast<UnsignedWide128>(x) + y + carry;
    d[lane] = static_cast<T>(sum);
    if ((op.number & writes_carry) != 0) warp.carry = (sum >> (8 * sizeof(T))) != 0 ? warp.carry | bit : warp.carry & ~bit;
  });
}

void decode_carry(Builder& builder, const Instruction& at, int kind, std::size_t operands) {
  const Type type = integer_type(builder, at);
  Op& op = add_plain(builder, at, pick_integer(type, [](auto zero) -> Op::Run { return run_carry<decltype(zero)>; }), bits_of(type), bits_of(type), operands);
  op.number = kind | (at.has("cc") ? writes_carry : 0);
}

void decode_add(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) return decode_float(builder, at);
  const bool is_sub = at.words[0] == "sub";
  if (at.has("cc")) return decode_carry(builder, at, is_sub ? subtracts : 0, 2);
  Op::Run run = is_sub ? same_type<IntegerSub>(type) : same_type<IntegerAdd>(type);
  if (at.has("sat")) run = type != Type::S32 ? nullptr : is_sub ? run_binary<std::int32_t, std::int32_t, SaturatingSum<-1>> : run_binary<std::int32_t, std::int32_t, SaturatingSum<1>>;
  add_plain(builder, at, run, bits_of(type), bits_of(type), 2);
}

void decode_carried(Builder& builder, const Instruction& at) {
  if (at.words[0] == "madc") return decode_carry(builder, at, reads_carry | (at.has("hi") ? multiplies_hi : multiplies_lo), 3);
  decode_carry(builder, at, reads_carry | (at.words[0] == "subc" ? subtracts : 0), 2);
}

void decode_mul(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) return decode_float(builder, at);
  const int bits = bits_of(type);
  if (at.has("wide")) {
    const Op::Run run = type == Type::U16   ? run_binary<std::uint32_t, std::uint16_t, IntegerMulWide>
                        : type == Type::S16 ? run_binary<std::int32_t, std::int16_t, IntegerMulWide>
                        : type == Type::U32 ? run_binary<std::uint64_t, std::uint32_t, IntegerMulWide>
                        : type == Type::S32 ? run_binary<std::int64_t, std::int32_t, IntegerMulWide>
                                            : nullptr;
    add_plain(builder, at, run, 2 * bits, bits, 2);
    return;
  }
  if (at.words[0] == "mul24") {
    if (at.has("hi")) builder.unsupported();
    add_plain(builder, at, type == Type::S32 ? run_binary<std::int32_t, std::int32_t, IntegerMul24Lo> : run_binary<std::uint32_t, std::uint32_t, IntegerMul24Lo>, bits, bits, 2);
    return;
  }
  add_plain(builder, at, at.has("hi") ? same_type<IntegerMulHi>(type) : same_type<IntegerMulLo>(type), bits, bits, 2);
}

void decode_mad(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) return decode_float(builder, at);
  const int bits = bits_of(type);
  if (at.has("cc")) return decode_carry(builder, at, at.has("hi") ? multiplies_hi : multiplies_lo, 3);
  if (at.has("wide")) {
    const Op::Run run = type == Type::U16   ? run_ternary<std::uint32_t, std::uint16_t, std::uint32_t, IntegerMadWide>
                        : type == Type::S16 ? run_ternary<std::int32_t, std::int16_t, std::int32_t, IntegerMadWide>
                        : type == Type::U32 ? run_ternary<std::uint64_t, std::uint32_t, std::uint64_t, IntegerMadWide>
                        : type == Type::S32 ? run_ternary<std::int64_t, std::int32_t, std::int64_t, IntegerMadWide>
                                            : nullptr;
    if (run == nullptr) builder.unsupported("this type");
    const Row a = builder.read(at, 1, bits), b = builder.read(at, 2, bits), c = builder.read(at, 3, 2 * bits);
    const Row dst = builder.write(at, 0, 2 * bits);
    Op& op = builder.add(run);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = c;
    return;
  }
  if (at.words[0] == "mad24") {
    if (at.has("hi")) builder.unsupported();
    add_plain(builder, at, type == Type::S32 ? run_ternary<std::int32_t, std::int32_t, std::int32_t, IntegerMad24Lo> : run_ternary<std::uint32_t, std::uint32_t, std::uint32_t, IntegerMad24Lo>, bits, bits, 3);
    return;
  }
  Op::Run run = at.has("hi") ? same_type_of_three<IntegerMadHi>(type) : same_type_of_three<IntegerMadLo>(type);
  if (at.has("sat")) run = type == Type::S32 && at.has("hi") ? run_ternary<std::int32_t, std::int32_t, std::int32_t, SaturatingMad> : nullptr;
  add_plain(builder, at, run, bits, bits, 3);
}

void decode_div(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) return decode_float(builder, at);
  const Op::Run run = at.words[0] == "rem" ? pick_integer(type, [](auto zero) -> Op::Run { return run_divide<decltype(zero), true>; })
                                           : pick_integer(type, [](auto zero) -> Op::Run { return run_divide<decltype(zero), false>; });
  add_plain(builder, at, run, bits_of(type), bits_of(type), 2).marks_itself = true;
}

// Two 16-bit halves at once.
template <class T, class F>
struct Halves {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const auto low = static_cast<std::uint16_t>(F{}(static_cast<T>(a), static_cast<T>(b)));
    const auto high = static_cast<std::uint16_t>(F{}(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | static_cast<std::uint32_t>(high) << 16;
  }
};

void decode_min_max(Builder& builder, const Instruction& at) {
  const bool is_min = at.words[0] == "min";
  const std::string& last = at.words.back();
  if (last == "u16x2" || last == "s16x2") {
    const bool is_unsigned = last == "u16x2";
    const Op::Run run = is_min ? (is_unsigned ? run_binary<std::uint32_t, std::uint32_t, Halves<std::uint16_t, IntegerMin>> : run_binary<std::uint32_t, std::uint32_t, Halves<std::int16_t, IntegerMin>>)
                               : (is_unsigned ? run_binary<std::uint32_t, std::uint32_t, Halves<std::uint16_t, IntegerMax>> : run_binary<std::uint32_t, std::uint32_t, Halves<std::int16_t, IntegerMax>>);
    if (at.has("relu")) builder.unsupported();
    add_plain(builder, at, run, 32, 32, 2);
    return;
  }
  const Type type = builder.type_of(at);
  if (is_float(type)) return decode_float(builder, at);
  if (at.has("relu")) builder.unsupported();
  add_plain(builder, at, is_min ? same_type<IntegerMin>(type) : same_type<IntegerMax>(type), bits_of(type), bits_of(type), 2);
}

void decode_sign(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) return decode_float(builder, at);
  const Op::Run run = at.words[0] == "abs" ? pick_integer(type, [](auto zero) -> Op::Run { return run_unary<decltype(zero), decltype(zero), IntegerAbs>; })
                                           : pick_integer(type, [](auto zero) -> Op::Run { return run_unary<decltype(zero), decltype(zero), IntegerNeg>; });
  add_plain(builder, at, run, bits_of(type), bits_of(type), 1);
}

void decode_sad(Builder& builder, const Instruction& at) {
  const Type type = integer_type(builder, at);
  add_plain(builder, at, same_type_of_three<IntegerSad>(type), bits_of(type), bits_of(type), 3);
}

// Four products of bytes (dp4a), or two of halves and bytes (dp2a), added to c.
template <bool IsSignedA, bool IsSignedB>
struct Dot4 {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    for (int n = 0; n < 4; ++n, a >>= 8, b >>= 8) {
      const auto x = IsSignedA ? static_cast<std::int32_t>(static_cast<std::int8_t>(a)) : static_cast<std::int32_t>(a & 0xff);
      const auto y = IsSignedB ? static_cast<std::int32_t>(static_cast<std::int8_t>(b)) : static_cast<std::int32_t>(b & 0xff);
      c += static_cast<std::uint32_t>(x * y);
    }
    return c;
  }
};
template <bool IsSignedA, bool IsSignedB, int Shift>
struct Dot2 {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    b >>= Shift;
    for (int n = 0; n < 2; ++n, a >>= 16, b >>= 8) {
      const auto x = IsSignedA ? static_cast<std::int32_t>(static_cast<std::int16_t>(a)) : static_cast<std::int32_t>(a & 0xffff);
      const auto y = IsSignedB ? static_cast<std::int32_t>(static_cast<std::int8_t>(b)) : static_cast<std::int32_t>(b & 0xff);
      c += static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y);
    }
    return c;
  }
};

template <class F>
constexpr Op::Run dot = run_ternary<std::uint32_t, std::uint32_t, std::uint32_t, F>;

void decode_dot(Builder& builder, const Instruction& at) {
  if (at.words.size() < 3) builder.unsupported();
  const bool a = at.words[at.words.size() - 2] == "s32";
  const bool b = at.words.back() == "s32";
  Op::Run run = a ? (b ? dot<Dot4<true, true>> : dot<Dot4<true, false>>) : (b ? dot<Dot4<false, true>> : dot<Dot4<false, false>>);
  if (at.words[0] == "dp2a" && at.has("hi")) run = a ? (b ? dot<Dot2<true, true, 16>> : dot<Dot2<true, false, 16>>) : (b ? dot<Dot2<false, true, 16>> : dot<Dot2<false, false, 16>>);
  else if (at.words[0] == "dp2a") run = a ? (b ? dot<Dot2<true, true, 0>> : dot<Dot2<true, false, 0>>) : (b ? dot<Dot2<false, true, 0>> : dot<Dot2<false, false, 0>>);
  add_plain(builder, at, run, 32, 32, 3);
}

constexpr DecodeRow rows[] = {
    {"add", decode_add}, {"sub", decode_add}, {"addc", decode_carried}, {"subc", decode_carried}, {"madc", decode_carried},
    {"mul", decode_mul}, {"mul24", decode_mul}, {"mad", decode_mad}, {"mad24", decode_mad}, {"div", decode_div}, {"rem", decode_div},
    {"min", decode_min_max}, {"max", decode_min_max}, {"abs", decode_sign}, {"neg", decode_sign}, {"sad", decode_sad},
    {"dp4a", decode_dot}, {"dp2a", decode_dot},
};

}  // namespace

std::span<const DecodeRow> integer_rows() { return rows; }

}  // namespace tilewright::ptx
