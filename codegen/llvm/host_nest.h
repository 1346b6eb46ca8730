// The outer loops of a tile-stage kernel, cut off so that their iterations can be dealt to threads.
#pragma once

#include <vector>

#include "ir/plan.h"

namespace tilewright {

// The axes that the iterations of a host kernel count, outermost first, and what they stand in.
struct HostNest {
  std::vector<Axis> axes;  // bounds are of dims alone; none: the kernel is one iteration
  Block before;            // `let`s in front of the loops
  Block body;
};
HostNest host_nest(const Plan& plan, const Kernel& kernel);

}  // namespace tilewright
