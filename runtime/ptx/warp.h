// One warp on its way: from where it stands to where it waits.
#pragma once

#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

// Runs until all lanes have ended or wait, or `most` operations are done. The lanes with the lowest program counter go
// first, so those that have diverged meet again where the code does; where some wait for others of the same warp, they
// take turns. Returns how many operations were done.
std::int64_t run_warp(Warp& warp, std::int64_t most);

// Lanes of a warp that reach a barrier of the block; gives true where that may have let others go.
bool arrive_at_barrier(Warp& warp, const Op& op, LaneMask lanes);
// Lets go whoever waits for a barrier that is now complete. To be asked after a thread has ended, too.
bool release_barriers(Block& block);

}  // namespace tilewright::ptx
