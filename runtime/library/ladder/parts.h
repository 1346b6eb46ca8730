// The busiest part: lower bounds of a row's time from what it asks of each part of a card.
#pragma once

#include <vector>

#include "ir/tensor.h"
#include "runtime/grid_counts.h"
#include "runtime/library/ladder/cards.h"
#include "runtime/library/ladder/ladder.h"

namespace tilewright {

// Operations of the definition (a product and its sum are two), and the bytes of its inputs and outputs, each once.
// Operations are 0 where an extent is known only in the kernel.
struct Work {
  double operations = 0;
  double bytes = 0;
  Dtype operand = Dtype::F32;  // of the first tensor that it reads
};
Work work_of(const TensorFn& fn, const Sizes& dims);

// Fills parts, busiest, least_ms, not_counted and accesses of a row. `uses_tensor_cores`: its SASS has their instructions.
void add_parts(LadderRow& row, const Work& work, const std::vector<GridCounts>& counts, const Card& card, bool uses_tensor_cores);

}  // namespace tilewright
