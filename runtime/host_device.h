// The `cpu` device: a tile-stage plan as machine code of this host, its outer parallel loops over the cores.
#pragma once

#include <memory>
#include <vector>

#include "codegen/codegen.h"
#include "runtime/tensor.h"

namespace tilewright {

struct HostOptions {
  int threads = 0;  // 0: one a core; 1: the serial baseline
  // Above 0: each kernel stops after about this long, and the time of what it did is scaled up. Results are then not
  // complete.
  double limit_ms = 0;
};

// A plan compiled once, to be run often.
class HostPlan {
 public:
  // Throws UserError for a plan of the thread stage, which only `cuda` and `sim` run.
  explicit HostPlan(const Plan& plan);
  // Outputs in `arguments` are overwritten. The time in the report is that of clears and kernels.
  RunReport run(Arguments& arguments, const HostOptions& options = {}) const;

 private:
  Plan plan_;
  std::vector<std::unique_ptr<HostKernel>> kernels_;  // in the order of the plan's kernel steps
};

// Compiles and runs once.
RunReport run_on_host(const Plan& plan, Arguments& arguments, const HostOptions& options = {});

}  // namespace tilewright
