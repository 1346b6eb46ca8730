// A thread-stage plan to machine code, by either generator; no GPU needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "runtime/cubin.h"

namespace tilewright {

// Nvrtc: CUDA C, compiled by NVRTC. Llvm: LLVM IR to PTX, assembled by nvJitLink.
enum class Backend : std::uint8_t { Nvrtc, Llvm };

struct CompileOptions {
  Backend backend = Backend::Nvrtc;
  std::string arch = "sm_90a";
  bool line_info = false;
  bool use_cache = true;
};

struct CompiledKernel {
  std::string name;   // in the plan
  KernelText source;  // CUDA C, or PTX; source.kernel is the entry
  Cubin cubin;
  std::optional<KernelResources> resources;
  double generate_ms = 0;  // plan to text
  double compile_ms = 0;   // text to machine code
  bool is_from_cache = false;
};

struct CompiledPlan {
  Plan plan;
  CompileOptions options;
  std::vector<CompiledKernel> kernels;  // in the order of the plan's kernel steps
};

// Throws MachineError where a tool is missing or refuses the text.
CompiledKernel compile_kernel(const Plan& plan, const Kernel& kernel, const CompileOptions& options);
CompiledPlan compile_plan(const Plan& plan, const CompileOptions& options);

// The PTX of a kernel: LLVM's, or what NVRTC makes of the CUDA C.
std::string ptx_of(const Plan& plan, const Kernel& kernel, const CompileOptions& options);

}  // namespace tilewright
