// split: threads, or blocks, share a reduced index; each has a partial result of its own.
//
//   split d 256 thread.x by 4
//   before   grid r in R { reg acc: f32; acc = 0.0; serial d in D { acc = acc + X[r, d] }; y[r] = acc }
//   after    kernel y threads (256) { grid r in R {
//              reg acc: f32; reg acc.part: f32[d 256, d.by 4] (d: 256 thread.x; d.by: 4 reg)
//              fill acc.part <- 0.0
//              serial d.block in ceildiv(D, 1024) { each d in 256 { unroll d.by in 4 {
//                acc.part[d, d.by] = acc.part[d, d.by] + X[r, d.block*1024 + d*4 + d.by] where … < D } } }
//              reduce acc <- + acc.part[d, d.by]
//              y[r] = acc } }
//
// Neighbouring threads take neighbouring elements, `by 4` four of them each, which `vectorize 4` can load in one access.
// `reduce` folds a thread's own partial results in order, then those of the lanes of a warp by halves, then those of the
// warps in order. A loop inside an `each` comes outside first, as `stage` does it.
//
//   split d block 65536
//   before   kernel y { parallel r in R { reg acc: f32; acc = 0.0; serial d in D { acc = acc + X[r, d] }; y[r] = acc } }
//   after    temp y.part: f32[R, ceildiv(D, 65536)]
//            kernel y.part { parallel r in R, d.part in ceildiv(D, 65536) { reg acc: f32; acc = 0.0
//              serial d in 65536 { acc = acc + X[r, d.part*65536 + d] where … < D }; y.part[r, d.part] = acc } }
//            kernel y { parallel r in R { reg acc: f32; acc = 0.0
//              serial d.part in ceildiv(D, 65536) { acc = acc + y.part[r, d.part] }; y[r] = acc } }
//
// The partial results of blocks go by way of memory to a second kernel, so their order is always the same.
//
// Needs: a reduction of one accumulator by one operator. With threads: the loops around it bound (`bind r block`) and the
// place free; a power of two or a multiple of 32 along thread.x. With blocks: loops that are not bound yet.
#include "passes/schedule/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "passes/schedule/accumulator.h"
#include "passes/schedule/cut.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/tiling.h"

namespace tilewright {

namespace {

struct Sharing {
  LineName loop;
  LineNumber threads;
  LineName where;
  Place place = Place::ThreadX;
  std::int64_t by = 1;
};

// On a kernel whose loop is tiled and outside of every `each`.
class ThreadSplit {
 public:
  ThreadSplit(const Sharing& sharing, const Plan& plan) : sharing_(sharing), names_(plan), outer_(sharing.loop.text + ".block") {}

  // Statements of a block.
  Block apply(const Block& body) {
    Block result = body;
    for (std::size_t n = 0; n < result.size(); ++n) {
      if (!has_loop({result[n]}, outer_)) continue;
      if (const If* branch = as<If>(result[n]); branch && reads_memory(branch->condition, {}))
        throw UserError(sharing_.loop.span, fmt::format("`{}` stands in a branch on what memory holds: not all threads may come by to share it", sharing_.loop.text));
      if (!starts_here(result, n)) {
        result[n] = map_bodies(result[n], [&](const Block& inner) { return apply(inner); });
        continue;
      }
      Accumulator accumulator = accumulator_of(result, n, sharing_.loop);
      n = share(result, n, accumulator);
    }
    return result;
  }

 private:
  // Whether the accumulator of the loop is declared in this body.
  bool starts_here(const Block& body, std::size_t nest) const {
    std::set<std::string> written;
    walk({body[nest]}, [&](const Stmt& stmt) {
      const Loop* loop = as<Loop>(stmt);
      if (!loop || std::none_of(loop->axes.begin(), loop->axes.end(), [&](const Axis& axis) { return axis.name == outer_; })) return true;
      walk(loop->body, [&](const Stmt& inner) {
        if (const Store* store = as<Store>(inner)) written.insert(store->target.buffer);
        return true;
      });
      return false;
    });
    return std::any_of(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(nest), [&](const Stmt& stmt) {
      const Buffer* buffer = as<Buffer>(stmt);
      return buffer && written.count(buffer->name);
    });
  }

  // Gives the accumulator's reduction to the threads; returns where its last statement stands.
  std::size_t share(Block& body, std::size_t nest, const Accumulator& accumulator) {
    const Span span = body[nest]->span;
    Buffer part = accumulator.buffer;
    part.name = names_.fresh(accumulator.buffer.name + ".part");
    part.axes.push_back({sharing_.loop.text, sharing_.threads.value});
    if (sharing_.by > 1) part.axes.push_back({sharing_.loop.text + ".by", sharing_.by});
    part.layout = layout_of(accumulator.buffer);

    Fold fold{false, Access{accumulator.buffer.name, {}, {}, span}, accumulator.op, Access{part.name, {}, {}, span}, {}};
    for (const BufferAxis& axis : accumulator.buffer.axes) fold.target.index.push_back(var(axis.name));
    for (const BufferAxis& axis : part.axes) fold.source.index.push_back(var(axis.name));

    accumulator_ = accumulator.buffer.name;
    part_ = part.name;
    const Stmt shared = with_threads({body[nest]})[0];
    const Stmt fill = make_stmt(Fill{part.name, identity_of(accumulator.op, part.dtype)}, body[accumulator.start]->span);
    body[nest] = shared;
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(nest) + 1, make_stmt(std::move(fold), span));
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(nest), fill);
    body[accumulator.start] = make_stmt(std::move(part), span);  // instead of the start of the accumulator
    return nest + 2;
  }

  // The accumulator's places, then the threads', then the neighbours in registers.
  Layout layout_of(const Buffer& accumulator) const {
    Layout layout = accumulator.layout.value_or(Layout{});
    for (AxisLayout& axis : layout.axes)
      for (Factor& factor : axis.factors)
        if (factor.place == Place::Reg) factor.stride *= sharing_.by;
    layout.axes.push_back({sharing_.loop.text, {Factor{sharing_.threads.value, sharing_.place, 1}}});
    if (sharing_.by > 1) layout.axes.push_back({sharing_.loop.text + ".by", {Factor{sharing_.by, Place::Reg, 1}}});
    return layout;
  }

  Block with_threads(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      if (loop && loop->kind == LoopKind::Each && has_loop(loop->body, sharing_.loop.text)) {
        // The loop is all that this `each` does, but for its own registers.
        Loop node = *loop;
        node.deal.reset();
        node.axes.push_back(counted(sharing_.loop.text, sharing_.threads.value, stmt->span));
        node.body.clear();
        for (const Stmt& inner : loop->body) {
          if (as<Buffer>(inner)) {
            node.body.push_back(inner);
            continue;
          }
          if (!is_the_loop(inner)) internal_error(fmt::format("split: an `each` does more than `{}`", sharing_.loop.text));
          Block steps = steps_of(*as<Loop>(inner), inner->span);
          node.body.insert(node.body.end(), steps.begin(), steps.end());
        }
        result.push_back(make_stmt(std::move(node), stmt->span));
      } else if (is_the_loop(stmt)) {
        result.push_back(make_stmt(Loop{LoopKind::Each, {counted(sharing_.loop.text, sharing_.threads.value, stmt->span)}, std::nullopt, steps_of(*loop, stmt->span)}, stmt->span));
      } else {
        result.push_back(map_bodies(stmt, [&](const Block& inner) { return with_threads(inner); }));
      }
    }
    return result;
  }

  bool is_the_loop(const Stmt& stmt) const {
    const Loop* loop = as<Loop>(stmt);
    return loop && loop->kind == LoopKind::Serial && loop->axes[0].name == sharing_.loop.text;
  }

  // What one thread does in one trip of the loop over tiles.
  Block steps_of(const Loop& loop, Span span) const {
    Block body = loop.body;
    if (loop.axes.size() > 1) body = {make_stmt(Loop{LoopKind::Serial, {loop.axes.begin() + 1, loop.axes.end()}, std::nullopt, std::move(body)}, span)};
    body = with_part(body);
    if (sharing_.by == 1) return body;
    const std::string by = sharing_.loop.text + ".by";
    body = replace(body, {{sharing_.loop.text, var(sharing_.loop.text) * sharing_.by + var(by)}});
    // The partial results are numbered by the thread's own index, not by the element.
    body = with_own_index(body);
    const Loop* parts = body.size() == 1 ? as<Loop>(body[0]) : nullptr;
    if (parts && parts->kind == LoopKind::Unroll && std::all_of(parts->axes.begin(), parts->axes.end(), [](const Axis& axis) { return is_part(axis.name); })) {
      Loop joined = *parts;
      joined.axes.push_back(counted(by, sharing_.by, span));
      return {make_stmt(std::move(joined), span)};
    }
    return {make_stmt(Loop{LoopKind::Unroll, {counted(by, sharing_.by, span)}, std::nullopt, std::move(body)}, span)};
  }

  Access own_part(const Access& access, std::size_t kept) const {
    Access result = access;
    result.buffer = part_;
    result.index.resize(kept);
    result.index.push_back(var(sharing_.loop.text));
    if (sharing_.by > 1) result.index.push_back(var(sharing_.loop.text + ".by"));
    return result;
  }

  Block map_accesses(const Block& body, const std::string& buffer, const std::function<Access(const Access&)>& f) const {
    Block loads = rewrite_expressions(body, [&](const Expr& expr) {
      const Load* access = as<Load>(expr);
      return access && access->access.buffer == buffer ? load(f(access->access), expr->dtype, expr->span) : expr;
    });
    return rewrite_statements(loads, [&](const Stmt& stmt) -> Block {
      const Store* store = as<Store>(stmt);
      if (!store || store->target.buffer != buffer) return {stmt};
      Store node = *store;
      node.target = f(node.target);
      return {make_stmt(std::move(node), stmt->span)};
    });
  }

  Block with_part(const Block& body) const {
    return map_accesses(body, accumulator_, [&](const Access& access) { return own_part(access, access.index.size()); });
  }

  Block with_own_index(const Block& body) const {
    return map_accesses(body, part_, [&](const Access& access) { return own_part(access, access.index.size() - 2); });
  }

  const Sharing& sharing_;
  Names names_;
  std::string outer_;
  std::string accumulator_;
  std::string part_;
};

void refuse_unless_bound(const Kernel& kernel, const LineName& loop) {
  walk(kernel.body, [&](const Stmt& stmt) {
    const Loop* outer = as<Loop>(stmt);
    if (outer && outer->kind == LoopKind::Parallel && has_loop(outer->body, loop.text))
      throw UserError(loop.span, fmt::format("`{}` around `{}` is not bound yet, so there is no block whose threads could share it", outer->axes[0].name, loop.text),
                      fmt::format("put `bind {} block` in front", outer->axes[0].name));
    return true;
  });
  auto found = find_loop(kernel.body, loop.text);
  if (found && found->kind != LoopKind::Serial)
    throw UserError(loop.span, fmt::format("`{}` is `{}`; `split` takes a loop that is reduced, one after the other", loop.text, name_of(found->kind)));
}

std::vector<std::int64_t> shape_with(const Kernel& kernel, const Sharing& sharing, const Target& target) {
  if (kernel.warps > 0)
    throw UserError(sharing.where.span, fmt::format("kernel `{}` has {} warps in a row, all of them at work already", kernel.name, kernel.warps),
                    "`bind` names the place of each loop instead");
  std::vector<std::int64_t> shape = kernel.block_shape;
  shape.resize(3, 1);
  const std::size_t at = sharing.place == Place::ThreadX ? 0 : sharing.place == Place::ThreadY ? 1 : 2;
  if (shape[at] > 1) throw UserError(sharing.where.span, fmt::format("`{}` has {} threads of other loops already", sharing.where.text, shape[at]));
  shape[at] = sharing.threads.value;
  const std::int64_t total = shape[0] * shape[1] * shape[2];
  if (total > target.most_threads)
    throw UserError(sharing.threads.span, fmt::format("{} x {} x {} are {} threads, a block has at most {}", shape[0], shape[1], shape[2], total, target.most_threads));
  if (total % 32 != 0)
    throw UserError(sharing.threads.span, fmt::format("{} x {} x {} are {} threads, which is no whole number of warps", shape[0], shape[1], shape[2], total),
                    "partial results are exchanged between the lanes of whole warps");
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  return shape;
}

Sharing read_sharing(LineReader& reader, LineName loop, LineNumber threads) {
  Sharing result{std::move(loop), threads, reader.name("`thread.x`, `thread.y` or `thread.z`"), Place::ThreadX, 1};
  auto place = place_by_name(result.where.text);
  if (place != Place::ThreadX && place != Place::ThreadY && place != Place::ThreadZ)
    throw UserError(result.where.span, fmt::format("`{}` is no place for threads: `thread.x`, `thread.y` or `thread.z`", result.where.text),
                    fmt::format("`split {0} block {1}` gives blocks {1} terms each", result.loop.text, threads.value));
  result.place = *place;
  if (reader.accept("by")) {
    LineNumber by = reader.number("a number of neighbours");
    if (by.value > 64) throw UserError(by.span, fmt::format("{} neighbours a thread are {} registers; at most 64", by.value, by.value));
    result.by = by.value;
  }
  const std::int64_t n = threads.value;
  if (n > 1024 || (result.place == Place::ThreadX && n % 32 != 0 && (n & (n - 1)) != 0))
    throw UserError(threads.span, fmt::format("{} threads cannot exchange partial results by halves", n), "a power of two, or a multiple of 32; at most 1,024");
  return result;
}

Kernel split_among_threads(const Plan& plan, const Kernel& kernel, const Sharing& sharing, const Target& target) {
  refuse_unless_bound(kernel, sharing.loop);
  Kernel result = tile_loop(plan, kernel, "block", sharing.loop, {sharing.threads.value * sharing.by, sharing.threads.span});
  result.block_shape = shape_with(kernel, sharing, target);
  const LineName tiles{sharing.loop.text + ".block", sharing.loop.span};
  const auto share = [&](const Block& body) {
    Block outside = bring_outside(body, tiles);
    return ThreadSplit(sharing, plan).apply(outside);
  };
  result.body = map_block_body(result.body, share);
  return result;
}

}  // namespace

Plan split(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  LineName loop = reader.name("the name of a reduced loop");
  if (reader.accept("block")) {
    LineNumber terms = reader.number("a number of terms", 2);
    reader.end();
    return split_among_blocks(plan, line, loop, terms);
  }
  LineNumber threads = reader.number("a number of threads", 2);
  Sharing sharing = read_sharing(reader, loop, threads);
  reader.end();
  return map_kernels_with(plan, line, {sharing.loop}, [&](const Kernel& kernel) { return split_among_threads(plan, kernel, sharing, target); });
}

}  // namespace tilewright
