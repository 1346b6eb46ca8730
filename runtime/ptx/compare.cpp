// Comparisons and choices: setp, set, selp, slct, testp.
#include <fmt/format.h>

#include "runtime/ptx/lanes.h"
#include "runtime/ptx/narrow.h"

namespace tilewright::ptx {

namespace {

// Ordered comparisons are false where an operand is NaN, those that end in U true.
enum class Relation : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, EqU, NeU, LtU, LeU, GtU, GeU, Num, Nan };

struct RelationName {
  std::string_view name;
  Relation relation;
};
constexpr RelationName relations[] = {
    {"eq", Relation::Eq}, {"ne", Relation::Ne}, {"lt", Relation::Lt}, {"le", Relation::Le}, {"gt", Relation::Gt}, {"ge", Relation::Ge},
    {"lo", Relation::Lt}, {"ls", Relation::Le}, {"hi", Relation::Gt}, {"hs", Relation::Ge}, {"equ", Relation::EqU}, {"neu", Relation::NeU},
    {"ltu", Relation::LtU}, {"leu", Relation::LeU}, {"gtu", Relation::GtU}, {"geu", Relation::GeU}, {"num", Relation::Num}, {"nan", Relation::Nan},
};

enum class Combination : std::uint8_t { None, And, Or, Xor };

struct Comparison {
  Relation relation = Relation::Eq;
  Combination combination = Combination::None;
  bool negates_third = false;
  bool negates_result = false;  // of the second predicate of `p|q`
  bool flushes = false;
  Type type = Type::U32;
  Type result = Type::Pred;     // of `set`
};

template <class T, class F>
LaneMask true_lanes(const T* a, const T* b, LaneMask lanes, F f) {
  LaneMask result = 0;
  for_lanes(lanes, [&](int lane) { result |= static_cast<LaneMask>(f(a[lane], b[lane]) ? 1u : 0u) << lane; });
  return result;
}

template <class T>
LaneMask relate(Relation relation, const T* a, const T* b, LaneMask lanes) {
  const auto is_nan = [](T x, T y) { return x != x || y != y; };
  switch (relation) {
    case Relation::Eq: return true_lanes(a, b, lanes, [](T x, T y) { return x == y; });
    case Relation::Ne: return true_lanes(a, b, lanes, [&](T x, T y) { return x != y && !is_nan(x, y); });
    case Relation::Lt: return true_lanes(a, b, lanes, [](T x, T y) { return x < y; });
    case Relation::Le: return true_lanes(a, b, lanes, [](T x, T y) { return x <= y; });
    case Relation::Gt: return true_lanes(a, b, lanes, [](T x, T y) { return x > y; });
    case Relation::Ge: return true_lanes(a, b, lanes, [](T x, T y) { return x >= y; });
    case Relation::EqU: return true_lanes(a, b, lanes, [&](T x, T y) { return x == y || is_nan(x, y); });
    case Relation::NeU: return true_lanes(a, b, lanes, [](T x, T y) { return x != y; });
    case Relation::LtU: return true_lanes(a, b, lanes, [](T x, T y) { return !(x >= y); });
    case Relation::LeU: return true_lanes(a, b, lanes, [](T x, T y) { return !(x > y); });
    case Relation::GtU: return true_lanes(a, b, lanes, [](T x, T y) { return !(x <= y); });
    case Relation::GeU: return true_lanes(a, b, lanes, [](T x, T y) { return !(x < y); });
    case Relation::Num: return true_lanes(a, b, lanes, [&](T x, T y) { return !is_nan(x, y); });
    case Relation::Nan: return true_lanes(a, b, lanes, is_nan);
  }
  return 0;
}

LaneMask relate_rows(const Comparison& site, Warp& warp, Row a, Row b, LaneMask lanes) {
  const auto of = [&]<class T>(T) { return relate<T>(site.relation, warp.row<T>(a), warp.row<T>(b), lanes); };
  switch (site.type) {
    case Type::B16: case Type::U16: return of(std::uint16_t{});
    case Type::S16: return of(std::int16_t{});
    case Type::B32: case Type::U32: return of(std::uint32_t{});
    case Type::S32: return of(std::int32_t{});
    case Type::B64: case Type::U64: return of(std::uint64_t{});
    case Type::S64: return of(std::int64_t{});
    case Type::F64: return of(double{});
    case Type::F32: {
      if (!site.flushes) return of(float{});
      float x[lane_count], y[lane_count];
      for (int lane = 0; lane < lane_count; ++lane) x[lane] = flushed(warp.row<float>(a)[lane]), y[lane] = flushed(warp.row<float>(b)[lane]);
      return relate<float>(site.relation, x, y, lanes);
    }
    case Type::F16: case Type::BF16: {
      double x[lane_count], y[lane_count];
      for (int lane = 0; lane < lane_count; ++lane) x[lane] = value_of(site.type, warp.row<std::uint16_t>(a)[lane]), y[lane] = value_of(site.type, warp.row<std::uint16_t>(b)[lane]);
      return relate<double>(site.relation, x, y, lanes);
    }
    case Type::Pred: case Type::B8: case Type::B128: case Type::U8: case Type::S8: case Type::F16x2: case Type::BF16x2: case Type::TF32: case Type::E4M3x2: case Type::E5M2x2: break;
  }
  internal_error("a comparison of a type that the decoder refuses");
}

void run_comparison(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const Comparison*>(op.object);
  LaneMask result = relate_rows(site, warp, op.a, op.b, lanes);
  if (site.negates_result) result = ~result;
  const LaneMask third = site.negates_third ? ~warp.predicate(op.c) : warp.predicate(op.c);
  if (site.combination == Combination::And) result &= third;
  if (site.combination == Combination::Or) result |= third;
  if (site.combination == Combination::Xor) result ^= third;
  if (site.result == Type::Pred) {
    LaneMask& d = warp.predicate(op.dst);
    d = (d & ~lanes) | (result & lanes);
    return;
  }
  auto* d = warp.row<std::uint32_t>(op.dst);
  const std::uint32_t one = site.result == Type::F32 ? 0x3f800000u : 0xffffffffu;
  for_lanes(lanes, [&](int lane) { d[lane] = (result >> lane & 1) != 0 ? one : 0; });
}

bool is_comparable(Type type) {
  return type != Type::Pred && type != Type::B128 && bits_of(type) >= 16 && type != Type::F16x2 && type != Type::BF16x2 && type != Type::TF32 && type != Type::E4M3x2 && type != Type::E5M2x2;
}

void decode_comparison(Builder& builder, const Instruction& at) {
  Comparison site;
  site.type = builder.type_of(at);
  if (!is_comparable(site.type)) builder.unsupported("this type");
  bool is_known = false;
  for (const RelationName& each : relations)
    if (at.words.size() > 1 && at.words[1] == each.name) site.relation = each.relation, is_known = true;
  if (!is_known) builder.unsupported();
  site.combination = at.has("and") ? Combination::And : at.has("or") ? Combination::Or : at.has("xor") ? Combination::Xor : Combination::None;
  site.flushes = at.has("ftz");
  if (at.words[0] == "set") {
    const auto result = type_by_name(at.words[at.words.size() - 2]);
    if (!result || bits_of(*result) != 32) builder.unsupported("this type");
    site.result = *result;
  }
  const int bits = bits_of(site.type);
  const Row a = builder.read(at, 1, bits), b = builder.read(at, 2, bits);
  Row third = 0;
  if (site.combination != Combination::None) {
    third = builder.read(at, 3, 1);
    site.negates_third = at.operands[3].is_negated;
  }
  const auto add = [&](const Operand& into, bool negates) {
    if (into.kind == Operand::Kind::Sink) return;
    Comparison one = site;
    one.negates_result = negates;
    const Row dst = builder.write(into, site.result == Type::Pred ? 1 : 32);
    Op& op = builder.add(run_comparison);
    op.dst = dst;
    op.a = a;
    op.b = b;
    op.c = third;
    op.object = builder.keep_object(one);
  };
  const Operand& into = at.operands.at(0);
  if (into.kind != Operand::Kind::Vector) return add(into, false);
  // The first result may be the third operand: the second one is then read first.
  const bool overlaps = at.operands.size() > 3 && into.elements.at(0).kind == Operand::Kind::Register && into.elements[0].index == at.operands[3].index;
  if (overlaps) builder.unsupported("a predicate that is both operand and result");
  add(into.elements.at(0), false);
  add(into.elements.at(1), true);
}

// d = c ? a : b, which is undefined where the chosen one is.
template <class T>
void run_choice(const Op& op, Warp& warp, LaneMask lanes) {
  const LaneMask chosen = warp.predicate(op.c);
  const LaneMask bad = (chosen & warp.undefined_of(op.a)) | (~chosen & warp.undefined_of(op.b)) | warp.undefined_of(op.c);
  const Row from = (warp.undefined_of(op.c) & lanes) != 0 ? op.c : (warp.undefined_of(op.a) & chosen & lanes) != 0 ? op.a : op.b;
  warp.mark(op.dst, lanes, bad, warp.origin_of(from));
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  for_lanes(lanes, [&](int lane) { d[lane] = (chosen >> lane & 1) != 0 ? a[lane] : b[lane]; });
}

void decode_choice(Builder& builder, const Instruction& at) {
  const int bits = bits_of(builder.type_of(at));
  const Row a = builder.read(at, 1, bits), b = builder.read(at, 2, bits), c = builder.read(at, 3, 1);
  const Row dst = builder.write(at, 0, bits);
  Op& op = builder.add(bits == 16 ? run_choice<std::uint16_t> : bits == 32 ? run_choice<std::uint32_t> : run_choice<std::uint64_t>);
  op.marks_itself = true;
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
}

// slct: a where c >= 0, which -0 is and NaN is not.
template <class T, class C>
void run_select_by_sign(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  const T* a = warp.row<T>(op.a);
  const T* b = warp.row<T>(op.b);
  const C* c = warp.row<C>(op.c);
  for_lanes(lanes, [&](int lane) { d[lane] = (op.flushes ? static_cast<C>(flushed(static_cast<float>(c[lane]))) : c[lane]) >= C{0} ? a[lane] : b[lane]; });
}

void decode_select_by_sign(Builder& builder, const Instruction& at) {
  const auto type = type_by_name(at.words[at.words.size() - 2]);
  const Type by = builder.type_of(at);
  if (!type || (by != Type::S32 && by != Type::F32)) builder.unsupported("this type");
  const int bits = bits_of(*type);
  if (bits < 32) builder.unsupported("this type");
  Op::Run run = by == Type::S32 ? (bits == 32 ? run_select_by_sign<std::uint32_t, std::int32_t> : run_select_by_sign<std::uint64_t, std::int32_t>)
                                : (bits == 32 ? run_select_by_sign<std::uint32_t, float> : run_select_by_sign<std::uint64_t, float>);
  const Row a = builder.read(at, 1, bits), b = builder.read(at, 2, bits), c = builder.read(at, 3, 32);
  const Row dst = builder.write(at, 0, bits);
  Op& op = builder.add(run);
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
  op.flushes = at.has("ftz");
}

enum class Class : std::uint8_t { Finite, Infinite, Number, NotNumber, Normal, Subnormal };
template <class T>
void run_class(const Op& op, Warp& warp, LaneMask lanes) {
  const T* a = warp.row<T>(op.a);
  LaneMask result = 0;
  for_lanes(lanes, [&](int lane) {
    const T x = a[lane];
    const bool is = op.number == static_cast<int>(Class::Finite)      ? std::isfinite(x)
                    : op.number == static_cast<int>(Class::Infinite)  ? std::isinf(x)
                    : op.number == static_cast<int>(Class::Number)    ? !std::isnan(x)
                    : op.number == static_cast<int>(Class::NotNumber) ? std::isnan(x)
                    : op.number == static_cast<int>(Class::Normal)    ? std::isnormal(x) || x == 0
                                                                      : std::fpclassify(x) == FP_SUBNORMAL;
    result |= is ? 1u << lane : 0u;
  });
  LaneMask& d = warp.predicate(op.dst);
  d = (d & ~lanes) | result;
}

void decode_class(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (type != Type::F32 && type != Type::F64) builder.unsupported("this type");
  const Row a = builder.read(at, 1, bits_of(type));
  const Row dst = builder.write(at, 0, 1);
  Op& op = builder.add(type == Type::F32 ? run_class<float> : run_class<double>);
  op.dst = dst;
  op.a = a;
  op.number = static_cast<int>(at.has("finite") ? Class::Finite : at.has("infinite") ? Class::Infinite : at.has("number") ? Class::Number : at.has("notanumber") ? Class::NotNumber : at.has("normal") ? Class::Normal : Class::Subnormal);
}

constexpr DecodeRow rows[] = {{"setp", decode_comparison}, {"set", decode_comparison}, {"selp", decode_choice}, {"slct", decode_select_by_sign}, {"testp", decode_class}};

}  // namespace

std::span<const DecodeRow> compare_rows() { return rows; }

}  // namespace tilewright::ptx
