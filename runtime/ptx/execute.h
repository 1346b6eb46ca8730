// Running a launch: block by block, warp by warp, lanes that have diverged apart.
#pragma once

#include "runtime/ptx/faults.h"
#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

struct LaunchResult {
  std::string printed;     // by printf
  std::int64_t steps = 0;  // operations of warps
};

// Runs to the end, or to a fault that ends it; `faults` gets what was found. `most_steps`: a kernel that takes more is
// stopped, and that is a fault.
LaunchResult execute(const Launch& launch, Memory& memory, FaultLog& faults, std::int64_t most_steps, Counter* counter = nullptr);

}  // namespace tilewright::ptx
