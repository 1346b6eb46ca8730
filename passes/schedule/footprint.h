// Which box of a tensor a region of the program reads, and where in the box each access lies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/loops.h"

namespace tilewright {

// An access in a region, with the loops of the region around it.
struct TileAccess {
  Access access;
  std::vector<Axis> loops;
  Span statement;
};

// Every load of `tensor` in the region, in order.
std::vector<TileAccess> accesses_in(const Block& region, const std::string& tensor);

// The same access but for constants added to its indices.
bool are_shifts(const Access& a, const Access& b);

// One dim of the box: it starts at `origin` in the tensor and has `extent` elements; `name` is that of the loop that
// walks it.
struct FootprintAxis {
  std::string name;  // empty: the dim has one element in the box
  std::int64_t extent = 1;
  Expr base;                // of terms outside the region
  std::int64_t offset = 0;  // origin = base + offset
};

struct Footprint {
  std::vector<FootprintAxis> axes;  // one a dim of the tensor
  Rule rule;
};

// The box of accesses that are shifts of one another. Refuses, at `at`, a dim whose extent is not constant.
Footprint footprint_of(const std::vector<TileAccess>& shifts, const LineName& at);

// The indices of an access inside the box, without the dims that have no name.
std::vector<Expr> local_index(const Access& access, const std::vector<Axis>& loops, const Footprint& box);

}  // namespace tilewright
