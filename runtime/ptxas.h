// ptxas as a program: PTX to machine code of a whole program. nvJitLink assembles for linking, where ptxas keeps to the
// registers that a kernel starts with and leaves setmaxnreg out.
#pragma once

#include <string>
#include <vector>

#include "runtime/cubin.h"

namespace tilewright {

struct PtxasOptions {
  std::string arch = "sm_90a";
  bool line_info = false;
};

// Without the files.
std::vector<std::string> ptxas_arguments(const PtxasOptions& options);

// Throws MachineError where ptxas is missing, and with its report, the saved PTX and the command where it refuses.
Cubin assemble_whole(const std::string& ptx, const PtxasOptions& options);

}  // namespace tilewright
