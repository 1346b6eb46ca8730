// `reduce` in the program of each thread.
//
//   before   reduce acc <- + acc.part[d, d.by]        with acc.part: f32[d 256, d.by 4] (d: 256 thread.x; d.by: 4 reg)
//   after    acc.fold = acc.part[0]; acc.fold = acc.fold + acc.part[1]; …                  a thread's own
//            acc.fold = acc.fold + shuffle.xor(acc.fold, 16); … 8, 4, 2, 1                  lanes by halves
//            if thread.x % 32 == 0 { acc.shared[thread.x / 32] = acc.fold }                 warps in order
//            acc.fold = acc.shared[0]; acc.fold = acc.fold + acc.shared[1]; …
//            acc = acc.fold
//
// The order is that of ir/fold_order.h. Every thread of those that hold an element of the result has it.
#include <algorithm>

#include "ir/fold_order.h"
#include "ir/operators.h"
#include "passes/finish/expander.h"

namespace tilewright {

namespace {

constexpr std::int64_t warp_lanes = 32;
constexpr std::int64_t most_written_out = 32;  // values that are read one after the other without a loop

// Steps of the linear thread index between neighbours of a digit.
std::int64_t linear_stride(const FoldDigit& digit, const BlockShape& block) {
  if (digit.place == Place::ThreadY) return digit.place_stride * block.x;
  if (digit.place == Place::ThreadZ) return digit.place_stride * block.x * block.y;
  if (digit.place == Place::Warp) return digit.place_stride * warp_lanes;
  if (digit.place == Place::Warpgroup) return digit.place_stride * warp_lanes * 4;
  return digit.place_stride;
}

// The coordinates of number `n` of the digits, for axes counted from 0.
void add_coordinates(const std::vector<FoldDigit>& digits, std::int64_t n, std::vector<std::int64_t>& coordinates) {
  std::int64_t inner = count(digits);
  for (const FoldDigit& digit : digits) {
    inner /= digit.extent;
    coordinates[digit.axis] += n / inner % digit.extent * digit.stride;
  }
}

// One value of the result, from the thread's own elements to the last shared one.
class FoldExpansion {
 public:
  FoldExpansion(ExpandContext& context, const Fold& fold, const Buffer& source, FoldOrder order, Span span)
      : context_(context), fold_(fold), source_(source), order_(std::move(order)), span_(span),
        value_{context.fresh(fold.target.buffer + ".fold"), {}, {}, span} {}

  void declare(Block& out) {
    out.push_back(make_stmt(Buffer{Space::Register, value_.buffer, source_.dtype, {}, std::nullopt, std::nullopt}, span_));
    if (order_.others.empty()) return;
    by_warps_ = count(order_.lanes) == warp_lanes;
    shared_ = context_.fresh(fold_.target.buffer + ".shared");
    const std::int64_t cells = context_.block.total() / (by_warps_ ? warp_lanes : 1);
    out.push_back(make_stmt(Buffer{Space::Shared, shared_, source_.dtype, {{"", cells}}, std::nullopt, std::nullopt}, span_));
  }

  // `kept`: the coordinates of the result's own registers; the element of the result goes to `target`.
  void one_result(const std::vector<std::int64_t>& kept, const Access& target, Block& out) const {
    set(element(kept, 0), out);
    for (std::int64_t n = 1; n < count(order_.registers); ++n) set(joined(element(kept, n)), out);
    for (const FoldDigit& digit : order_.lanes)
      for (std::int64_t half = digit.extent / 2; half >= 1; half /= 2)
        set(joined(call("shuffle.xor", {value(), integer(half * digit.place_stride, Dtype::I32)}, source_.dtype, span_)), out);
    if (!order_.others.empty()) over_shared_memory(out);
    out.push_back(make_stmt(Store{target, value(), {}, std::nullopt}, span_));
  }

 private:
  Expr value() const { return load(value_, source_.dtype, span_); }
  Expr joined(const Expr& next) const { return combine(fold_.op, value(), next); }
  void set(const Expr& value, Block& out) const { out.push_back(make_stmt(Store{value_, value, {}, std::nullopt}, span_)); }

  Expr element(std::vector<std::int64_t> coordinates, std::int64_t own) const {
    add_coordinates(order_.registers, own, coordinates);
    Access access{source_.name, {}, {}, span_};
    for (std::int64_t coordinate : coordinates) access.index.push_back(integer(coordinate));
    return context_.flattener.flat(load(access, source_.dtype, span_));
  }

  Expr digit_of(const FoldDigit& digit) const {
    return binary(BinaryOp::Mod, binary(BinaryOp::Div, linear_thread(context_.block), integer(linear_stride(digit, context_.block))), integer(digit.extent));
  }

  // One thread of each group of lanes writes; each reads what its group of threads wrote.
  void over_shared_memory(Block& out) const {
    const std::int64_t per_cell = by_warps_ ? warp_lanes : 1;
    const Expr linear = linear_thread(context_.block);
    const Expr cell = per_cell == 1 ? linear : binary(BinaryOp::Div, linear, integer(per_cell));
    std::vector<Expr> is_first;
    Expr base = cell;
    if (by_warps_) is_first.push_back(binary(BinaryOp::Eq, binary(BinaryOp::Mod, linear, integer(warp_lanes)), integer(0)));
    for (const FoldDigit& digit : order_.lanes) {
      if (by_warps_) break;
      is_first.push_back(binary(BinaryOp::Eq, digit_of(digit), integer(0)));
      base = base - digit_of(digit) * linear_stride(digit, context_.block);
    }
    for (const FoldDigit& digit : order_.others) base = base - digit_of(digit) * (linear_stride(digit, context_.block) / per_cell);
    const bool is_one_group = count(order_.lanes) * count(order_.others) == context_.block.total();
    if (is_one_group) base = integer(0);

    Stmt write = make_stmt(Store{shared(cell), value(), {}, std::nullopt}, span_);
    if (Expr condition = all_of(is_first)) write = when(condition, {write}, span_);
    out.push_back(write);
    set(load(shared(base), source_.dtype, span_), out);
    const std::int64_t values = count(order_.others);
    if (order_.others.size() == 1 && values > most_written_out) {
      const std::string name = context_.fresh(fold_.target.buffer + ".n");
      const Axis axis{name, integer(1), integer(values), {}, span_};
      Block body;
      set(joined(load(shared(base + var(name) * (linear_stride(order_.others[0], context_.block) / per_cell)), source_.dtype, span_)), body);
      out.push_back(make_stmt(Loop{LoopKind::Serial, {axis}, std::nullopt, std::move(body)}, span_));
      return;
    }
    for (std::int64_t n = 1; n < values; ++n) {
      std::int64_t offset = 0;
      std::int64_t inner = values;
      for (const FoldDigit& digit : order_.others) {
        inner /= digit.extent;
        offset += n / inner % digit.extent * (linear_stride(digit, context_.block) / per_cell);
      }
      set(joined(load(shared(base + offset), source_.dtype, span_)), out);
    }
  }

  Access shared(const Expr& cell) const { return Access{shared_, {cell}, {}, span_}; }

  ExpandContext& context_;
  const Fold& fold_;
  const Buffer& source_;
  FoldOrder order_;
  Span span_;
  Access value_;
  std::string shared_;
  bool by_warps_ = false;  // a cell of shared memory is a whole warp's
};

}  // namespace

void Expander::reduce(const Fold& fold, const Stmt& stmt, Block& out) {
  const Buffer* source = context_.flattener.find(fold.source.buffer);
  const Buffer* target = context_.flattener.find(fold.target.buffer);
  if (!source || !target || !source->layout) refuse(stmt, "a `reduce` of registers without a layout");
  if (context_.block.first != 0 || context_.block.total() != whole_.total()) refuse(stmt, "a `reduce` by the threads of a role");
  std::vector<std::size_t> folded;
  std::vector<FoldDigit> kept_registers;
  for (std::size_t n = 0; n < fold.source.index.size(); ++n) {
    const bool is_kept = std::find(fold.target.index.begin(), fold.target.index.end(), fold.source.index[n]) != fold.target.index.end();
    if (!is_kept) folded.push_back(n);
    std::int64_t stride = source->axes[n].extent;
    for (const Factor& factor : source->layout->axes[n].factors) {
      stride /= factor.extent;
      if (is_kept && factor.place == Place::Reg && factor.extent > 1) kept_registers.push_back({n, factor.extent, stride, Place::Reg, factor.stride});
    }
  }
  auto order = fold_order(*source->layout, folded);
  const bool has_aligned_lanes = context_.block.x % warp_lanes == 0 || warp_lanes % context_.block.x == 0;
  if (!order || context_.block.total() % warp_lanes != 0 || (!order->lanes.empty() && !has_aligned_lanes))
    refuse(stmt, "a `reduce` over lanes in other numbers than powers of two");

  FoldExpansion expansion(context_, fold, *source, *order, stmt->span);
  expansion.declare(out);
  for (std::int64_t n = 0; n < count(kept_registers); ++n) {
    std::vector<std::int64_t> kept(source->axes.size(), 0);
    add_coordinates(kept_registers, n, kept);
    Access place{target->name, {}, {}, stmt->span};
    for (const Expr& index : fold.target.index) {
      const auto at = std::find(fold.source.index.begin(), fold.source.index.end(), index) - fold.source.index.begin();
      place.index.push_back(integer(kept.at(static_cast<std::size_t>(at))));
    }
    expansion.one_result(kept, context_.flattener.flat(place), out);
  }
}

}  // namespace tilewright
