// A generated plan on the PTX machine: what either generator prints, executed without a GPU.
#pragma once

#include "runtime/compile.h"
#include "runtime/tensor.h"

namespace tilewright {

// Prints PTX of each kernel of a thread-stage plan (`options` says by which generator), and runs it once on host tensors.
// `milliseconds` stays 0. Persistent kernels get two blocks. Throws ptx::Unsupported for an instruction that the machine does
// not have, and for kernels that need a cluster or a tensor map.
RunReport run_on_ptx(const Plan& plan, Arguments& arguments, const CompileOptions& options);

}  // namespace tilewright
