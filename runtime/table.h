// The tables that a plan lets the runtime compute.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/plan.h"
#include "runtime/tensor.h"

namespace tilewright {

// The a·b tiles (row, column), `hilbert(a, b)`: neighbours along a Hilbert curve; `rows(a, b)`: row by row;
// `grouped(a, b, g)`: bands of g rows, each column by column. Throws UserError on another function or a shape that does
// not fit.
HostTensor make_table(const Table& table, const std::vector<std::pair<std::string, std::int64_t>>& dims);

}  // namespace tilewright
