// bind: block tiles become the grid, the loops inside a tile become threads.
//
//   bind i thread.y, j thread.x
//   before   parallel i.block in ceildiv(M, 16), j.block in ceildiv(N, 16) { parallel i in 16, j in 16 { … } }
//   after    kernel C threads (16, 16) { grid i.block in ceildiv(M, 16), j.block in ceildiv(N, 16) {
//              each i in 16, j in 16 on (i: 16 thread.y; j: 16 thread.x) { … } } }
//
// The outermost parallel nest is the grid, its last axis block.x; what is inside a tile and not named is done by the
// thread step after step. A loop of a constant extent may be bound whole.
//
// Needs: parallel loops, tiled by constants; at most 1,024 threads. Refuses: a reduced index.
#include <fmt/format.h>

#include <algorithm>

#include "passes/schedule/block_loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

struct Binding {
  LineName loop;
  Place place;  // ThreadX, ThreadY, ThreadZ; Mem stands for `block`
};

std::vector<Binding> read_bindings(LineReader& reader) {
  std::vector<Binding> result;
  do {
    LineName loop = reader.name("the name of a loop");
    LineName where = reader.name("`thread.x`, `thread.y`, `thread.z` or `block`");
    std::optional<Place> place = where.text == "block" ? Place::Mem : place_by_name(where.text);
    bool known = place && (where.text == "block" || *place == Place::ThreadX || *place == Place::ThreadY ||
                           *place == Place::ThreadZ);
    if (!known)
      throw UserError(
          where.span,
          fmt::format("`{}` is no place to bind to: `thread.x`, `thread.y`, `thread.z` or `block`", where.text));
    for (const Binding& other : result) {
      if (other.loop.text == loop.text) throw UserError(loop.span, fmt::format("`{}` is bound twice", loop.text));
      if (other.place == *place && *place != Place::Mem)
        throw UserError(where.span, fmt::format("`{}` is taken by `{}`", where.text, other.loop.text),
                        "make one loop of a place, or let the rest be steps");
    }
    result.push_back({std::move(loop), *place});
  } while (reader.accept(","));
  return result;
}

Kernel bind_kernel(const Kernel& kernel, const std::vector<Binding>& bindings, const ScheduleLine& line,
                   const Target& target) {
  for (const Binding& binding : bindings) refuse_unless_parallel(kernel, binding.loop, "bind");
  BlockLoops loops = take_block_loops(kernel, line);
  std::vector<std::int64_t> shape{1, 1, 1};
  std::vector<AxisLayout> deal;
  for (const Binding& binding : bindings) {
    bool in_grid = std::any_of(loops.grid.begin(), loops.grid.end(),
                               [&](const Axis& axis) { return axis.name == binding.loop.text; });
    if (binding.place == Place::Mem && !in_grid)
      throw UserError(
          binding.loop.span,
          fmt::format("`{}` stands inside a tile; `block` takes a loop of the outermost nest", binding.loop.text));
    if (binding.place != Place::Mem && in_grid) move_into_tile(loops, binding.loop);
  }
  const bool is_all_on_grid = std::all_of(bindings.begin(), bindings.end(), [](const Binding& binding) { return binding.place == Place::Mem; });
  if (loops.tile.empty() && !(is_all_on_grid && bindings.size() == loops.grid.size()))
    throw UserError(line.span, fmt::format("no loop of kernel `{}` would lie on threads", kernel.name),
                    fmt::format("put `tile block {} 256` in front and bind `{}` to `thread.x`", loops.grid.back().name,
                                loops.grid.back().name));
  for (const Axis& axis : loops.tile) {
    std::int64_t extent = constant_extent(axis).value_or(0);
    Place place = Place::Step;
    for (const Binding& binding : bindings)
      if (binding.loop.text == axis.name) place = binding.place;
    if (place == Place::ThreadX) shape[0] = extent;
    if (place == Place::ThreadY) shape[1] = extent;
    if (place == Place::ThreadZ) shape[2] = extent;
    deal.push_back(AxisLayout{axis.name, {Factor{extent, place, 1}}});
  }
  std::int64_t threads = shape[0] * shape[1] * shape[2];
  if (threads > target.most_threads)
    throw UserError(line.span,
                    fmt::format("{} x {} x {} are {} threads, a block has at most {}", shape[0], shape[1], shape[2],
                                threads, target.most_threads),
                    "make the tile smaller");
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  Kernel result = kernel;
  result.block_shape = shape;
  number_steps(deal);
  result.body = bound_body(loops, Layout{std::move(deal), 0});
  return result;
}

}  // namespace

Plan bind(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  std::vector<Binding> bindings = read_bindings(reader);
  reader.end();
  std::vector<LineName> names;
  for (const Binding& binding : bindings) names.push_back(binding.loop);
  return map_kernels_with(plan, line, names,
                          [&](const Kernel& kernel) { return bind_kernel(kernel, bindings, line, target); });
}

}  // namespace tilewright
