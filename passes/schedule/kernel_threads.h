// Who runs a kernel at tile stage: its warps and roles, and what the target is able to do.
#pragma once

#include <vector>

#include "ir/plan.h"
#include "passes/pass.h"

namespace tilewright {

std::vector<Role> roles_of(const Kernel& kernel);

// The warps that share the kernel's tile: those of `warps`, or of the role `consumer`; 0 where none are stated.
int computing_warps(const Kernel& kernel);

// All threads of a block; 1 where none are stated.
std::int64_t threads_of(const Kernel& kernel);

// The threads that compute, those of the role `consumer` or all, and the registers that each of them has at most.
struct ComputingThreads {
  std::int64_t count = 1;
  std::int64_t registers = 0;
};
ComputingThreads computing_threads(const Kernel& kernel, const Target& target);

// 90 of `sm_90a`.
int capability(const Target& target);

// The registers that all threads of a block get together when it starts: each has its share of the file, in steps of 8.
std::int64_t register_pool(const Target& target, std::int64_t threads);

}  // namespace tilewright
