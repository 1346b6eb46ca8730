// The arguments of a call: solves the dims from the shapes, checks them, makes the outputs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "ir/diagnostic.h"
#include "runtime/tensor.h"

namespace tilewright {

namespace {

using Names = std::vector<std::pair<std::string, std::int64_t>>;

// What is known of the dims so far, and who said so.
struct DimTable {
  std::map<std::string, std::int64_t> values;
  std::map<std::string, std::string> origins;

  Names names() const { return {values.begin(), values.end()}; }
};

[[noreturn]] void refuse_call(std::string message, std::string help = {}) { throw UserError({}, std::move(message), std::move(help)); }

// The names in an expression that no dim has a value for yet.
std::vector<std::string> unknown_names(const Expr& expr, const DimTable& dims) {
  std::vector<std::string> names;
  walk(expr, [&](const Expr& child) {
    if (const Var* name = as<Var>(child))
      if (!dims.values.contains(name->name) && std::find(names.begin(), names.end(), name->name) == names.end())
        names.push_back(name->name);
    return true;
  });
  return names;
}

std::string origins_of(const Expr& expr, const DimTable& dims) {
  std::vector<std::string> texts;
  walk(expr, [&](const Expr& child) {
    if (const Var* name = as<Var>(child)) {
      const auto origin = dims.origins.find(name->name);
      const auto value = dims.values.find(name->name);
      if (origin == dims.origins.end() || value == dims.values.end()) return true;
      std::string text = fmt::format("`{}` is {} by {}", name->name, value->second, origin->second);
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
    }
    return true;
  });
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Solves `expr == size` for its one unknown name.
void solve(const Expr& expr, const std::string& name, std::int64_t size, const std::string& place, DimTable& dims) {
  const auto at = [&](std::int64_t value) {
    Names names = dims.names();
    names.emplace_back(name, value);
    return evaluate_index(expr, names);
  };
  const std::int64_t start = at(0);
  const std::int64_t slope = at(1) - start;
  if (slope == 0 || at(2) - start != 2 * slope || at(7) - start != 7 * slope)
    refuse_call(fmt::format("`{}` cannot be found from {}: `{}` is not affine in it", name, place, print(expr)),
           fmt::format("give it: --set {}=…", name));
  if ((size - start) % slope != 0 || (size - start) / slope < 0)
    refuse_call(fmt::format("{} has {} elements, but no `{}` makes `{}` that size", place, size, name, print(expr)));
  dims.values[name] = (size - start) / slope;
  dims.origins[name] = place;
}

struct Equation {
  const Expr* extent;
  std::int64_t size;
  std::string place;
};

std::vector<Equation> equations_of(const Plan& plan, const std::map<std::string, HostTensor>& inputs) {
  std::vector<Equation> equations;
  for (const Param& param : plan.params) {
    if (param.kind == ParamKind::Out) continue;
    const auto input = inputs.find(param.name);
    if (input == inputs.end()) refuse_call(fmt::format("nothing is given for `{}`", param.name), fmt::format("give it: --in {}=FILE", param.name));
    const HostTensor& tensor = input->second;
    if (tensor.dtype != param.dtype)
      refuse_call(fmt::format("`{}` is {}, but what is given has {}", param.name, info(param.dtype).name, info(tensor.dtype).name));
    if (tensor.shape.size() != param.shape.size())
      refuse_call(fmt::format("`{}` has {} axes, but what is given has {}: [{}]", param.name, param.shape.size(),
                         tensor.shape.size(), fmt::join(tensor.shape, ", ")));
    if (static_cast<std::int64_t>(tensor.data.size()) != tensor.elements() * bytes_of(tensor.dtype))
      internal_error(fmt::format("the data of `{}` has {} bytes", param.name, tensor.data.size()));
    for (std::size_t axis = 0; axis < param.shape.size(); ++axis)
      equations.push_back({&param.shape[axis], tensor.shape[axis], fmt::format("axis {} of `{}`", axis, param.name)});
  }
  return equations;
}

bool needs_device(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const Expr& child) {
    const Call* function = as<Call>(child);
    found = found || (function != nullptr && function->function == "resident");
    return true;
  });
  return found;
}

}  // namespace

std::vector<std::int64_t> shape_of(const std::vector<Expr>& shape, const Names& dims) {
  std::vector<std::int64_t> extents;
  extents.reserve(shape.size());
  for (const Expr& extent : shape) extents.push_back(evaluate_index(extent, dims));
  return extents;
}

Arguments bind_arguments(const Plan& plan, std::map<std::string, HostTensor> inputs,
                         const std::map<std::string, std::int64_t>& given) {
  for (const auto& input : inputs) {
    const std::string& name = input.first;
    const auto param = std::find_if(plan.params.begin(), plan.params.end(), [&](const Param& p) { return p.name == name; });
    if (param == plan.params.end()) refuse_call(fmt::format("`{}` has no parameter `{}`", plan.name, name));
    if (param->kind == ParamKind::Out) refuse_call(fmt::format("`{}` is an output of `{}`", name, plan.name));
  }
  DimTable dims;
  for (const Dim& dim : plan.dims) {
    const auto value = given.find(dim.name);
    if (dim.value || value == given.end()) continue;
    if (value->second < 0) refuse_call(fmt::format("`{}` is {}, but a size is at least 0", dim.name, value->second));
    dims.values[dim.name] = value->second;
    dims.origins[dim.name] = "the call";
  }

  // Each round uses the extents whose names are known but for one; a bare name first, for it has the better message.
  std::vector<Equation> equations = equations_of(plan, inputs);
  std::stable_partition(equations.begin(), equations.end(), [](const Equation& e) { return as<Var>(*e.extent) != nullptr; });
  for (bool has_progress = true; has_progress && !equations.empty();) {
    has_progress = false;
    std::vector<Equation> open;
    for (const Equation& equation : equations) {
      const auto unknown = unknown_names(*equation.extent, dims);
      if (unknown.size() > 1) {
        open.push_back(equation);
        continue;
      }
      has_progress = true;
      if (unknown.size() == 1) solve(*equation.extent, unknown.front(), equation.size, equation.place, dims);
      const std::int64_t expected = evaluate_index(*equation.extent, dims.names());
      if (expected != equation.size)
        refuse_call(fmt::format("{} has {} elements, but `{}` is {}{}", equation.place, equation.size, print(*equation.extent), expected,
                           is_integer_constant(*equation.extent, expected) ? "" : fmt::format(" ({})", origins_of(*equation.extent, dims))));
    }
    equations = std::move(open);
  }
  for (const Dim& dim : plan.dims)
    if (!dim.value && !dims.values.contains(dim.name))
      refuse_call(fmt::format("no input gives the size `{}`", dim.name), fmt::format("give it: --set {}=…", dim.name));

  Arguments arguments{std::move(inputs), std::move(dims.values)};
  require_elements(plan, arguments);
  const auto values = dim_values(plan, arguments);
  for (const Param& param : plan.params) {
    if (param.kind != ParamKind::Out) continue;
    HostTensor tensor = make_tensor(param.dtype, shape_of(param.shape, values));
    poison(tensor);
    arguments.tensors.emplace(param.name, std::move(tensor));
  }
  return arguments;
}

namespace {

// Refuses reads that `clamp`, `wrap` or `mirror` would have to turn into an element of a tensor that has none.
class ReadsOfNothing {
 public:
  ReadsOfNothing(const Plan& plan, const Names& dims) : plan_(plan), dims_(dims) {}

  void look(const Block& body) const {
    for (const Stmt& stmt : body) {
      if (const Loop* loop = as<Loop>(stmt); loop && std::any_of(loop->axes.begin(), loop->axes.end(), [&](const Axis& axis) { return has_no_trips(axis); })) continue;
      if (const Copy* copy = as<Copy>(stmt)) look(copy->source);
      map_expressions(stmt, [&](const Expr& expr) {
        walk(expr, [&](const Expr& node) {
          if (const Load* load = as<Load>(node)) look(load->access);
          return true;
        });
        return expr;
      });
      map_bodies(stmt, [&](const Block& inner) {
        look(inner);
        return inner;
      });
    }
  }

 private:
  // Of bounds that the dims decide.
  bool has_no_trips(const Axis& axis) const {
    const auto is_known = [&](const Expr& bound) {
      bool known = true;
      walk(bound, [&](const Expr& node) {
        const Var* name = as<Var>(node);
        known = known && !as<Load>(node) && (!name || std::any_of(dims_.begin(), dims_.end(), [&](const auto& dim) { return dim.first == name->name; }));
        return known;
      });
      return known;
    };
    if ((axis.lo && !is_known(axis.lo)) || !is_known(axis.hi)) return false;
    return evaluate_index(axis.hi, dims_) <= (axis.lo ? evaluate_index(axis.lo, dims_) : 0);
  }

  void look(const Access& access) const {
    if (access.rule.kind != Rule::Kind::Clamp && access.rule.kind != Rule::Kind::Wrap && access.rule.kind != Rule::Kind::Mirror) return;
    const auto tensor = find_tensor(plan_, access.buffer);
    if (!tensor) return;
    const std::vector<std::int64_t> shape = shape_of(tensor->shape, dims_);
    if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return;
    refuse_call(fmt::format("`{}` has no element to read: `{}` is [{}]", print(load(access, tensor->dtype)), access.buffer, fmt::join(shape, ", ")),
           "state a value, as in `; 0`, which needs no element");
  }

  const Plan& plan_;
  const Names& dims_;
};

}  // namespace

void require_elements(const Plan& plan, const Arguments& arguments) {
  const Names dims = dim_values(plan, arguments);
  for (const Kernel* kernel : kernels_of(plan))
    if (kernel->stage == Stage::Tile) ReadsOfNothing(plan, dims).look(kernel->body);
}

Names dim_values(const Plan& plan, const Arguments& arguments) {
  Names values;
  for (const Dim& dim : plan.dims) {
    if (dim.value) {
      if (!needs_device(dim.value)) values.emplace_back(dim.name, evaluate_index(dim.value, values));
      continue;
    }
    const auto value = arguments.dims.find(dim.name);
    if (value == arguments.dims.end()) internal_error(fmt::format("no value for the dim `{}`", dim.name));
    values.emplace_back(dim.name, value->second);
  }
  return values;
}

}  // namespace tilewright
