// The accumulator of a reduction: what `split` needs to know to give threads or blocks partial results.
#pragma once

#include "passes/loops.h"

namespace tilewright {

struct Accumulator {
  Buffer buffer;
  CombineOp op = CombineOp::Add;
  std::size_t start = 0;  // the statement of the body that sets it to its identity
};

// Of the reduction that statement `nest` of `body` makes over `loop`. Throws UserError at the loop where that is none of
// one accumulator by one operator: running results, two values kept in step, a start that is no identity.
Accumulator accumulator_of(const Block& body, std::size_t nest, const LineName& loop);

}  // namespace tilewright
