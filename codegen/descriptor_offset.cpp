// Offsets of descriptors; see descriptor_offset.h.
#include "codegen/descriptor_offset.h"

#include "ir/dtype.h"

namespace tilewright {

std::optional<Expr> descriptor_offset(const Access& access, Dtype dtype, const std::vector<std::int64_t>& extents) {
  const std::int64_t elements = 16 / bytes_of(dtype);
  Expr flat = integer(0);
  for (std::size_t axis = 0; axis < access.index.size(); ++axis) {
    if (axis > 0) flat = flat * extents.at(axis);
    flat = flat + cast(Dtype::Index, access.index[axis]);
  }
  return exact_quotient(flat, elements);
}

}  // namespace tilewright
