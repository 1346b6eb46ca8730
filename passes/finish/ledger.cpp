// The ledger of a plan at tile stage.
#include "passes/finish/ledger.h"

#include "passes/finish/passes.h"
#include "passes/schedule/kernel_threads.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

Ledger ledger_of(const Plan& plan, const Target& target) {
  Ledger ledger;
  Plan bound = bind_default(plan, target);
  for (const Kernel* kernel : kernels_of(bound)) {
    ComputingThreads computing = computing_threads(*kernel, target);
    ledger.kernels.push_back(KernelLedger{kernel->name, threads_of(*kernel), shared_bytes_of(kernel->body),
                                          registers_of(kernel->body), computing.registers});
  }
  return ledger;
}

}  // namespace tilewright
