// Copies that land later: the copy engine's, and cp.async of the threads.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// Copy number `index` of the cluster lands now.
void land_copy(SimCluster& cluster, std::size_t index);
// What a warp still has open when it ends: reported.
void check_copies_at_end(Warp& warp);

// The 16-byte chunk where a swizzle of so many bytes (0, 32, 64, 128) puts the one at this byte of shared memory.
inline std::int64_t swizzled_byte(std::int64_t byte, int xor_bytes) {
  const std::int64_t rows = xor_bytes == 0 ? 0 : xor_bytes / 16 - 1;
  return byte ^ ((byte >> 7 & rows) << 4);
}

}  // namespace tilewright
