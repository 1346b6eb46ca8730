// Moves: mov (vectors taken apart and put together too), cvta, isspacep, clocks.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/ptx/lanes.h"

namespace tilewright::ptx {

namespace {

struct Same {
  template <class T> T operator()(T value) const { return value; }
};

void run_move_predicate(const Op& op, Warp& warp, LaneMask lanes) {
  LaneMask& d = warp.predicate(op.dst);
  d = (d & ~lanes) | (warp.predicate(op.a) & lanes);
}

Op::Run move_of(int bits) {
  if (bits == 1) return run_move_predicate;
  if (bits <= 16) return run_unary<std::uint16_t, std::uint16_t, Same>;
  return bits == 32 ? run_unary<std::uint32_t, std::uint32_t, Same> : run_unary<std::uint64_t, std::uint64_t, Same>;
}

// Part `number` of a wider value. Where this was put together of parts, of which only some are undefined, it is that part
// that counts: LLVM pads a vector so.
template <class Part, class Whole>
void run_take_part(const Op& op, Warp& warp, LaneMask lanes) {
  Part* d = warp.row<Part>(op.dst);
  const Whole* a = warp.row<Whole>(op.a);
  for_lanes(lanes, [&](int lane) { d[lane] = static_cast<Part>(a[lane] >> (8 * sizeof(Part) * static_cast<unsigned>(op.number))); });
  LaneMask bad = warp.undefined_of(op.a) & lanes;
  Row from = op.a;
  const Op* parts = bad != 0 ? warp.origins[warp.origin_of(op.a)].parts : nullptr;
  if (parts != nullptr && parts->dst == op.a) {
    const std::array<Row, 4> rows = {parts->a, parts->b, parts->c, parts->d};
    from = rows[static_cast<std::size_t>(op.number) * sizeof(Part) * static_cast<std::size_t>(parts->number) / sizeof(Whole)];
    bad &= warp.undefined_of(from);
  }
  warp.mark(op.dst, lanes, bad, warp.origin_of(from));
}

void mark_parts(const Op& op, Warp& warp, LaneMask lanes) {
  LaneMask bad = 0, all_bad = lanes;
  Origin origin;
  const std::array<Row, 4> rows = {op.a, op.b, op.c, op.d};
  for (int n = op.number - 1; n >= 0; --n) {
    const LaneMask mask = warp.undefined_of(rows[static_cast<std::size_t>(n)]) & lanes;
    bad |= mask;
    all_bad &= mask;
    if (mask != 0) origin = warp.origins[warp.origin_of(rows[static_cast<std::size_t>(n)])];
  }
  if (bad == all_bad) return propagate(op, warp, lanes);
  origin.parts = &op;
  const auto known = std::find_if(warp.origins.begin(), warp.origins.end(), [&](const Origin& other) { return other.parts == &op && other.op == origin.op; });
  warp.mark(op.dst, lanes, bad, known != warp.origins.end() ? static_cast<std::uint32_t>(known - warp.origins.begin()) : warp.new_origin(origin));
}

// d = {a, b} or {a, b, c, d}, the first in the lowest bits.
template <class Part, class Whole>
void run_put_together(const Op& op, Warp& warp, LaneMask lanes) {
  const Part *a = warp.row<Part>(op.a), *b = warp.row<Part>(op.b), *c = warp.row<Part>(op.c), *e = warp.row<Part>(op.d);
  Whole* d = warp.row<Whole>(op.dst);
  constexpr unsigned width = 8 * sizeof(Part);
  for_lanes(lanes, [&](int lane) {
    Whole whole = static_cast<Whole>(static_cast<Whole>(a[lane]) | static_cast<Whole>(static_cast<Whole>(b[lane]) << width));
    if (op.number == 4) whole = static_cast<Whole>(whole | static_cast<Whole>(c[lane]) << (2 * width % (8 * sizeof(Whole))) | static_cast<Whole>(e[lane]) << (3 * width % (8 * sizeof(Whole))));
    d[lane] = whole;
  });
  mark_parts(op, warp, lanes);
}

void add_move(Builder& builder, Row dst, Row a, int bits) {
  Op& op = builder.add(move_of(bits));
  op.dst = dst;
  op.a = a;
}

void take_apart(Builder& builder, const Instruction& at, int bits) {
  const std::vector<Operand>& parts = at.operands[0].elements;
  const int part = bits / static_cast<int>(parts.size());
  const Op::Run run = bits == 32 && part == 16 ? run_take_part<std::uint16_t, std::uint32_t> : bits == 64 && part == 32 ? run_take_part<std::uint32_t, std::uint64_t> : bits == 64 && part == 16 ? run_take_part<std::uint16_t, std::uint64_t> : nullptr;
  if (run == nullptr) builder.unsupported("parts of this width");
  Row a = builder.read(at, 1, bits);
  // A part may be the whole itself only by another name: registers have one width.
  for (std::size_t n = 0; n < parts.size(); ++n) {
    if (parts[n].kind == Operand::Kind::Sink) continue;
    const Row dst = builder.write(parts[n], part);
    Op& op = builder.add(run);
    op.dst = dst;
    op.a = a;
    op.number = static_cast<std::int32_t>(n);
    op.marks_itself = true;
  }
}

void put_together(Builder& builder, const Instruction& at, int bits) {
  const std::vector<Operand>& parts = at.operands[1].elements;
  const int part = bits / static_cast<int>(parts.size());
  const Op::Run run = bits == 32 && part == 16 ? run_put_together<std::uint16_t, std::uint32_t> : bits == 64 && part == 32 ? run_put_together<std::uint32_t, std::uint64_t> : bits == 64 && part == 16 ? run_put_together<std::uint16_t, std::uint64_t> : nullptr;
  if (run == nullptr) builder.unsupported("parts of this width");
  Row rows[4] = {0, 0, 0, 0};
  for (std::size_t n = 0; n < parts.size(); ++n) rows[n] = builder.read(parts[n], part);
  const Row dst = builder.write(at, 0, bits);
  Op& op = builder.add(run);
  op.dst = dst;
  op.a = rows[0];
  op.b = rows[1];
  op.c = rows[2];
  op.d = rows[3];
  op.number = static_cast<std::int32_t>(parts.size());
  op.marks_itself = true;
}

// Operations of all warps so far: it grows, which is all that a clock promises.
template <class T>
void run_clock(const Op& op, Warp& warp, LaneMask lanes) {
  T* d = warp.row<T>(op.dst);
  for_lanes(lanes, [&](int lane) { d[lane] = static_cast<T>(warp.core->clock); });
}

void decode_move(Builder& builder, const Instruction& at) {
  const int bits = bits_of(builder.type_of(at));
  if (at.operands.size() != 2) builder.unsupported();
  if (at.operands[0].kind == Operand::Kind::Vector) return take_apart(builder, at, bits);
  if (at.operands[1].kind == Operand::Kind::Vector) return put_together(builder, at, bits);
  const std::string& from = at.operands[1].name;
  if (at.operands[1].kind == Operand::Kind::Special && (from.starts_with("%clock") || from.starts_with("%globaltimer"))) {
    const Row dst = builder.write(at, 0, bits);
    builder.add(bits == 32 ? run_clock<std::uint32_t> : run_clock<std::uint64_t>).dst = dst;
    return;
  }
  const Row a = builder.read(at, 1, bits);
  add_move(builder, builder.write(at, 0, bits), a, bits);
}

// Generic addresses of shared and local memory lie in their windows; all other spaces have generic addresses anyway.
void run_to_generic(const Op& op, Warp& warp, LaneMask lanes) {
  auto* d = warp.row<std::uint64_t>(op.dst);
  const auto* a = warp.row<std::uint64_t>(op.a);
  const std::uint64_t begin = window_begin(static_cast<std::uint64_t>(op.number));
  for_lanes(lanes, [&](int lane) { d[lane] = a[lane] + begin; });
}
void run_from_generic(const Op& op, Warp& warp, LaneMask lanes) {
  auto* d = warp.row<std::uint64_t>(op.dst);
  const auto* a = warp.row<std::uint64_t>(op.a);
  const std::uint64_t begin = window_begin(static_cast<std::uint64_t>(op.number));
  for_lanes(lanes, [&](int lane) { d[lane] = a[lane] - begin; });
}

void decode_address(Builder& builder, const Instruction& at) {
  if (bits_of(builder.type_of(at)) != 64) builder.unsupported("addresses of 32 bits");
  const Row a = builder.read(at, 1, 64);
  const Row dst = builder.write(at, 0, 64);
  const bool is_shared = at.has("shared") || at.has("shared::cta");
  if (at.has("shared::cluster")) builder.unsupported();
  if (!is_shared && !at.has("local")) return add_move(builder, dst, a, 64);
  Op& op = builder.add(at.has("to") ? run_from_generic : run_to_generic);
  op.dst = dst;
  op.a = a;
  op.number = static_cast<std::int32_t>(is_shared ? shared_window : local_window);
}

void run_is_in_space(const Op& op, Warp& warp, LaneMask lanes) {
  const auto* a = warp.row<std::uint64_t>(op.a);
  LaneMask result = 0;
  for_lanes(lanes, [&](int lane) {
    const std::uint64_t window = window_of(a[lane]);
    const bool is = op.number >= static_cast<std::int32_t>(first_window) ? window >= first_window : window == static_cast<std::uint64_t>(op.number);
    result |= is ? 1u << lane : 0u;
  });
  LaneMask& d = warp.predicate(op.dst);
  d = (d & ~lanes) | result;
}

void decode_space(Builder& builder, const Instruction& at) {
  if (at.has("const") || at.has("param") || at.has("shared::cluster")) builder.unsupported();
  const Row a = builder.read(at, 1, 64);
  const Row dst = builder.write(at, 0, 1);
  Op& op = builder.add(run_is_in_space);
  op.dst = dst;
  op.a = a;
  op.number = static_cast<std::int32_t>(at.has("global") ? first_window : at.has("local") ? local_window : shared_window);
}

constexpr DecodeRow rows[] = {{"mov", decode_move}, {"cvta", decode_address}, {"isspacep", decode_space}};

}  // namespace

std::span<const DecodeRow> move_rows() { return rows; }

}  // namespace tilewright::ptx
