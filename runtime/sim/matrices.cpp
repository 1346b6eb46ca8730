// ldmatrix and stmatrix: four tiles of 8 rows of 16 bytes, whose addresses come from the lanes: lane 8*n + row gives row `row` of
// tile n. Lane l holds elements 2*(l%4) and 2*(l%4) + 1 of row l/4 of every tile, in one register a tile.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/sim/faults.h"
#include "runtime/sim/rows.h"
#include "runtime/sim/shadow.h"

namespace tilewright {

namespace {

constexpr std::int64_t row_bytes = 16;
constexpr int tiles = 4;
constexpr int rows_of_tile = 8;

const InstrSite& site_of(const WarpOp& op) { return *static_cast<const InstrSite*>(op.object); }

// The byte of each lane's row, or -1 where it is bad, which is reported.
std::array<std::int64_t, lane_count> row_places(Warp& warp, const WarpOp& op, bool is_store) {
  const InstrSite& site = site_of(op);
  const std::int64_t bytes = bytes_of(site.memory.dtype);
  std::array<std::int64_t, lane_count> places{};
  LaneMask outside = 0;
  LaneMask misaligned = 0;
  for (int lane = 0; lane < lane_count; ++lane) {
    const std::int64_t element = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    std::int64_t& place = places[static_cast<std::size_t>(lane)];
    place = site.memory.offset + element * bytes;
    if (element < 0 || element * bytes + row_bytes > site.memory.elements * bytes) outside |= 1u << lane;
    else if (place % row_bytes != 0) misaligned |= 1u << lane;
    else continue;
    place = -1;
  }
  if (outside != 0) report_outside(warp, op, site.memory, outside, is_store);
  if (misaligned != 0)
    warp.block->core->faults->add(warp, op, FaultKind::Misaligned, misaligned, [&](int lane) {
      return fmt::format("the row of {} begins at `{}{}`, which is no multiple of 16 bytes", thread_text(warp, lane), site.memory.name, indices_text(warp, site.memory.index, lane));
    });
  return places;
}

std::size_t register_byte(int tile, int lane) { return static_cast<std::size_t>(tile) * lane_count * 4 + static_cast<std::size_t>(lane) * 4; }

const WarpOp* run_store(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  if (warp.mask != warp.all) report_divergent(warp, op);
  const auto places = row_places(warp, op, true);
  SimBlock& block = *warp.block;
  for (int from = 0; from < lane_count; ++from) {
    const std::int64_t place = places[static_cast<std::size_t>(from)];
    if (place < 0) continue;
    for (int n = 0; n < 4; ++n) {
      const auto word = static_cast<std::uint32_t>(read_lane(warp, site.operands[static_cast<std::size_t>(from / rows_of_tile)], from % rows_of_tile * 4 + n).i);
      std::memcpy(block.shared.data() + place + n * 4, &word, 4);
    }
    if (block.shadow) block.shadow->write(warp, op, from, place, row_bytes);
  }
  return following(op);
}

// Each tile of 8 x 8 elements of 2 bytes, row by row.
void transpose(std::array<std::byte, tiles * lane_count * 4>& words) {
  const auto before = words;
  for (std::size_t tile = 0; tile < tiles; ++tile)
    for (std::size_t row = 0; row < rows_of_tile; ++row)
      for (std::size_t column = 0; column < rows_of_tile; ++column)
        std::memcpy(words.data() + tile * 128 + row * row_bytes + column * 2, before.data() + tile * 128 + column * row_bytes + row * 2, 2);
}

const WarpOp* run_load(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  if (warp.mask != warp.all) report_divergent(warp, op);
  const auto places = row_places(warp, op, false);
  SimBlock& block = *warp.block;
  LaneMask unwritten = 0;
  std::array<std::byte, tiles * lane_count * 4> words{};
  for (int from = 0; from < lane_count; ++from) {
    const std::int64_t place = places[static_cast<std::size_t>(from)];
    if (place < 0) continue;
    if (block.shadow && !block.shadow->read(warp, op, 1u << from, place, row_bytes)) unwritten |= 1u << from;
    std::memcpy(words.data() + register_byte(from / rows_of_tile, from % rows_of_tile * 4), block.shared.data() + place, row_bytes);
  }
  if (unwritten != 0) report_unwritten(warp, op, site.memory, unwritten);
  if (op.code != 0) transpose(words);
  for (int tile = 0; tile < tiles; ++tile) {
    const RegisterSite& target = site.registers[static_cast<std::size_t>(tile)];
    const std::int64_t element = read_lane(warp, site.operands[static_cast<std::size_t>(tile)], 0).i;
    if (element < 0 || element >= target.elements) {
      report_outside(warp, op, target, warp.mask, true);
      continue;
    }
    const Cell row = target.first + static_cast<Cell>(element) * target.row_bytes;
    for (int lane = 0; lane < lane_count; ++lane) {
      std::uint32_t word = 0;
      std::memcpy(&word, words.data() + register_byte(tile, lane), 4);
      write_lane(warp, row, target.dtype, lane, integer_scalar(word));
    }
    if (target.is_checked) lanes<LaneMask>(warp, target.written)[element] |= warp.mask;
  }
  return following(op);
}

// Each thread gives the address of a row.
void count_rows(KernelCompiler& compiler, AccessKind kind, const Access& place) {
  const MemorySite& memory = compiler.program().instr_sites.back().memory;
  compiler.count_access(kind, place, memory, static_cast<int>(row_bytes / bytes_of(memory.dtype)));
}

}  // namespace

void compile_store_matrix(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  Operand element;
  site.memory = compiler.memory_site(place_of(instr, 0), element);
  if (!site.memory.is_shared) compiler.refuse(fmt::format("`{}` of `{}`, which is not shared", instr.op, site.memory.name));
  site.operands = operands_of(compiler, {instr.operands.begin() + 1, instr.operands.end()});
  WarpOp& op = compiler.emit(run_store);
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  count_rows(compiler, AccessKind::Store, place_of(instr, 0));
  op.a = element.cell;
  op.uniform = element.is_uniform ? 1 : 0;
}

void compile_load_matrix(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    Operand number;
    site.registers.push_back(compiler.register_site(place_of(instr, tile), number));
    if (!number.is_uniform || bytes_of(site.registers.back().dtype) != 4 || is_float(site.registers.back().dtype))
      compiler.refuse(fmt::format("`{}` loads into registers of 32-bit integers", instr.op));
    site.operands.push_back(number);
  }
  Operand element;
  site.memory = compiler.memory_site(place_of(instr, tiles), element);
  if (!site.memory.is_shared) compiler.refuse(fmt::format("`{}` of `{}`, which is not shared", instr.op, site.memory.name));
  WarpOp& op = compiler.emit(run_load);
  op.code = instr.op.ends_with("trans") ? 1 : 0;
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  count_rows(compiler, AccessKind::Load, place_of(instr, tiles));
  op.a = element.cell;
  op.uniform = element.is_uniform ? 1 : 0;
}

}  // namespace tilewright
