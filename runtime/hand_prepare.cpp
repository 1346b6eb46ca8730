// Working out the steps of a hand program; see hand_prepare.h.
#include "runtime/hand_prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace tilewright {

namespace {

using DimValues = std::vector<std::pair<std::string, std::int64_t>>;

// The name that an argument consists of, empty where it is more than a name.
std::string name_in(const Expr& expr) {
  if (const Var* name = as<Var>(expr)) return name->name;
  if (const Load* load = as<Load>(expr); load && load->access.index.empty()) return load->access.buffer;
  if (const Cast* conversion = as<Cast>(expr)) return name_in(conversion->operand);
  return "";
}

// Integer scalars of the call are names in grids and arguments, as dims are.
DimValues names_of(const Plan& plan, const Arguments& arguments) {
  DimValues names = dim_values(plan, arguments);
  for (const Param& param : plan.params)
    if (is_by_value(param) && is_integer(param.dtype))
      names.emplace_back(param.name, read_integer(arguments.tensors.at(param.name), 0));
  return names;
}

// Loads of scalars become names, so that evaluate_index reads them.
std::int64_t evaluate(const Expr& expr, const DimValues& names) {
  const Expr plain = rewrite(expr, [](const Expr& e) {
    const Load* load = as<Load>(e);
    return load && load->access.index.empty() ? var(load->access.buffer) : e;
  });
  return evaluate_index(plain, names);
}

class Preparer {
 public:
  Preparer(const HandProgram& program, const HandSource& source, const std::map<std::string, std::string>& entries, const Plan& plan, const Arguments& arguments)
      : program_(program), source_(source), entries_(entries), plan_(plan), arguments_(arguments), names_(names_of(plan, arguments)) {}

  PreparedHand run() {
    for (const Temp& temp : program_.temps) {
      PreparedTemp placed{temp.name, temp.dtype, {}, static_cast<std::size_t>(bytes_of(temp.dtype))};
      for (const Expr& extent : temp.shape) {
        placed.shape.push_back(std::max<std::int64_t>(evaluate(extent, names_), 0));
        placed.bytes *= static_cast<std::size_t>(placed.shape.back());
      }
      result_.temps.push_back(std::move(placed));
    }
    for (const HandStep& step : program_.steps) {
      if (const auto* launch = std::get_if<HandLaunch>(&step)) {
        result_.steps.emplace_back(prepare(*launch));
      } else if (const auto* zero = std::get_if<HandZero>(&step)) {
        bytes_of_tensor(zero->tensor);
        result_.steps.emplace_back(PreparedZero{zero->tensor});
      } else if (const auto* constant = std::get_if<HandConstant>(&step)) {
        result_.steps.emplace_back(PreparedConstant{entry_of("&" + constant->symbol, constant->symbol), constant->symbol, constant->tensor, bytes_of_tensor(constant->tensor)});
      }
    }
    return std::move(result_);
  }

 private:
  std::string entry_of(const std::string& expression, const std::string& otherwise) const {
    const auto entry = entries_.find(expression);
    return entry == entries_.end() ? otherwise : entry->second;
  }

  const PreparedTemp* find_temp(const std::string& name) const {
    const auto found = std::find_if(result_.temps.begin(), result_.temps.end(), [&](const PreparedTemp& temp) { return temp.name == name; });
    return found == result_.temps.end() ? nullptr : &*found;
  }

  std::size_t bytes_of_tensor(const std::string& tensor) const {
    if (const PreparedTemp* temp = find_temp(tensor)) return temp->bytes;
    const auto found = arguments_.tensors.find(tensor);
    const Param* param = find_param(plan_, tensor);
    if (found == arguments_.tensors.end() || !param || is_by_value(*param)) throw UserError({}, fmt::format("`{}` is no tensor of `{}` and no temporary", tensor, plan_.name));
    return static_cast<std::size_t>(found->second.elements() * bytes_of(found->second.dtype));
  }

  PreparedArgument argument_of(const Expr& expr, const HandParameter& parameter) const {
    PreparedArgument result;
    const std::string name = name_in(expr);
    const Param* param = find_param(plan_, name);
    const bool is_tensor = find_temp(name) != nullptr || name == "error_word" || (param && !is_by_value(*param));
    if (is_tensor != parameter.is_pointer) {
      throw UserError(expr->span, fmt::format("the parameter `{}` is {}, and the launch gives {}", parameter.text, parameter.is_pointer ? "a pointer" : "a value",
                                              is_tensor ? fmt::format("the tensor `{}`", name) : "a value"));
    }
    if (is_tensor) {
      result.tensor = name;
      return result;
    }
    // A scalar parameter, a constant, or an integer expression; converted to what the kernel declares, as a call in C
    // would.
    Dtype from = Dtype::I64;
    Scalar value;
    if (param) {
      from = param->dtype;
      value = load_scalar(from, arguments_.tensors.at(name).data.data());
    } else if (const auto real = real_value(expr)) {
      from = Dtype::F64;
      value.f = *real;
    } else {
      value.i = evaluate(expr, names_);
    }
    // A parameter of a template's own type takes the argument's, an integer as int.
    const Dtype to = parameter.is_known_type ? parameter.dtype : param ? from : is_float(from) ? Dtype::F32 : Dtype::I32;
    store_scalar(to, result.value.data(), convert(to, from, value));
    return result;
  }

  PreparedLaunch prepare(const HandLaunch& launch) const {
    PreparedLaunch result;
    result.kernel = launch.kernel;
    result.entry = entry_of(launch.kernel, launch.kernel);
    result.span = launch.span;
    const auto shape = [&](const std::vector<Expr>& extents, std::string_view what, const std::array<std::int64_t, 3>& most) {
      std::array<unsigned, 3> values = {1, 1, 1};
      if (extents.size() > 3) throw UserError(launch.span, fmt::format("the {} of `{}` has {} extents, at most three are possible", what, launch.kernel, extents.size()));
      for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        const std::int64_t extent = evaluate(extents[axis], names_);
        if (extent > most[axis] || extent < 0)
          throw UserError(launch.span, fmt::format("the {} of `{}` is {} in {}, and a GPU takes 1 to {} there", what, launch.kernel, extent, "xyz"[axis], most[axis]));
        result.is_empty = result.is_empty || extent == 0;
        values[axis] = static_cast<unsigned>(extent);
      }
      return values;
    };
    result.grid = shape(launch.grid, "grid", {2147483647, 65535, 65535});
    result.block = shape(launch.block, "block", {1024, 1024, 64});
    if (launch.shared_bytes) result.shared_bytes = evaluate(launch.shared_bytes, names_);
    if (result.shared_bytes < 0) throw UserError(launch.span, fmt::format("`{}` is launched with {} bytes of shared memory", launch.kernel, result.shared_bytes));
    const std::string plain = launch.kernel.substr(0, launch.kernel.find('<'));
    const auto kernel = std::find_if(source_.kernels.begin(), source_.kernels.end(), [&](const HandKernel& each) { return each.name == plain; });
    for (std::size_t index = 0; index < launch.arguments.size(); ++index) result.arguments.push_back(argument_of(launch.arguments[index], kernel->parameters.at(index)));
    return result;
  }

  const HandProgram& program_;
  const HandSource& source_;
  const std::map<std::string, std::string>& entries_;
  const Plan& plan_;
  const Arguments& arguments_;
  DimValues names_;
  PreparedHand result_;
};

}  // namespace

PreparedHand prepare_hand(const HandProgram& program, const HandSource& source, const std::map<std::string, std::string>& entries, const Plan& plan, const Arguments& arguments) {
  return Preparer(program, source, entries, plan, arguments).run();
}

}  // namespace tilewright
