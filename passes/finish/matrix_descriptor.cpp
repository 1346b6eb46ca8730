// Descriptors from layouts: a candidate from the strides, then every element's place is compared.
//
//   (k: 64 mem*64; j: 4 mem*4096, 64 mem) xor 128, bf16, j x k      transposed, leading 8192, stride 1024
//   (i: 128 mem*64; k: 64 mem) xor 128, bf16, i x k                 leading 16 (not used), stride 1024
#include "passes/finish/matrix_descriptor.h"

#include "ir/layout.h"

namespace tilewright {

namespace {

class Candidate {
 public:
  Candidate(const Buffer& buffer, const OperandTile& tile, bool is_transposed)
      : layout_(*buffer.layout), tile_(tile), bytes_(bytes_of(buffer.dtype)), panel_(layout_.xor_bytes / bytes_) {
    result_.is_transposed = is_transposed;
    result_.swizzle_bytes = layout_.xor_bytes;
    result_.stride_bytes = distance(is_transposed ? 0 : 8, is_transposed ? 8 : 0);
    // Along k a tile never leaves its panel, and the field is not looked at.
    result_.leading_bytes = is_transposed && tile.rows > panel_ ? distance(panel_, 0) : 16;
  }

  const MatrixDescriptor& result() const { return result_; }

  // Whether every element of every tile lies where the tensor cores look for it.
  bool holds() const {
    if (result_.stride_bytes <= 0 || (!result_.is_transposed && tile_.depth > panel_)) return false;
    for (std::int64_t row = 0; row < extent(tile_.row_axis); ++row)
      for (std::int64_t depth = 0; depth < extent(tile_.depth_axis); ++depth) {
        std::int64_t x = row % tile_.rows;
        std::int64_t y = depth % tile_.depth;
        if (offset(row, depth) - offset(row - x, depth - y) != expected(x, y)) return false;
      }
    return true;
  }

 private:
  std::int64_t extent(std::size_t axis) const {
    std::int64_t product = 1;
    for (const Factor& factor : layout_.axes[axis].factors) product *= factor.extent;
    return product;
  }

  std::int64_t offset(std::int64_t row, std::int64_t depth) const {
    std::vector<std::int64_t> coordinates(layout_.axes.size(), 0);
    coordinates[tile_.row_axis] = row;
    coordinates[tile_.depth_axis] = depth;
    return place_value(layout_, Place::Mem, coordinates) * bytes_;
  }
  std::int64_t distance(std::int64_t rows, std::int64_t depth) const {
    if (rows >= extent(tile_.row_axis) || depth >= extent(tile_.depth_axis)) return 8 * layout_.xor_bytes;
    return offset(rows, depth) - offset(0, 0);
  }

  std::int64_t expected(std::int64_t row, std::int64_t depth) const {
    std::int64_t along = result_.is_transposed ? row : depth;    // contiguous
    std::int64_t across = result_.is_transposed ? depth : row;   // 8 of them are a swizzle atom
    return along % panel_ * bytes_ + along / panel_ * result_.leading_bytes + across % 8 * layout_.xor_bytes + across / 8 * result_.stride_bytes;
  }

  const Layout& layout_;
  OperandTile tile_;
  std::int64_t bytes_;
  std::int64_t panel_;  // elements of a row of the swizzle
  MatrixDescriptor result_;
};

}  // namespace

std::optional<MatrixDescriptor> describe_matrix(const Buffer& buffer, const OperandTile& tile) {
  if (!buffer.layout || buffer.layout->xor_bytes == 0) return std::nullopt;
  for (bool is_transposed : {false, true}) {
    Candidate candidate(buffer, tile, is_transposed);
    if (candidate.holds()) return candidate.result();
  }
  return std::nullopt;
}

}  // namespace tilewright
