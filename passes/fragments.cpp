// The tables of fragments: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "Register Fragments and Shared Memory
// Matrix Layouts" of wgmma.
#include "passes/fragments.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright {

std::string name_of(const MatrixInstruction& instruction) {
  return fmt::format("{}.m{}n{}k{}", instruction.family, instruction.m, instruction.n, instruction.k);
}

std::optional<MatrixInstruction> matrix_instruction(std::string_view name) {
  if (name == "mma.m16n8k16") return MatrixInstruction{"mma", 16, 8, 16, 32};
  constexpr std::string_view head = "wgmma.m64n";
  constexpr std::string_view tail = "k16";
  if (!name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  std::string_view digits = name.substr(head.size(), name.size() - head.size() - tail.size());
  std::int64_t n = 0;
  auto read = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (read.ec != std::errc{} || read.ptr != digits.data() + digits.size() || n < 8 || n > 256 || n % 8 != 0)
    return std::nullopt;
  return MatrixInstruction{"wgmma", 64, n, 16, 128};
}

namespace {

// 8 rows of the lanes in fours, twice; a thread has both.
const std::vector<Factor> sixteen_rows = {{2, Place::Reg, 2}, {8, Place::Lane, 4}};

std::vector<Factor> rows_of(const MatrixInstruction& instruction) {
  std::vector<Factor> rows = sixteen_rows;
  if (instruction.m == 64) rows.insert(rows.begin(), Factor{4, Place::Warp, 1});
  return rows;
}

}  // namespace

Fragment accumulator_fragment(const MatrixInstruction& instruction) {
  Fragment result{rows_of(instruction), {{4, Place::Lane, 1}, {2, Place::Reg, 1}}};
  if (instruction.n > 8) result.columns.insert(result.columns.begin(), Factor{instruction.n / 8, Place::Reg, 4});
  return result;
}

namespace {

AxisLayout spread(const SharedAxis& axis, std::int64_t repeats, std::int64_t repeat_stride,
                  const std::vector<Factor>& fragment) {
  AxisLayout result{axis.name, {}};
  if (axis.groups > 1) result.factors.push_back(Factor{axis.groups, axis.place, axis.stride});
  if (repeats > 1) result.factors.push_back(Factor{repeats, Place::Reg, repeat_stride});
  for (const Factor& factor : fragment) {
    Factor* outer = result.factors.empty() ? nullptr : &result.factors.back();
    if (outer && outer->place == factor.place && outer->stride == factor.extent * factor.stride)
      *outer = Factor{outer->extent * factor.extent, factor.place, factor.stride};
    else
      result.factors.push_back(factor);
  }
  return result;
}

}  // namespace

std::vector<AxisLayout> accumulator_layout(const MatrixInstruction& instruction, const SharedAxis& rows,
                                           const SharedAxis& columns) {
  Fragment fragment = accumulator_fragment(instruction);
  std::int64_t registers = instruction.m * instruction.n / instruction.threads;
  std::int64_t down = rows.extent / (rows.groups * instruction.m);
  std::int64_t across = columns.extent / (columns.groups * instruction.n);
  return {spread(rows, down, registers * across, fragment.rows), spread(columns, across, registers, fragment.columns)};
}

}  // namespace tilewright
