// The half of `split` that gives terms to blocks; see split.cpp.
#pragma once

#include "passes/loops.h"

namespace tilewright {

// Two kernels for one: partial results of `terms` terms each in a temporary, and their reduction.
Plan split_among_blocks(const Plan& plan, const ScheduleLine& line, const LineName& loop, LineNumber terms);

}  // namespace tilewright
