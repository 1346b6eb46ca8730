// Matrix instructions as data: their shapes, and which thread holds which element of an accumulator.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/layout.h"

namespace tilewright {

// `wgmma.m64n256k16`, `mma.m16n8k16`: D[m, n] += A[m, k] * B[k, n] by `threads` threads.
struct MatrixInstruction {
  std::string_view family;  // "wgmma", "mma"
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t threads = 0;
};

std::string name_of(const MatrixInstruction& instruction);
// Nothing for a name that is no matrix instruction of 16-bit operands.
std::optional<MatrixInstruction> matrix_instruction(std::string_view name);

// The accumulator of one instruction: the factors of its rows and columns. Lanes and warps count from the first thread of
// the instruction, registers in elements.
struct Fragment {
  std::vector<Factor> rows;
  std::vector<Factor> columns;
};
Fragment accumulator_fragment(const MatrixInstruction& instruction);

// An axis of a tile, and the groups of threads that share it as `groups place*stride`.
struct SharedAxis {
  std::string name;
  std::int64_t extent = 1;
  std::int64_t groups = 1;
  Place place = Place::Warp;
  std::int64_t stride = 1;
};

// The layout of an accumulator tile: the groups' parts outermost, in each the instructions that a group does one after
// the other, columns before rows, and innermost the fragment. The extents are multiples of what the groups cover.
std::vector<AxisLayout> accumulator_layout(const MatrixInstruction& instruction, const SharedAxis& rows,
                                           const SharedAxis& columns);

// A register layout with `axis` cut to `size` elements, its registers numbered anew in their order; nothing where the
// outer factors of the axis, which tell the slices apart, are not registers.
std::optional<Layout> sliced(const Layout& layout, std::size_t axis, std::int64_t size);

}  // namespace tilewright
