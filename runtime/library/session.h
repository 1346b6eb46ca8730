// From a program's text to something that can run: which fn, which schedule, which inputs, which device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/program.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "runtime/library/rungs.h"
#include "runtime/tensor.h"

namespace tilewright {

// Reads and parses a program file. Throws UserError with all diagnostics; `sources` (may be null) gets the text first, so
// that they can be rendered.
Program load_program(const std::string& path, std::vector<SourceFile>* sources = nullptr);

// The fn of this name; without a name the last one that takes or gives a tensor. Throws UserError that lists what there is.
const TensorFn& choose_fn(const Program& program, const std::string& name = {});

using DimMap = std::map<std::string, std::int64_t>;

// Why a schedule's `when` does not hold for contiguous tensors of these dims; empty where it holds.
std::vector<std::string> failed_conditions(const TensorFn& fn, const std::vector<Fact>& when, const DimMap& dims);

// `wanted`, with the sizes outside `fixed` rounded up to the smallest common power of two that `when` accepts; unchanged
// where none up to 64 does.
DimMap fitting_dims(const TensorFn& fn, const std::vector<Fact>& when, const DimMap& wanted, const DimMap& fixed = {});

// What a call compiles to: lines, facts, class. `made_by_rules`: the program has no schedule for it.
struct Selection {
  std::string schedule;  // its name, empty for none
  std::string arch;
  std::vector<Fact> when;
  std::vector<ScheduleLine> lines;
  bool made_by_rules = false;
};

struct SelectionRequest {
  std::string schedule;              // a unique beginning of a name; "none" for the lowered plan; empty: by the dims
  std::vector<std::string> then;     // more lines; in diagnostics they are files 1, 2, … behind the program's 0
  DimMap parameters;                 // overrides of schedule parameters
  std::string arch = "sm_90a";
  bool arch_matters = true;          // false on devices that are no GPU: `for` is not asked
};
// The schedule for a call. Of several without a name: the last whose `for` and `when` hold. Throws UserError that lists
// each schedule passed over with its failed conditions, where a program has schedules and none holds.
Selection select_schedule(const Program& program, const TensorFn& fn, const DimMap& dims, const SelectionRequest& request);

// Each schedule of the fn with what speaks against it for these dims (nothing: it could be taken).
std::vector<std::pair<const Schedule*, std::vector<std::string>>> weigh_schedules(const Program& program, const TensorFn& fn, const DimMap& dims,
                                                                                 const SelectionRequest& request);

std::vector<Rung> rungs_of(const TensorFn& fn, const Selection& selection, const DimMap& dims, const std::string& arch);

// ---- Devices.
enum class DeviceKind : std::uint8_t { Cuda, Cpu, Sim, Interpreter };
std::string_view name_of(DeviceKind device);

struct ExecutionRequest {
  DeviceKind device = DeviceKind::Cpu;
  Backend backend = Backend::Nvrtc;
  std::string arch = "sm_90a";
  int threads = 0;  // cpu: 0 for one a core
  std::uint64_t seed = 1;
  bool use_cache = true;
};
// Runs a tile-stage plan (finished first where the device needs it) or a thread-stage plan (sim and cuda only).
RunReport execute(const Plan& plan, Arguments& arguments, const ExecutionRequest& request);

// `auto`: cuda where a GPU can be used, else cpu. Throws UserError for an unknown name, MachineError for `cuda` without one.
DeviceKind choose_device(const std::string& name);
// The architecture to compile for: `asked`, else that of the GPU at hand, else sm_90a.
std::string choose_arch(const std::string& asked);

// An error-word hit in words: which access, the index seen, what it may be.
std::string describe(const Plan& plan, const ErrorHit& hit);

}  // namespace tilewright
