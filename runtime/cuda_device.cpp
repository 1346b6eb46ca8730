// Running a compiled plan through the driver; see cuda_device.h.
#include "runtime/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "runtime/gpcs.h"
#include "runtime/table.h"

namespace tilewright {

namespace {

constexpr std::size_t guard_bytes = 4096;
constexpr std::byte guard_pattern{0xC5};
// What temporaries hold before the first write: a NaN of every float type.
constexpr std::byte temporary_pattern{0xFF};
constexpr std::size_t error_word_bytes = 3 * sizeof(std::int64_t);

std::size_t bytes_for(Dtype dtype, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = static_cast<std::size_t>(bytes_of(dtype));
  for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

// Three extents, 1 where none is given.
std::array<unsigned, 3> shape_of_launch(const std::vector<std::int64_t>& extents) {
  std::array<unsigned, 3> shape = {1, 1, 1};
  for (std::size_t axis = 0; axis < extents.size() && axis < 3; ++axis) shape[axis] = static_cast<unsigned>(extents[axis]);
  return shape;
}

std::string describe_overwrite(const std::string& name, std::size_t bytes, std::int64_t at) {
  return fmt::format("`{}` ({} bytes) was written behind its end: {} bytes past it", name, bytes,
                     at - static_cast<std::int64_t>(bytes));
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, const Stream& stream) : bytes_(bytes), memory_(bytes + guard_bytes) {
  fill_device(memory_.pointer() + bytes, {guard_pattern}, guard_bytes, stream);
}

std::int64_t GuardedMemory::first_overwritten() const {
  std::vector<std::byte> guard(guard_bytes);
  copy_to_host(guard.data(), memory_.pointer() + bytes_, guard_bytes);
  const auto hit = std::find_if(guard.begin(), guard.end(), [](std::byte value) { return value != guard_pattern; });
  return hit == guard.end() ? -1 : static_cast<std::int64_t>(bytes_) + (hit - guard.begin());
}

DeviceTensors::DeviceTensors(const Plan& plan, const Arguments& arguments, const Stream& stream) {
  for (const Param& param : plan.params) {
    if (is_by_value(param)) continue;
    const auto host = arguments.tensors.find(param.name);
    if (host == arguments.tensors.end())
      internal_error(fmt::format("run on cuda: no tensor for parameter `{}`", param.name));
    if (param.kind != ParamKind::In) outputs_.push_back(param.name);
    const std::vector<std::byte>& data = host->second.data;
    const auto placed = tensors_.emplace(param.name, GuardedMemory(data.size(), stream)).first;
    copy_to_device(placed->second.pointer(), data.data(), data.size());
  }
  stream.synchronise();
}

DeviceTensors DeviceTensors::copy(const Stream& stream) const {
  DeviceTensors result;
  result.outputs_ = outputs_;
  for (const auto& [name, memory] : tensors_) {
    const auto placed = result.tensors_.emplace(name, GuardedMemory(memory.bytes(), stream)).first;
    copy_on_device(placed->second.pointer(), memory.pointer(), memory.bytes(), stream);
  }
  stream.synchronise();
  return result;
}

DevicePointer DeviceTensors::pointer(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? 0 : found->second.pointer();
}

std::size_t DeviceTensors::bytes(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? 0 : found->second.bytes();
}

std::size_t DeviceTensors::total_bytes() const {
  std::size_t total = 0;
  for (const auto& [name, memory] : tensors_) total += memory.bytes();
  return total;
}

void DeviceTensors::copy_outputs(Arguments& arguments) const {
  for (const std::string& name : outputs_) {
    std::vector<std::byte>& data = arguments.tensors.at(name).data;
    copy_to_host(data.data(), tensors_.at(name).pointer(), data.size());
  }
}

std::vector<std::string> DeviceTensors::overwritten() const {
  std::vector<std::string> faults;
  for (const auto& [name, memory] : tensors_)
    if (const std::int64_t at = memory.first_overwritten(); at >= 0)
      faults.push_back(describe_overwrite(name, memory.bytes(), at));
  return faults;
}

LoadedPlan::LoadedPlan(const CompiledPlan& compiled, const Arguments& arguments, const Stream& stream)
    : plan_(compiled.plan), dims_(dim_values(plan_, arguments)), error_word_(error_word_bytes) {
  for (const CompiledKernel& kernel : compiled.kernels) {
    modules_.emplace_back(kernel.cubin.bytes);
    functions_.push_back(modules_.back().function(kernel.source.kernel));
  }
  add_resident_dims();
  for (const Param& param : plan_.params)
    if (is_by_value(param)) scalars_.emplace(param.name, arguments.tensors.at(param.name).data);
  for (const Temp& temp : plan_.temps) {
    const std::size_t bytes = bytes_for(temp.dtype, shape_of(temp.shape, dims_));
    const auto placed = temporaries_.emplace(temp.name, GuardedMemory(bytes, stream)).first;
    fill_device(placed->second.pointer(), {temporary_pattern}, bytes, stream);
  }
  for (const Step& step : plan_.steps) {
    if (const auto* table = std::get_if<Table>(&step)) {
      const HostTensor content = make_table(*table, dims_, is_by_gpc(*table) ? gpcs_of(*table) : std::vector<int>{});
      const auto placed = temporaries_.emplace(table->name, GuardedMemory(content.data.size(), stream)).first;
      copy_to_device(placed->second.pointer(), content.data.data(), content.data.size());
    }
    if (const auto* kernel = std::get_if<Kernel>(&step)) launches_.emplace(kernel->name, prepare(*kernel));
  }
  reset_error(stream);
}

// The kernel whose resident blocks `dim` counts, null where it counts none.
const Kernel* LoadedPlan::counted_by(const Dim& dim) const {
  const Call* query = as<Call>(dim.value);
  if (!query || query->function != "resident") return nullptr;
  const Var* name = query->arguments.empty() ? nullptr : as<Var>(query->arguments[0]);
  for (const Kernel* kernel : kernels_of(plan_))
    if (name && kernel->name == name->name) return kernel;
  internal_error(fmt::format("run on cuda: `{}` asks for the resident blocks of no kernel", dim.name));
}

// The GPC of each worker of the kernel that the table's last argument but one counts; see runtime/gpcs.h.
std::vector<int> LoadedPlan::gpcs_of(const Table& table) const {
  const std::vector<Expr>& arguments = as<Call>(table.value)->arguments;
  const Expr& workers = arguments.at(arguments.size() - 2);
  const Var* counted = as<Var>(workers);
  for (const Dim& dim : plan_.dims) {
    const Kernel* kernel = counted && dim.name == counted->name ? counted_by(dim) : nullptr;
    if (kernel == nullptr) continue;
    return gpcs_of_workers({shape_of_launch(kernel->launch.cluster), shape_of_launch(kernel->launch.block), static_cast<unsigned>(kernel->launch.shared_bytes)},
                           static_cast<unsigned>(evaluate_index(workers, dims_)));
  }
  return {};
}

// `dim workers = resident(C)`: how many blocks (of a kernel with clusters: how many clusters) of kernel C the GPU holds
// at a time.
void LoadedPlan::add_resident_dims() {
  const std::vector<const Kernel*> kernels = kernels_of(plan_);
  for (const Dim& dim : plan_.dims) {
    const Kernel* kernel = counted_by(dim);
    if (kernel == nullptr) continue;
    std::int64_t threads = 1;
    for (const std::int64_t extent : kernel->launch.block) threads *= extent;
    const std::int64_t shared = kernel->launch.shared_bytes;
    const Function& function = functions_[static_cast<std::size_t>(std::find(kernels.begin(), kernels.end(), kernel) - kernels.begin())];
    const bool is_dynamic = shared > most_static_shared_bytes;
    if (is_dynamic) function.allow_shared(static_cast<int>(shared));
    if (const auto& cluster = kernel->launch.cluster; !cluster.empty()) {
      const int clusters = function.resident_clusters(shape_of_launch(cluster), shape_of_launch(kernel->launch.block),
                                                      is_dynamic ? static_cast<unsigned>(shared) : 0);
      if (clusters == 0)
        throw MachineError(fmt::format("this GPU holds no cluster of kernel `{}`: {} blocks with {} bytes of shared "
                                       "memory each",
                                       kernel->name, fmt::join(cluster, "*"), shared));
      dims_.emplace_back(dim.name, clusters);
      continue;
    }
    const int blocks = function.resident_blocks(static_cast<int>(threads), is_dynamic ? static_cast<int>(shared) : 0);
    dims_.emplace_back(dim.name, static_cast<std::int64_t>(blocks) * use_gpu().sms);
  }
}

LoadedPlan::Launch LoadedPlan::prepare(const Kernel& kernel) const {
  const std::vector<const Kernel*> kernels = kernels_of(plan_);
  const auto position =
      std::find_if(kernels.begin(), kernels.end(), [&](const Kernel* each) { return each->name == kernel.name; });
  Launch result;
  result.function = functions_[static_cast<std::size_t>(position - kernels.begin())];
  result.grid = {1, 1, 1};
  static constexpr std::array<std::int64_t, 3> most = {2147483647, 65535, 65535};
  for (std::size_t axis = 0; axis < kernel.launch.grid.size() && axis < 3; ++axis) {
    const std::int64_t extent = evaluate_index(kernel.launch.grid[axis], dims_);
    if (extent > most[axis]) {
      throw MachineError(fmt::format("kernel `{}` asks for {} blocks in {}, and a GPU launches at most {} there",
                                     kernel.name, extent, "xyz"[axis], most[axis]));
    }
    result.is_empty = result.is_empty || extent <= 0;
    result.grid[axis] = static_cast<unsigned>(std::max<std::int64_t>(extent, 0));
  }
  result.block = shape_of_launch(kernel.launch.block);
  if (!kernel.launch.cluster.empty()) result.cluster = shape_of_launch(kernel.launch.cluster);
  result.is_empty = result.is_empty || writes_nothing(kernel);
  if (kernel.launch.shared_bytes > most_static_shared_bytes) {
    const std::int64_t available = use_gpu().shared_bytes;
    if (kernel.launch.shared_bytes > available) {
      throw MachineError(
          fmt::format("kernel `{}` needs {} bytes of shared memory, and a block of this GPU has at most {}",
                      kernel.name, kernel.launch.shared_bytes, available));
    }
    result.function.allow_shared(static_cast<int>(kernel.launch.shared_bytes));
    result.dynamic_shared_bytes = static_cast<unsigned>(kernel.launch.shared_bytes);
  }
  return result;
}

// Whether every tensor that the kernel stores to has no elements (a persistent grid has blocks all the same), and it
// tests no index, whose report would be missed.
bool LoadedPlan::writes_nothing(const Kernel& kernel) const {
  std::vector<std::string> targets;
  bool reports = false;
  walk_expressions(kernel.body, [&](const Expr& top) {
    walk(top, [&](const Expr& part) {
      const Load* load = as<Load>(part);
      reports = reports || (load && load->access.rule.kind == Rule::Kind::Check);
      return true;
    });
  });
  walk(kernel.body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) reports = reports || store->target.rule.kind == Rule::Kind::Check;
    if (const Store* store = as<Store>(stmt)) targets.push_back(store->target.buffer);
    const Instr* instr = as<Instr>(stmt);
    if (instr == nullptr) return true;
    reports = reports || instr->op == "error.report";
    for (const Expr& operand : instr->operands) {
      if (const Load* place = as<Load>(operand)) targets.push_back(place->access.buffer);
      const Var* name = as<Var>(operand);
      for (const TensorMap& map : kernel.launch.maps)
        if (name && map.name == name->name && instr->op.starts_with("tma.store")) targets.push_back(map.tensor);
    }
    return true;
  });
  if (reports) return false;
  bool has_target = false;
  for (const std::string& target : targets) {
    const auto tensor = find_tensor(plan_, target);
    if (!tensor) continue;
    has_target = true;
    if (bytes_for(tensor->dtype, shape_of(tensor->shape, dims_)) > 0) return false;
  }
  return has_target;
}

EncodedTensorMap& LoadedPlan::map_of(const TensorMap& map, const DeviceTensors& tensors) const {
  const DevicePointer base = pointer_of(map.tensor, tensors);
  auto& known = maps_[fmt::format("{} {} {}", map.tensor, fmt::join(map.box, " "), map.xor_bytes)];
  if (const auto found = known.find(base); found != known.end()) return found->second;
  const auto tensor = find_tensor(plan_, map.tensor);
  if (!tensor) internal_error(fmt::format("run on cuda: map `{}` is of no tensor", map.name));
  const std::vector<std::int64_t> shape = shape_of(tensor->shape, dims_);
  TensorMapRequest request{base, tensor->dtype, {shape.rbegin(), shape.rend()}, {}, map.xor_bytes};
  for (const std::int64_t extent : map.box) request.box.push_back(static_cast<std::uint32_t>(extent));
  // A tensor without elements has no map, and no trip asks for one.
  const bool is_empty = bytes_for(tensor->dtype, shape) == 0;
  return known.emplace(base, is_empty ? EncodedTensorMap{} : encode_tensor_map(request)).first->second;
}

DevicePointer LoadedPlan::pointer_of(const std::string& tensor, const DeviceTensors& tensors) const {
  const auto temporary = temporaries_.find(tensor);
  return temporary == temporaries_.end() ? tensors.pointer(tensor) : temporary->second.pointer();
}

namespace {

// The values of one launch, kept where cuLaunchKernel can point at them.
class ArgumentList {
 public:
  explicit ArgumentList(std::size_t capacity) { values_.reserve(capacity); }
  void add(const void* value, std::size_t bytes) {
    std::array<std::byte, 8> slot{};
    std::memcpy(slot.data(), value, std::min(bytes, slot.size()));
    values_.push_back(slot);
  }
  std::vector<void*> pointers() {
    std::vector<void*> result;
    for (auto& value : values_) result.push_back(value.data());
    return result;
  }

 private:
  std::vector<std::array<std::byte, 8>> values_;
};

}  // namespace

void LoadedPlan::run(const DeviceTensors& tensors, const Stream& stream) const {
  for (const Step& step : plan_.steps) {
    if (const auto* clear = std::get_if<Clear>(&step)) {
      const auto info = find_tensor(plan_, clear->tensor);
      const auto value = constant_scalar(clear->value);
      if (!info || !value) internal_error(fmt::format("run on cuda: cannot clear `{}`", clear->tensor));
      std::vector<std::byte> pattern(static_cast<std::size_t>(bytes_of(info->dtype)));
      store_scalar(info->dtype, pattern.data(), *value);
      const std::size_t bytes = bytes_for(info->dtype, shape_of(info->shape, dims_));
      fill_device(pointer_of(clear->tensor, tensors), pattern, bytes / pattern.size(), stream);
      continue;
    }
    const auto* kernel = std::get_if<Kernel>(&step);
    if (!kernel) continue;  // tables were made on loading
    const Launch& launch = launches_.at(kernel->name);
    if (launch.is_empty) continue;
    ArgumentList list(kernel->launch.arguments.size() + 1);
    for (const std::string& argument : kernel->launch.arguments) {
      if (const auto scalar = scalars_.find(argument); scalar != scalars_.end()) {
        list.add(scalar->second.data(), scalar->second.size());
      } else if (find_tensor(plan_, argument)) {
        const DevicePointer pointer = pointer_of(argument, tensors);
        list.add(&pointer, sizeof pointer);
      } else {
        const std::int64_t value = evaluate_index(var(argument), dims_);
        list.add(&value, plan_.index_bits == 64 ? 8 : 4);  // the low half comes first
      }
    }
    const DevicePointer error_word = error_word_.pointer();
    if (!plan_.error_name.empty()) list.add(&error_word, sizeof error_word);
    std::vector<void*> pointers = list.pointers();
    // Maps stand between the arguments and the error word.
    auto place = pointers.begin() + static_cast<std::ptrdiff_t>(kernel->launch.arguments.size());
    for (const TensorMap& map : kernel->launch.maps) place = pointers.insert(place, &map_of(map, tensors)) + 1;
    tilewright::launch(launch.function, launch.grid, launch.block, launch.cluster, launch.dynamic_shared_bytes, stream, pointers);
  }
}

void LoadedPlan::reset_error(const Stream& stream) const {
  fill_device(error_word_.pointer(), {std::byte{0}}, error_word_bytes, stream);
}

std::optional<ErrorHit> LoadedPlan::error() const {
  std::array<std::int64_t, 3> word{};
  copy_to_host(word.data(), error_word_.pointer(), error_word_bytes);
  if (word[0] == 0) return std::nullopt;
  return ErrorHit{static_cast<int>(word[0] - 1), word[1]};
}

std::vector<std::string> LoadedPlan::overwritten() const {
  std::vector<std::string> faults;
  for (const auto& [name, memory] : temporaries_)
    if (const std::int64_t at = memory.first_overwritten(); at >= 0)
      faults.push_back(describe_overwrite(name, memory.bytes(), at));
  return faults;
}

RunReport run_on_cuda(const CompiledPlan& compiled, Arguments& arguments) {
  use_gpu();
  const Stream stream;
  const DeviceTensors tensors(compiled.plan, arguments, stream);
  const LoadedPlan loaded(compiled, arguments, stream);
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
