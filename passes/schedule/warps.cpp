// warps: block tiles become the grid, a stated number of warps shares the loops inside in the default deal.
//
//   warps 8
//   before   parallel i.block in ceildiv(M, 128), j.block in ceildiv(N, 256) { parallel i in 128, j in 256 { … } }
//   after    kernel C warps 8 { grid i.block …, j.block … {
//              each i in 128, j in 256 on (i: 128 step; j: 256 thread.x) { … } } }
//
// The last axis lies on the threads; an axis longer than the threads takes steps, a shorter one leaves threads to the
// axis before it. Without a target the line acts on every kernel that is tiled and not bound.
//
// Needs: parallel loops, tiled by constants; at most 32 warps.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "passes/schedule/block_loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

// The threads left are dealt from the last axis outwards, as many as divide both it and them. Where these are less than
// a warp, a short axis takes as many threads as it has elements, and those beyond idle.
Layout row_by_row(const std::vector<Axis>& axes, std::int64_t threads) {
  constexpr std::int64_t warp = 32;
  std::vector<AxisLayout> layout(axes.size());
  std::int64_t taken = 1;
  for (std::size_t n = axes.size(); n-- > 0;) {
    std::int64_t extent = constant_extent(axes[n]).value_or(1);
    std::int64_t left = threads / taken;
    std::int64_t share = std::gcd(extent, left);
    if (extent < left && share < warp) share = extent;
    if (left % share != 0) threads = taken * share;
    std::int64_t steps = extent / share;
    layout[n].axis = axes[n].name;
    if (steps > 1 || share == 1) layout[n].factors.push_back(Factor{steps, Place::Step, 1});
    if (share > 1) layout[n].factors.push_back(Factor{share, Place::ThreadX, taken});
    taken *= share;
  }
  number_steps(layout);
  return Layout{std::move(layout), 0};
}

bool is_tiled_parallel(const Kernel& kernel) {
  const Loop* outer = kernel.body.size() == 1 ? as<Loop>(kernel.body[0]) : nullptr;
  const Loop* inner = outer && outer->body.size() == 1 ? as<Loop>(outer->body[0]) : nullptr;
  return outer && outer->kind == LoopKind::Parallel && inner && inner->kind == LoopKind::Parallel;
}

}  // namespace

Plan warps(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  LineNumber count = reader.number("a number of warps");
  reader.end();
  std::int64_t threads = count.value * 32;
  if (threads > target.most_threads)
    throw UserError(count.span, fmt::format("{} warps are {} threads, a block has at most {}", count.value, threads,
                                            target.most_threads));
  if (!line.target.empty()) kernel_named(plan, {line.target, line.span});
  bool acted = false;
  Plan result = map_kernels(plan, [&](const Kernel& kernel) {
    bool meant = line.target.empty() ? is_tiled_parallel(kernel) : kernel.name == line.target;
    if (!meant) return kernel;
    acted = true;
    BlockLoops loops = take_block_loops(kernel, line);
    if (loops.tile.empty())
      throw UserError(line.span, fmt::format("the loops of kernel `{}` are not tiled", kernel.name),
                      fmt::format("put `tile block {} 256` in front", loops.grid.back().name));
    Kernel changed = kernel;
    changed.warps = static_cast<int>(count.value);
    changed.body = bound_body(loops, row_by_row(loops.tile, threads));
    return changed;
  });
  if (!acted)
    throw UserError(line.span, "no kernel has block tiles that are not bound yet",
                    "put a line as `tile block i 16, j 16` in front");
  return result;
}

}  // namespace tilewright
