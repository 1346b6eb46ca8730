// What wgmma's matrix descriptor says of a tile in shared memory, found from the tile's layout and counted, not proved.
#pragma once

#include <optional>

#include "ir/stmt.h"

namespace tilewright {

// The operand's contiguous axis is k, or (`is_transposed`) its rows or columns. Offsets are in bytes, as PTX names them:
// leading between panels, stride between groups of 8 rows.
struct MatrixDescriptor {
  bool is_transposed = false;
  std::int64_t leading_bytes = 0;
  std::int64_t stride_bytes = 0;
  int swizzle_bytes = 0;
};

// An operand of an instruction: `rows` by `depth` elements over the axes number `row_axis` and `depth_axis` of the buffer.
struct OperandTile {
  std::size_t row_axis = 0;
  std::size_t depth_axis = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
};

// The descriptor by which wgmma reads every such tile of a swizzled buffer; nothing where none describes its layout.
std::optional<MatrixDescriptor> describe_matrix(const Buffer& buffer, const OperandTile& tile);

}  // namespace tilewright
