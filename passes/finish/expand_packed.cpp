// Register buffers of 16-bit elements that outlive the statement which makes them: two elements a word, as stmatrix takes them.
//
//   before   reg Cw: bf16[i 128, j 256] (…; j: 32 reg*4, 4 lane, 2 reg)      each i, j { Cw[i, j] = bf16(acc[i, j]) }
//            copy Cs[…] <- Cw[Cs.i, j.store*64 + Cs.j]
//   after    reg Cw: u32[64]                                                 unroll w in 64 { Cw[w] = bf16x2(acc[w*2], acc[w*2 + 1]) }
//            stmatrix.x4(Cs[…], Cw[j.store*16 + c*4], …)
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

// Whether neighbours of the last axis lie in two registers, and all other registers are counted in pairs.
bool lies_in_pairs(const Buffer& buffer) {
  if (buffer.space != Space::Register || (buffer.dtype != Dtype::BF16 && buffer.dtype != Dtype::F16) || !buffer.layout || buffer.layout->axes.empty()) return false;
  const std::vector<Factor>& last = buffer.layout->axes.back().factors;
  if (last.empty() || last.back() != Factor{2, Place::Reg, 1}) return false;
  for (const AxisLayout& axis : buffer.layout->axes)
    for (const Factor& factor : axis.factors)
      if (factor.place == Place::Reg && factor != last.back() && factor.stride % 2 != 0) return false;
  return true;
}

// The one store of an `each` over the whole buffer, element by element.
const Store* makes_whole(const Stmt& stmt, const Buffer& buffer) {
  const Loop* loop = as<Loop>(stmt);
  const Store* store = loop && loop->kind == LoopKind::Each && loop->body.size() == 1 ? as<Store>(loop->body[0]) : nullptr;
  if (!store || store->target.buffer != buffer.name || store->atomic || !store->where.empty() || store->target.index.size() != buffer.axes.size() ||
      loop->axes.size() != buffer.axes.size())
    return nullptr;
  for (std::size_t n = 0; n < buffer.axes.size(); ++n) {
    const Var* index = as<Var>(store->target.index[n]);
    if (!index || index->name != loop->axes[n].name || integer_value(loop->axes[n].hi) != buffer.axes[n].extent) return nullptr;
  }
  return uses_buffer(store->value, buffer.name) ? nullptr : store;
}

}  // namespace

// Buffers that are made whole and read by copies into shared memory by stmatrix only.
void Expander::find_packed() {
  for (const Buffer& buffer : context_.buffers) {
    if (!lies_in_pairs(buffer)) continue;
    int made = 0, copied = 0;
    bool others = false;
    walk(kernel_.body, [&](const Stmt& stmt) {
      if (makes_whole(stmt, buffer)) {
        ++made;
        return false;
      }
      const Copy* copy = as<Copy>(stmt);
      if (copy && copy->source.buffer == buffer.name) {
        const Buffer* target = context_.flattener.find(copy->target.buffer);
        ++copied;
        others |= !target || target->space != Space::Shared || !copy->where.empty() || !leaves_by_stmatrix(buffer, *target, *copy);
        return false;
      }
      if (!as<Loop>(stmt) && !as<If>(stmt) && !as<Labelled>(stmt) && !as<Buffer>(stmt)) others |= touches({stmt}, buffer.name);
      return true;
    });
    // With one copy the elements are computed where it packs them (define_for_copy).
    if (made == 1 && copied > 1 && !others) packed_.insert(buffer.name);
  }
}

bool Expander::packed_declaration(const Buffer& buffer, Span span, Block& out) const {
  if (packed_.count(buffer.name) == 0) return false;
  const std::int64_t words = extent_of(*buffer.layout, Place::Reg) / 2;
  out.push_back(make_stmt(Buffer{Space::Register, buffer.name, Dtype::U32, {BufferAxis{"", words}}, std::nullopt, std::nullopt}, span));
  return true;
}

bool Expander::packed_each(const Loop& loop, Span span, Block& out) {
  const Store* store = loop.body.size() == 1 ? as<Store>(loop.body[0]) : nullptr;
  if (!store || packed_.count(store->target.buffer) == 0) return false;
  const Buffer& buffer = *context_.flattener.find(store->target.buffer);
  std::string word = context_.fresh("w");
  Axis axis{word, integer(0), integer(extent_of(*buffer.layout, Place::Reg) / 2), {}, span};
  Ranges ranges = context_.ranges;
  add_axis(ranges, axis);
  ranges["lane"] = Interval{0, 31};
  std::vector<Expr> pair;
  for (std::int64_t in_row = 0; in_row < 2; ++in_row) {
    std::vector<Expr> coordinates = fragment_coordinates(buffer, var(word), integer(in_row), false);
    std::vector<std::pair<std::string, Expr>> replacements;
    for (std::size_t n = 0; n < coordinates.size(); ++n) replacements.emplace_back(loop.axes[n].name, tidy(simplify_expr(coordinates[n], ranges)));
    Expr value = tidy(simplify_expr(context_.flattener.flat(substitute(store->value, replacements)), ranges));
    const Cast* rounded = as<Cast>(value);
    pair.push_back(rounded && rounded->operand->dtype == Dtype::F32 ? rounded->operand : cast(Dtype::F32, value));
  }
  Expr packed = call(buffer.dtype == Dtype::BF16 ? "bf16x2" : "f16x2", std::move(pair), Dtype::U32, span);
  Stmt assignment = make_stmt(Store{Access{buffer.name, {var(word)}, {}, span}, std::move(packed), {}, std::nullopt}, span);
  out.push_back(make_stmt(Loop{LoopKind::Unroll, {axis}, std::nullopt, {std::move(assignment)}}, span));
  return true;
}

// The word of two elements, given as loads of the registers that they would have alone.
Expr Expander::packed_word(const Expr& low, const Expr& high) const {
  const Load* first = as<Load>(low);
  const Load* second = as<Load>(high);
  if (!first || !second || first->access.index.size() != 1 || second->access.index.size() != 1) internal_error("a packed register is not loaded by its number");
  std::optional<Expr> word = exact_quotient(first->access.index[0], 2);
  if (!word || !(tidy(second->access.index[0]) == tidy(first->access.index[0] + 1)))
    internal_error(fmt::format("registers {} and {} are no word", print(first->access.index[0]), print(second->access.index[0])));
  return load(Access{first->access.buffer, {*word}, {}, low->span}, Dtype::U32, low->span);
}

}  // namespace tilewright
