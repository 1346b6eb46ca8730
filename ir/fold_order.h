// The order in which `reduce` folds the elements of a register buffer: what its layout says, once for whatever executes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/layout.h"

namespace tilewright {

// Part of an axis' coordinate: `digit * stride` with 0 <= digit < extent.
struct FoldDigit {
  std::size_t axis = 0;
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  Place place = Place::Reg;
  std::int64_t place_stride = 1;
};

// First a thread's own elements, in the order of their coordinates; then the lanes of a warp by halves, the farther half
// first (element l takes element l + n/2, then l + n/4, …); then what other threads have, in order, thread.z outermost.
struct FoldOrder {
  std::vector<FoldDigit> registers;
  std::vector<FoldDigit> lanes;   // extents are powers of two, the largest place stride first
  std::vector<FoldDigit> others;
};

// Of the folded axes (by position) of a layout. Nothing where lanes are dealt in other numbers than powers of two.
std::optional<FoldOrder> fold_order(const Layout& layout, const std::vector<std::size_t>& folded);

std::int64_t count(const std::vector<FoldDigit>& digits);

}  // namespace tilewright
