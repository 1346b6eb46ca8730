// nvJitLink: PTX to machine code in this process, no GPU needed.
#pragma once

#include <string>

#include "runtime/cubin.h"

namespace tilewright {

struct NvJitLinkOptions {
  std::string arch = "sm_90a";
  bool line_info = false;
};

std::vector<std::string> nvjitlink_arguments(const NvJitLinkOptions& options);
// "nvJitLink 13.0"
std::string nvjitlink_version();

// Throws MachineError with the log, the saved PTX and the command that repeats the call.
Cubin assemble_ptx(const std::string& ptx, const NvJitLinkOptions& options);

}  // namespace tilewright
