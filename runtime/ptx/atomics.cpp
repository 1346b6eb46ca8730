// atom and red: lane by lane, in order.
#include <fmt/format.h>

#include "runtime/ptx/access.h"
#include "runtime/ptx/lanes.h"
#include "runtime/ptx/narrow.h"

namespace tilewright::ptx {

namespace {

enum class AtomicOp : std::uint8_t { Add, Min, Max, Inc, Dec, Exch, Cas, And, Or, Xor };
struct AtomicName {
  std::string_view name;
  AtomicOp op;
};
constexpr AtomicName names[] = {{"add", AtomicOp::Add}, {"min", AtomicOp::Min}, {"max", AtomicOp::Max}, {"inc", AtomicOp::Inc}, {"dec", AtomicOp::Dec},
                                {"exch", AtomicOp::Exch}, {"cas", AtomicOp::Cas}, {"and", AtomicOp::And}, {"or", AtomicOp::Or}, {"xor", AtomicOp::Xor}};

struct AtomicSite {
  AccessSite access;
  AtomicOp op = AtomicOp::Add;
  Type type = Type::U32;
  bool gives_old = false;
};

std::uint64_t float_combined(AtomicOp op, Type type, std::uint64_t old, std::uint64_t value) {
  if (type == Type::F32 && op == AtomicOp::Add) return std::bit_cast<std::uint32_t>(canonical(std::bit_cast<float>(static_cast<std::uint32_t>(old)) + std::bit_cast<float>(static_cast<std::uint32_t>(value))));
  const double a = value_of(type, old), b = value_of(type, value);
  if (op == AtomicOp::Add) return bits_in(type, type == Type::F64 ? a + b : sum_to_odd(a, b), Rounding::Nearest);
  if (a != a) return value;
  if (b != b) return old;
  if (op == AtomicOp::Min) return b < a ? value : old;
  return a < b ? value : old;
}

template <class T>
std::uint64_t integer_combined(AtomicOp op, T old, T value, T other) {
  using U = std::make_unsigned_t<T>;
  const auto give = [](T result) { return static_cast<std::uint64_t>(static_cast<U>(result)); };
  switch (op) {
    case AtomicOp::Add: return give(static_cast<T>(static_cast<U>(old) + static_cast<U>(value)));
    case AtomicOp::Min: return give(std::min(old, value));
    case AtomicOp::Max: return give(std::max(old, value));
    case AtomicOp::Inc: return give(old >= value ? T{0} : static_cast<T>(old + 1));
    case AtomicOp::Dec: return give(old == 0 || old > value ? value : static_cast<T>(old - 1));
    case AtomicOp::Exch: return give(value);
    case AtomicOp::Cas: return give(old == value ? other : old);
    case AtomicOp::And: return give(static_cast<T>(old & value));
    case AtomicOp::Or: return give(static_cast<T>(old | value));
    case AtomicOp::Xor: return give(static_cast<T>(old ^ value));
  }
  return 0;
}

std::uint64_t combined(const AtomicSite& site, std::uint64_t old, std::uint64_t value, std::uint64_t other) {
  if (site.type == Type::F16x2 || site.type == Type::BF16x2) {
    const Type type = site.type == Type::F16x2 ? Type::F16 : Type::BF16;
    return float_combined(site.op, type, old & 0xffff, value & 0xffff) | float_combined(site.op, type, old >> 16, value >> 16) << 16;
  }
  if (is_float(site.type)) return float_combined(site.op, site.type, old, value);
  const auto of = [&]<class T>(T) { return integer_combined(site.op, static_cast<T>(old), static_cast<T>(value), static_cast<T>(other)); };
  if (site.type == Type::S32) return of(std::int32_t{});
  if (site.type == Type::S64) return of(std::int64_t{});
  return bits_of(site.type) == 16 ? of(std::uint16_t{}) : bits_of(site.type) == 32 ? of(std::uint32_t{}) : of(std::uint64_t{});
}

template <class T>
void run_atomic(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const AtomicSite*>(op.object);
  const LaneMask bad_values = warp.undefined_of(op.b) | warp.undefined_of(op.c);
  const Row bad_row = (warp.undefined_of(op.b) & lanes) != 0 ? op.b : op.c;
  const LaneMask known = with_known_address(warp, op, op.a, lanes);
  std::uint64_t address_of[lane_count];
  T value[lane_count], other[lane_count];
  for_lanes(known, [&](int lane) {
    address_of[lane] = warp.row<std::uint64_t>(op.a)[lane] + static_cast<std::uint64_t>(site.access.offset);
    value[lane] = warp.row<T>(op.b)[lane];
    other[lane] = warp.row<T>(op.c)[lane];
  });
  if (site.gives_old) warp.mark(op.dst, lanes, 0, 0);
  for_lanes(known, [&](int lane) {
    const Place place = locate(warp, op, site.access.space, address_of[lane], sizeof(T), lane, true);
    if (place.data == nullptr) return;
    T old = 0;
    std::memcpy(&old, place.data, sizeof(T));
    const auto result = static_cast<T>(combined(site, old, value[lane], other[lane]));
    std::memcpy(place.data, &result, sizeof(T));
    if (site.gives_old) warp.row<T>(op.dst)[lane] = old;
    const bool old_is_bad = !is_written(place, sizeof(T));
    const bool value_is_bad = (bad_values >> lane & 1) != 0;
    if (old_is_bad) {
      const std::uint32_t origin = warp.new_origin({&op, lane, address_of[lane], site.access.space});
      if (site.gives_old) warp.mark(op.dst, 1u << lane, 1u << lane, origin);
      if (site.op != AtomicOp::Exch && place.region != nullptr && place.region->is_result) {
        warp.core->faults->add(warp, op, FaultKind::Undefined, 1u << lane, [&](int) {
          return fmt::format("{} updates element {} of `{}`, and nothing has been written there", thread_text(warp, lane),
                             (address_of[lane] - place.region->begin) / static_cast<std::uint64_t>(tilewright::bytes_of(place.region->dtype)), place.region->name);
        });
        std::memset(place.written, byte_written, sizeof(T));
        return;
      }
    }
    note_store(warp, op, place, address_of[lane], sizeof(T), lane, value_is_bad || (old_is_bad && site.op != AtomicOp::Exch), bad_row);
  });
}

void decode_atomic(Builder& builder, const Instruction& at) {
  AtomicSite site;
  site.gives_old = at.words[0] == "atom";
  site.type = builder.type_of(at);
  bool is_known = false;
  for (const AtomicName& each : names)
    if (at.has(each.name)) site.op = each.op, is_known = true;
  const int bits = bits_of(site.type);
  const bool is_arithmetic = site.op == AtomicOp::Add || site.op == AtomicOp::Min || site.op == AtomicOp::Max;
  if (!is_known || bits < 16 || bits > 64 || at.has("async") || at.has("v2") || at.has("v4") || at.has("v8") || at.has("shared::cluster") || (is_float(site.type) && !is_arithmetic)) builder.unsupported();
  site.access.space = at.has("global") ? Space::Global : at.has("shared") || at.has("shared::cta") ? Space::Shared : Space::Generic;
  const std::size_t first = site.gives_old ? 1 : 0;
  if (at.operands.size() != first + (site.op == AtomicOp::Cas ? 3 : 2)) builder.unsupported("this form");
  const Row base = builder.address(at.operands[first], site.access.space, site.access.offset);
  const Row value = builder.read(at, first + 1, bits);
  const Row other = site.op == AtomicOp::Cas ? builder.read(at, first + 2, bits) : 0;
  const Row dst = site.gives_old ? builder.write(at, 0, bits) : 0;
  Op& op = builder.add(bits == 16 ? run_atomic<std::uint16_t> : bits == 32 ? run_atomic<std::uint32_t> : run_atomic<std::uint64_t>);
  op.dst = dst;
  op.a = base;
  op.b = value;
  op.c = other;
  op.marks_itself = true;
  op.access_kind = AccessKind::Atomic;
  op.access_bytes = static_cast<std::uint8_t>(bits / 8);
  const AtomicSite* kept = builder.keep_object(std::move(site));
  op.object = kept;
  op.access = &kept->access;
}

constexpr DecodeRow rows[] = {{"atom", decode_atomic}, {"red", decode_atomic}};

}  // namespace

std::span<const DecodeRow> atomic_rows() { return rows; }

}  // namespace tilewright::ptx
