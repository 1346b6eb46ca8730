// Hand kernels: CUDA C that people wrote, compiled by NVRTC and launched as the steps of a `hand` item say, on the
// tensors of the fn that they are compared with: on a GPU, or as PTX without one.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/compile.h"
#include "runtime/grid_counts.h"
#include "runtime/hand_prepare.h"
#include "runtime/hand_program.h"
#include "runtime/hand_source.h"
#include "runtime/timing.h"

namespace tilewright {

struct CompiledHand {
  HandProgram program;
  HandSource source;
  Cubin cubin;
  std::vector<std::pair<std::string, KernelResources>> resources;  // by the launched kernel's name, in order
  double compile_ms = 0;
};

// Compiles for an architecture, with contraction as nvcc has it. Throws UserError where a launch names no kernel of the
// file or gives it the wrong number of arguments, MachineError with NVRTC's log.
CompiledHand compile_hand(const HandProgram& program, const std::string& arch, bool use_cache = true,
                          bool line_info = false);

// The PTX of a hand program, for a machine without a GPU.
struct HandPtx {
  HandProgram program;
  HandSource source;
  std::string text;
  std::map<std::string, std::string> entries;  // as Cubin has them
  double compile_ms = 0;
};
// As compile_hand; with line information, so that faults name lines of the file.
HandPtx compile_hand_to_ptx(const HandProgram& program, const std::string& arch, bool use_cache = true);

// Runs once on host tensors, without a GPU; `milliseconds` stays 0, for nothing is measured. Faults are those of the PTX
// machine. Throws ptx::Unsupported (a MachineError) for an instruction that it does not have.
// `most_steps`: operations of warps after which a kernel is given up; 0: the machine's own limit.
RunReport run_hand_on_ptx(const HandPtx& compiled, const Plan& plan, Arguments& arguments, std::int64_t most_steps = 0);

// Counts what each launch asks of a GPU, as count_on_ptx (runtime/plan_ptx.h) does.
std::vector<GridCounts> count_hand_on_ptx(const HandPtx& compiled, const Plan& plan, Arguments& arguments);

// A loaded hand program, bound to one call. Owns temporaries and the values of scalars.
class LoadedHand {
 public:
  // `plan` says which parameters there are (any plan of the fn).
  LoadedHand(const CompiledHand& compiled, const Plan& plan, const Arguments& arguments, const Stream& stream);
  void run(const DeviceTensors& tensors, const Stream& stream) const;
  std::vector<std::string> overwritten() const;
  std::optional<ErrorHit> error() const;

 private:
  struct Launch {
    Function function;
    const PreparedLaunch* prepared = nullptr;
  };

  DevicePointer pointer_of(const std::string& tensor, const DeviceTensors& tensors) const;
  void load(const PreparedLaunch& launch);

  PreparedHand prepared_;
  Module module_;
  std::map<std::string, GuardedMemory> temporaries_;
  DeviceMemory error_word_;
  std::map<std::string, DevicePointer> symbols_;  // of constants
  std::vector<Launch> launches_;                  // in the order of the prepared ones
};

// Runs once on host tensors; as run_on_cuda.
RunReport run_hand_on_cuda(const CompiledHand& compiled, const Plan& plan, Arguments& arguments);

class HandCandidate : public Candidate {
 public:
  HandCandidate(const CompiledHand& compiled, const Plan& plan, const Arguments& arguments,
                const RotatedTensors& tensors, const Stream& stream)
      : Candidate(compiled.program.name), loaded_(compiled, plan, arguments, stream), tensors_(&tensors) {}
  void run(std::size_t set, const Stream& stream) const override { loaded_.run((*tensors_)[set], stream); }

 private:
  LoadedHand loaded_;
  const RotatedTensors* tensors_;
};

}  // namespace tilewright
