// NVRTC: CUDA C to machine code (and PTX) in this process, no GPU needed.
#pragma once

#include <string>
#include <vector>

#include "runtime/cubin.h"

namespace tilewright {

struct NvrtcOptions {
  std::string arch = "sm_90a";
  bool line_info = false;
  bool exact = true;  // no contraction, IEEE division and roots, no flushing: what printed kernels need
  std::vector<std::string> include_folders;
  std::vector<std::string> name_expressions;  // instances of templates that are launched
  std::string file_name = "kernel.cu";        // in messages
};

// The options as NVRTC takes them (the key of the disk cache, and the command that repeats a failed call).
std::vector<std::string> nvrtc_arguments(const NvrtcOptions& options);
// "NVRTC 13.0"
std::string nvrtc_version();

// Throws MachineError with NVRTC's log, the saved source and the command that repeats the call.
Cubin compile_cuda(const std::string& text, const NvrtcOptions& options);
// The PTX of the same call; `entries` gets the mangled names of the name expressions.
std::string cuda_to_ptx(const std::string& text, const NvrtcOptions& options, std::map<std::string, std::string>* entries = nullptr);

}  // namespace tilewright
