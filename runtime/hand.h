// Hand kernels: CUDA C that people wrote, compiled by NVRTC and launched as the steps of a `hand` item say, on the
// tensors of the fn that they are compared with.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/compile.h"
#include "runtime/hand_source.h"
#include "runtime/timing.h"

namespace tilewright {

// One launch. Arguments are names of tensors, scalars, temporaries (a Var or a Load without indices), expressions of
// dims and integer scalars, or constants. `error_word` stands for the error word of a dumped kernel.
struct HandLaunch {
  std::string kernel;  // "tiled", or an instance of a template, "tiled<16>"
  std::vector<Expr> grid;
  std::vector<Expr> block;
  Expr shared_bytes;  // dynamic; empty for none
  std::vector<Expr> arguments;
  Span span;
};
struct HandZero {  // all bytes of a tensor to 0
  std::string tensor;
};
struct HandConstant {  // copies a tensor into a __constant__ array
  std::string symbol;
  std::string tensor;
};
using HandStep = std::variant<HandLaunch, HandZero, HandConstant>;

struct HandProgram {
  std::string name;       // as tables show it
  std::string file_name;  // the `.cu`, for messages and local includes
  std::string text;
  std::vector<Temp> temps;
  std::vector<HandStep> steps;
};

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

// A loaded hand program, bound to one call. Owns temporaries and the values of scalars.
class LoadedHand {
 public:
  // `plan` says which parameters there are (any plan of the fn).
  LoadedHand(const CompiledHand& compiled, const Plan& plan, const Arguments& arguments, const Stream& stream);
  void run(const DeviceTensors& tensors, const Stream& stream) const;
  std::vector<std::string> overwritten() const;
  std::optional<ErrorHit> error() const;

 private:
  // A tensor's place is looked up at each run; everything else is a value.
  struct Argument {
    std::string tensor;
    std::array<std::byte, 8> value{};
  };
  struct Launch {
    Function function;
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    unsigned shared_bytes = 0;
    bool is_empty = false;
    std::vector<Argument> arguments;
  };
  struct Zero {
    std::string tensor;
    std::size_t bytes = 0;
  };
  struct Constant {
    DevicePointer symbol = 0;
    std::string tensor;
    std::size_t bytes = 0;
  };

  Launch prepare(const HandLaunch& launch, const CompiledHand& compiled, const Arguments& arguments);
  Argument argument_of(const Expr& expr, const HandParameter& parameter, const Arguments& arguments) const;
  DevicePointer pointer_of(const std::string& tensor, const DeviceTensors& tensors) const;
  std::size_t bytes_of_tensor(const std::string& tensor, const Arguments& arguments) const;

  std::string fn_;
  std::vector<Param> params_;
  Module module_;
  DimValues names_;  // dims and integer scalars
  std::map<std::string, GuardedMemory> temporaries_;
  DeviceMemory error_word_;
  std::vector<std::variant<Launch, Zero, Constant>> steps_;
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
