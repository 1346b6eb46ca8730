// The ledger: what a plan takes of shared memory and registers, kernel by kernel, as its buffers say.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"

namespace tilewright {

struct KernelLedger {
  std::string name;
  std::int64_t threads = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t registers = 0;  // 32-bit registers that register buffers take of a thread that computes
  std::int64_t share = 0;      // registers that such a thread has at most
};

struct Ledger {
  std::vector<KernelLedger> kernels;
};

// Of a plan at tile stage; what a schedule leaves open is bound first.
Ledger ledger_of(const Plan& plan, const Target& target);

}  // namespace tilewright
