// ld, st, cp.async, and what only hints at accesses.
#include "runtime/ptx/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/ptx/lanes.h"

namespace tilewright::ptx {

namespace {

Place locate_shared(Warp& warp, const Op& op, std::uint64_t at, int bytes, int lane, bool is_store) {
  Block& block = *warp.block;
  const std::uint64_t size = block.shared.size();
  if (at < size && static_cast<std::uint64_t>(bytes) <= size - at) {
    std::uint8_t* written = block.written.data() + at;
    bool is_inside = true;
    for (int n = 0; n < bytes; ++n) is_inside &= written[n] != byte_of_nobody;
    if (is_inside) return {block.shared.data() + at, written, nullptr};
  }
  report_outside(warp, op, Space::Shared, at, bytes, lane, is_store);
  return {};
}

Place locate_local(Warp& warp, const Op& op, std::uint64_t at, int bytes, int lane, bool is_store) {
  const auto size = static_cast<std::uint64_t>(warp.core->launch->program->local_bytes);
  if (at < size && static_cast<std::uint64_t>(bytes) <= size - at) {
    const std::uint64_t begin = size * static_cast<std::uint64_t>(lane) + at;
    return {warp.local.data() + begin, warp.local_written.data() + begin, nullptr};
  }
  report_outside(warp, op, Space::Local, at, bytes, lane, is_store);
  return {};
}

}  // namespace

Place locate(Warp& warp, const Op& op, Space space, std::uint64_t address, int bytes, int lane, bool is_store) {
  if ((address & static_cast<std::uint64_t>(bytes - 1)) != 0) {
    report_misaligned(warp, op, space, address, bytes, lane, is_store);
    return {};
  }
  if (space == Space::Shared) return locate_shared(warp, op, address, bytes, lane, is_store);
  if (space == Space::Local) return locate_local(warp, op, address, bytes, lane, is_store);
  Region* region = warp.core->memory->find(address);
  if (region == nullptr) {
    if (space == Space::Generic && window_of(address) == shared_window) return locate_shared(warp, op, address - window_begin(shared_window), bytes, lane, is_store);
    if (space == Space::Generic && window_of(address) == local_window) return locate_local(warp, op, address - window_begin(local_window), bytes, lane, is_store);
    report_outside(warp, op, space, address, bytes, lane, is_store);
    return {};
  }
  const std::uint64_t at = address - region->begin;
  if (at >= region->bytes || static_cast<std::uint64_t>(bytes) > region->bytes - at) {
    report_outside(warp, op, space, address, bytes, lane, is_store);
    return {};
  }
  if (is_store && !region->may_write) {
    report_not_writable(warp, op, *region, lane);
    return {};
  }
  if (region->is_virtual) {
    static constexpr std::byte zeros[16] = {};
    thread_local std::byte dropped[16];
    if (!is_store) std::memcpy(dropped, zeros, sizeof zeros);
    return {dropped, nullptr, region};
  }
  return {region->data + at, region->written.empty() ? nullptr : region->written.data() + at, region};
}

void note_store(Warp& warp, const Op& op, const Place& place, std::uint64_t address, int bytes, int lane, bool is_undefined, Row row) {
  const bool is_result = place.region != nullptr && place.region->is_result;
  if (is_undefined && is_result) {
    const auto element = static_cast<std::int64_t>(address - place.region->begin) / tilewright::bytes_of(place.region->dtype);
    report_undefined(warp, op, row, 1u << lane, fmt::format("element {} of `{}`", element, place.region->name));
  }
  if (place.written != nullptr) std::memset(place.written, is_undefined && !is_result ? byte_unwritten : byte_written, static_cast<std::size_t>(bytes));
}

LaneMask with_known_address(Warp& warp, const Op& op, Row base, LaneMask lanes) {
  const LaneMask bad = warp.undefined_of(base) & lanes;
  if (bad != 0) report_undefined(warp, op, base, bad, "the address of an access");
  return lanes & ~bad;
}

void finish_copies(Warp& warp, LaneMask lanes, std::int64_t left_open) {
  const auto is_due = [&](const PendingCopy& copy) {
    const auto lane = static_cast<std::size_t>(copy.lane);
    return (lanes >> copy.lane & 1) != 0 && static_cast<std::int64_t>(copy.group) + left_open < static_cast<std::int64_t>(warp.copy_group[lane]);
  };
  for (const PendingCopy& copy : warp.copies) {
    if (!is_due(copy)) continue;
    const auto& site = *static_cast<const AccessSite*>(copy.op->object);
    const Place to = locate(warp, *copy.op, site.space, copy.to, copy.bytes, copy.lane, true);
    if (to.data == nullptr) continue;
    std::memset(to.data, 0, static_cast<std::size_t>(copy.bytes));
    std::memset(to.written, byte_written, static_cast<std::size_t>(copy.bytes));
    for (int n = 0; n < copy.from_bytes; n += 4) {
      const Place from = locate(warp, *copy.op, site.source_space, copy.from + static_cast<std::uint64_t>(n), 4, copy.lane, false);
      if (from.data == nullptr) break;
      std::memcpy(to.data + n, from.data, 4);
      if (from.written != nullptr) std::memcpy(to.written + n, from.written, 4);
    }
  }
  std::erase_if(warp.copies, is_due);
}

namespace {

// Elements of 8 bits fill rows of 16; `number` 1 extends their sign.
template <class E>
using RowType = std::conditional_t<sizeof(E) == 1, std::uint16_t, E>;

// A vector of which some elements are not in use: those may lie outside, and have no value.
template <class E>
void load_used(const Op& op, Warp& warp, const AccessSite& site, std::uint64_t address, int lane) {
  const auto count = static_cast<int>(site.rows.size());
  const int bytes = count * static_cast<int>(sizeof(E));
  const LaneMask own = 1u << lane;
  if ((address & static_cast<std::uint64_t>(bytes - 1)) != 0) return report_misaligned(warp, op, site.space, address, bytes, lane, false);
  for (int n = 0; n < count; ++n) {
    const Row row = site.rows[static_cast<std::size_t>(n)];
    const int at = n * static_cast<int>(sizeof(E));
    const std::uint64_t place_of = address + static_cast<std::uint64_t>(at);
    E value = 0;
    bool is_used = false, is_defined = true;
    for (int byte = 0; byte < static_cast<int>(sizeof(E)); ++byte) {
      if ((site.used_bytes >> (at + byte) & 1) == 0) continue;
      const Place place = locate(warp, op, site.space, place_of + static_cast<std::uint64_t>(byte), 1, lane, false);
      is_used = true;
      if (place.data == nullptr) break;  // reported
      std::memcpy(reinterpret_cast<std::byte*>(&value) + byte, place.data, 1);
      is_defined &= is_written(place, 1);
    }
    is_defined &= is_used;
    warp.row<RowType<E>>(row)[lane] = sizeof(E) == 1 && op.number == 1 ? static_cast<RowType<E>>(static_cast<std::int8_t>(value)) : static_cast<RowType<E>>(value);
    if (!is_defined) warp.mark(row, own, own, warp.new_origin({&op, lane, place_of, site.space == Space::Param ? Space::Generic : site.space}));
  }
}

template <class E>
void run_load(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const AccessSite*>(op.object);
  const auto* base = warp.row<std::uint64_t>(op.a);
  const auto count = static_cast<int>(site.rows.size());
  const int bytes = count * static_cast<int>(sizeof(E));
  const LaneMask known = with_known_address(warp, op, op.a, lanes);
  std::uint64_t address_of[lane_count];  // the base may be among the results
  for_lanes(known, [&](int lane) { address_of[lane] = base[lane] + static_cast<std::uint64_t>(site.offset); });
  for (const Row row : site.rows) warp.mark(row, lanes, 0, 0);
  for_lanes(lanes & ~known, [&](int lane) {
    for (const Row row : site.rows) warp.row<RowType<E>>(row)[lane] = 0;
  });
  if (site.used_bytes != ~0u) return for_lanes(known, [&](int lane) { load_used<E>(op, warp, site, address_of[lane], lane); });
  for_lanes(known, [&](int lane) {
    const Place place = locate(warp, op, site.space, address_of[lane], bytes, lane, false);
    const bool is_whole = place.data == nullptr || is_written(place, bytes);
    for (int n = 0; n < count; ++n) {
      const Row row = site.rows[static_cast<std::size_t>(n)];
      E value = 0;
      if (place.data != nullptr) std::memcpy(&value, place.data + n * static_cast<int>(sizeof(E)), sizeof(E));
      warp.row<RowType<E>>(row)[lane] = sizeof(E) == 1 && op.number == 1 ? static_cast<RowType<E>>(static_cast<std::int8_t>(value)) : static_cast<RowType<E>>(value);
      if (is_whole) continue;
      const int at = n * static_cast<int>(sizeof(E));
      const Place element{place.data + at, place.written + at, place.region};
      if (!is_written(element, sizeof(E))) {
        const std::uint64_t address = address_of[lane] + static_cast<std::uint64_t>(at);
        warp.mark(row, 1u << lane, 1u << lane, warp.new_origin({&op, lane, address, site.space == Space::Param ? Space::Generic : site.space}));
      }
    }
  });
}

template <class E>
void run_store(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const AccessSite*>(op.object);
  const auto* base = warp.row<std::uint64_t>(op.a);
  const auto count = static_cast<int>(site.rows.size());
  const int bytes = count * static_cast<int>(sizeof(E));
  for_lanes(with_known_address(warp, op, op.a, lanes), [&](int lane) {
    const std::uint64_t address = base[lane] + static_cast<std::uint64_t>(site.offset);
    const Place place = locate(warp, op, site.space, address, bytes, lane, true);
    if (place.data == nullptr) return;
    for (int n = 0; n < count; ++n) {
      const Row row = site.rows[static_cast<std::size_t>(n)];
      const auto value = static_cast<E>(warp.row<RowType<E>>(row)[lane]);
      const int at = n * static_cast<int>(sizeof(E));
      std::memcpy(place.data + at, &value, sizeof(E));
      if (place.written == nullptr && place.region == nullptr) continue;
      const Place element{place.data + at, place.written == nullptr ? nullptr : place.written + at, place.region};
      note_store(warp, op, element, address + static_cast<std::uint64_t>(at), sizeof(E), lane, (warp.undefined_of(row) >> lane & 1) != 0, row);
    }
  });
}

Space space_of(Builder& builder, const Instruction& at) {
  if (at.has("shared::cluster") || at.has("multimem")) builder.unsupported();
  if (at.has("global")) return Space::Global;
  if (at.has("shared") || at.has("shared::cta")) return Space::Shared;
  if (at.has("local")) return Space::Local;
  if (at.has("const")) return Space::Const;
  if (at.has("param") || at.has("param::entry") || at.has("param::func")) return Space::Param;
  return Space::Generic;
}

void decode_access(Builder& builder, const Instruction& at) {
  const bool is_load = at.words[0] != "st";
  const Type type = builder.type_of(at);
  if (at.operands.size() != 2 || bits_of(type) > 64 || type == Type::Pred) builder.unsupported("this form");
  AccessSite site;
  site.space = space_of(builder, at);
  site.used_bytes = at.used_bytes;
  const Operand& where = at.operands[is_load ? 0 : 1];  // the register side
  const Operand& address = at.operands[is_load ? 1 : 0];
  if (site.space == Space::Param && builder.is_local_variable(address)) site.space = Space::Local;
  const int bits = bits_of(type);
  const Row base = builder.address(address, site.space, site.offset);
  const std::vector<Operand> elements = where.kind == Operand::Kind::Vector ? where.elements : std::vector<Operand>{where};
  for (const Operand& element : elements) site.rows.push_back(is_load ? builder.write(element, bits, is_signed(type)) : builder.read(element, bits == 8 ? 16 : bits));
  Op::Run run = is_load ? (bits == 8 ? run_load<std::uint8_t> : bits == 16 ? run_load<std::uint16_t> : bits == 32 ? run_load<std::uint32_t> : run_load<std::uint64_t>)
                        : (bits == 8 ? run_store<std::uint8_t> : bits == 16 ? run_store<std::uint16_t> : bits == 32 ? run_store<std::uint32_t> : run_store<std::uint64_t>);
  Op& op = builder.add(run);
  op.a = base;
  op.number = is_load && type == Type::S8 ? 1 : 0;
  op.marks_itself = true;
  op.access_kind = is_load ? AccessKind::Load : AccessKind::Store;
  op.access_bytes = static_cast<std::uint8_t>(site.rows.size() * static_cast<std::size_t>(bits) / 8);
  op.object = op.access = builder.keep_object(std::move(site));
}

// cp.async.ca.shared.global [to], [from], 16, source bytes
void run_copy(const Op& op, Warp& warp, LaneMask lanes) {
  const auto& site = *static_cast<const AccessSite*>(op.object);
  const LaneMask known = with_known_address(warp, op, op.b, with_known_address(warp, op, op.a, lanes));
  for_lanes(known, [&](int lane) {
    const auto bytes = std::min<std::uint32_t>(op.c == 0 ? static_cast<std::uint32_t>(site.bytes) : warp.row<std::uint32_t>(op.c)[lane], static_cast<std::uint32_t>(site.bytes));
    warp.copies.push_back({lane, warp.copy_group[static_cast<std::size_t>(lane)], &op, warp.row<std::uint64_t>(op.a)[lane] + static_cast<std::uint64_t>(site.offset),
                           warp.row<std::uint64_t>(op.b)[lane] + static_cast<std::uint64_t>(site.source_offset), site.bytes, static_cast<int>(bytes)});
  });
}
void run_commit(const Op&, Warp& warp, LaneMask lanes) {
  for_lanes(lanes, [&](int lane) { ++warp.copy_group[static_cast<std::size_t>(lane)]; });
}
void run_wait(const Op& op, Warp& warp, LaneMask lanes) { finish_copies(warp, lanes, op.number); }

void decode_copy(Builder& builder, const Instruction& at) {
  if (at.words.size() < 3 || at.words[1] != "async" || at.words[2] == "bulk" || at.words[2] == "mbarrier" || at.words[2] == "reduce") builder.unsupported();
  Op::Run run = nullptr;
  int number = 0;
  if (at.words[2] == "commit_group") run = run_commit;
  if (at.words[2] == "wait_all") run = run_wait, number = -1;
  if (at.words[2] == "wait_group") run = run_wait, number = static_cast<int>(at.operands.at(0).integer);
  if (run != nullptr) {
    builder.add(run).number = number;
    return;
  }
  if (at.operands.size() < 3 || at.operands.size() > 4 || at.operands[2].kind != Operand::Kind::Integer) builder.unsupported("this form");
  AccessSite site;
  site.space = Space::Shared;
  site.bytes = static_cast<int>(at.operands[2].integer);
  const Row to = builder.address(at.operands[0], Space::Shared, site.offset);
  const Row from = builder.address(at.operands[1], Space::Global, site.source_offset);
  const Row bytes = at.operands.size() == 4 ? builder.read(at, 3, 32) : 0;
  Op& op = builder.add(run_copy);
  op.a = to;
  op.b = from;
  op.c = bytes;
  op.marks_itself = true;
  op.access_kind = AccessKind::AsyncCopy;
  op.access_bytes = static_cast<std::uint8_t>(site.bytes);
  op.object = op.access = builder.keep_object(std::move(site));
}

// Fences order what the machine does in order anyway.
void decode_nothing(Builder&, const Instruction&) {}

constexpr DecodeRow rows[] = {{"ld", decode_access}, {"ldu", decode_access}, {"st", decode_access}, {"cp", decode_copy},
                              {"prefetch", decode_nothing}, {"prefetchu", decode_nothing}, {"fence", decode_nothing}, {"membar", decode_nothing},
                              {"nanosleep", decode_nothing}, {"pragma", decode_nothing}};

}  // namespace

std::span<const DecodeRow> access_rows() { return rows; }

}  // namespace tilewright::ptx
