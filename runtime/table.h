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
// `grouped(a, b, g)`: bands of g rows, each column by column. `hilbert.gpc(a, b, workers, axis)`, and so for the others:
// within each `workers` of them in turn, workers of one GPC get tiles of one row (axis 0) or column (1). `gpcs` numbers
// the GPC of each worker; empty, where it is not known, leaves the order as it is. Throws UserError on another function
// or a shape that does not fit.
HostTensor make_table(const Table& table, const std::vector<std::pair<std::string, std::int64_t>>& dims,
                      const std::vector<int>& gpcs = {});

// Whether the table is one of the orders that want `gpcs`.
bool is_by_gpc(const Table& table);

}  // namespace tilewright
