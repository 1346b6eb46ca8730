// Results through shared memory: registers into a swizzled tile, the tile stored by the copy engine.
//
//   before   each i in 128, j in 64 { Cr[i, j] = bf16(acc[i, j.store*64 + j]) }
//            acquire q; copy Cs[q.in, Cs.i, Cs.j] <- Cr[Cs.i, Cs.j]; commit q
//            wait q; copy C[…; skip] <- Cs[q.out, Cs.i, Cs.j]; release q              (pipe q: Cs slots 2 via tma.store)
//   after    if t == 0 { bulk.wait_group.read(1) }; barrier.named(1 + wg, 128)
//            unroll c in 4 { stmatrix.x4(Cs[j.store % 2, …], bf16x2(acc[…], acc[…]), …) }
//            barrier.named(1 + wg, 128)
//            if t == 0 { tma.store.2d(mC, …, Cs[j.store % 2, wg*4096]); bulk.commit() }
//
// Where the rows of a slot belong to one warpgroup each, box, barrier and thread are the warpgroup's, else the role's.
// stmatrix is used where registers are fragments of 8 x 8 elements of 16 bits, else every element is stored by itself. Values
// that are made for one such copy only are computed where they are packed.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

bool has_warpgroups(const AxisLayout& axis) {
  return std::any_of(axis.factors.begin(), axis.factors.end(), [](const Factor& factor) { return factor.place == Place::Warpgroup && factor.extent > 1; });
}

// Warpgroups that hold neighbouring rows of the first axis each, and nothing else.
std::int64_t warpgroups_by_rows(const Layout& layout) {
  const Factor& first = layout.axes[0].factors[0];
  bool by_rows = first.place == Place::Warpgroup && first.stride == 1;
  for (std::size_t n = 1; n < layout.axes.size(); ++n) by_rows &= !has_warpgroups(layout.axes[n]);
  std::int64_t count = 0;
  for (const Factor& factor : layout.axes[0].factors) count += factor.place == Place::Warpgroup;
  return by_rows && count == 1 ? first.extent : 1;
}

}  // namespace

// How many parts of a slot are stored by a warpgroup each: of a pipe whose slots are only written from registers.
std::int64_t Expander::parts_of_store(const Pipe& pipe) const {
  std::int64_t parts = 0;
  walk(kernel_.body, [&](const Stmt& stmt) {
    const Copy* copy = as<Copy>(stmt);
    const Store* store = as<Store>(stmt);
    bool fills = (copy && copy->target.buffer == pipe.buffers[0]) || (store && store->target.buffer == pipe.buffers[0]);
    if (!fills) return true;
    const Buffer* source = copy ? context_.flattener.find(copy->source.buffer) : nullptr;
    std::int64_t own = source && source->space == Space::Register && source->layout ? warpgroups_by_rows(*source->layout) : 1;
    parts = parts == 0 || parts == own ? own : 1;
    return true;
  });
  return pipe.buffers.size() == 1 ? std::max<std::int64_t>(1, parts) : 1;
}

// Whether every slot is acquired in an unrolled loop of whole rounds, so that its number is a constant there.
bool Expander::is_unrolled(const Pipe& pipe) const {
  int acquired = 0, unrolled = 0;
  walk(kernel_.body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    const Verb* own = as<Verb>(stmt);
    acquired += own && own->pipe == pipe.name && own->kind == VerbKind::Acquire;
    bool is_round = loop && loop->kind == LoopKind::Unroll && loop->axes.size() == 1 && is_integer_constant(loop->axes[0].lo ? loop->axes[0].lo : integer(0), 0) &&
                    !loop->axes[0].step && integer_value(loop->axes[0].hi).value_or(1) % pipe.slots == 0;
    if (!is_round) return true;
    for (const Stmt& inner : loop->body) {
      const Verb* verb = as<Verb>(inner);
      unrolled += verb && verb->pipe == pipe.name && verb->kind == VerbKind::Acquire;
    }
    return true;
  });
  return acquired > 0 && acquired == unrolled;
}

void Expander::sync_storers(const PipeState& state, Span span, Block& out) {
  if (state.parts > 1) {
    out.push_back(instruction("barrier.named", {integer(1) + warpgroup_of_block(), integer(128)}, span));
  } else if (context_.block == whole_) {
    out.push_back(instruction("barrier.block", {}, span));
  } else {
    // Behind those of warpgroups; a role is named by its first warpgroup.
    std::int64_t number = 1 + whole_.total() / 128 + context_.block.first / 128;
    out.push_back(instruction("barrier.named", {integer(number), integer(context_.block.total())}, span));
  }
}

Expr Expander::is_storer(const PipeState& state, Span span) {
  return binary(BinaryOp::Eq, state.parts > 1 ? thread_of_warpgroup(span) : linear_thread(context_.block), integer(0));
}

void Expander::store_verb(const PipeState& state, VerbKind kind, Span span, Block& out) {
  switch (kind) {
    case VerbKind::Acquire:
      if (has_fresh_slots(state)) return;
      acquired_.insert(state.pipe.name);
      out.push_back(when(is_storer(state, span), {instruction("bulk.wait_group.read", {integer(state.pipe.slots - 1)}, span)}, span));
      sync_storers(state, span, out);
      return;
    case VerbKind::Commit:  // the proxy fence in front of the barrier is that of the pass `fence`
      sync_storers(state, span, out);
      advance(state, ".in", span, out);
      return;
    case VerbKind::Wait: return;
    case VerbKind::Release:
      stores_.push_back(instruction("bulk.commit", {}, span));
      out.push_back(when(is_storer(state, span), std::exchange(stores_, {}), span));
      advance(state, ".out", span, out);
      return;
  }
}

void Expander::store_by_engine(const PipeState& state, const Copy& copy, const Stmt& stmt) {
  bool is_clipped = copy.target.rule.kind == Rule::Kind::None || copy.target.rule.kind == Rule::Kind::Skip;
  if (!is_clipped || !copy.where.empty() || copy.source.rule.kind != Rule::Kind::None)
    throw UserError(stmt->span, "the copy engine leaves out what lies outside the tensor, and knows no other condition");
  EngineCopy engine = engine_copy(copy.source, copy.target, state.parts > 1 ? warpgroup() : Expr{}, state.parts, Share::Rows, stmt);
  Instr instr{fmt::format("tma.store.{}d", engine.rank), engine.operands};
  instr.operands.push_back(engine.place);
  emit(engine, std::move(instr), stmt->span, stores_);
}

// ---- Registers into shared memory

namespace {

// Register buffers of 16-bit elements in 8 x 8 fragments: lane l has row l / 4, columns 2*(l % 4) and one further.
struct Fragments {
  std::int64_t words = 0;  // of a thread, a pair of elements each
};

bool ends_in(const AxisLayout& axis, const std::vector<Factor>& own) {
  return axis.factors.size() >= own.size() && std::equal(own.begin(), own.end(), axis.factors.end() - static_cast<std::ptrdiff_t>(own.size()));
}

// Whether the last axis is contiguous in both: of registers in pairs, of memory in rows.
bool is_row_by_row(const Buffer& source, const Buffer& target, const Copy& copy, std::int64_t elements) {
  const Var* column = copy.source.index.size() == 2 ? as<Var>(copy.source.index[1]) : nullptr;
  const Var* last = copy.target.index.empty() ? nullptr : as<Var>(copy.target.index.back());
  if (!source.layout || !target.layout || source.layout->axes.size() != 2 || !column || !last || column->name != last->name) return false;
  const Factor& inner = target.layout->axes.back().factors.back();
  if (inner.place != Place::Mem || inner.stride != 1 || inner.extent % elements != 0) return false;
  std::int64_t registers = 1;
  for (const AxisLayout& axis : source.layout->axes)
    for (const Factor& factor : axis.factors) {
      if (factor.place != Place::Reg) continue;
      registers *= factor.extent;
      if (factor != Factor{2, Place::Reg, 1} && factor.stride % 2 != 0) return false;
    }
  return ends_in(source.layout->axes[1], {{2, Place::Reg, 1}}) && registers == extent_of(*source.layout, Place::Reg);
}

// Whether pairs of registers are neighbours in memory, of 8 bytes at most.
bool has_pairs(const Buffer& source, const Buffer& target, const Copy& copy) {
  return bytes_of(source.dtype) <= 4 && is_row_by_row(source, target, copy, 2);
}

std::optional<Fragments> fragments_of(const Buffer& source, const Buffer& target, const Copy& copy) {
  if ((source.dtype != Dtype::BF16 && source.dtype != Dtype::F16) || !is_row_by_row(source, target, copy, 8)) return std::nullopt;
  Fragments result;
  if (!ends_in(source.layout->axes[0], {{8, Place::Lane, 4}}) || !ends_in(source.layout->axes[1], {{4, Place::Lane, 1}, {2, Place::Reg, 1}})) return std::nullopt;
  for (const AxisLayout& axis : source.layout->axes)
    for (const Factor& factor : axis.factors)
      if (factor.place != Place::Reg && factor.place != Place::Lane && factor.place != Place::Warp && factor.place != Place::Warpgroup) return std::nullopt;
  std::int64_t registers = extent_of(*source.layout, Place::Reg);
  if (registers % 8 != 0) return std::nullopt;
  result.words = registers / 2;
  return result;
}

}  // namespace

// The coordinates that a thread's register pair number `word` holds; `in_row` which of the two.
std::vector<Expr> Expander::fragment_coordinates(const Buffer& source, const Expr& word, const Expr& in_row, bool as_address) const {
  std::vector<Expr> result;
  for (const AxisLayout& axis : source.layout->axes) {
    std::vector<WalkedFactor> walked;
    for (std::size_t n = 0; n < axis.factors.size(); ++n) {
      const Factor& factor = axis.factors[n];
      if (factor.place == Place::Reg && factor.stride == 1) walked.push_back({n, in_row});
      else if (factor.place == Place::Reg)
        walked.push_back({n, binary(BinaryOp::Mod, binary(BinaryOp::Div, word, integer(factor.stride / 2)), integer(factor.extent))});
      else if (factor.place == Place::Lane && as_address)
        walked.push_back({n, factor.stride == 4 ? binary(BinaryOp::Mod, var("lane"), integer(8)) : integer(0)});
    }
    result.push_back(coordinate(axis, context_.block, walked));
  }
  return result;
}

// The slice of a register buffer that a copy takes. Nothing where it takes the buffer whole, or a part that is no slice of
// every thread's registers.
std::optional<Expander::Slice> Expander::slice_taken(const Buffer& source, const Copy& copy) const {
  std::size_t axis = copy.source.index.size();
  Expr offset, inner;
  for (std::size_t n = 0; n < copy.source.index.size(); ++n) {
    const Binary* sum = as<Binary>(copy.source.index[n]);
    if (as<Var>(copy.source.index[n])) continue;
    if (!sum || sum->op != BinaryOp::Add || !as<Var>(sum->rhs) || axis < n || !source.layout) return std::nullopt;
    axis = n;
    offset = sum->lhs;
    inner = sum->rhs;
  }
  if (axis == copy.source.index.size()) return std::nullopt;
  const Buffer* target = context_.flattener.find(copy.target.buffer);
  std::int64_t size = 0;
  for (std::size_t n = 0; target && n < copy.target.index.size(); ++n)
    if (copy.target.index[n] == inner) size = target->axes[n].extent;
  std::optional<Layout> layout = size > 0 && exact_quotient(offset, size) ? sliced(*source.layout, axis, size) : std::nullopt;
  if (!layout) return std::nullopt;
  Slice result{source, axis, offset, inner};
  result.buffer.axes[axis].extent = size;
  result.buffer.layout = std::move(layout);
  return result;
}

// Whether the copy's registers leave by stmatrix.
bool Expander::leaves_by_stmatrix(const Buffer& source, const Buffer& target, const Copy& copy) const {
  const std::optional<Slice> slice = slice_taken(source, copy);
  Copy alone = copy;
  if (slice) alone.source.index[slice->axis] = slice->inner;
  return fragments_of(slice ? slice->buffer : source, target, alone).has_value();
}

// A copy of a slice of a register buffer, as one of a buffer of the slice whose elements are defined by the whole one's; the
// copy then names that.
std::optional<Buffer> Expander::slice_of(const Buffer& source, Copy& copy) {
  std::optional<Slice> taken = slice_taken(source, copy);
  if (!taken) return std::nullopt;
  const auto& [shape, axis, offset, inner] = *taken;
  Buffer slice = shape;
  slice.name = context_.fresh(source.name + ".slice");
  Definition definition;
  std::vector<Expr> index;
  for (std::size_t n = 0; n < slice.axes.size(); ++n) {
    const Var* name = as<Var>(n == axis ? inner : copy.source.index[n]);
    definition.axes.push_back(name->name);
    index.push_back(n == axis ? offset + inner : copy.source.index[n]);
  }
  definition.value = load(Access{source.name, index, {}, copy.source.span}, source.dtype, copy.source.span);
  definitions_[slice.name] = std::move(definition);
  copy.source.buffer = slice.name;
  copy.source.index[axis] = inner;
  return slice;
}

bool Expander::copy_from_registers(const Copy& whole_copy, const Stmt& stmt, Block& out) {
  Copy copy = whole_copy;
  const Buffer* source = context_.flattener.find(copy.source.buffer);
  const Buffer* target = context_.flattener.find(copy.target.buffer);
  if (!source || !target || source->space != Space::Register || target->space != Space::Shared) return false;
  std::optional<Buffer> slice = slice_of(*source, copy);
  if (slice) source = &*slice;
  if (copy.source.index.size() != source->axes.size() || !copy.where.empty()) refuse(stmt, "a copy of a part of a register buffer");
  auto at = [&](const std::vector<Expr>& coordinates) {
    std::vector<std::pair<std::string, Expr>> result;
    for (std::size_t n = 0; n < coordinates.size(); ++n)
      if (const Var* name = as<Var>(copy.source.index[n])) result.emplace_back(name->name, coordinates[n]);
    return result;
  };
  auto fragments = fragments_of(*source, *target, copy);
  if (!fragments && has_pairs(*source, *target, copy)) {
    std::string word = context_.fresh("c");
    std::int64_t words = extent_of(*source->layout, Place::Reg) / 2;
    Axis axis{word, integer(0), integer(words), {}, stmt->span};
    Ranges ranges = context_.ranges;
    add_axis(ranges, axis);
    Access place = context_.flattener.flat(map_access(copy.target, [&](const Expr& index) { return substitute(index, at(fragment_coordinates(*source, var(word), integer(0), false))); }));
    place.index.back() = tidy(simplify_expr(place.index.back(), ranges));
    Access pair{source->name, {var(word) * 2}, {}, stmt->span};
    if (slice) {  // its elements are those of the whole buffer
      const Definition& whole = definitions_.at(source->name);
      std::vector<std::pair<std::string, Expr>> replacements;
      const std::vector<Expr> coordinates = fragment_coordinates(*source, var(word), integer(0), false);
      for (std::size_t n = 0; n < coordinates.size(); ++n) replacements.emplace_back(whole.axes[n], coordinates[n]);
      pair = context_.flattener.flat(as<Load>(substitute(whole.value, replacements))->access);
      pair.index.back() = tidy(simplify_expr(pair.index.back(), ranges));
    }
    Stmt store = vector_store(place, pair, 2, source->dtype, stmt->span);
    out.push_back(make_stmt(Loop{LoopKind::Unroll, {axis}, std::nullopt, {store}}, stmt->span));
    return true;
  }
  if (!fragments) {
    Loop each_element{LoopKind::Each, {}, std::nullopt, {}};
    std::vector<Expr> names;
    for (const BufferAxis& axis : source->axes) {
      each_element.axes.push_back(Axis{axis.name, integer(0), integer(axis.extent), {}, stmt->span});
      names.push_back(var(axis.name));
    }
    Access place = map_access(copy.target, [&](const Expr& index) { return substitute(index, at(names)); });
    each_element.body = {make_stmt(Store{place, load(Access{source->name, names, {}, stmt->span}, source->dtype, stmt->span), {}, std::nullopt}, stmt->span)};
    each(each_element, stmt->span, out);
    return true;
  }

  std::string group = context_.fresh("c");
  Axis axis{group, integer(0), integer(fragments->words / 4), {}, stmt->span};
  Ranges ranges = context_.ranges;
  add_axis(ranges, axis);
  ranges["lane"] = Interval{0, 31};
  auto simple = [&](const Expr& expr) { return tidy(simplify_expr(expr, ranges)); };
  Expr row_of_lane = var(group) * 4 + binary(BinaryOp::Div, var("lane"), integer(8));
  std::vector<Expr> address = fragment_coordinates(*source, row_of_lane, integer(0), true);
  for (Expr& index : address) index = simple(index);
  Access place = context_.flattener.flat(map_access(copy.target, [&](const Expr& index) { return substitute(index, at(address)); }));
  place.index.back() = simple(place.index.back());
  std::vector<Expr> operands = {load(place, target->dtype, stmt->span)};
  auto definition = definitions_.find(source->name);
  bool is_packed = packed_.count(whole_copy.source.buffer) > 0;
  for (std::int64_t word = 0; word < 4; ++word) {
    std::vector<Expr> pair;
    for (std::int64_t in_row = 0; in_row < 2; ++in_row) {
      Expr number = simple(var(group) * 4 + word);
      Expr value = load(Access{source->name, {simple(number * 2 + in_row)}, {}, stmt->span}, source->dtype, stmt->span);
      if (definition != definitions_.end()) {
        std::vector<Expr> coordinates = fragment_coordinates(*source, number, integer(in_row), false);
        std::vector<std::pair<std::string, Expr>> replacements;
        for (std::size_t n = 0; n < coordinates.size(); ++n) replacements.emplace_back(definition->second.axes[n], simple(coordinates[n]));
        value = simple(context_.flattener.flat(substitute(definition->second.value, replacements)));
      }
      if (is_packed) {
        pair.push_back(value);
        continue;
      }
      const Cast* rounded = as<Cast>(value);
      pair.push_back(rounded && rounded->operand->dtype == Dtype::F32 ? rounded->operand : cast(Dtype::F32, value));
    }
    if (is_packed) operands.push_back(packed_word(pair[0], pair[1]));
    else operands.push_back(call(source->dtype == Dtype::BF16 ? "bf16x2" : "f16x2", std::move(pair), Dtype::U32, stmt->span));
  }
  out.push_back(make_stmt(Loop{LoopKind::Unroll, {axis}, std::nullopt, {instruction("stmatrix.x4", std::move(operands), stmt->span)}}, stmt->span));
  return true;
}

// An `each` that makes a register buffer for the next copy into shared memory only: computed where that copy packs it.
bool Expander::define_for_copy(const Block& statements, std::size_t at) {
  const Loop* loop = as<Loop>(statements[at]);
  const Store* store = loop && loop->kind == LoopKind::Each && loop->body.size() == 1 ? as<Store>(loop->body[0]) : nullptr;
  const Buffer* made = store && !store->atomic ? context_.flattener.find(store->target.buffer) : nullptr;
  if (!made || made->space != Space::Register || made->axes.size() != loop->axes.size() || store->target.index.size() != made->axes.size()) return false;
  Definition definition;
  for (std::size_t n = 0; n < loop->axes.size(); ++n) {
    const Var* index = as<Var>(store->target.index[n]);
    if (!index || index->name != loop->axes[n].name || integer_value(loop->axes[n].hi) != made->axes[n].extent) return false;
    definition.axes.push_back(index->name);
  }
  definition.value = store->value;
  std::size_t next = at + 1;
  while (next < statements.size() && as<Verb>(statements[next])) ++next;
  const Copy* copy = next < statements.size() ? as<Copy>(statements[next]) : nullptr;
  const Buffer* target = copy ? context_.flattener.find(copy->target.buffer) : nullptr;
  if (!target || copy->source.buffer != made->name || !fragments_of(*made, *target, *copy)) return false;
  int uses = 0;
  walk(kernel_.body, [&](const Stmt& stmt) {
    const Copy* other = as<Copy>(stmt);
    const Store* write = as<Store>(stmt);
    uses += (other && (other->source.buffer == made->name || other->target.buffer == made->name)) || (write && write->target.buffer == made->name);
    map_expressions(stmt, [&](const Expr& expr) {
      uses += uses_buffer(expr, made->name);
      return expr;
    });
    return true;
  });
  if (uses != 2) return false;
  definitions_[made->name] = std::move(definition);
  return true;
}

}  // namespace tilewright
