// What each index of a fn ranges over, and which accesses say so: what `explain` prints.
#pragma once

#include <string>
#include <vector>

#include "ir/tensor.h"

namespace tilewright {

struct RangeNote {
  std::string target;                 // of the statement
  std::string index;
  std::string range;                  // `0 .. K`
  std::vector<std::string> accesses;  // whose dimension of that extent the index alone subscripts; empty: the range is written
};

std::vector<RangeNote> range_notes(const TensorFn& fn);

}  // namespace tilewright
