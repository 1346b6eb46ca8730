// The ledger of a finished plan.
#include "passes/finish/ledger.h"

#include <algorithm>

namespace tilewright {

namespace {

std::int64_t registers_in(const Block& body) {
  std::int64_t here = 0;
  std::int64_t deepest = 0;  // of nested bodies, only one is alive at a time
  for (const Stmt& stmt : body) {
    if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->space == Space::Register) {
      std::int64_t elements = 1;
      for (const BufferAxis& axis : buffer->axes) elements *= axis.extent;
      here += elements * std::max(1, bytes_of(buffer->dtype) / 4);
    }
    if (const Loop* loop = as<Loop>(stmt)) deepest = std::max(deepest, registers_in(loop->body));
    if (const If* branch = as<If>(stmt)) deepest = std::max({deepest, registers_in(branch->then_body), registers_in(branch->else_body)});
  }
  return here + deepest;
}

}  // namespace

Ledger ledger_of(const Plan& finished) {
  Ledger ledger;
  for (const Kernel* kernel : kernels_of(finished)) {
    std::int64_t threads = 1;
    for (std::int64_t extent : kernel->launch.block) threads *= extent;
    ledger.kernels.push_back(KernelLedger{kernel->name, threads, kernel->launch.shared_bytes, registers_in(kernel->body)});
  }
  return ledger;
}

}  // namespace tilewright
