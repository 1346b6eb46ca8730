// Where in a shared buffer a matrix descriptor begins, in the descriptor's own unit of 16 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright {

// The place of `access` behind the start of its buffer in sixteens of bytes. So the start's part of a descriptor is
// made once, and each further descriptor is one addition to its low word: a block's shared memory, below 2^18 bytes, fills
// the 14 bits of the address field and never carries out of them. (The start's own address needs a mask: in a cluster the
// hardware puts the block's rank into its upper bits.) Nothing where the place is no multiple by its form.
std::optional<Expr> descriptor_offset(const Access& access, Dtype dtype, const std::vector<std::int64_t>& extents);

}  // namespace tilewright
