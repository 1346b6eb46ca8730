// A generated plan on the PTX machine: what either generator prints, executed without a GPU.
#pragma once

#include "runtime/compile.h"
#include "runtime/tensor.h"

namespace tilewright {

// Prints PTX of each kernel of a thread-stage plan (`options` says by which generator), and runs it once on host tensors.
// `milliseconds` stays 0. Throws ptx::Unsupported for an instruction that the machine does not have, and for kernels that
// need a cluster, a tensor map, or to know how many blocks a GPU holds.
RunReport run_on_ptx(const Plan& plan, Arguments& arguments, const CompileOptions& options);

}  // namespace tilewright
