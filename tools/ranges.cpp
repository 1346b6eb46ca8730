// Ranges of indices, from the tensor IR, where each stands written out.
#include "tools/ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

const std::vector<Expr>* shape_of(const TensorFn& fn, const std::string& tensor) {
  for (const Param& param : fn.params)
    if (param.name == tensor) return &param.shape;
  for (const Temp& let : fn.lets)
    if (let.name == tensor) return &let.shape;
  return nullptr;
}

// The accesses of a statement, its target first, each once.
std::vector<Access> accesses_of(const TensorStmt& stmt) {
  std::vector<Access> result = {Access{stmt.target, stmt.index, {}, stmt.span}};
  walk(stmt.value, [&](const Expr& node) {
    const Load* element = as<Load>(node);
    if (element && std::find(result.begin(), result.end(), element->access) == result.end()) result.push_back(element->access);
    return true;
  });
  return result;
}

std::vector<Axis> axes_of(const TensorStmt& stmt) {
  std::vector<Axis> axes = stmt.axes;
  walk(stmt.value, [&](const Expr& node) {
    if (const Reduce* fold = as<Reduce>(node)) axes.insert(axes.end(), fold->axes.begin(), fold->axes.end());
    return true;
  });
  return axes;
}

bool is_subscript(const Expr& index, const std::string& name) {
  const Cast* cast = as<Cast>(index);
  const Var* variable = as<Var>(cast ? cast->operand : index);
  return variable && variable->name == name;
}

}  // namespace

std::vector<RangeNote> range_notes(const TensorFn& fn) {
  std::vector<RangeNote> notes;
  for (const TensorStmt& stmt : fn.statements)
    for (const Axis& axis : axes_of(stmt)) {
      const bool starts_at_zero = !axis.lo || is_integer_constant(axis.lo, 0);
      RangeNote note{stmt.target, axis.name, fmt::format("{} .. {}", axis.lo ? print(axis.lo) : "0", print(axis.hi)), {}};
      for (const Access& access : accesses_of(stmt)) {
        const std::vector<Expr>* shape = shape_of(fn, access.buffer);
        bool bounds = false;
        for (std::size_t d = 0; shape && d < std::min(shape->size(), access.index.size()); ++d)
          bounds |= is_subscript(access.index[d], axis.name) && (*shape)[d] == axis.hi;
        if (starts_at_zero && bounds) note.accesses.push_back(print(load(access, Dtype::F32)));
      }
      notes.push_back(std::move(note));
    }
  return notes;
}

}  // namespace tilewright
