// See fold_order.h.
#include "ir/fold_order.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tilewright {

namespace {

constexpr std::int64_t lanes_in_warp = 32;

bool is_power_of_two(std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); }

// Places along which neighbours are neighbouring lanes.
bool is_along_lanes(Place place) { return place == Place::ThreadX || place == Place::Thread || place == Place::Lane; }

// Which of two places of a digit is folded further out.
int rank(Place place) {
  constexpr std::array outermost_first = {Place::ThreadZ, Place::ThreadY, Place::Warpgroup, Place::Warp};
  return static_cast<int>(std::find(outermost_first.begin(), outermost_first.end(), place) - outermost_first.begin());
}

// Takes the lanes' part off a digit; false where it is no power of two.
bool add_along_lanes(FoldDigit digit, FoldOrder& order) {
  if (digit.place_stride < lanes_in_warp) {
    if (!is_power_of_two(digit.place_stride)) return false;
    FoldDigit lanes = digit;
    lanes.extent = std::min(digit.extent, lanes_in_warp / digit.place_stride);
    if (!is_power_of_two(lanes.extent) || digit.extent % lanes.extent != 0) return false;
    if (lanes.extent > 1) order.lanes.push_back(lanes);
    digit.extent /= lanes.extent;
    digit.stride *= lanes.extent;
    digit.place_stride *= lanes.extent;
  }
  if (digit.extent > 1) order.others.push_back(digit);
  return true;
}

}  // namespace

std::int64_t count(const std::vector<FoldDigit>& digits) {
  std::int64_t product = 1;
  for (const FoldDigit& digit : digits) product *= digit.extent;
  return product;
}

std::optional<FoldOrder> fold_order(const Layout& layout, const std::vector<std::size_t>& folded) {
  FoldOrder order;
  for (std::size_t axis : folded) {
    const std::vector<Factor>& factors = layout.axes.at(axis).factors;
    std::int64_t stride = 1;
    for (const Factor& factor : factors) stride *= factor.extent;
    for (const Factor& factor : factors) {
      stride /= factor.extent;
      const FoldDigit digit{axis, factor.extent, stride, factor.place, factor.stride};
      if (factor.extent == 1) continue;
      if (factor.place == Place::Reg) order.registers.push_back(digit);
      else if (!is_along_lanes(factor.place)) order.others.push_back(digit);
      else if (!add_along_lanes(digit, order)) return std::nullopt;
    }
  }
  std::stable_sort(order.lanes.begin(), order.lanes.end(), [](const FoldDigit& a, const FoldDigit& b) { return a.place_stride > b.place_stride; });
  std::stable_sort(order.others.begin(), order.others.end(), [](const FoldDigit& a, const FoldDigit& b) {
    return rank(a.place) != rank(b.place) ? rank(a.place) < rank(b.place) : a.place_stride > b.place_stride;
  });
  return order;
}

}  // namespace tilewright
