// Launching hand kernels; see hand.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "runtime/hand.h"

namespace tilewright {

namespace {

constexpr std::size_t error_word_bytes = 3 * sizeof(std::int64_t);

const Param* find_param(const std::vector<Param>& params, const std::string& name) {
  const auto found = std::find_if(params.begin(), params.end(), [&](const Param& param) { return param.name == name; });
  return found == params.end() ? nullptr : &*found;
}

bool is_by_value(const Param& param) { return param.kind == ParamKind::In && param.shape.empty(); }

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

}  // namespace

LoadedHand::LoadedHand(const CompiledHand& compiled, const Plan& plan, const Arguments& arguments, const Stream& stream)
    : fn_(plan.name),
      params_(plan.params),
      module_(compiled.cubin.bytes),
      names_(names_of(plan, arguments)),
      error_word_(error_word_bytes) {
  fill_device(error_word_.pointer(), {std::byte{0}}, error_word_bytes, stream);
  for (const Temp& temp : compiled.program.temps) {
    std::size_t bytes = static_cast<std::size_t>(bytes_of(temp.dtype));
    for (const Expr& extent : temp.shape)
      bytes *= static_cast<std::size_t>(std::max<std::int64_t>(evaluate(extent, names_), 0));
    const auto placed = temporaries_.emplace(temp.name, GuardedMemory(bytes, stream)).first;
    fill_device(placed->second.pointer(), {std::byte{0xFF}}, bytes, stream);
  }
  for (const HandStep& step : compiled.program.steps) {
    if (const auto* launch = std::get_if<HandLaunch>(&step)) {
      steps_.emplace_back(prepare(*launch, compiled, arguments));
    } else if (const auto* zero = std::get_if<HandZero>(&step)) {
      steps_.emplace_back(Zero{zero->tensor, bytes_of_tensor(zero->tensor, arguments)});
    } else if (const auto* constant = std::get_if<HandConstant>(&step)) {
      const auto entry = compiled.cubin.entries.find("&" + constant->symbol);
      std::size_t symbol_bytes = 0;
      const DevicePointer symbol =
          module_.global(entry == compiled.cubin.entries.end() ? constant->symbol : entry->second, symbol_bytes);
      const std::size_t bytes = bytes_of_tensor(constant->tensor, arguments);
      if (bytes > symbol_bytes) {
        throw UserError({}, fmt::format("`{}` has {} bytes, and the constant `{}` holds {}", constant->tensor, bytes,
                                        constant->symbol, symbol_bytes));
      }
      steps_.emplace_back(Constant{symbol, constant->tensor, bytes});
    }
  }
}

std::size_t LoadedHand::bytes_of_tensor(const std::string& tensor, const Arguments& arguments) const {
  if (const auto temporary = temporaries_.find(tensor); temporary != temporaries_.end())
    return temporary->second.bytes();
  const auto found = arguments.tensors.find(tensor);
  const Param* param = find_param(params_, tensor);
  if (found == arguments.tensors.end() || !param || is_by_value(*param))
    throw UserError({}, fmt::format("`{}` is no tensor of `{}` and no temporary", tensor, fn_));
  return found->second.data.size();
}

LoadedHand::Argument LoadedHand::argument_of(const Expr& expr, const HandParameter& parameter,
                                             const Arguments& arguments) const {
  Argument result;
  const std::string name = name_in(expr);
  const Param* param = find_param(params_, name);
  const bool is_tensor = temporaries_.count(name) != 0 || name == "error_word" || (param && !is_by_value(*param));
  if (is_tensor != parameter.is_pointer) {
    throw UserError(expr->span, fmt::format("the parameter `{}` is {}, and the launch gives {}", parameter.text,
                                            parameter.is_pointer ? "a pointer" : "a value",
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
    value = load_scalar(from, arguments.tensors.at(name).data.data());
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

LoadedHand::Launch LoadedHand::prepare(const HandLaunch& launch, const CompiledHand& compiled,
                                       const Arguments& arguments) {
  Launch result;
  const auto entry = compiled.cubin.entries.find(launch.kernel);
  result.function = module_.function(entry == compiled.cubin.entries.end() ? launch.kernel : entry->second);
  const auto shape = [&](const std::vector<Expr>& extents, std::string_view what,
                         const std::array<std::int64_t, 3>& most) {
    std::array<unsigned, 3> values = {1, 1, 1};
    if (extents.size() > 3)
      throw UserError(launch.span, fmt::format("the {} of `{}` has {} extents, at most three are possible", what,
                                               launch.kernel, extents.size()));
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const std::int64_t extent = evaluate(extents[axis], names_);
      if (extent > most[axis] || extent < 0) {
        throw UserError(launch.span, fmt::format("the {} of `{}` is {} in {}, and a GPU takes 1 to {} there", what,
                                                 launch.kernel, extent, "xyz"[axis], most[axis]));
      }
      result.is_empty = result.is_empty || extent == 0;
      values[axis] = static_cast<unsigned>(extent);
    }
    return values;
  };
  result.grid = shape(launch.grid, "grid", {2147483647, 65535, 65535});
  result.block = shape(launch.block, "block", {1024, 1024, 64});
  if (launch.shared_bytes) {
    const std::int64_t bytes = evaluate(launch.shared_bytes, names_);
    if (bytes < 0 || bytes > use_gpu().shared_bytes) {
      throw UserError(
          launch.span,
          fmt::format("`{}` is launched with {} bytes of shared memory, and a block of this GPU has at most {}",
                      launch.kernel, bytes, use_gpu().shared_bytes));
    }
    result.shared_bytes = static_cast<unsigned>(bytes);
    if (bytes > most_static_shared_bytes) result.function.allow_shared(static_cast<int>(bytes));
  }
  const std::string plain = launch.kernel.substr(0, launch.kernel.find('<'));
  const auto kernel = std::find_if(compiled.source.kernels.begin(), compiled.source.kernels.end(),
                                   [&](const HandKernel& each) { return each.name == plain; });
  for (std::size_t index = 0; index < launch.arguments.size(); ++index) {
    result.arguments.push_back(argument_of(launch.arguments[index], kernel->parameters.at(index), arguments));
  }
  return result;
}

DevicePointer LoadedHand::pointer_of(const std::string& tensor, const DeviceTensors& tensors) const {
  if (tensor == "error_word") return error_word_.pointer();
  const auto temporary = temporaries_.find(tensor);
  return temporary == temporaries_.end() ? tensors.pointer(tensor) : temporary->second.pointer();
}

void LoadedHand::run(const DeviceTensors& tensors, const Stream& stream) const {
  for (const auto& step : steps_) {
    if (const auto* zero = std::get_if<Zero>(&step)) {
      fill_device(pointer_of(zero->tensor, tensors), {std::byte{0}}, zero->bytes, stream);
    } else if (const auto* constant = std::get_if<Constant>(&step)) {
      copy_on_device(constant->symbol, pointer_of(constant->tensor, tensors), constant->bytes, stream);
    } else if (const auto* launch = std::get_if<Launch>(&step); launch && !launch->is_empty) {
      std::vector<std::array<std::byte, 8>> values;
      for (const Argument& argument : launch->arguments) {
        values.push_back(argument.value);
        if (argument.tensor.empty()) continue;
        const DevicePointer pointer = pointer_of(argument.tensor, tensors);
        std::memcpy(values.back().data(), &pointer, sizeof pointer);
      }
      std::vector<void*> pointers;
      for (auto& value : values) pointers.push_back(value.data());
      tilewright::launch(launch->function, launch->grid, launch->block, {}, launch->shared_bytes, stream, pointers);
    }
  }
}

std::vector<std::string> LoadedHand::overwritten() const {
  std::vector<std::string> faults;
  for (const auto& [name, memory] : temporaries_)
    if (memory.first_overwritten() >= 0)
      faults.push_back(fmt::format("the temporary `{}` ({} bytes) was written behind its end", name, memory.bytes()));
  return faults;
}

std::optional<ErrorHit> LoadedHand::error() const {
  std::array<std::int64_t, 3> word{};
  copy_to_host(word.data(), error_word_.pointer(), error_word_bytes);
  if (word[0] == 0) return std::nullopt;
  return ErrorHit{static_cast<int>(word[0] - 1), word[1]};
}

RunReport run_hand_on_cuda(const CompiledHand& compiled, const Plan& plan, Arguments& arguments) {
  use_gpu();
  const Stream stream;
  const DeviceTensors tensors(plan, arguments, stream);
  const LoadedHand loaded(compiled, plan, arguments, stream);
  const Event start;
  const Event stop;
  start.record(stream);
  loaded.run(tensors, stream);
  stop.record(stream);
  stream.synchronise();

  RunReport report;
  report.milliseconds = stop.milliseconds_since(start);
  report.error = loaded.error();
  report.faults = tensors.overwritten();
  for (const std::string& fault : loaded.overwritten()) report.faults.push_back(fault);
  tensors.copy_outputs(arguments);
  return report;
}

}  // namespace tilewright
