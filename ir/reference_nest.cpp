// Tile operations as nests; see reference_nest.h.
#include "ir/reference_nest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
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
