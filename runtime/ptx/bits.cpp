// Bits: logic (of predicates too), shifts, fields, counts, permutation of bytes.
#include "runtime/ptx/lanes.h"

#include <bit>

namespace tilewright::ptx {

namespace {

struct BitAnd {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
struct BitOr {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
struct BitXor {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};
struct BitNot {
  template <class T> T operator()(T a) const { return static_cast<T>(~a); }
};
struct BitIsZero {
  template <class T> T operator()(T a) const { return a == 0 ? T{1} : T{0}; }
};

template <class F>
Op::Run bits_of_two(int bits) {
  return bits == 16 ? run_binary<std::uint16_t, std::uint16_t, F> : bits == 32 ? run_binary<std::uint32_t, std::uint32_t, F> : bits == 64 ? run_binary<std::uint64_t, std::uint64_t, F> : nullptr;
}
template <class F>
Op::Run bits_of_one(int bits) {
  return bits == 16 ? run_unary<std::uint16_t, std::uint16_t, F> : bits == 32 ? run_unary<std::uint32_t, std::uint32_t, F> : bits == 64 ? run_unary<std::uint64_t, std::uint64_t, F> : nullptr;
}

// Of predicates. `false and undefined` is false, `true or undefined` is true: that is how `i < n && s[i] > 0` comes out.
enum class Logic : std::uint8_t { And, Or, Xor, Not };
template <Logic L>
void run_logic(const Op& op, Warp& warp, LaneMask lanes) {
  const LaneMask a = warp.predicate(op.a), b = warp.predicate(op.b);
  const LaneMask bad_a = warp.undefined_of(op.a), bad_b = warp.undefined_of(op.b);
  const std::uint32_t from = (bad_a & lanes) != 0 ? warp.origin_of(op.a) : warp.origin_of(op.b);
  LaneMask result = L == Logic::And ? a & b : L == Logic::Or ? a | b : L == Logic::Xor ? a ^ b : ~a;
  LaneMask bad = bad_a | bad_b;
  if (L == Logic::And) bad &= (a | bad_a) & (b | bad_b);
  if (L == Logic::Or) bad &= (~a | bad_a) & (~b | bad_b);
  if (L == Logic::Not) bad = bad_a;
  LaneMask& d = warp.predicate(op.dst);
  d = (d & ~lanes) | (result & lanes);
  warp.mark(op.dst, lanes, bad, from);
}

void decode_logic(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const std::string& word = at.words[0];
  const int bits = bits_of(type);
  if (type == Type::Pred) {
    const Op::Run run = word == "and" ? run_logic<Logic::And> : word == "or" ? run_logic<Logic::Or> : word == "xor" ? run_logic<Logic::Xor> : run_logic<Logic::Not>;
    add_plain(builder, at, run, 1, 1, word == "not" ? 1 : 2).marks_itself = true;
    return;
  }
  if (word == "not") add_plain(builder, at, bits_of_one<BitNot>(bits), bits, bits, 1);
  else if (word == "cnot") add_plain(builder, at, bits_of_one<BitIsZero>(bits), bits, bits, 1);
  else add_plain(builder, at, word == "and" ? bits_of_two<BitAnd>(bits) : word == "or" ? bits_of_two<BitOr>(bits) : bits_of_two<BitXor>(bits), bits, bits, 2);
}

// Counts of the width and more shift everything out.
struct ShiftLeft {
  template <class T> T operator()(T a, std::uint32_t count) const { return count >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << count); }
};
struct ShiftRight {
  template <class T> T operator()(T a, std::uint32_t count) const {
    constexpr std::uint32_t most = 8 * sizeof(T) - 1;
    if (count > most) return std::is_signed_v<T> ? static_cast<T>(a >> most) : T{0};
    return static_cast<T>(a >> count);
  }
};

void decode_shift(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const Op::Run run = at.words[0] == "shl" ? pick_integer(type, [](auto zero) -> Op::Run {
    using U = std::make_unsigned_t<decltype(zero)>;
    return run_mixed<U, U, std::uint32_t, ShiftLeft>;
  })
                                           : pick_integer(type, [](auto zero) -> Op::Run { return run_mixed<decltype(zero), decltype(zero), std::uint32_t, ShiftRight>; });
  if (run == nullptr) builder.unsupported("this type");
  const Row a = builder.read(at, 1, bits_of(type)), b = builder.read(at, 2, 32);
  const Row dst = builder.write(at, 0, bits_of(type));
  Op& op = builder.add(run);
  op.dst = dst;
  op.a = a;
  op.b = b;
}

// shf: 32 bits out of {b, a}.
template <bool IsLeft, bool Wraps>
struct Funnel {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t count) const {
    const std::uint32_t n = Wraps ? count & 31 : count > 32 ? 32 : count;
    const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
    return static_cast<std::uint32_t>(IsLeft ? (both << n) >> 32 : both >> n);
  }
};
template <class F>
constexpr Op::Run three_words = run_ternary<std::uint32_t, std::uint32_t, std::uint32_t, F>;

void decode_funnel(Builder& builder, const Instruction& at) {
  const bool wraps = at.has("wrap");
  add_plain(builder, at, at.has("l") ? (wraps ? three_words<Funnel<true, true>> : three_words<Funnel<true, false>>) : (wraps ? three_words<Funnel<false, true>> : three_words<Funnel<false, false>>), 32, 32, 3);
}

template <class T>
struct FieldExtract {
  T operator()(T a, std::uint32_t position, std::uint32_t length) const {
    constexpr std::uint32_t width = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    position &= 0xff;
    length &= 0xff;
    if (length == 0) return 0;
    const std::uint32_t top = std::min(position + length - 1, width - 1);
    const bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1) != 0;
    const U field = position >= width ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
    if (position >= width) return static_cast<T>(sign ? ~U{0} : U{0});
    const std::uint32_t taken = top - position + 1;
    if (taken >= width) return static_cast<T>(field);
    const U mask = static_cast<U>((U{1} << taken) - 1);
    return static_cast<T>(sign ? field | static_cast<U>(~mask) : field & mask);
  }
};
template <class T>
void run_field_extract(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const auto* b = warp.row<std::uint32_t>(op.b);
  const auto* c = warp.row<std::uint32_t>(op.c);
  for_lanes(lanes, [&](int lane) { d[lane] = FieldExtract<T>{}(a[lane], b[lane], c[lane]); });
}
template <class T>
void run_field_insert(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  const auto* c = warp.row<std::uint32_t>(op.c);
  const auto* e = warp.row<std::uint32_t>(op.d);
  for_lanes(lanes, [&](int lane) {
    constexpr std::uint32_t width = 8 * sizeof(T);
    const std::uint32_t position = c[lane] & 0xff;
    const std::uint32_t length = e[lane] & 0xff;
    if (length == 0 || position >= width) {
      d[lane] = b[lane];
      return;
    }
    const T ones = length >= width ? ~T{0} : static_cast<T>((T{1} << length) - 1);
    const T mask = static_cast<T>(ones << position);
    d[lane] = static_cast<T>((b[lane] & ~mask) | ((a[lane] << position) & mask));
  });
}

void decode_field(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const int bits = bits_of(type);
  const bool is_insert = at.words[0] == "bfi";
  Op::Run run = is_insert ? (bits == 64 ? run_field_insert<std::uint64_t> : run_field_insert<std::uint32_t>)
                          : (type == Type::S32   ? run_field_extract<std::int32_t>
                             : type == Type::U32 ? run_field_extract<std::uint32_t>
                             : type == Type::S64 ? run_field_extract<std::int64_t>
                                                 : run_field_extract<std::uint64_t>);
  if (bits < 32) builder.unsupported("this type");
  const Row a = builder.read(at, 1, bits), b = builder.read(at, 2, is_insert ? bits : 32), c = builder.read(at, 3, 32);
  const Row d = is_insert ? builder.read(at, 4, 32) : 0;
  const Row dst = builder.write(at, 0, bits);
  Op& op = builder.add(run);
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
  op.d = d;
}

struct BitReverse {
  template <class T> T operator()(T a) const {
    T result = 0;
    for (std::size_t n = 0; n < 8 * sizeof(T); ++n, a >>= 1) result = static_cast<T>(result << 1 | (a & 1));
    return result;
  }
};
struct CountOnes {
  template <class T> std::uint32_t operator()(T a) const { return static_cast<std::uint32_t>(std::popcount(a)); }
};
struct CountLeadingZeros {
  template <class T> std::uint32_t operator()(T a) const { return static_cast<std::uint32_t>(std::countl_zero(a)); }
};
// The place of the most significant bit that is no sign; all ones where there is none.
template <bool IsShift>
struct FindLeading {
  template <class T> std::uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(std::is_signed_v<T> && a < T{0} ? ~a : a);
    if (bits == 0) return 0xffffffffu;
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(bits));
    return IsShift ? zeros : static_cast<std::uint32_t>(8 * sizeof(T) - 1) - zeros;
  }
};

void decode_count(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  const int bits = bits_of(type);
  const std::string& word = at.words[0];
  if (bits < 32) builder.unsupported("this type");
  if (word == "brev") {
    add_plain(builder, at, bits_of_one<BitReverse>(bits), bits, bits, 1);
    return;
  }
  Op::Run run = nullptr;
  if (word == "popc") run = bits == 64 ? run_unary<std::uint32_t, std::uint64_t, CountOnes> : run_unary<std::uint32_t, std::uint32_t, CountOnes>;
  if (word == "clz") run = bits == 64 ? run_unary<std::uint32_t, std::uint64_t, CountLeadingZeros> : run_unary<std::uint32_t, std::uint32_t, CountLeadingZeros>;
  if (word == "bfind")
    run = at.has("shiftamt") ? pick_integer(type, [](auto zero) -> Op::Run { return run_unary<std::uint32_t, decltype(zero), FindLeading<true>>; })
                             : pick_integer(type, [](auto zero) -> Op::Run { return run_unary<std::uint32_t, decltype(zero), FindLeading<false>>; });
  add_plain(builder, at, run, 32, bits, 1);
}

// Each nibble of the selector takes one of eight bytes, or its sign eight times.
struct Permute {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t selector) const {
    const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
    std::uint32_t result = 0;
    for (std::uint32_t n = 0; n < 4; ++n) {
      const std::uint32_t nibble = selector >> (4 * n) & 0xf;
      auto byte = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7)) & 0xff);
      if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * n);
    }
    return result;
  }
};

void decode_permute(Builder& builder, const Instruction& at) {
  if (at.words.size() > 2) builder.unsupported("this mode");
  add_plain(builder, at, three_words<Permute>, 32, 32, 3);
}

void run_lop3(const Op& op, Warp& warp, LaneMask lanes) {
  auto* d = warp.row<std::uint32_t>(op.dst);
  const auto* a = warp.row<std::uint32_t>(op.a);
  const auto* b = warp.row<std::uint32_t>(op.b);
  const auto* c = warp.row<std::uint32_t>(op.c);
  for_lanes(lanes, [&](int lane) {
    std::uint32_t result = 0;
    for (int n = 0; n < 8; ++n)
      if ((op.number >> n & 1) != 0) result |= ((n & 4) != 0 ? a[lane] : ~a[lane]) & ((n & 2) != 0 ? b[lane] : ~b[lane]) & ((n & 1) != 0 ? c[lane] : ~c[lane]);
    d[lane] = result;
  });
}

void decode_lop3(Builder& builder, const Instruction& at) {
  if (at.words.size() > 2 || at.operands.size() != 5 || at.operands[4].kind != Operand::Kind::Integer) builder.unsupported("this form");
  add_plain(builder, at, run_lop3, 32, 32, 3).number = static_cast<std::int32_t>(at.operands[4].integer);
}

// bmsk: ones from bit a on, b of them.
template <bool Wraps>
struct MakeMask {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    if (Wraps) a &= 31, b &= 31;
    if (a > 31 || b == 0) return 0;
    const std::uint32_t ones = b > 31 ? 0xffffffffu : (1u << b) - 1;
    return ones << a;
  }
};

void decode_mask(Builder& builder, const Instruction& at) {
  add_plain(builder, at, at.has("wrap") ? run_binary<std::uint32_t, std::uint32_t, MakeMask<true>> : run_binary<std::uint32_t, std::uint32_t, MakeMask<false>>, 32, 32, 2);
}

constexpr DecodeRow rows[] = {
    {"and", decode_logic}, {"or", decode_logic}, {"xor", decode_logic}, {"not", decode_logic}, {"cnot", decode_logic},
    {"shl", decode_shift}, {"shr", decode_shift}, {"shf", decode_funnel}, {"bfe", decode_field}, {"bfi", decode_field},
    {"brev", decode_count}, {"popc", decode_count}, {"clz", decode_count}, {"bfind", decode_count}, {"prmt", decode_permute},
    {"lop3", decode_lop3}, {"bmsk", decode_mask},
};

}  // namespace

std::span<const DecodeRow> bit_rows() { return rows; }

}  // namespace tilewright::ptx
