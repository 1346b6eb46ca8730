// Inputs of a call.
#include "runtime/library/inputs.h"

#include <fmt/format.h>
#include <unistd.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "ir/diagnostic.h"
#include "runtime/library/call_class.h"
#include "runtime/npy.h"
#include "runtime/pnm.h"
#include "runtime/random.h"

namespace tilewright {

namespace {

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)
  // Standard normal by Box and Muller (1958).
  double normal() {
    double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
};

std::string extension_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

bool is_word(const std::string& spec) { return spec == "zeros" || spec == "ones" || spec == "iota" || spec == "random"; }

struct InputText {
  std::string name;
  std::string spec;
};

std::vector<InputText> split_inputs(const TensorFn& fn, const std::vector<std::string>& texts) {
  std::vector<InputText> result;
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw UserError({}, fmt::format("`--in {}` has no name", text), "write --in NAME=FILE, or NAME=zeros, ones, iota, random");
    InputText input{text.substr(0, equals), text.substr(equals + 1)};
    bool known = false;
    std::string names;
    for (const Param& param : fn.params) {
      if (param.kind == ParamKind::Out) continue;
      known |= param.name == input.name;
      names += (names.empty() ? "" : ", ") + param.name;
    }
    if (!known) throw UserError({}, fmt::format("`{}` has no input `{}`", fn.name, input.name), "its inputs are " + names);
    result.push_back(std::move(input));
  }
  return result;
}

const Param& input_param(const TensorFn& fn, const std::string& name) {
  for (const Param& param : fn.params)
    if (param.name == name) return param;
  internal_error("an input without a parameter");
}

std::int64_t integer_of(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) throw UserError({}, fmt::format("`--set {}={}` is no integer", name, text));
  return value;
}

HostTensor parsed_scalar(const Param& param, const std::string& text) {
  HostTensor tensor = make_tensor(param.dtype, {});
  if (is_float(param.dtype)) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') throw UserError({}, fmt::format("`--set {}={}` is no number", param.name, text));
    write_real(tensor, 0, value);
  } else {
    write_integer(tensor, 0, integer_of(param.name, text));
  }
  return tensor;
}

// The dim and its value that make an affine extent this size (`2*R + 1` of 7: R is 3).
std::optional<std::pair<std::string, std::int64_t>> solve_affine(const Expr& extent, std::int64_t size) {
  std::string name;
  walk(extent, [&](const Expr& node) {
    if (const Var* variable = as<Var>(node)) name = variable->name;
    return true;
  });
  if (name.empty()) return std::nullopt;
  try {
    std::int64_t start = evaluate_index(extent, {{name, 0}});
    std::int64_t slope = evaluate_index(extent, {{name, 1}}) - start;
    if (slope == 0 || (size - start) % slope != 0) return std::nullopt;
    return std::pair{name, (size - start) / slope};
  } catch (const UserError&) {  // two names: the binding of the arguments says what is wrong
    return std::nullopt;
  }
}

std::uint64_t seed_for(std::uint64_t seed, const std::string& name) {
  for (char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return seed;
}

}  // namespace

HostTensor random_tensor(Dtype dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  Random random(seed);
  std::int64_t count = tensor.elements();
  if (dtype == Dtype::F32) {
    float* data = reinterpret_cast<float*>(tensor.data.data());
    for (std::int64_t n = 0; n < count; ++n) data[n] = static_cast<float>(random.normal());
    return tensor;
  }
  for (std::int64_t n = 0; n < count; ++n) {
    if (is_float(dtype)) write_real(tensor, n, random.normal());
    else if (dtype == Dtype::Bool) write_integer(tensor, n, static_cast<std::int64_t>(random.next() & 1));
    else if (info(dtype).bits == 8) write_integer(tensor, n, static_cast<std::int64_t>(random.next() & 255) - (is_signed(dtype) ? 128 : 0));
    else write_integer(tensor, n, static_cast<std::int64_t>(random.next() % 201) - (is_signed(dtype) ? 100 : 0));
  }
  return tensor;
}

HostTensor read_tensor_file(const std::string& path, Dtype wanted, const std::string& name) {
  std::string extension = extension_of(path);
  if (extension == ".pgm" || extension == ".ppm") {
    HostTensor image = read_pnm(path);
    if (image.dtype != wanted)
      throw UserError({}, fmt::format("`{}` holds {}, `{}` is {}", path, info(image.dtype).name, name, info(wanted).name));
    return image;
  }
  return read_npy(path, wanted, name);
}

void write_tensor_file(const std::string& path, const HostTensor& tensor) {
  std::string extension = extension_of(path);
  if (extension == ".pgm" || extension == ".ppm") write_pnm(path, tensor);
  else if (extension == ".npy") write_npy(path, tensor);
  else throw UserError({}, fmt::format("cannot write `{}`: its ending is none of .npy, .pgm, .ppm", path));
}

DimMap dims_of_request(const TensorFn& fn, const InputRequest& request) {
  DimMap dims;
  std::vector<InputText> inputs = split_inputs(fn, request.inputs);
  for (const auto& [name, text] : request.values) {
    bool is_dim = std::find(fn.dims.begin(), fn.dims.end(), name) != fn.dims.end();
    bool is_scalar = false;
    for (const Param& param : fn.params) is_scalar |= param.name == name && param.shape.empty() && param.kind != ParamKind::Out;
    if (is_dim) {
      dims[name] = integer_of(name, text);
      if (dims[name] < 0) throw UserError({}, fmt::format("`--set {}={}`: a size cannot be negative", name, text));
    } else if (!is_scalar) {
      std::string known = fmt::format("{}", fmt::join(fn.dims, ", "));
      throw UserError({}, fmt::format("`{}` has no size and no scalar `{}`", fn.name, name), known.empty() ? "" : "its sizes are " + known);
    }
  }
  // What files say; sizes that stand affinely are left to the binding of the arguments.
  for (const InputText& input : inputs) {
    if (is_word(input.spec)) continue;
    const Param& param = input_param(fn, input.name);
    HostTensor tensor = read_tensor_file(input.spec, param.dtype, param.name);
    if (tensor.shape.size() != param.shape.size())
      throw UserError({}, fmt::format("`{}` has {} axes, `{}` needs {}", input.spec, tensor.shape.size(), param.name, param.shape.size()));
    for (std::size_t d = 0; d < param.shape.size(); ++d) {
      if (const Var* dim = as<Var>(param.shape[d])) dims.emplace(dim->name, tensor.shape[d]);
      else if (auto form = solve_affine(param.shape[d], tensor.shape[d])) dims.emplace(form->first, form->second);
    }
  }
  for (const std::string& dim : fn.dims) dims.emplace(dim, request.default_size);
  return dims;
}

namespace {

// Said before any work is done: what a call's tensors take, where the machine has less.
void require_memory(const TensorFn& fn, const std::vector<std::pair<std::string, std::int64_t>>& dims) {
  double needed = 0;
  for (const Param& param : fn.params) {
    double bytes = bytes_of(param.dtype);
    for (const std::int64_t extent : shape_of(param.shape, dims)) bytes *= static_cast<double>(extent);
    needed += bytes;
  }
  const double present = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (needed <= present) return;
  throw MachineError(fmt::format("the tensors of this call take {:.3g} GB, and this machine has {:.3g} GB of memory", needed / 1e9, present / 1e9));
}

}  // namespace

namespace {

HostTensor make_input(const Param& param, const std::vector<std::pair<std::string, std::int64_t>>& names, const std::vector<InputText>& inputs, const InputRequest& request) {
  std::string spec = "random";
  for (const InputText& input : inputs)
    if (input.name == param.name) spec = input.spec;
  auto value = request.values.find(param.name);
  if (param.shape.empty() && value != request.values.end()) return parsed_scalar(param, value->second);
  if (!is_word(spec)) return read_tensor_file(spec, param.dtype, param.name);
  std::vector<std::int64_t> shape = shape_of(param.shape, names);
  if (spec == "random" && !param.shape.empty()) return random_tensor(param.dtype, shape, seed_for(request.seed, param.name));
  HostTensor tensor = make_tensor(param.dtype, shape);
  for (std::int64_t n = 0; n < tensor.elements(); ++n) {
    std::int64_t number = spec == "zeros" ? 0 : spec == "iota" ? n : 1;  // a scalar nobody set is 1
    if (is_float(param.dtype)) write_real(tensor, n, static_cast<double>(number));
    else write_integer(tensor, n, number);
  }
  return tensor;
}

}  // namespace

std::map<std::string, HostTensor> make_inputs(const TensorFn& fn, const DimMap& dims, const InputRequest& request) {
  std::map<std::string, HostTensor> result;
  std::vector<InputText> inputs = split_inputs(fn, request.inputs);
  std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  require_memory(fn, names);
  for (const Param& param : fn.params)
    if (param.kind != ParamKind::Out) result[param.name] = make_input(param, names, inputs, request);
  return result;
}

DimMap class_values(const TensorFn& fn, const DimMap& dims, const InputRequest& request) {
  std::vector<InputText> inputs = split_inputs(fn, request.inputs);
  std::map<std::string, HostTensor> scalars;
  for (const Param& param : fn.params)
    if (param.shape.empty() && param.kind != ParamKind::Out && is_integer(param.dtype)) scalars[param.name] = make_input(param, {}, inputs, request);
  return class_values(fn, dims, scalars);
}

}  // namespace tilewright
