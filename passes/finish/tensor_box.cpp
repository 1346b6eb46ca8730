// Boxes from layouts.
//
//   (slot: 4 mem*16384; k: 64 mem*64; j: 4 mem*4096, 64 mem) xor 128 <- B[k, j], bf16      4 panels of box (64, 64), 4096 apart
#include "passes/finish/tensor_box.h"

#include <fmt/format.h>

#include "passes/affine.h"

namespace tilewright {

namespace {

constexpr std::int64_t longest_side = 256;

}  // namespace

BoxResult tensor_box(const Buffer& shared, const Access& shared_side, const Access& tensor_side) {
  auto refused = [](std::string why) { return BoxResult{std::nullopt, std::move(why)}; };
  if (!shared.layout) return refused(fmt::format("`{}` has no layout", shared.name));
  TensorBox result;
  std::int64_t run = 1;  // elements of the box so far: the stride that the next axis must have
  std::size_t axes_left = 0;
  for (const BufferAxis& axis : shared.axes) axes_left += axis.name != "slot";
  for (std::size_t d = tensor_side.index.size(); d-- > 0;) {
    bool innermost = d + 1 == tensor_side.index.size();
    std::size_t axis = shared.axes.size();
    std::string name;
    for (std::size_t n = 0; n < shared_side.index.size() && n < shared.axes.size(); ++n) {
      const Var* loop = as<Var>(shared_side.index[n]);
      if (!loop || shared.axes[n].name == "slot" || !uses_var(tensor_side.index[d], loop->name)) continue;
      if (!name.empty()) return refused("an index of the tensor uses two axes of the tile");
      auto form = linear_in(tensor_side.index[d], loop->name);
      if (!form || form->coefficient != 1) return refused(fmt::format("`{}` does not walk its axis element by element", loop->name));
      axis = n;
      name = loop->name;
    }
    result.axes.push_back(name);
    if (name.empty()) {
      if (innermost) return refused("the tile has one element along the tensor's innermost axis");
      result.box.push_back(1);
      result.strides.push_back(run);
      continue;
    }
    --axes_left;
    const std::vector<Factor>& factors = shared.layout->axes[axis].factors;
    const Factor& inner = factors.back();
    if (inner.stride != run || factors.size() > (innermost ? 2U : 1U))
      return refused(fmt::format("the layout of `{}` does not hold the tensor's axes in their order", shared.name));
    if (innermost && factors.size() == 2) {
      result.panels = factors[0].extent;
      result.panel_stride = factors[0].stride;
    }
    if (inner.extent > longest_side) return refused(fmt::format("{} elements along an axis, a box has at most {}", inner.extent, longest_side));
    result.box.push_back(inner.extent);
    result.strides.push_back(run);
    run *= inner.extent;
  }
  if (axes_left != 0) return refused("an axis of the tile is none of the tensor's");
  std::int64_t row_bytes = result.box[0] * bytes_of(shared.dtype);
  if (row_bytes % 16 != 0) return refused(fmt::format("rows of {} bytes, no multiple of 16", row_bytes));
  if (shared.layout->xor_bytes && row_bytes != shared.layout->xor_bytes)
    return refused(fmt::format("rows of {} bytes under a swizzle of {}", row_bytes, shared.layout->xor_bytes));
  return BoxResult{std::move(result), {}};
}

}  // namespace tilewright
