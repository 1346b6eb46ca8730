// tile: split a loop into tiles of constant size.
//
//   tile block i 16, j 16, k 16
//   before   parallel i in M, j in N {
//              reg acc; acc = 0.0; serial k in K { acc = fma(A[i, k], B[k, j], acc) }; C[i, j] = acc }
//   after    parallel i.block in ceildiv(M, 16), j.block in ceildiv(N, 16) { parallel i in 16, j in 16 {
//              reg acc; acc = 0.0
//              serial k.block in ceildiv(K, 16) { serial k in 16 {
//                acc = fma(A[i.block*16 + i, k.block*16 + k], …, acc)
//                  where i.block*16 + i < M, j.block*16 + j < N, k.block*16 + k < K } }
//              C[i.block*16 + i, j.block*16 + j] = acc where i.block*16 + i < M, j.block*16 + j < N } }
//
// The order of serial iterations stays. What lies past the end of a loop is left out by a predicate on the statements
// that use its index or write what outlives an iteration; a size that divides the extent, by constants or facts, needs
// none. The two levels that lowering makes of a long sum (`k.chunk`) become one again.
//
// Needs: a constant size; a loop not yet bound (`parallel` or `serial`) and without tile operations in it.
#include <fmt/format.h>

#include <algorithm>

#include "passes/affine.h"
#include "passes/loops.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/predicate.h"
#include "passes/schedule/tiling.h"

namespace tilewright {

namespace {

// The loop `k` of a sum in two levels, put together again; nothing where `loop` is no such `k.chunk`.
//   serial k.chunk { part = 0; serial k in 4096 { part = part + … }; acc = acc + part }   ->   serial k { acc = acc + …
//   }
std::optional<Stmt> without_chunks(const Stmt& stmt, const std::string& name) {
  const Loop* outer = as<Loop>(stmt);
  if (!outer || outer->axes.size() != 1 || outer->axes[0].name != name + ".chunk" || outer->body.size() != 4)
    return std::nullopt;
  const Buffer* part = as<Buffer>(outer->body[0]);
  const Loop* inner = as<Loop>(outer->body[2]);
  const Store* total = as<Store>(outer->body[3]);
  const Call* count = as<Call>(outer->axes[0].hi);
  if (!part || !inner || !total || !count || inner->axes.size() != 1 || inner->axes[0].name != name)
    return std::nullopt;
  Block body =
      replace(rename_buffer(inner->body, part->name, total->target.buffer), {{outer->axes[0].name, integer(0)}});
  Axis axis{name, integer(0), count->arguments[0], {}, inner->axes[0].span};
  return make_stmt(Loop{LoopKind::Serial, {axis}, std::nullopt, std::move(body)}, stmt->span);
}

class Tiling {
 public:
  Tiling(const Plan& plan, std::string level, LineName name, LineNumber size)
      : divisors_(divisors_of(plan.facts)), level_(std::move(level)), name_(std::move(name)), size_(size) {}

  Kernel apply(const Kernel& kernel) {
    outer_ = name_.text + "." + level_;
    if (has_loop(kernel.body, outer_))
      throw UserError(
          name_.span,
          fmt::format("`{}` has a level `{}` already; another level needs another word", name_.text, level_),
          fmt::format("`tile {} {} {}` with a word of your own", level_ == "block" ? "thread" : "block", name_.text,
                      size_.value));
    Kernel result = without_chunks_of(kernel, name_.text);
    result.body = split(result.body);
    return result;
  }

 private:
  Block split(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      bool here = loop && std::any_of(loop->axes.begin(), loop->axes.end(),
                                      [&](const Axis& axis) { return axis.name == name_.text; });
      result.push_back(here ? split_loop(*loop, stmt->span)
                            : map_bodies(stmt, [&](const Block& inner) { return split(inner); }));
    }
    return result;
  }

  void require_tileable(const Loop& loop, const Axis& axis) const {
    if (loop.kind != LoopKind::Parallel && loop.kind != LoopKind::Serial)
      throw UserError(
          name_.span,
          fmt::format("`{}` is bound already (`{}`); `tile` needs a loop that is not", name_.text, name_of(loop.kind)),
          "put the `tile` line before `bind`, `warps` or `unroll`");
    if (axis.step)
      throw UserError(name_.span, fmt::format("`{}` has a step; `tile` needs a loop without one", name_.text));
    if ((axis.lo && reads_memory(axis.lo, {})) || reads_memory(axis.hi, {}))
      throw UserError(name_.span,
                      fmt::format("the bounds of `{}` are read from a tensor; `tile` needs bounds of sizes and indices",
                                  name_.text));
    walk(loop.body, [&](const Stmt& stmt) {
      if (as<Copy>(stmt) || as<Verb>(stmt) || as<Mma>(stmt) || as<Fold>(stmt))
        throw UserError(
            name_.span,
            fmt::format("`{}` has tile operations in it; `tile` it before `stage` and `pipeline`", name_.text));
      return true;
    });
  }

  Stmt split_loop(const Loop& loop, Span span) {
    std::size_t at = 0;
    while (loop.axes[at].name != name_.text) ++at;
    const Axis& axis = loop.axes[at];
    require_tileable(loop, axis);
    for (const Axis& other : loop.axes)
      if ((other.lo && uses_var(other.lo, axis.name)) || uses_var(other.hi, axis.name))
        throw UserError(name_.span,
                        fmt::format("the bounds of `{}` depend on `{}`, so it cannot be tiled", other.name, axis.name));

    Expr extent = extent_of(axis);
    Expr lo = axis.lo ? axis.lo : integer(0);
    Expr element = tidy(lo + var(outer_) * size_.value + var(axis.name));
    Block body = replace(loop.body, {{axis.name, element}});
    bool divides = known_divisor(extent, divisors_) % size_.value == 0;
    if (!divides) body = with_predicate(body, axis.name, less(element, axis.hi));

    Axis tiles{outer_, integer(0), ceildiv(extent, integer(size_.value)), {}, axis.span};
    Axis inside = counted(axis.name, size_.value, axis.span);
    return loop.kind == LoopKind::Parallel ? parallel_nest(loop, at, tiles, inside, std::move(body), span)
                                           : serial_nest(loop, at, tiles, inside, std::move(body), span);
  }

  // serial a, i, b  ->  serial a, i.block { serial i, b }
  static Stmt serial_nest(const Loop& loop, std::size_t at, const Axis& tiles, const Axis& inside, Block body,
                          Span span) {
    auto middle = loop.axes.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<Axis> outer(loop.axes.begin(), middle);
    outer.push_back(tiles);
    std::vector<Axis> inner{inside};
    inner.insert(inner.end(), middle + 1, loop.axes.end());
    Stmt nested = make_stmt(Loop{LoopKind::Serial, std::move(inner), std::nullopt, std::move(body)}, span);
    return make_stmt(Loop{LoopKind::Serial, std::move(outer), std::nullopt, {nested}}, span);
  }

  // parallel i, j  ->  parallel i.block, j { parallel i }; the tile loops of one level share a nest, in the order of
  // the loops that they are parts of.
  Stmt parallel_nest(const Loop& loop, std::size_t at, const Axis& tiles, const Axis& inside, Block body,
                     Span span) const {
    std::vector<Axis> outer = loop.axes;
    outer[at] = tiles;
    auto rank = [&](const Axis& axis) {
      return std::find_if(outer.begin(), outer.end(),
                          [&](const Axis& other) { return other.name == axis.name + "." + level_; }) -
             outer.begin();
    };
    std::vector<Axis> inner{inside};
    const Loop* nested = body.size() == 1 ? as<Loop>(body[0]) : nullptr;
    bool same_level = nested && nested->kind == LoopKind::Parallel &&
                      std::all_of(nested->axes.begin(), nested->axes.end(), [&](const Axis& axis) {
                        return static_cast<std::size_t>(rank(axis)) < outer.size();
                      });
    if (same_level) {
      inner.insert(inner.end(), nested->axes.begin(), nested->axes.end());
      std::sort(inner.begin(), inner.end(), [&](const Axis& a, const Axis& b) { return rank(a) < rank(b); });
      Block rest = nested->body;
      body = std::move(rest);
    }
    Stmt tile_nest = make_stmt(Loop{LoopKind::Parallel, std::move(inner), std::nullopt, std::move(body)}, span);
    return make_stmt(Loop{LoopKind::Parallel, std::move(outer), std::nullopt, {tile_nest}}, span);
  }

  Divisors divisors_;
  std::string level_;
  LineName name_;
  LineNumber size_;
  std::string outer_;
};

}  // namespace

Kernel tile_loop(const Plan& plan, const Kernel& kernel, const std::string& level, const LineName& name, LineNumber size) {
  return Tiling(plan, level, name, size).apply(kernel);
}

Kernel without_chunks_of(const Kernel& kernel, const std::string& name) {
  Kernel result = kernel;
  result.body = rewrite_statements(kernel.body, [&](const Stmt& stmt) -> Block {
    auto joined = without_chunks(stmt, name);
    return {joined ? *joined : stmt};
  });
  return result;
}

Plan tile(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  LineName level = reader.name("a level, as `block`");
  auto sizes = read_sizes(reader);
  reader.end();
  if (level.text == "coarse" || level.text == "by")
    throw UserError(level.span,
                    fmt::format("`{}` names a part that `coarsen` makes; a level needs another word", level.text));
  std::vector<LineName> loops;
  for (const auto& [name, size] : sizes) loops.push_back(name);
  return map_kernels_with(plan, line, loops, [&](const Kernel& kernel) {
    Kernel result = kernel;
    for (const auto& [name, size] : sizes) result = tile_loop(plan, result, level.text, name, size);
    return result;
  });
}

}  // namespace tilewright
