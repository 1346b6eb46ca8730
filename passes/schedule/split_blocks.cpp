// `split d block 65536`: partial results of blocks in a temporary, and a kernel that reduces them; see split.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "passes/schedule/accumulator.h"
#include "passes/schedule/producer.h"
#include "passes/schedule/split.h"
#include "passes/schedule/tiling.h"

namespace tilewright {

namespace {

struct TwoKernels {
  Temp partial;
  Kernel first;   // partial results
  Kernel second;  // their reduction
};

class BlockSplit {
 public:
  BlockSplit(const Plan& plan, const Kernel& kernel, const LineName& loop, LineNumber terms)
      : plan_(plan), kernel_(kernel), loop_(loop), terms_(terms), names_(plan), tiles_(loop.text + ".part") {}

  TwoKernels run() {
    const NaiveKernel naive = naive_kernel(without_chunks_of(kernel_, loop_.text), loop_.span, "split");
    const std::size_t nest = nest_in(naive.body);
    const Accumulator accumulator = accumulator_of(naive.body, nest, loop_);
    require_independent(naive, nest, accumulator);
    const Axis axis = find_loop(naive.body, loop_.text)->axis;
    const Expr count = ceildiv(extent_of(axis), integer(terms_.value));
    require_dims(count);
    const Axis parts{tiles_, integer(0), count, {}, axis.span};
    const Span span = naive.body[nest]->span;

    Temp partial{names_.fresh(kernel_.name + ".part"), accumulator.buffer.dtype, {}};
    Access place{partial.name, {}, {}, span};
    std::vector<Axis> axes = naive.axes;
    axes.push_back(parts);
    for (const Axis& outer : naive.axes) {
      if ((outer.lo && !is_integer_constant(outer.lo, 0)) || outer.step)
        throw UserError(loop_.span, fmt::format("`{}` does not count from 0 by 1, so there is no tensor of partial results over it", outer.name));
      require_dims(outer.hi);
      partial.shape.push_back(outer.hi);
      place.index.push_back(var(outer.name));
    }
    partial.shape.push_back(count);
    place.index.push_back(var(tiles_));

    const Access acc{accumulator.buffer.name, {}, {}, span};
    const Stmt declaration = make_stmt(accumulator.buffer, span);
    const Stmt start = naive.body[accumulator.start];
    Block first{declaration, start, tile_of(naive.body[nest])};
    first.push_back(make_stmt(Store{place, load(acc, partial.dtype), {}, std::nullopt}, span));
    Kernel of_parts = kernel_;
    of_parts.name = partial.name;

    Block second = naive.body;
    const Stmt step = make_stmt(Store{acc, combine(accumulator.op, load(acc, partial.dtype), load(place, partial.dtype)), {}, std::nullopt}, span);
    second[nest] = make_stmt(Loop{LoopKind::Serial, {parts}, std::nullopt, {step}}, span);
    return {partial, with_body(of_parts, axes, first, span), with_body(kernel_, naive.axes, second, naive.span)};
  }

 private:
  std::size_t nest_in(const Block& body) const {
    for (std::size_t n = 0; n < body.size(); ++n)
      if (has_loop({body[n]}, loop_.text)) return n;
    throw UserError(loop_.span, fmt::format("`{}` is an index of the result; `split` takes one that is reduced", loop_.text));
  }

  // Blocks that compute partial results have nothing but the tensors and the indices of the result.
  void require_independent(const NaiveKernel& naive, std::size_t nest, const Accumulator& accumulator) const {
    for (std::size_t n = 0; n < nest; ++n) {
      const Buffer* buffer = as<Buffer>(naive.body[n]);
      const Let* let = as<Let>(naive.body[n]);
      const bool is_used = (buffer && buffer->name != accumulator.buffer.name && mentions_buffer({naive.body[nest]}, buffer->name)) ||
                           (let && mentions_var({naive.body[nest]}, let->name));
      if (is_used)
        throw UserError(loop_.span, fmt::format("the terms over `{}` need `{}`, which the kernel computes before them", loop_.text, buffer ? buffer->name : let->name),
                        "give it a `let` of its own, which is a kernel of its own");
    }
  }

  void require_dims(const Expr& extent) const {
    const std::set<std::string> used = variables_of(extent);
    const bool is_of_dims = std::all_of(used.begin(), used.end(), [&](const std::string& name) {
      return std::any_of(plan_.dims.begin(), plan_.dims.end(), [&](const Dim& dim) { return dim.name == name; });
    });
    if (!is_of_dims || reads_memory(extent, {}))
      throw UserError(loop_.span, fmt::format("there are `{}` partial results, which no size says", print(extent)));
  }

  // The statement with one tile of the loop in place of all of it.
  Stmt tile_of(const Stmt& nest) const {
    Kernel alone = kernel_;
    alone.body = {nest};
    alone = tile_loop(plan_, alone, "part", loop_, terms_);
    return rewrite_statements(alone.body, [&](const Stmt& stmt) -> Block {
      const Loop* loop = as<Loop>(stmt);
      return loop && loop->axes.back().name == tiles_ ? without_last_axis(*loop, stmt->span) : Block{stmt};
    })[0];
  }

  static Block without_last_axis(const Loop& loop, Span span) {
    if (loop.axes.size() == 1) return loop.body;
    Loop node = loop;
    node.axes.pop_back();
    return {make_stmt(std::move(node), span)};
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const LineName& loop_;
  LineNumber terms_;
  Names names_;
  std::string tiles_;
};

}  // namespace

Plan split_among_blocks(const Plan& plan, const ScheduleLine& line, const LineName& loop, LineNumber terms) {
  std::map<std::string, TwoKernels> made;
  Plan mapped = map_kernels_with(plan, line, {loop}, [&](const Kernel& kernel) {
    TwoKernels two = BlockSplit(plan, kernel, loop, terms).run();
    made.emplace(kernel.name, two);
    return two.second;
  });
  Plan result = mapped;
  result.steps.clear();
  for (const Step& step : mapped.steps) {
    const Kernel* kernel = std::get_if<Kernel>(&step);
    auto two = kernel ? made.find(kernel->name) : made.end();
    if (two != made.end()) {
      result.temps.push_back(two->second.partial);
      result.steps.emplace_back(two->second.first);
    }
    result.steps.push_back(step);
  }
  return result;
}

}  // namespace tilewright
