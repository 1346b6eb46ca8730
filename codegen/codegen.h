// What the generators give: texts of the thread stage, and a host function from the tile stage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// One printed line and the place of the program it stems from.
struct LineOrigin {
  int line;
  Span span;
};

struct KernelText {
  std::string kernel;            // the entry's name
  std::string text;              // CUDA C or PTX
  std::vector<LineOrigin> lines;
};

// A name that C, PTX and LLVM accept: dots become underscores; C++'s words and CUDA's own functions get one more behind.
std::string c_name(const std::string& ir_name);

// Whether a loop waits for the copy engine or the tensor cores: such a loop is printed so that no compiler unrolls or
// peels it, for the registers of unfinished wgmmas must not move.
bool is_pipelined(const Loop& loop);

// The most shared memory that a kernel declares statically; beyond it, one dynamic block (launch.shared_bytes) is used.
inline constexpr std::int64_t most_static_shared_bytes = 48 * 1024;

// CUDA C of a thread-stage kernel: no headers, no templates, names of the program kept, a `// launch` comment with grid,
// block and arguments in front (the comment that `compare --hand` reads), `extern "C" __global__`. Argument order is
// launch.arguments: tensors as pointers (const __restrict__ for inputs), scalars by value, dims as int or long long by
// plan.index_bits; then, where the plan has an error word, `long long* error_word`.
KernelText print_cuda(const Plan& plan, const Kernel& kernel);

// PTX of the same kernel by LLVM's NVPTX backend for an architecture such as "sm_90a"; libdevice is linked in from
// `libdevice_path` where functions need it. Throws MachineError with LLVM's message.
KernelText print_ptx(const Plan& plan, const Kernel& kernel, const std::string& arch, const std::string& libdevice_path);
// The optimised LLVM IR, for `dump --emit llvm`.
std::string print_llvm(const Plan& plan, const Kernel& kernel, const std::string& arch, const std::string& libdevice_path);

// A plan of the tile stage as machine code of this host (LLVM ORC). Outer parallel loops are cut into ranges.
class HostKernel {
 public:
  virtual ~HostKernel() = default;
  // Iterations of the flattened outer parallel (or grid) loop; 1 where there is none. Names in dims order of the plan.
  virtual std::int64_t iterations(const std::vector<std::int64_t>& dims) const = 0;
  // Runs iterations [first, last). `tensors`: base pointers in the order params, temps, tables of the plan.
  // `error_word`: three i64: site + 1 (0: none), value, spare.
  virtual void run(const std::vector<void*>& tensors, const std::vector<std::int64_t>& dims, std::int64_t first,
                   std::int64_t last, std::int64_t* error_word) const = 0;
};
std::unique_ptr<HostKernel> compile_for_host(const Plan& plan, const Kernel& kernel);

}  // namespace tilewright
