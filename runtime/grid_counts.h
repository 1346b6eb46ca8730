// Counts of a whole grid from a few of its blocks: one inside, and the first and the last along each axis.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "runtime/ptx/counts.h"
#include "runtime/ptx/ptx.h"

namespace tilewright {

// What one kernel of a plan or a hand program asks of the machine, in all its blocks.
struct GridCounts {
  std::string kernel;
  std::int64_t blocks = 0;
  int blocks_run = 0;
  std::string how;    // "5 of 65536 blocks run"; where nothing could be counted, why
  bool is_counted = false;
  ptx::Counts counts;
  // By the number in `accesses`: the instruction, and its line in the text that was compiled (0: unknown).
  struct Place {
    std::string text;
    int line = 0;
  };
  std::map<std::uint32_t, Place> places;
};

// A block that takes more operations of warps than this is counted alone and stands for all.
constexpr std::int64_t long_block_steps = 6'000'000;
// One that takes more than this is not counted.
constexpr std::int64_t most_block_steps = 40'000'000;

// A block of the grid, and how many blocks it stands for. Counts are taken to be a sum of a part that is the same in
// every block and parts that belong to the first or the last position along one axis.
struct SampledBlock {
  std::uint64_t number = 0;
  std::int64_t weight = 0;
};
std::vector<SampledBlock> blocks_to_run(const std::array<unsigned, 3>& grid);

// Runs sampled blocks of a kernel whose tensors are placed already. Never throws for what the machine lacks: `how` says it.
GridCounts count_grid(ptx::PtxMachine& machine, const std::string& kernel, const std::string& entry, const std::array<unsigned, 3>& grid,
                        const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, const std::vector<std::byte>& parameters);

}  // namespace tilewright
