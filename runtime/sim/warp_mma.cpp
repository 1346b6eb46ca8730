// mma.m16n8k16: a warp multiplies a tile of A and one of B that its lanes hold in fragments.
//
//   lane l, g = l/4, t = l%4     A: words (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), two neighbours in k each
//   B: words (k 2t, g), (k 2t + 8, g)     D: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
#include <fmt/format.h>

#include <array>
#include <bit>

#include "ir/scalar.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/rows.h"

namespace tilewright {

namespace {

constexpr std::size_t operands = 10;  // D 0 to 3, A 4 to 7, B 8 and 9

const InstrSite& site_of(const WarpOp& op) { return *static_cast<const InstrSite*>(op.object); }

float widened(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::BF16 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16) : static_cast<float>(load_scalar(Dtype::F16, &bits).f);
}

const WarpOp* run_mma(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  if (warp.mask != warp.all) report_divergent(warp, op);
  std::array<Cell, operands> cells{};
  for (std::size_t n = 0; n < operands; ++n) {
    const RegisterSite& registers = site.registers[n];
    const std::int64_t element = read_lane(warp, site.operands[n], 0).i;
    if (element < 0 || element >= registers.elements) {
      report_outside(warp, op, registers, warp.mask, n < 4);
      return following(op);
    }
    cells[n] = registers.first + static_cast<Cell>(element) * registers.row_bytes;
    const LaneMask unwritten = registers.is_checked ? warp.all & ~lanes<LaneMask>(warp, registers.written)[element] : 0;
    if (unwritten != 0) report_unwritten(warp, op, registers, unwritten);
  }
  const auto word = [&](std::size_t n, int lane) { return static_cast<std::uint32_t>(read_lane(warp, cells[n], Dtype::U32, false, lane).i); };
  std::array<std::array<float, 16>, 16> a{};
  std::array<std::array<float, 8>, 16> b{};
  for (int lane = 0; lane < lane_count; ++lane) {
    const auto group = static_cast<std::size_t>(lane / 4);
    const auto pair = static_cast<std::size_t>(lane % 4 * 2);
    for (std::size_t half = 0; half < 2; ++half) {
      const auto element = [&](std::uint32_t both) { return widened(site.dtype, static_cast<std::uint16_t>(both >> (16 * half))); };
      for (std::size_t number = 0; number < 4; ++number) a[group + 8 * (number % 2)][pair + half + 8 * (number / 2)] = element(word(4 + number, lane));
      for (std::size_t number = 0; number < 2; ++number) b[pair + half + 8 * number][group] = element(word(8 + number, lane));
    }
  }
  for (int lane = 0; lane < lane_count; ++lane)
    for (std::size_t number = 0; number < 4; ++number) {
      float& sum = lanes<float>(warp, cells[number])[lane];
      const std::size_t row = static_cast<std::size_t>(lane / 4) + 8 * (number / 2);
      const std::size_t column = static_cast<std::size_t>(lane % 4 * 2) + number % 2;
      for (std::size_t k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
    }
  return following(op);
}

}  // namespace

void compile_warp_mma(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  site.dtype = instr.op.ends_with(".bf16") ? Dtype::BF16 : Dtype::F16;
  for (std::size_t n = 0; n < operands; ++n) {
    Operand number;
    site.registers.push_back(compiler.register_site(place_of(instr, n), number));
    if (!number.is_uniform || site.registers.back().dtype != (n < 4 ? Dtype::F32 : Dtype::U32))
      compiler.refuse(fmt::format("`{}` takes 4 registers of f32 and 6 of u32", instr.op));
    site.operands.push_back(number);
  }
  compiler.emit(run_mma).object = &compiler.program().instr_sites.emplace_back(std::move(site));
}

}  // namespace tilewright
