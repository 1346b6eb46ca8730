// Where a GPU places the blocks of a kernel whose grid fits on it at once.
#pragma once

#include <array>
#include <vector>

namespace tilewright {

// The shape of a launch: blocks of one cluster (all 1: none), threads, bytes of dynamic shared memory.
struct WorkerShape {
  std::array<unsigned, 3> cluster = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;
};

// For each of `workers` clusters of that shape, launched as one grid, a number that those in one GPC have in common: the
// GPC that a first cluster lies in is asked for by clusters of 16 blocks and fewer, which never leave one. Two
// small kernels tell it; the answer is kept for the process. Empty before sm_90, whose GPUs have no clusters, and where
// the driver assembles no PTX.
std::vector<int> gpcs_of_workers(const WorkerShape& shape, unsigned workers);

}  // namespace tilewright
