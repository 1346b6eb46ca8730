// wgmma: each warp of the warpgroup multiplies its 16 rows when it comes by; the group ends when all four have come. Operands
// are read through their descriptors as the tensor core does: start address, leading and stride byte offset, swizzle.
//
//   bits of a descriptor   0-13 start / 16    16-29 leading / 16    32-45 stride / 16    62-63 swizzle: 0 none, 1 128, 2 64, 3 32
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "runtime/sim/copies.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/rows.h"
#include "runtime/sim/shadow.h"
#include "runtime/sim/wgmma.h"

namespace tilewright {

namespace {

constexpr int rows_of_warp = 16;
constexpr int steps_of_k = 16;
constexpr int most_columns = 256;
constexpr std::int64_t element_bytes = 2;
constexpr std::int64_t chunk_elements = 8;  // 16 bytes
constexpr std::int64_t chunk_bytes = 16;

const InstrSite& site_of(const WarpOp& op) { return *static_cast<const InstrSite*>(op.object); }

std::uint64_t code_of_swizzle(std::int64_t bytes) { return bytes == 128 ? 1 : bytes == 64 ? 2 : bytes == 32 ? 3 : 0; }

struct Descriptor {
  std::int64_t start;
  std::int64_t leading;
  std::int64_t stride;
  int xor_bytes;

  explicit Descriptor(std::uint64_t bits)
      : start(static_cast<std::int64_t>((bits & 0x3fff) * 16)), leading(static_cast<std::int64_t>((bits >> 16 & 0x3fff) * 16)),
        stride(static_cast<std::int64_t>((bits >> 32 & 0x3fff) * 16)) {
    constexpr int widths[] = {0, 128, 64, 32};
    xor_bytes = widths[bits >> 62];
  }

  // The byte of shared memory where the chunk of 8 elements from (line, k) begins. Major in k: 8 neighbours in k of one row or
  // column; else (transposed) 8 neighbouring rows or columns at one k.
  std::int64_t chunk(std::int64_t line, std::int64_t k, bool is_transposed) const {
    if (is_transposed) {
      if (xor_bytes == 0) return start + line / chunk_elements * stride + k / 8 * leading + k % 8 * chunk_bytes;
      const std::int64_t panel = xor_bytes / element_bytes;
      return swizzled_byte(start + line / panel * leading + k / 8 * stride + k % 8 * xor_bytes + line % panel * element_bytes, xor_bytes);
    }
    if (xor_bytes == 0) return start + line / 8 * stride + k / chunk_elements * leading + line % 8 * chunk_bytes;
    return swizzled_byte(start + line / 8 * stride + line % 8 * xor_bytes + k * element_bytes, xor_bytes);
  }
};

// desc: op.a the element, operands: leading, stride.
const WarpOp* run_descriptor(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  const auto one = [&](int lane) {
    const std::int64_t element = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    const std::int64_t start = site.memory.offset + element * bytes_of(site.memory.dtype);
    const std::int64_t leading = read_lane(warp, site.operands[0], lane).i;
    const std::int64_t stride = read_lane(warp, site.operands[1], lane).i;
    if (element < 0 || element >= site.memory.elements) {
      report_outside(warp, op, site.memory, 1u << lane, false);
      return std::int64_t{0};
    }
    if (((start | leading | stride) & 15) != 0)
      warp.block->core->faults->add(warp, op, FaultKind::Misaligned, 1u << lane, [&](int) {
        return fmt::format("a descriptor of byte {} with offsets {} and {}; all are multiples of 16", start, leading, stride);
      });
    const auto field = [](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes >> 4) & 0x3fff; };
    return static_cast<std::int64_t>(field(start) | field(leading) << 16 | field(stride) << 32 | static_cast<std::uint64_t>(op.code) << 62);
  };
  std::int64_t* dst = lanes<std::int64_t>(warp, op.dst);
  if ((op.uniform & 8) != 0) *dst = one(std::countr_zero(warp.mask));
  else each_lane(warp.mask, [&](int lane) { dst[lane] = one(lane); });
  return following(op);
}

// The value of an operand that all lanes share; they are compared.
std::int64_t shared_value(Warp& warp, const WarpOp& op, const Operand& operand, const char* what) {
  const int first = std::countr_zero(warp.mask);
  const std::int64_t value = read_lane(warp, operand, first).i;
  if (operand.is_uniform) return value;
  each_lane(warp.mask, [&](int lane) {
    if (read_lane(warp, operand, lane).i != value)
      warp.block->core->faults->add(warp, op, FaultKind::Divergent, 1u << lane, [&](int) { return fmt::format("{} has another {} than {}", thread_text(warp, lane), what, thread_text(warp, first)); });
  });
  return value;
}

float widened(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::BF16 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16) : static_cast<float>(load_scalar(Dtype::F16, &bits).f);
}

// Reads `lines` rows of A or columns of B from `first` on; f(line, k, value) for each element.
template <class F>
bool read_matrix(Warp& warp, const WarpOp& op, const Descriptor& descriptor, bool is_transposed, Dtype dtype, std::int64_t first, std::int64_t lines, F&& f) {
  SimBlock& block = *warp.block;
  const auto bytes = static_cast<std::int64_t>(block.shared.size());
  const std::int64_t line_step = is_transposed ? chunk_elements : 1;
  const std::int64_t k_step = is_transposed ? 1 : chunk_elements;
  bool has_unwritten = false;
  AsyncAccess access{&warp, &op, -1, 0, 0};
  if (block.shadow) {
    const ClusterClocks& clocks = *block.cluster->clocks;
    access.party = clocks.parties().warpgroups + warp.clock->first_thread / (lane_count * warps_of_warpgroup);
    access.time = clocks.start() + warp.wgmma_committed + 1;
  }
  for (std::int64_t line = 0; line < lines; line += line_step)
    for (std::int64_t k = 0; k < steps_of_k; k += k_step) {
      const std::int64_t at = descriptor.chunk(first + line, k, is_transposed);
      if (at < 0 || at + chunk_bytes > bytes) {
        block.core->faults->add(warp, op, FaultKind::OutOfRange, 1, [&](int) {
          return fmt::format("a descriptor with start {}, offsets {} and {} leads to byte {} of shared memory of {} bytes", descriptor.start, descriptor.leading, descriptor.stride, at, bytes);
        });
        return false;
      }
      if (block.shadow) has_unwritten |= !block.shadow->read_chunk(access, at);
      std::array<std::uint16_t, chunk_elements> chunk;
      std::memcpy(chunk.data(), block.shared.data() + at, chunk_bytes);
      for (std::int64_t n = 0; n < chunk_elements; ++n) {
        const float value = widened(dtype, chunk[static_cast<std::size_t>(n)]);
        if (is_transposed) f(line + n, k, value);
        else f(line, k + n, value);
      }
    }
  if (has_unwritten)
    block.core->faults->add(warp, op, FaultKind::Unwritten, 1, [&](int) {
      return fmt::format("{} of {} multiply an operand of which nothing has been written to a part", threads_text(warp, warp.all), block_text(block));
    });
  return true;
}

// Operands: descriptors of A and B, whether to add to what is there.
const WarpOp* run_wgmma(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  if (warp.mask != warp.all) report_divergent(warp, op);
  const Descriptor a(static_cast<std::uint64_t>(shared_value(warp, op, site.operands[0], "descriptor of A")));
  const Descriptor b(static_cast<std::uint64_t>(shared_value(warp, op, site.operands[1], "descriptor of B")));
  const bool adds = shared_value(warp, op, site.operands[2], "condition") != 0;
  ++warp.wgmma_issued;
  const RegisterSite& registers = site.registers.front();
  const auto number = static_cast<std::size_t>(registers.accumulator);
  if (registers.is_checked && (warp.accumulators_touched >> number & 1) != 0)
    warp.block->core->faults->add(warp, op, FaultKind::Accumulator, warp.mask, [&](int) {
      return fmt::format("{} of {} start wgmma on `{}`, whose registers other statements used; `wgmma.fence` must stand between", threads_text(warp, warp.mask), block_text(*warp.block), registers.name);
    });
  warp.accumulator_group[number] = warp.wgmma_committed + 1;
  static thread_local std::array<std::array<float, steps_of_k>, rows_of_warp> rows;
  static thread_local std::array<std::array<float, most_columns>, steps_of_k> columns;
  static thread_local std::array<std::array<float, most_columns>, rows_of_warp> sums;
  const std::int64_t first_row = warp.index % warps_of_warpgroup * rows_of_warp;
  const auto at = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  if (!read_matrix(warp, op, a, site.transposes_a, site.dtype, first_row, rows_of_warp, [&](std::int64_t row, std::int64_t k, float value) { rows[at(row)][at(k)] = value; }) ||
      !read_matrix(warp, op, b, site.transposes_b, site.dtype, 0, site.n, [&](std::int64_t column, std::int64_t k, float value) { columns[at(k)][at(column)] = value; }))
    return following(op);
  // Register r of lane l holds row l/4 + 8*(r/2 % 2), column 8*(r/4) + 2*(l%4) + r%2 of the warp's rows.
  const std::int64_t from = site.operands.size() > 3 ? read_lane(warp, site.operands[3], 0).i : 0;
  if (from < 0 || from + site.n / 2 > registers.elements) {
    report_outside(warp, op, registers, warp.mask, true);
    return following(op);
  }
  const Cell first = registers.first + static_cast<Cell>(from) * registers.row_bytes;
  LaneMask* written = registers.is_checked ? lanes<LaneMask>(warp, registers.written) + from : nullptr;
  const auto each_register = [&](auto&& f) {
    for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(site.n) / 2; ++r) {
      float* values = lanes<float>(warp, first + r * registers.row_bytes);
      for (std::uint32_t lane = 0; lane < lane_count; ++lane) f(values[lane], sums[lane / 4 + 8 * (r >> 1 & 1)][8 * (r >> 2) + 2 * (lane % 4) + (r & 1)]);
    }
  };
  LaneMask unwritten = 0;
  if (adds) {
    if (written != nullptr)
      for (int r = 0; r < site.n / 2; ++r) unwritten |= warp.all & ~written[r];
    each_register([](float value, float& sum) { sum = value; });
  } else {
    for (auto& row : sums) std::fill_n(row.begin(), site.n, 0.0f);
  }
  for (std::size_t row = 0; row < rows_of_warp; ++row)
    for (std::size_t k = 0; k < steps_of_k; ++k) {
      const float factor = rows[row][k];
      for (std::size_t column = 0; column < at(site.n); ++column) sums[row][column] += factor * columns[k][column];
    }
  each_register([](float& value, float sum) { value = sum; });
  if (written != nullptr) std::fill_n(written, site.n / 2, every_lane);
  if (unwritten != 0) report_unwritten(warp, op, registers, unwritten);
  return following(op);
}

const WarpOp* run_wgmma_fence(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  warp.accumulators_touched &= ~(1u << site_of(op).registers.front().accumulator);
  return following(op);
}

const WarpOp* run_wgmma_commit(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  ++warp.wgmma_committed;
  wake(*warp.block, Waits::Warpgroup);
  return following(op);
}

// Waits until the four warps have come to the end of the group.
const WarpOp* run_wgmma_wait(const WarpOp& op, Warp& warp) {
  if (warp.mask != warp.all) report_divergent(warp, op);
  const std::uint32_t open = static_cast<std::uint32_t>(op.jump);
  if (warp.wgmma_committed <= open) return following(op);
  const std::uint32_t last = warp.wgmma_committed - open;
  const int first = warp.index / warps_of_warpgroup * warps_of_warpgroup;
  for (int n = first; n < first + warps_of_warpgroup; ++n)
    if (warp.block->warps[static_cast<std::size_t>(n)].wgmma_committed < last) return wait_at(op, warp, Waits::Warpgroup);
  warp.wgmma_known = std::max(warp.wgmma_known, last);
  if (warp.clock != nullptr) {
    ClusterClocks& clocks = *warp.block->cluster->clocks;
    clocks.learn(*warp.clock, warp.mask, warp.all, clocks.parties().warpgroups + warp.clock->first_thread / (lane_count * warps_of_warpgroup), clocks.start() + last);
  }
  return following(op);
}

void check_warpgroups(KernelCompiler& compiler, const Instr& instr) {
  if (compiler.program().threads() % (warps_of_warpgroup * lane_count) != 0) compiler.refuse(fmt::format("`{}` in a block of {} threads, which are no whole warpgroups", instr.op, compiler.program().threads()));
}

bool constant_condition(KernelCompiler& compiler, const Instr& instr, std::size_t operand) {
  const std::optional<std::int64_t> value = integer_value(instr.operands.at(operand));
  if (!value || (*value != 0 && *value != 1)) compiler.refuse(fmt::format("operand {} of `{}` is 0 or 1", operand + 1, instr.op));
  return *value == 1;
}

RegisterSite accumulator(KernelCompiler& compiler, const Instr& instr, std::size_t operand, std::int64_t least) {
  Operand element;
  RegisterSite site = compiler.register_site(place_of(instr, operand), element);
  if (site.dtype != Dtype::F32 || site.elements < least) compiler.refuse(fmt::format("`{}` takes an array of {} f32 registers", instr.op, least));
  return site;
}

}  // namespace

void touch_accumulator(Warp& warp, const WarpOp& op, const RegisterSite& site) {
  warp.accumulators_touched |= 1u << site.accumulator;
  if (warp.accumulator_group[static_cast<std::size_t>(site.accumulator)] <= warp.wgmma_known) return;
  warp.block->core->faults->add(warp, op, FaultKind::Accumulator, warp.mask, [&](int lane) {
    return fmt::format("{} uses registers of `{}` that wgmma may still write; `wgmma.wait` has not come to its group", thread_text(warp, lane), site.name);
  });
}

LaneValue compile_descriptor(KernelCompiler& compiler, const Call& call) {
  const Load* place = as<Load>(call.arguments.at(0));
  if (place == nullptr) compiler.refuse("`desc` takes a place in shared memory");
  std::int64_t swizzle = 128;
  if (call.arguments.size() > 3) swizzle = integer_value(call.arguments[3]).value_or(-1);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128) compiler.refuse("the swizzle of `desc` is 0, 32, 64 or 128");
  InstrSite site;
  Operand element;
  site.memory = compiler.memory_site(place->access, element);
  if (!site.memory.is_shared) compiler.refuse(fmt::format("`desc` of `{}`, which is not shared", site.memory.name));
  site.operands = operands_of(compiler, {call.arguments[1], call.arguments[2]});
  const bool is_uniform = element.is_uniform && site.operands[0].is_uniform && site.operands[1].is_uniform;
  const Operand result = compiler.new_operand(Dtype::U64, is_uniform);
  WarpOp& op = compiler.emit(run_descriptor);
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  op.dst = result.cell;
  op.a = element.cell;
  op.code = static_cast<std::uint8_t>(code_of_swizzle(swizzle));
  op.uniform = static_cast<std::uint8_t>((element.is_uniform ? 1 : 0) | (is_uniform ? 8 : 0));
  return {result, false, std::nullopt};
}

void compile_wgmma(KernelCompiler& compiler, const Instr& instr) {
  check_warpgroups(compiler, instr);
  const WgmmaForm shape = *wgmma_form(instr.op);
  InstrSite site;
  site.n = shape.n;
  site.dtype = shape.dtype;
  site.registers.push_back(accumulator(compiler, instr, 0, shape.n / 2));
  site.operands = operands_of(compiler, {instr.operands[1], instr.operands[2], instr.operands[3]});
  if (!place_of(instr, 0).index.empty()) {  // a part of an array
    Operand element;
    compiler.register_site(place_of(instr, 0), element);
    if (!element.is_uniform) compiler.refuse(fmt::format("`{}`: all threads use the same registers", instr.op));
    site.operands.push_back(element);
  }
  site.transposes_a = constant_condition(compiler, instr, 4);
  site.transposes_b = constant_condition(compiler, instr, 5);
  compiler.emit(run_wgmma).object = &compiler.program().instr_sites.emplace_back(std::move(site));
}

void compile_wgmma_fence(KernelCompiler& compiler, const Instr& instr) {
  check_warpgroups(compiler, instr);
  InstrSite site;
  site.registers.push_back(accumulator(compiler, instr, 0, 1));
  compiler.emit(run_wgmma_fence).object = &compiler.program().instr_sites.emplace_back(std::move(site));
}

void compile_wgmma_commit(KernelCompiler& compiler, const Instr& instr) {
  check_warpgroups(compiler, instr);
  compiler.emit(run_wgmma_commit);
}

void compile_wgmma_wait(KernelCompiler& compiler, const Instr& instr) {
  check_warpgroups(compiler, instr);
  const std::optional<std::int64_t> open = integer_value(instr.operands.at(0));
  if (!open || *open < 0 || *open > 7) compiler.refuse(fmt::format("`{}` takes a constant from 0 to 7", instr.op));
  InstrSite site;
  site.registers.push_back(accumulator(compiler, instr, 1, 1));
  WarpOp& op = compiler.emit(run_wgmma_wait);
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  op.jump = static_cast<std::int32_t>(*open);
}

}  // namespace tilewright
