// The `cuda` device: a compiled thread-stage plan on host tensors, and on tensors that stay on the GPU for timing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/driver.h"
#include "runtime/tensor.h"
#include "runtime/tensor_map.h"

namespace tilewright {

using DimValues = std::vector<std::pair<std::string, std::int64_t>>;

// Memory for one tensor with a guard zone behind its end.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t bytes, const Stream& stream);
  DevicePointer pointer() const { return memory_.pointer(); }
  std::size_t bytes() const { return bytes_; }
  // The first byte behind the end that was overwritten, counted from the tensor's first; -1 for none.
  std::int64_t first_overwritten() const;

 private:
  std::size_t bytes_;
  DeviceMemory memory_;
};

// The tensors of one call on the device, by name: inputs with their data, outputs with what `arguments` holds (poison).
// Scalars that are passed by value are not among them.
class DeviceTensors {
 public:
  DeviceTensors(const Plan& plan, const Arguments& arguments, const Stream& stream);
  // Another set with the same content, copied on the device.
  DeviceTensors copy(const Stream& stream) const;

  DevicePointer pointer(const std::string& name) const;
  std::size_t bytes(const std::string& name) const;
  std::size_t total_bytes() const;
  // Copies the outputs (and inout tensors) back; the stream must be done.
  void copy_outputs(Arguments& arguments) const;
  // A sentence for each tensor that was written behind its end.
  std::vector<std::string> overwritten() const;

 private:
  DeviceTensors() = default;

  std::map<std::string, GuardedMemory> tensors_;
  std::vector<std::string> outputs_;
};

// Modules of a compiled plan, loaded and ready to be launched for one set of dims. Owns temporaries, tables and the
// error word. Launches go to one stream; nothing is allocated or copied in run(), and tensor maps are encoded the first
// time that a tensor is seen.
class LoadedPlan {
 public:
  LoadedPlan(const CompiledPlan& compiled, const Arguments& arguments, const Stream& stream);

  // Clears and kernels in order.
  void run(const DeviceTensors& tensors, const Stream& stream) const;
  void reset_error(const Stream& stream) const;
  // The stream must be done.
  std::optional<ErrorHit> error() const;
  std::vector<std::string> overwritten() const;  // temporaries
  const DimValues& dims() const { return dims_; }

 private:
  struct Launch {
    Function function;
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    std::array<unsigned, 3> cluster{};  // zeros: none
    unsigned dynamic_shared_bytes = 0;
    bool is_empty = false;  // a grid of no blocks, or nothing to write
  };

  void add_resident_dims();
  const Kernel* counted_by(const Dim& dim) const;
  std::vector<int> gpcs_of(const Table& table) const;
  Launch prepare(const Kernel& kernel) const;
  bool writes_nothing(const Kernel& kernel) const;
  EncodedTensorMap& map_of(const TensorMap& map, const DeviceTensors& tensors) const;
  DevicePointer pointer_of(const std::string& tensor, const DeviceTensors& tensors) const;

  Plan plan_;
  DimValues dims_;
  std::map<std::string, std::vector<std::byte>> scalars_;  // passed by value
  std::vector<Module> modules_;                            // in the order of the plan's kernels
  std::vector<Function> functions_;
  std::map<std::string, Launch> launches_;
  std::map<std::string, GuardedMemory> temporaries_;  // tables too
  // By what a map says and where its tensor lies.
  mutable std::map<std::string, std::map<DevicePointer, EncodedTensorMap>> maps_;
  DeviceMemory error_word_;
};

// Launches a plan once on host tensors: outputs in `arguments` are overwritten. Throws MachineError where a launch
// fails.
RunReport run_on_cuda(const CompiledPlan& compiled, Arguments& arguments);

}  // namespace tilewright
