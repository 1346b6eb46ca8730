// Tiling of one loop of a kernel, for the lines that need it: `tile`, `split`.
#pragma once

#include <string>

#include "passes/loops.h"

namespace tilewright {

// The loop in tiles of `size`: `i` becomes `i.LEVEL` around `i`, with a predicate where the size may not divide the extent.
// Throws UserError for a loop that is bound, has a step, or bounds read from a tensor.
Kernel tile_loop(const Plan& plan, const Kernel& kernel, const std::string& level, const LineName& name, LineNumber size);

// The two levels that lowering makes of a long sum over `name` (`k.chunk`) put together again.
Kernel without_chunks_of(const Kernel& kernel, const std::string& name);

}  // namespace tilewright
