// Sampling blocks and adding them up; see grid_counts.h.
#include "runtime/grid_counts.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

void add_scaled(ptx::Counts& sum, const ptx::Counts& part, std::int64_t weight) {
  sum.warp_instructions += weight * part.warp_instructions;
  sum.lane_instructions += weight * part.lane_instructions;
  sum.sectors_loaded += weight * part.sectors_loaded;
  sum.sectors_stored += weight * part.sectors_stored;
  for (const auto& [text, count] : part.by_text) sum.by_text[text] += weight * count;
  for (const auto& [number, access] : part.accesses) {
    ptx::AccessCounts& into = sum.accesses[number];
    const ptx::AccessCounts before = into;
    into = access;
    if (into.region.empty()) into.region = before.region;
    into.requests = before.requests + weight * access.requests;
    into.lanes = before.lanes + weight * access.lanes;
    into.sectors = before.sectors + weight * access.sectors;
    into.sectors_needed = before.sectors_needed + weight * access.sectors_needed;
    into.passes = before.passes + weight * access.passes;
    into.passes_needed = before.passes_needed + weight * access.passes_needed;
  }
}

}  // namespace

std::vector<SampledBlock> blocks_to_run(const std::array<unsigned, 3>& grid) {
  const std::int64_t total = std::int64_t{1} * grid[0] * grid[1] * grid[2];
  std::array<std::uint64_t, 3> stride{1, grid[0], std::uint64_t{1} * grid[0] * grid[1]};
  std::uint64_t inside = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) inside += (grid[axis] > 2 ? grid[axis] / 2 : 0) * stride[axis];
  std::vector<SampledBlock> blocks{{inside, total}};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t extent = grid[axis];
    const std::uint64_t at = extent > 2 ? static_cast<std::uint64_t>(extent) / 2 : 0;
    const auto add = [&](std::uint64_t position) {
      blocks.push_back({inside + position * stride[axis] - at * stride[axis], total / extent});
      blocks[0].weight -= total / extent;
    };
    if (extent > 2) add(0);
    if (extent > 1) add(static_cast<std::uint64_t>(extent) - 1);
  }
  return blocks;
}

GridCounts count_grid(ptx::PtxMachine& machine, const std::string& kernel, const std::string& entry, const std::array<unsigned, 3>& grid,
                        const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, const std::vector<std::byte>& parameters) {
  GridCounts result;
  result.kernel = kernel;
  result.blocks = std::int64_t{1} * grid[0] * grid[1] * grid[2];
  std::vector<SampledBlock> blocks = blocks_to_run(grid);
  try {
    for (std::size_t n = 0; n < blocks.size(); ++n) {
      const std::int64_t before = machine.steps();
      const ptx::Counts counts = machine.count_block(entry, grid, block, dynamic_shared_bytes, parameters, blocks[n].number);
      if (machine.steps() - before >= most_block_steps) {
        result.how = fmt::format("a block takes more than {} million operations of warps, and was not run to its end", most_block_steps / 1'000'000);
        return result;
      }
      if (!machine.faults().is_empty()) {
        result.how = "a block alone does not run to its end: " + machine.faults().sentences(1).front();
        return result;
      }
      const bool is_long = n == 0 && machine.steps() - before > long_block_steps;
      if (is_long) blocks = {{blocks[0].number, result.blocks}};
      add_scaled(result.counts, counts, blocks[n].weight);
      ++result.blocks_run;
    }
  } catch (const ptx::Unsupported& missing) {
    result.how = missing.what();
    return result;
  }
  result.is_counted = true;
  result.how = fmt::format("{} of {} blocks run", result.blocks_run, result.blocks);
  const ptx::KernelProgram& program = machine.kernel(entry);
  for (const auto& [number, access] : result.counts.accesses) result.places[number] = {program.places[number].text, program.places[number].source.line};
  return result;
}

}  // namespace tilewright
