// bind_default: binds and deals what a schedule left open, so that every prefix of one is a kernel.
//
//   before   parallel i in M, j in N { … }
//   after    threads (16, 16) { grid i.block …, j.block … { each i in 16, j in 16 on (i: 16 thread.y; j: 16 thread.x) { … } } }
//
// An untiled kernel is tiled by 16 x 16, or by 256 where it has one free axis; further axes stay on the grid. A tiled one
// gets 256 threads, or as many as its tile has elements. Each copy is dealt by the widest vector that facts allow.
#include <fmt/format.h>

#include <algorithm>

#include "passes/finish/conditions.h"
#include "passes/finish/deal.h"
#include "passes/finish/passes.h"

namespace tilewright {

namespace {

constexpr std::int64_t default_threads = 256;

const Loop* parallel_loop(const Block& body) {
  for (const Stmt& stmt : body)
    if (const Loop* loop = as<Loop>(stmt); loop && loop->kind == LoopKind::Parallel) return loop;
  return nullptr;
}

std::int64_t elements_of(const std::vector<Axis>& axes) {
  std::int64_t product = 1;
  for (const Axis& axis : axes) product *= integer_value(axis.hi).value_or(1);
  return product;
}

Plan apply_text(const Plan& plan, const std::string& kernel, const std::string& text, const Target& target) {
  ScheduleLine line = tokenize_line(text);
  line.target = kernel;
  return apply_line(plan, line, target);
}

int warps_for(std::int64_t elements) {
  std::int64_t threads = std::min(default_threads, elements);
  return static_cast<int>(std::max<std::int64_t>(1, (threads + 31) / 32));
}

Plan bind_parallel(const Plan& plan, const std::string& name, const Loop& outer, const Target& target) {
  if (const Loop* tile = parallel_loop(outer.body))
    return apply_text(plan, name, fmt::format("warps {}", warps_for(elements_of(tile->axes))), target);
  std::size_t rank = outer.axes.size();
  const std::string& last = outer.axes.back().name;
  if (rank == 1) {
    Plan tiled = apply_text(plan, name, fmt::format("tile block {} {}", last, default_threads), target);
    return apply_text(tiled, name, fmt::format("bind {} thread.x", last), target);
  }
  const std::string& before = outer.axes[rank - 2].name;
  Plan tiled = apply_text(plan, name, fmt::format("tile block {} 16, {} 16", before, last), target);
  return apply_text(tiled, name, fmt::format("bind {} thread.y, {} thread.x", before, last), target);
}

// The largest number of elements that an `each` or a copy of the kernel has.
std::int64_t largest_tile(const Kernel& kernel) {
  std::vector<Buffer> buffers = buffers_in(kernel.body);
  std::int64_t most = 1;
  walk(kernel.body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt); loop && loop->kind == LoopKind::Each) most = std::max(most, elements_of(loop->axes));
    if (const Copy* copy = as<Copy>(stmt)) {
      std::int64_t product = 1;
      for (const CopyAxis& axis : copy_axes(*copy, buffers)) product *= axis.extent;
      most = std::max(most, product);
    }
    return true;
  });
  return most;
}

Kernel deal_rest(const Plan& plan, const Kernel& kernel) {
  Kernel result = kernel;
  std::int64_t most = largest_tile(kernel);
  if (!stated_block_shape(kernel) && most > 1) result.warps = warps_for(most);
  BlockShape block = stated_block_shape(result).value_or(BlockShape{});
  std::vector<Buffer> buffers = buffers_in(kernel.body);
  std::vector<std::string> by_engine;
  walk(kernel.body, [&](const Stmt& stmt) {
    const Pipe* pipe = as<Pipe>(stmt);
    if (pipe && pipe->mechanism.starts_with("tma")) by_engine.insert(by_engine.end(), pipe->buffers.begin(), pipe->buffers.end());
    return true;
  });
  result.body = rewrite_statements(kernel.body, [&](const Stmt& stmt) -> Block {
    if (const Copy* old = as<Copy>(stmt); old && !old->deal) {
      bool has_deal = false;  // by its registers, or it is moved by the copy engine
      for (const std::string& name : by_engine) has_deal |= name == old->target.buffer || name == old->source.buffer;
      for (const Buffer& buffer : buffers)
        has_deal |= buffer.space == Space::Register && (buffer.name == old->target.buffer || buffer.name == old->source.buffer);
      if (has_deal) return {stmt};
      Copy copy = *old;
      copy.deal = choose_copy_deal(plan, *old, buffers, block);
      return {make_stmt(std::move(copy), stmt->span)};
    }
    return {stmt};
  });
  return result;
}

}  // namespace

Plan bind_default(const Plan& plan, const Target& target) {
  Plan result = plan;
  for (const Kernel* kernel : kernels_of(plan))
    if (kernel->stage == Stage::Tile)
      if (const Loop* outer = parallel_loop(kernel->body)) result = bind_parallel(result, kernel->name, *outer, target);
  return map_kernels(result, [&](const Kernel& kernel) { return kernel.stage == Stage::Tile ? deal_rest(result, kernel) : kernel; });
}

}  // namespace tilewright
