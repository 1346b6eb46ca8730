// The ledger: what a finished plan takes of shared memory and registers, kernel by kernel.
#pragma once

#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

struct KernelLedger {
  std::string name;
  std::int64_t threads = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t registers = 0;  // 32-bit registers a thread that register buffers take, all alive at once
};

struct Ledger {
  std::vector<KernelLedger> kernels;
};

// Needs the thread stage.
Ledger ledger_of(const Plan& finished);

}  // namespace tilewright
