// A generated plan on the PTX machine: what either generator prints, executed without a GPU.
#pragma once

#include "runtime/compile.h"
#include "runtime/grid_counts.h"
#include "runtime/tensor.h"

namespace tilewright {

// Prints PTX of each kernel of a thread-stage plan (`options` says by which generator), and runs it once on host tensors.
// `milliseconds` stays 0. Persistent kernels get two blocks. Throws ptx::Unsupported for an instruction that the machine does
// not have, and for kernels that need a cluster or a tensor map.
RunReport run_on_ptx(const Plan& plan, Arguments& arguments, const CompileOptions& options);

// Counts what each kernel asks of a GPU at these dims, block by block on tensors without data: of any size, in little
// time. Where addresses or branches depend on data they are those of zeros. Scalars are those of `arguments`, whose tensors
// need no data. Never throws for what the machine lacks: the counts say so.
std::vector<GridCounts> count_on_ptx(const Plan& plan, Arguments& arguments, const CompileOptions& options);

}  // namespace tilewright
