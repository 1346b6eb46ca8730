// Which loops of a tile-stage kernel are iterations that several threads may share; see host_nest.h.
#include "codegen/llvm/host_nest.h"

#include <algorithm>

namespace tilewright {

namespace {

bool is_of_dims(const Plan& plan, const Expr& expr) {
  bool result = true;
  if (!expr) return true;
  walk(expr, [&](const Expr& node) {
    if (const Var* name = as<Var>(node))
      result = result &&
               std::any_of(plan.dims.begin(), plan.dims.end(), [&](const Dim& dim) { return dim.name == name->name; });
    if (const Call* call = as<Call>(node)) result = result && call->function == "ceildiv";
    result = result && as<Load>(node) == nullptr;
    return result;
  });
  return result;
}

bool has_dim_bounds(const Plan& plan, const Axis& axis) {
  return is_of_dims(plan, axis.lo) && is_of_dims(plan, axis.hi) && is_of_dims(plan, axis.step);
}

bool is_flattened(const Loop* loop) {
  return loop != nullptr && (loop->kind == LoopKind::Parallel || loop->kind == LoopKind::Grid);
}

bool is_shared_by_all(const Expr& expr, const std::vector<Axis>& axes) {
  bool result = true;
  walk(expr, [&](const Expr& node) {
    if (const Var* name = as<Var>(node))
      result =
          result && std::none_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == name->name; });
    result = result && as<Load>(node) == nullptr && as<Call>(node) == nullptr;
    return result;
  });
  return result;
}

// `each i, j { serial k { … } }` as `each i { serial k { each j { … } } }`: the iterations of an `each` do not meet,
// and with the last axis innermost LLVM can vectorise along it. Only where the serial loop is all that the body holds,
// with bounds that every iteration shares.
Block serial_outside(const Block& body) {
  return rewrite_statements(body, [](const Stmt& stmt) -> Block {
    const Loop* each = as<Loop>(stmt);
    if (each == nullptr || each->kind != LoopKind::Each || each->body.size() != 1) return {stmt};
    const Loop* serial = as<Loop>(each->body[0]);
    if (serial == nullptr || (serial->kind != LoopKind::Serial && serial->kind != LoopKind::Unroll)) return {stmt};
    for (const Axis& axis : serial->axes)
      for (const Expr& bound : {axis.lo, axis.hi, axis.step})
        if (bound && !is_shared_by_all(bound, each->axes)) return {stmt};
    Loop inner{LoopKind::Each, {each->axes.back()}, std::nullopt, serial->body};
    Loop middle = *serial;
    middle.body = {make_stmt(std::move(inner), stmt->span)};
    Stmt result = make_stmt(std::move(middle), each->body[0]->span);
    if (each->axes.size() == 1) return {result};
    Loop outer = *each;
    outer.axes.pop_back();
    outer.body = {result};
    return {make_stmt(std::move(outer), stmt->span)};
  });
}

HostNest split(const Plan& plan, const Kernel& kernel) {
  HostNest nest;
  const Loop* outer = nullptr;
  for (const Stmt& stmt : kernel.body) {
    const Loop* loop = as<Loop>(stmt);
    if (outer == nullptr && is_flattened(loop))
      outer = loop;
    else if (outer == nullptr && (as<Let>(stmt) || as<Role>(stmt)))
      nest.before.push_back(stmt);
    else
      return HostNest{{}, {}, kernel.body};  // several parts: one iteration does them all
  }
  if (outer == nullptr) return HostNest{{}, {}, kernel.body};
  for (const Loop* loop = outer; loop != nullptr;) {
    std::size_t taken = 0;
    while (taken < loop->axes.size() && has_dim_bounds(plan, loop->axes[taken]))
      nest.axes.push_back(loop->axes[taken++]);
    nest.body = loop->body;
    if (taken < loop->axes.size()) {
      Loop rest = *loop;
      rest.axes.erase(rest.axes.begin(), rest.axes.begin() + static_cast<std::ptrdiff_t>(taken));
      nest.body = {make_stmt(std::move(rest))};
      break;
    }
    const Loop* inner = nest.body.size() == 1 ? as<Loop>(nest.body[0]) : nullptr;
    loop = is_flattened(inner) ? inner : nullptr;
  }
  return nest;
}

}  // namespace

HostNest host_nest(const Plan& plan, const Kernel& kernel) {
  HostNest nest = split(plan, kernel);
  nest.body = serial_outside(nest.body);
  return nest;
}

}  // namespace tilewright
