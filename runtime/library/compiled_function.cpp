// The public library: texts in, functions out, errors as values.
#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "ir/diagnostic.h"
#include "runtime/library/call_class.h"
#include "runtime/library/session.h"
#include "runtime/tilewright.h"

namespace tilewright {

struct CompiledFunction::State {
  Program program;
  std::vector<SourceFile> sources;
  std::string fn;
  CompileSettings settings;
  ExecutionRequest execution;
  // Plans by what they were made for: the schedule and the class, in words.
  std::map<std::string, Plan> plans;
};

namespace {

// Runs f and turns what it throws into the text of an error.
template <class T>
Result<T> guarded(const std::vector<SourceFile>& sources, const std::function<T()>& f) {
  try {
    return f();
  } catch (const UserError& error) {
    return Result<T>::failure(render(error.diagnostics(), sources));
  } catch (const std::exception& error) {
    return Result<T>::failure(fmt::format("error: {}\n", error.what()));
  }
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

// Moves every element between the caller's strided memory and a contiguous tensor.
void move_elements(const Argument& argument, HostTensor& tensor, bool to_tensor) {
  std::size_t bytes = static_cast<std::size_t>(bytes_of(tensor.dtype));
  std::vector<std::int64_t> strides = argument.strides.empty() ? contiguous_strides(argument.shape) : argument.strides;
  auto* memory = static_cast<std::byte*>(argument.data);
  if (strides == contiguous_strides(argument.shape)) {
    if (tensor.data.empty()) return;
    if (to_tensor) std::memcpy(tensor.data.data(), memory, tensor.data.size());
    else std::memcpy(memory, tensor.data.data(), tensor.data.size());
    return;
  }
  std::vector<std::int64_t> place(argument.shape.size(), 0);
  for (std::int64_t element = 0; element < tensor.elements(); ++element) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < place.size(); ++d) offset += place[d] * strides[d];
    std::byte* theirs = memory + offset * static_cast<std::int64_t>(bytes);
    std::byte* ours = tensor.data.data() + static_cast<std::size_t>(element) * bytes;
    if (to_tensor) std::memcpy(ours, theirs, bytes);
    else std::memcpy(theirs, ours, bytes);
    for (std::size_t d = place.size(); d-- > 0;) {
      if (++place[d] < argument.shape[d]) break;
      place[d] = 0;
    }
  }
}

const Argument& argument_for(const std::vector<Argument>& arguments, const Param& param) {
  for (const Argument& argument : arguments)
    if (argument.name == param.name) {
      if (argument.shape.size() != param.shape.size())
        throw UserError({}, fmt::format("`{}` has {} axes, {} are given", param.name, param.shape.size(), argument.shape.size()));
      if (!argument.strides.empty() && argument.strides.size() != argument.shape.size())
        throw UserError({}, fmt::format("`{}` has {} strides for {} axes", param.name, argument.strides.size(), argument.shape.size()));
      std::int64_t elements = 1;
      for (std::int64_t extent : argument.shape) {
        if (extent < 0) throw UserError({}, fmt::format("`{}` has a negative extent", param.name));
        elements *= extent;
      }
      if (!argument.data && elements > 0) throw UserError({}, fmt::format("`{}` has no memory", param.name));
      return argument;
    }
  throw UserError({}, fmt::format("argument `{}` is missing", param.name));
}

// Whether two contiguous arguments share memory.
bool overlap(const Argument& a, const Argument& b, std::size_t a_bytes, std::size_t b_bytes) {
  auto* x = static_cast<const std::byte*>(a.data);
  auto* y = static_cast<const std::byte*>(b.data);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

}  // namespace

CompiledFunction::CompiledFunction(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<CallReport> CompiledFunction::call(const std::vector<Argument>& arguments) {
  State& state = *state_;
  return guarded<CallReport>(state.sources, [&] {
    const TensorFn& fn = choose_fn(state.program, state.fn);
    for (const Argument& argument : arguments) {
      bool known = false;
      for (const Param& param : fn.params) known |= param.name == argument.name;
      if (!known) throw UserError({}, fmt::format("`{}` has no parameter `{}`", fn.name, argument.name));
    }
    std::map<std::string, HostTensor> inputs;
    for (const Param& param : fn.params) {
      if (param.kind == ParamKind::Out) continue;
      const Argument& argument = argument_for(arguments, param);
      HostTensor tensor = make_tensor(param.dtype, argument.shape);
      move_elements(argument, tensor, true);
      inputs[param.name] = std::move(tensor);
    }
    Plan signature;
    signature.name = fn.name;
    for (const std::string& dim : fn.dims) signature.dims.push_back(Dim{dim, {}});
    signature.params = fn.params;
    Arguments bound = bind_arguments(signature, std::move(inputs));
    for (const Param& param : fn.params) {
      if (param.kind != ParamKind::Out) continue;
      const Argument& out = argument_for(arguments, param);
      if (out.shape != bound.tensors.at(param.name).shape) throw UserError({}, fmt::format("output `{}` has another shape than its definition gives", param.name));
      for (const Param& other : fn.params)
        if (other.kind == ParamKind::In && !other.shape.empty() &&
            overlap(out, argument_for(arguments, other), bound.tensors.at(param.name).data.size(), bound.tensors.at(other.name).data.size()))
          throw UserError({}, fmt::format("output `{}` overlaps input `{}`", param.name, other.name), "give it memory of its own, or make the parameter `inout`");
    }
    SelectionRequest request;
    request.schedule = state.settings.schedule;
    request.parameters = state.settings.parameters;
    request.arch = state.execution.arch;
    request.arch_matters = state.execution.device == DeviceKind::Cuda;
    Selection selection = select_schedule(state.program, fn, bound.dims, request);
    const DimMap values = class_values(fn, bound.dims, bound.tensors);
    CallClass call_class = class_of(fn, {values.begin(), values.end()});
    std::string key = fmt::format("{} {} {}", selection.schedule, call_class.index_bits, call_class.long_sums);
    auto known = state.plans.find(key);
    if (known == state.plans.end()) known = state.plans.emplace(key, rungs_of(fn, selection, values, state.execution.arch).back().plan).first;
    RunReport report = execute(known->second, bound, state.execution);
    if (report.error) throw UserError({}, describe(known->second, *report.error));
    if (!report.faults.empty()) throw UserError({}, report.faults.front());
    for (const Param& param : fn.params)
      if (param.kind != ParamKind::In) move_elements(argument_for(arguments, param), bound.tensors.at(param.name), false);
    return CallReport{selection.schedule, report.milliseconds};
  });
}

Result<CompiledFunction> compile(const std::string& program_text, const CompileSettings& settings) {
  std::vector<SourceFile> sources = {SourceFile{"program", program_text}};
  return guarded<CompiledFunction>(sources, [&] {
    auto state = std::make_shared<CompiledFunction::State>();
    state->sources = sources;
    state->settings = settings;
    state->program = parse_program(program_text, "program");
    state->fn = choose_fn(state->program, settings.fn).name;
    state->execution.device = choose_device(settings.device);
    state->execution.backend = settings.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc;
    if (settings.backend != "llvm" && settings.backend != "nvrtc") throw UserError({}, fmt::format("unknown backend `{}`", settings.backend), "known are nvrtc and llvm");
    state->execution.arch = choose_arch(settings.arch);
    return CompiledFunction(state);
  });
}

}  // namespace tilewright
