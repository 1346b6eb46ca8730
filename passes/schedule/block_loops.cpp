// Grid and tile loops of a kernel that is about to be bound.
#include "passes/schedule/block_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

void refuse_unless_parallel(const Kernel& kernel, const LineName& loop, std::string_view word) {
  auto found = find_loop(kernel.body, loop.text);
  if (!found || found->kind == LoopKind::Parallel) return;
  bool serial = found->kind == LoopKind::Serial || found->kind == LoopKind::Unroll || found->kind == LoopKind::Vector;
  if (serial)
    throw UserError(
        loop.span,
        fmt::format("`{}` is reduced in kernel `{}`: its steps need one another, so threads cannot share them",
                    loop.text, kernel.name),
        fmt::format("`{}` takes the indices of the result", word));
  throw UserError(loop.span, fmt::format("`{}` is bound already (`{}`)", loop.text, name_of(found->kind)));
}

BlockLoops take_block_loops(const Kernel& kernel, const ScheduleLine& line) {
  const Loop* outer = kernel.body.size() == 1 ? as<Loop>(kernel.body[0]) : nullptr;
  if (!outer || outer->kind != LoopKind::Parallel) {
    if (outer && (outer->kind == LoopKind::Grid || outer->kind == LoopKind::Each))
      throw UserError(line.span, fmt::format("the loops of kernel `{}` are bound already", kernel.name));
    throw UserError(line.span, fmt::format("kernel `{}` has no parallel loop around all of it; its loops are {}",
                                           kernel.name, in_words(loop_names(kernel.body))));
  }
  BlockLoops result{outer->axes, {}, outer->body, kernel.body[0]->span};
  while (result.body.size() == 1) {
    const Loop* inner = as<Loop>(result.body[0]);
    if (!inner || inner->kind != LoopKind::Parallel) break;
    for (const Axis& axis : inner->axes) {
      if (!constant_extent(axis))
        throw UserError(line.span, fmt::format("`{}` inside a tile has the extent `{}`, which is not constant",
                                               axis.name, print(extent_of(axis))));
      result.tile.push_back(axis);
    }
    Block rest = inner->body;
    result.body = std::move(rest);
  }
  return result;
}

void move_into_tile(BlockLoops& loops, const LineName& loop) {
  auto at =
      std::find_if(loops.grid.begin(), loops.grid.end(), [&](const Axis& axis) { return axis.name == loop.text; });
  if (!constant_extent(*at))
    throw UserError(loop.span,
                    fmt::format("`{}` has the extent `{}`; threads need a constant number of iterations", loop.text,
                                print(extent_of(*at))),
                    fmt::format("put `tile block {} 16` in front", loop.text));
  loops.tile.push_back(*at);
  loops.grid.erase(at);
}

void number_steps(std::vector<AxisLayout>& deal) {
  std::int64_t stride = 1;
  for (auto axis = deal.rbegin(); axis != deal.rend(); ++axis)
    for (auto factor = axis->factors.rbegin(); factor != axis->factors.rend(); ++factor) {
      if (factor->place != Place::Step) continue;
      factor->stride = stride;
      stride *= factor->extent;
    }
}

namespace {

Block without_parallel(const Block& body) {
  return rewrite_statements(body, [](const Stmt& stmt) -> Block {
    const Loop* loop = as<Loop>(stmt);
    if (!loop || loop->kind != LoopKind::Parallel) return {stmt};
    Loop node = *loop;
    node.kind = LoopKind::Serial;
    return {make_stmt(std::move(node), stmt->span)};
  });
}

}  // namespace

Block bound_body(const BlockLoops& loops, Layout deal) {
  Block body = without_parallel(loops.body);
  if (!loops.tile.empty())
    body = {make_stmt(Loop{LoopKind::Each, loops.tile, std::move(deal), std::move(body)}, loops.span)};
  if (!loops.grid.empty())
    body = {make_stmt(Loop{LoopKind::Grid, loops.grid, std::nullopt, std::move(body)}, loops.span)};
  return body;
}

}  // namespace tilewright
