// unroll: write a serial loop out.
//
//   unroll k                                unroll k 4
//   before   serial k in 16 { … k … }       serial k in 16 { … k … }
//   after    unroll k in 16 { … k … }       serial k.unroll in 4 { unroll k in 4 { … k.unroll*4 + k … } }
//
// Needs: a serial loop of a thread's own, with constant bounds; with a number, one that divides its extent.
#include <fmt/format.h>

#include <algorithm>

#include "passes/loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

constexpr std::int64_t most_iterations = 1024;

class Unrolling {
 public:
  Unrolling(LineName name, std::optional<LineNumber> factor) : name_(std::move(name)), factor_(factor) {}

  Block apply(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      bool here = loop && std::any_of(loop->axes.begin(), loop->axes.end(),
                                      [&](const Axis& axis) { return axis.name == name_.text; });
      result.push_back(here ? unrolled(*loop, stmt->span)
                            : map_bodies(stmt, [&](const Block& inner) { return apply(inner); }));
    }
    return result;
  }

 private:
  Stmt unrolled(const Loop& loop, Span span) const {
    if (loop.kind != LoopKind::Serial)
      throw UserError(name_.span,
                      fmt::format("`{}` is `{}`; `unroll` needs a serial loop", name_.text, name_of(loop.kind)));
    walk(loop.body, [&](const Stmt& stmt) {
      const Loop* inner = as<Loop>(stmt);
      if (as<Copy>(stmt) || as<Verb>(stmt) || (inner && inner->kind == LoopKind::Each))
        throw UserError(name_.span,
                        fmt::format("`{}` has the work of a whole block in it; `unroll` takes a loop of a thread's own",
                                    name_.text));
      return true;
    });
    std::size_t at = 0;
    while (loop.axes[at].name != name_.text) ++at;
    const Axis& axis = loop.axes[at];
    auto extent = constant_extent(axis);
    if (!extent)
      throw UserError(
          name_.span,
          fmt::format("`{}` has the extent `{}`; `unroll` needs constant bounds", name_.text, print(extent_of(axis))),
          fmt::format("`tile` it before, as in `tile block {} 16`", name_.text));
    if (factor_ && *extent % factor_->value != 0)
      throw UserError(factor_->span,
                      fmt::format("{} does not divide the {} iterations of `{}`", factor_->value, *extent, name_.text));
    std::int64_t written_out = factor_ ? factor_->value : *extent;
    if (written_out > most_iterations)
      throw UserError(
          name_.span,
          fmt::format("`{}` would be written out {} times, more than {}", name_.text, written_out, most_iterations),
          fmt::format("`unroll {} 16` writes 16 of them", name_.text));

    // Around and inside of the loop, its nest stays serial.
    auto middle = loop.axes.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<Axis> outer(loop.axes.begin(), middle);
    std::vector<Axis> rest(middle + 1, loop.axes.end());
    Block body =
        rest.empty() ? loop.body : Block{make_stmt(Loop{LoopKind::Serial, rest, std::nullopt, loop.body}, span)};
    Axis inner = axis;
    if (factor_ && factor_->value < *extent) {
      std::string groups = name_.text + ".unroll";
      Expr lo = axis.lo ? axis.lo : integer(0);
      body = replace(body, {{axis.name, tidy(lo + var(groups) * factor_->value + var(axis.name))}});
      inner = counted(axis.name, factor_->value, axis.span);
      outer.push_back(counted(groups, *extent / factor_->value, axis.span));
    }
    Stmt result = make_stmt(Loop{LoopKind::Unroll, {inner}, std::nullopt, std::move(body)}, span);
    if (outer.empty()) return result;
    return make_stmt(Loop{LoopKind::Serial, std::move(outer), std::nullopt, {result}}, span);
  }

  LineName name_;
  std::optional<LineNumber> factor_;
};

}  // namespace

Plan unroll(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  LineName name = reader.name("the name of a loop");
  std::optional<LineNumber> factor;
  if (!reader.at_end()) factor = reader.number("a number of iterations");
  reader.end();
  return map_kernels_with(plan, line, {name}, [&](const Kernel& kernel) {
    Kernel result = kernel;
    result.body = Unrolling(name, factor).apply(kernel.body);
    return result;
  });
}

}  // namespace tilewright
