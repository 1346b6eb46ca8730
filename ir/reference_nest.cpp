// Tile operations as nests; see reference_nest.h.
#include "ir/reference_nest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "ir/fold_order.h"
#include "ir/operators.h"

namespace tilewright {

namespace {

TensorInfo storage_of(const std::string& name, const NestNames& names) {
  auto found = names.storage(name);
  if (!found) internal_error(fmt::format("a tile operation on `{}`, which nothing declares", name));
  return *std::move(found);
}

// Bare names among the indices that are no variables: each is a loop over the axis that it indexes.
void add_new_axes(const Access& access, const NestNames& names, std::vector<Axis>& axes) {
  const TensorInfo storage = storage_of(access.buffer, names);
  for (std::size_t n = 0; n < access.index.size(); ++n) {
    const Var* name = as<Var>(access.index[n]);
    if (!name || names.is_variable(name->name)) continue;
    const bool is_known =
        std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == name->name; });
    if (!is_known) axes.push_back(Axis{name->name, integer(0), storage.shape.at(n), {}, access.span});
  }
}

Stmt loop(LoopKind kind, std::vector<Axis> axes, Block body) {
  return make_stmt(Loop{kind, std::move(axes), std::nullopt, std::move(body)});
}

Block loop_or_body(LoopKind kind, std::vector<Axis> axes, Block body) {
  if (axes.empty()) return body;
  return {loop(kind, std::move(axes), std::move(body))};
}

Stmt assign(const Access& target, Expr value, std::vector<Expr> where = {}) {
  return make_stmt(Store{target, std::move(value), std::move(where), std::nullopt});
}

// The digits of number `n` of all that `digits` count, as coordinates of their axes.
void add_coordinates(const std::vector<FoldDigit>& digits, const Expr& n, std::vector<Expr>& coordinates) {
  std::int64_t inner = count(digits);
  for (const FoldDigit& digit : digits) {
    inner /= digit.extent;
    const Expr value = binary(BinaryOp::Mod, binary(BinaryOp::Div, n, integer(inner)), integer(digit.extent)) * digit.stride;
    Expr& sum = coordinates[digit.axis];
    sum = sum ? sum + value : value;
  }
}

// A reduction in the order of a layout: threads' own elements, lanes by halves, the others in order.
class LayoutFold {
 public:
  LayoutFold(const Fold& fold, Dtype dtype, std::vector<Axis> axes, FoldOrder order)
      : fold_(fold), dtype_(dtype), axes_(std::move(axes)), order_(std::move(order)) {}

  Block of_one_result() const {
    const std::int64_t lanes = count(order_.lanes);
    const Axis other = counted(of_others_, count(order_.others));
    const Access first = partial(integer(0));
    Block of_other{loop(LoopKind::Serial, {counted(of_lanes_, lanes)}, own_elements())};
    for (std::int64_t half = lanes / 2; half >= 1; half /= 2)
      of_other.push_back(loop(LoopKind::Serial, {counted(of_lanes_, half)}, {assign(partial(var(of_lanes_)), joined(partial(var(of_lanes_)), value_of(partial(var(of_lanes_) + half))))}));
    const Expr is_first = binary(BinaryOp::Eq, var(of_others_), integer(0));
    of_other.push_back(assign(total_, value_of(first), {is_first}));
    of_other.push_back(assign(total_, joined(total_, value_of(first)), {binary(BinaryOp::Gt, var(of_others_), integer(0))}));
    return {declare(first.buffer, {{"lane", lanes}}), declare(total_.buffer, {}), loop(LoopKind::Serial, {other}, std::move(of_other)),
            assign(fold_.target, value_of(total_))};
  }

 private:
  static Axis counted(const std::string& name, std::int64_t extent) { return Axis{name, integer(0), integer(extent), {}, {}}; }
  static Access partial(const Expr& lane) { return Access{"partial results of the lanes", {lane}, {}, {}}; }
  Stmt declare(const std::string& name, std::vector<BufferAxis> axes) const { return make_stmt(Buffer{Space::Register, name, dtype_, std::move(axes), std::nullopt, std::nullopt}); }
  Expr value_of(const Access& access) const { return load(access, dtype_); }
  Expr joined(const Access& access, const Expr& value) const { return combine(fold_.op, value_of(access), value); }

  Block own_elements() const {
    const Access own = partial(var(of_lanes_));
    Block result{assign(own, element(integer(0)))};
    if (const std::int64_t registers = count(order_.registers); registers > 1)
      result.push_back(loop(LoopKind::Serial, {Axis{of_registers_, integer(1), integer(registers), {}, {}}}, {assign(own, joined(own, element(var(of_registers_))))}));
    return result;
  }

  Expr element(const Expr& own) const {
    std::vector<Expr> coordinates(fold_.source.index.size());
    add_coordinates(order_.others, var(of_others_), coordinates);
    add_coordinates(order_.lanes, var(of_lanes_), coordinates);
    add_coordinates(order_.registers, own, coordinates);
    Access access = fold_.source;
    for (std::size_t n = 0; n < coordinates.size(); ++n) {
      const bool is_folded = std::any_of(axes_.begin(), axes_.end(), [&](const Axis& axis) { return access.index[n] == var(axis.name); });
      if (is_folded) access.index[n] = coordinates[n] ? coordinates[n] : integer(0);
    }
    return value_of(access);
  }

  // No name of a program has blanks.
  const std::string of_others_ = "other threads";
  const std::string of_lanes_ = "lane of a warp";
  const std::string of_registers_ = "own element";
  const Access total_{"total of the fold", {}, {}, {}};
  const Fold& fold_;
  Dtype dtype_;
  std::vector<Axis> axes_;  // that are folded
  FoldOrder order_;
};

}  // namespace

Block reference_nest(const Copy& copy, const NestNames& names) {
  std::vector<Axis> axes;
  add_new_axes(copy.target, names, axes);
  if (axes.empty()) add_new_axes(copy.source, names, axes);
  Expr value = load(copy.source, storage_of(copy.source.buffer, names).dtype, copy.source.span);
  std::vector<Expr> where = copy.where;
  // A fill stands for an element that the conditions leave out, too; without one that element is not written.
  if (copy.source.rule.kind == Rule::Kind::Fill && !where.empty()) {
    value = select(all_of(where), value, copy.source.rule.fill);
    where.clear();
  }
  return loop_or_body(LoopKind::Each, std::move(axes), {assign(copy.target, value, std::move(where))});
}

Block reference_nest(const Fill& fill, const NestNames& names) {
  const TensorInfo storage = storage_of(fill.buffer, names);
  std::vector<Axis> axes;
  Access target{fill.buffer, {}, {}, {}};
  for (std::size_t n = 0; n < storage.shape.size(); ++n) {
    axes.push_back(Axis{fmt::format("{} axis {}", fill.buffer, n),
                        integer(0),
                        storage.shape[n],
                        {},
                        {}});  // no name of a program has blanks
    target.index.push_back(var(axes.back().name));
  }
  return loop_or_body(LoopKind::Each, std::move(axes), {assign(target, fill.value)});
}

Block reference_nest(const Mma& mma, const NestNames& names) {
  const Dtype dtype = storage_of(mma.target.buffer, names).dtype;
  std::vector<Axis> outer;
  add_new_axes(mma.target, names, outer);
  std::vector<Axis> all = outer;
  add_new_axes(mma.a, names, all);
  add_new_axes(mma.b, names, all);
  std::vector<Axis> summed(all.begin() + static_cast<std::ptrdiff_t>(outer.size()), all.end());
  const auto operand = [&](const Access& access) {
    return cast(dtype, load(access, storage_of(access.buffer, names).dtype));
  };
  Block body = {assign(mma.target, call("fma", {operand(mma.a), operand(mma.b), load(mma.target, dtype)}, dtype))};
  // The last axis of the target goes innermost: the order of each element's sum is the same.
  std::vector<Axis> inner;
  if (!outer.empty()) {
    inner.push_back(outer.back());
    outer.pop_back();
  }
  body = loop_or_body(LoopKind::Each, std::move(inner), std::move(body));
  body = loop_or_body(LoopKind::Serial, std::move(summed), std::move(body));
  return loop_or_body(LoopKind::Each, std::move(outer), std::move(body));
}

Block reference_nest(const Fold& fold, const NestNames& names) {
  const TensorInfo source = storage_of(fold.source.buffer, names);
  std::vector<Axis> axes;
  add_new_axes(fold.source, names, axes);
  const Expr element = load(fold.source, source.dtype);
  const Expr identity = identity_of(fold.op, source.dtype);
  if (!fold.is_scan) {
    // Of the axes that the target has, and those that are folded.
    std::vector<Axis> kept;
    for (const Axis& axis : axes)
      if (std::any_of(fold.target.index.begin(), fold.target.index.end(),
                      [&](const Expr& index) { return uses_var(index, axis.name); }))
        kept.push_back(axis);
    const Layout* layout = names.layout ? names.layout(fold.source.buffer) : nullptr;
    if (layout) {
      std::vector<Axis> folded;
      for (const Axis& axis : axes)
        if (std::find(kept.begin(), kept.end(), axis) == kept.end()) folded.push_back(axis);
      std::vector<std::size_t> positions;
      for (std::size_t n = 0; n < fold.source.index.size(); ++n)
        if (std::any_of(folded.begin(), folded.end(), [&](const Axis& axis) { return fold.source.index[n] == var(axis.name); })) positions.push_back(n);
      if (auto order = fold_order(*layout, positions)) {
        const LoopKind kind = kept.empty() ? LoopKind::Serial : LoopKind::Each;
        std::vector<Axis> around = kept;
        if (around.empty()) around.push_back(Axis{"one result", integer(0), integer(1), {}, {}});
        return {loop(kind, std::move(around), LayoutFold(fold, source.dtype, folded, *std::move(order)).of_one_result())};
      }
    }
    Block start = loop_or_body(LoopKind::Each, kept, {assign(fold.target, identity)});
    const Stmt step = assign(fold.target, combine(fold.op, load(fold.target, source.dtype), element));
    Block steps = loop_or_body(LoopKind::Serial, axes, {step});
    start.insert(start.end(), steps.begin(), steps.end());
    return start;
  }
  Access target = fold.target;
  if (target.index.empty() && !storage_of(target.buffer, names).shape.empty()) target.index = fold.source.index;
  const Access running{"running total", {}, {}, {}};
  Block result;
  result.push_back(make_stmt(Buffer{Space::Register, running.buffer, source.dtype, {}, std::nullopt, std::nullopt}));
  result.push_back(assign(running, identity));
  const Block steps = {assign(running, combine(fold.op, load(running, source.dtype), element)),
                       assign(target, load(running, source.dtype))};
  Block walk_all = loop_or_body(LoopKind::Serial, axes, steps);
  result.insert(result.end(), walk_all.begin(), walk_all.end());
  if (!fold.total.empty()) result.push_back(assign(Access{fold.total, {}, {}, {}}, load(running, source.dtype)));
  return result;
}

}  // namespace tilewright
