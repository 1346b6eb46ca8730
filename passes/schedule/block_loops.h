// The parallel loops of a kernel that is not bound yet, taken apart into grid and tile: what `bind` and `warps` share.
#pragma once

#include <vector>

#include "passes/loops.h"

namespace tilewright {

struct BlockLoops {
  std::vector<Axis> grid;  // the outermost nest
  std::vector<Axis> tile;  // all nests directly inside, of constant extents
  Block body;
  Span span;
};

// Refuses a loop that is reduced or bound, with the cure.
void refuse_unless_parallel(const Kernel& kernel, const LineName& loop, std::string_view word);

// Refuses a kernel that is bound already, one without parallel loops, and a tile whose extents are not constant.
BlockLoops take_block_loops(const Kernel& kernel, const ScheduleLine& line);

// Makes a loop of the outermost nest one of the tile's; it needs a constant extent.
void move_into_tile(BlockLoops& loops, const LineName& loop);

// Numbers the steps of a deal through, the last axis fastest.
void number_steps(std::vector<AxisLayout>& deal);

// grid … { each … on (deal) { body } }. Parallel loops further inside become a thread's own serial ones.
Block bound_body(const BlockLoops& loops, Layout deal);

}  // namespace tilewright
