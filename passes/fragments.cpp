// The tables of fragments: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "Register Fragments and Shared Memory
// Matrix Layouts" of wgmma.
#include "passes/fragments.h"

#include <fmt/format.h>

#include <algorithm>
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

std::optional<Layout> sliced(const Layout& layout, std::size_t axis, std::int64_t size) {
  Layout result = layout;
  std::vector<Factor>& factors = result.axes[axis].factors;
  std::int64_t inner = 1;
  std::size_t n = factors.size();
  while (n > 0 && inner * factors[n - 1].extent <= size) inner *= factors[--n].extent;
  // factors[n .. ] are kept whole, those before tell slices apart, the nearest of them perhaps only in part.
  for (std::size_t outer = 0; outer < n; ++outer)
    if (factors[outer].place != Place::Reg) return std::nullopt;
  if (size % inner != 0 || (n == 0 && size != inner) || (n > 0 && factors[n - 1].extent % (size / inner) != 0))
    return std::nullopt;
  std::vector<Factor> kept(factors.begin() + static_cast<std::ptrdiff_t>(n), factors.end());
  if (size > inner) kept.insert(kept.begin(), Factor{size / inner, Place::Reg, factors[n - 1].stride});
  factors = std::move(kept);
  std::vector<Factor*> registers;
  for (AxisLayout& each : result.axes)
    for (Factor& factor : each.factors)
      if (factor.place == Place::Reg) registers.push_back(&factor);
  std::sort(registers.begin(), registers.end(), [](const Factor* a, const Factor* b) { return a->stride < b->stride; });
  std::int64_t stride = 1;
  for (Factor* factor : registers) {
    factor->stride = stride;
    stride *= factor->extent;
  }
  return result;
}

}  // namespace tilewright
