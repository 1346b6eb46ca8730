// The rows of a box of the copy engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/sim/machine.h"

namespace tilewright {

// Calls f(byte in the tensor of the row's first element, first and end of its elements inside the tensor) for each row of the
// box at these coordinates.
template <class F>
void each_box_row(const MapInfo& map, const std::array<std::int64_t, 5>& at, F&& f) {
  const std::int64_t bytes = bytes_of(map.tensor->dtype);
  const std::int64_t first = std::clamp<std::int64_t>(-at[0], 0, map.box[0]);
  const std::int64_t end = std::clamp<std::int64_t>(map.extent[0] - at[0], first, map.box[0]);
  std::array<std::int64_t, 5> n{};
  for (n[4] = 0; n[4] < map.box[4]; ++n[4])
    for (n[3] = 0; n[3] < map.box[3]; ++n[3])
      for (n[2] = 0; n[2] < map.box[2]; ++n[2])
        for (n[1] = 0; n[1] < map.box[1]; ++n[1]) {
          std::int64_t element = 0;
          bool is_inside = true;
          for (std::size_t axis = 4; axis >= 1; --axis) {
            const std::int64_t position = at[axis] + n[axis];
            is_inside &= position >= 0 && position < map.extent[axis];
            element = (element + position) * map.extent[axis - 1];
          }
          element += at[0];
          f(element * bytes, is_inside ? first : 0, is_inside ? end : 0);
        }
}

}  // namespace tilewright
