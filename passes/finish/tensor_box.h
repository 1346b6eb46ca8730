// Boxes of the copy engine: how a tile in shared memory and the part of a tensor that it holds look to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// A tile is `panels` boxes side by side along the tensor's innermost axis.
struct TensorBox {
  std::vector<std::int64_t> box;      // elements along the tensor's axes, innermost first
  std::vector<std::string> axes;      // the copy's loop over each of these, empty where the box has one element
  std::vector<std::int64_t> strides;  // in the shared buffer, elements
  std::int64_t panels = 1;
  std::int64_t panel_stride = 0;      // in the shared buffer, elements
};

// The boxes of a copy between `tensor` (its side of the copy) and the shared buffer; a text that says why there are none.
struct BoxResult {
  std::optional<TensorBox> box;
  std::string why_not;
};
BoxResult tensor_box(const Buffer& shared, const Access& shared_side, const Access& tensor_side);

}  // namespace tilewright
