// What the lanes of a warp do together: shfl, vote, match, redux, bar.warp.sync, activemask, elect.
#include <bit>

#include "runtime/ptx/lanes.h"

namespace tilewright::ptx {

namespace {

enum class ShuffleMode : std::uint8_t { Up, Down, Butterfly, Index };

struct ShuffleSite {
  ShuffleMode mode = ShuffleMode::Index;
  Row in_range = 0;  // the second result; 0: none
};

// A source that does not take part gives an undefined value.
void run_shuffle(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const ShuffleSite*>(op.object);
  std::uint32_t value[lane_count], result[lane_count];
  LaneMask bad = 0, in_range = 0;
  const LaneMask bad_values = warp.undefined_of(op.a);
  const LaneMask bad_places = warp.undefined_of(op.b) | warp.undefined_of(op.c);
  std::copy_n(warp.row<std::uint32_t>(op.a), lane_count, value);
  std::uint32_t origin = (bad_places & lanes) != 0 ? warp.origin_of((warp.undefined_of(op.b) & lanes) != 0 ? op.b : op.c) : warp.origin_of(op.a);
  for_lanes(lanes, [&](int lane) {
    const int by = static_cast<int>(warp.row<std::uint32_t>(op.b)[lane] & 0x1f);
    const std::uint32_t c = warp.row<std::uint32_t>(op.c)[lane];
    const int clamp = static_cast<int>(c & 0x1f);
    const int segment = static_cast<int>(c >> 8 & 0x1f);
    const int most = (lane & segment) | (clamp & ~segment);
    int from = lane;
    bool is_in_range = false;
    switch (site.mode) {
      case ShuffleMode::Up: from = lane - by, is_in_range = from >= most; break;
      case ShuffleMode::Down: from = lane + by, is_in_range = from <= most; break;
      case ShuffleMode::Butterfly: from = lane ^ by, is_in_range = from <= most; break;
      case ShuffleMode::Index: from = (lane & segment) | (by & ~segment), is_in_range = from <= most; break;
    }
    if (!is_in_range) from = lane;
    const LaneMask bit = 1u << lane;
    if (is_in_range) in_range |= bit;
    result[lane] = value[from & 31];
    if ((lanes >> from & 1) == 0) {
      bad |= bit;
      origin = warp.new_origin({&op, lane, 0, Space::Register});
    } else if ((bad_values >> from & 1) != 0) {
      bad |= bit;
    }
  });
  auto* d = warp.row<std::uint32_t>(op.dst);
  for_lanes(lanes, [&](int lane) { d[lane] = result[lane]; });
  warp.mark(op.dst, lanes, bad | bad_places, origin);
  if (site.in_range == 0) return;
  LaneMask& predicate = warp.predicate(site.in_range);
  predicate = (predicate & ~lanes) | (in_range & lanes);
  warp.mark(site.in_range, lanes, bad_places, origin);
}

Op& add_together(Builder& builder, const Instruction& at, Op::Run run, std::size_t mask_operand) {
  if (!at.has("sync")) builder.unsupported("without .sync");
  const Row mask = builder.read(at, mask_operand, 32);
  Op& op = builder.add(run);
  op.step = Step::WarpSync;
  op.marks_itself = true;
  op.d = mask;
  return op;
}

void decode_shuffle(Builder& builder, const Instruction& at) {
  ShuffleSite site;
  site.mode = at.has("up") ? ShuffleMode::Up : at.has("down") ? ShuffleMode::Down : at.has("bfly") ? ShuffleMode::Butterfly : ShuffleMode::Index;
  if (at.operands.size() != 5) builder.unsupported("this form");
  const Operand& into = at.operands[0];
  const bool is_pair = into.kind == Operand::Kind::Vector;
  if (is_pair && into.elements.at(1).kind == Operand::Kind::Register) site.in_range = builder.write(into.elements[1], 1);
  const Row a = builder.read(at, 1, 32), b = builder.read(at, 2, 32), c = builder.read(at, 3, 32);
  const Row dst = builder.write(is_pair ? into.elements[0] : into, 32);
  Op& op = add_together(builder, at, run_shuffle, 4);
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
  op.object = builder.keep_object(site);
}

enum class Vote : std::uint8_t { All, Any, Uniform, Ballot };
struct VoteSite {
  Vote vote = Vote::All;
  bool is_negated = false;
};

void run_vote(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const VoteSite*>(op.object);
  const LaneMask yes = (site.is_negated ? ~warp.predicate(op.a) : warp.predicate(op.a)) & lanes;
  const LaneMask bad = (warp.undefined_of(op.a) & lanes) != 0 ? lanes : 0;
  const std::uint32_t origin = warp.origin_of(op.a);
  if (site.vote == Vote::Ballot) {
    auto* d = warp.row<std::uint32_t>(op.dst);
    for_lanes(lanes, [&](int lane) { d[lane] = yes; });
  } else {
    const bool result = site.vote == Vote::All ? yes == lanes : site.vote == Vote::Any ? yes != 0 : yes == lanes || yes == 0;
    LaneMask& d = warp.predicate(op.dst);
    d = (d & ~lanes) | (result ? lanes : 0u);
  }
  warp.mark(op.dst, lanes, bad, origin);
}

void decode_vote(Builder& builder, const Instruction& at) {
  VoteSite site;
  site.vote = at.has("ballot") ? Vote::Ballot : at.has("any") ? Vote::Any : at.has("uni") ? Vote::Uniform : Vote::All;
  site.is_negated = at.operands.at(1).is_negated;
  const Row a = builder.read(at, 1, 1);
  const Row dst = builder.write(at, 0, site.vote == Vote::Ballot ? 32 : 1);
  Op& op = add_together(builder, at, run_vote, 2);
  op.dst = dst;
  op.a = a;
  op.object = builder.keep_object(site);
}

struct MatchSite {
  bool is_all = false;
  Row all_equal = 0;
};
template <class T>
void run_match(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const MatchSite*>(op.object);
  const T* a = warp.row<T>(op.a);
  const LaneMask bad = (warp.undefined_of(op.a) & lanes) != 0 ? lanes : 0;
  std::uint32_t equal[lane_count];
  bool are_all = true;
  for_lanes(lanes, [&](int lane) {
    equal[lane] = 0;
    for_lanes(lanes, [&](int other) { equal[lane] |= a[other] == a[lane] ? 1u << other : 0u; });
    are_all &= equal[lane] == lanes;
  });
  auto* d = warp.row<std::uint32_t>(op.dst);
  for_lanes(lanes, [&](int lane) { d[lane] = !site.is_all ? equal[lane] : are_all ? lanes : 0; });
  warp.mark(op.dst, lanes, bad, warp.origin_of(op.a));
  if (site.all_equal == 0) return;
  LaneMask& predicate = warp.predicate(site.all_equal);
  predicate = (predicate & ~lanes) | (are_all ? lanes : 0u);
  warp.mark(site.all_equal, lanes, bad, warp.origin_of(op.a));
}

void decode_match(Builder& builder, const Instruction& at) {
  MatchSite site;
  site.is_all = at.has("all");
  const int bits = bits_of(builder.type_of(at));
  const Operand& into = at.operands.at(0);
  const bool is_pair = into.kind == Operand::Kind::Vector;
  if (is_pair && into.elements.at(1).kind == Operand::Kind::Register) site.all_equal = builder.write(into.elements[1], 1);
  const Row a = builder.read(at, 1, bits);
  const Row dst = builder.write(is_pair ? into.elements[0] : into, 32);
  Op& op = add_together(builder, at, bits == 64 ? run_match<std::uint64_t> : run_match<std::uint32_t>, 2);
  op.dst = dst;
  op.a = a;
  op.object = builder.keep_object(site);
}

enum class Reduction : std::uint8_t { Add, Min, Max, And, Or, Xor };
template <class T>
void run_reduction(const Op& op, Warp& warp, LaneMask lanes) {
  const T* a = warp.row<T>(op.a);
  const LaneMask bad = (warp.undefined_of(op.a) & lanes) != 0 ? lanes : 0;
  T result = a[std::countr_zero(lanes)];
  for_lanes(lanes & (lanes - 1), [&](int lane) {
    const T value = a[lane];
    switch (static_cast<Reduction>(op.number)) {
      case Reduction::Add: result = static_cast<T>(static_cast<std::uint32_t>(result) + static_cast<std::uint32_t>(value)); break;
      case Reduction::Min: result = std::min(result, value); break;
      case Reduction::Max: result = std::max(result, value); break;
      case Reduction::And: result = static_cast<T>(result & value); break;
      case Reduction::Or: result = static_cast<T>(result | value); break;
      case Reduction::Xor: result = static_cast<T>(result ^ value); break;
    }
  });
  T* d = warp.row<T>(op.dst);
  for_lanes(lanes, [&](int lane) { d[lane] = result; });
  warp.mark(op.dst, lanes, bad, warp.origin_of(op.a));
}

void decode_reduction(Builder& builder, const Instruction& at) {
  const Type type = builder.type_of(at);
  if (is_float(type)) builder.unsupported("this type");
  const Reduction reduction = at.has("add") ? Reduction::Add : at.has("min") ? Reduction::Min : at.has("max") ? Reduction::Max : at.has("and") ? Reduction::And : at.has("or") ? Reduction::Or : Reduction::Xor;
  const Row a = builder.read(at, 1, 32);
  const Row dst = builder.write(at, 0, 32);
  Op& op = add_together(builder, at, type == Type::S32 ? run_reduction<std::int32_t> : run_reduction<std::uint32_t>, 2);
  op.dst = dst;
  op.a = a;
  op.number = static_cast<std::int32_t>(reduction);
}

void run_active(const Op& op, Warp& warp, LaneMask lanes) {
  auto* d = warp.row<std::uint32_t>(op.dst);
  for_lanes(lanes, [&](int lane) { d[lane] = lanes; });
}
void decode_active(Builder& builder, const Instruction& at) {
  const Row dst = builder.write(at, 0, 32);
  builder.add(run_active).dst = dst;
}

struct ElectSite {
  Row is_elected = 0;
};
void run_elect(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const ElectSite*>(op.object);
  const int leader = std::countr_zero(lanes);
  if (op.dst != 0) {
    auto* d = warp.row<std::uint32_t>(op.dst);
    for_lanes(lanes, [&](int lane) { d[lane] = static_cast<std::uint32_t>(leader); });
    warp.mark(op.dst, lanes, 0, 0);
  }
  LaneMask& predicate = warp.predicate(site.is_elected);
  predicate = (predicate & ~lanes) | 1u << leader;
  warp.mark(site.is_elected, lanes, 0, 0);
}
void decode_elect(Builder& builder, const Instruction& at) {
  const Operand& into = at.operands.at(0);
  if (into.kind != Operand::Kind::Vector) builder.unsupported("this form");
  ElectSite site{builder.write(into.elements.at(1), 1)};
  const Row dst = into.elements[0].kind == Operand::Kind::Register ? builder.write(into.elements[0], 32) : 0;
  Op& op = add_together(builder, at, run_elect, 1);
  op.dst = dst;
  op.object = builder.keep_object(site);
}

constexpr DecodeRow rows[] = {{"shfl", decode_shuffle}, {"vote", decode_vote}, {"match", decode_match}, {"redux", decode_reduction}, {"activemask", decode_active}, {"elect", decode_elect}};

}  // namespace

std::span<const DecodeRow> warp_rows() { return rows; }

}  // namespace tilewright::ptx
