// The cluster's barrier as the scheduler sees it.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// Begins the next phase where all warps that have not ended have arrived.
void complete_cluster_barrier(SimCluster& cluster);
// A warp ends: the barrier does not count it any more.
void leave_cluster(Warp& warp);

}  // namespace tilewright
