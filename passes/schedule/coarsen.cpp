// coarsen: a block takes several neighbouring tiles along a loop, a thread several of their elements.
//
//   coarsen i 8 by 4
//   before   grid i.block in ceildiv(M, 16) { each i in 16 on (…) { reg acc; acc = 0.0
//              serial k in K { acc = fma(A[i.block*16 + i, k], …, acc) where … }; C[i.block*16 + i, …] = acc where … } }
//   after    grid i.block in ceildiv(M, 128) { each i in 16 on (…) { reg acc: f32[i.coarse 2, i.by 4]
//              unroll i.coarse in 2, i.by in 4 { acc[i.coarse, i.by] = 0.0 }
//              serial k in K { unroll i.coarse in 2, i.by in 4 {
//                acc[i.coarse, i.by] = fma(A[i.block*128 + (i.coarse*16 + i)*4 + i.by, k], …) where … } }
//              unroll i.coarse in 2, i.by in 4 { C[…] = acc[i.coarse, i.by] where … } } }
//
// The parts stand at the leaves, inside the leaf's serial loops, unless the bounds of such a loop differ between the
// elements. Staged tiles and register buffers grow with the tile. `by 4` makes 4 neighbours a thread's own; without it
// the elements of a thread lie a tile apart.
//
// Needs: the loop bound to threads, its tiles on the grid. Leaves alone: which threads there are.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "passes/affine.h"
#include "passes/linear_form.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/predicate.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

struct Coarsening {
  LineName loop;
  LineNumber factor;
  std::int64_t by = 1;
};

// One loop of one kernel.
class Coarsener {
 public:
  Coarsener(const Plan& plan, const Coarsening& line)
      : divisors_(divisors_of(plan.facts)), line_(line), element_(line.loop.text) {}

  Kernel apply(const Kernel& kernel) {
    find_loops(kernel.body);
    std::int64_t factor = line_.factor.value;
    std::int64_t tiles = factor / line_.by;
    if (tiles > 1) parts_.push_back(counted(element_ + ".coarse", tiles, line_.loop.span));
    if (line_.by > 1) parts_.push_back(counted(element_ + ".by", line_.by, line_.loop.span));
    for (const Axis& part : parts_)
      if (has_loop(kernel.body, part.name))
        throw UserError(line_.loop.span, fmt::format("`{}` is coarsened already", element_));

    Kernel result = kernel;
    Expr last;  // where the loop ends, if a larger tile may go past it
    result.body = with_larger_grid(kernel.body, last);
    note_block_buffers(result.body);
    Expr local = tiles > 1 ? var(parts_[0].name) * threads_ + var(element_) : var(element_);
    if (line_.by > 1) local = local * line_.by + var(element_ + ".by");
    replacements_ = {{grid_, var(grid_) * factor}, {element_, local}};
    if (last && !has_predicate(result.body, last)) result.body = with_end(result.body, last);
    result.body = grown(result.body);
    return result;
  }

 private:
  // The grid loop of the tiles and the number of threads along the loop.
  void find_loops(const Block& body) {
    auto found = find_loop(body, element_);
    if (found->kind != LoopKind::Each)
      throw UserError(
          line_.loop.span,
          fmt::format("`{}` is `{}`; `coarsen` needs a loop that is bound to threads", element_, name_of(found->kind)),
          "`tile` and `bind` it first");
    threads_ = constant_extent(found->axis).value_or(1);
    std::vector<std::string> levels;
    for (const std::string& name : loop_names(body)) {
      if (bare_name(name) != bare_name(element_) || name == element_ || is_part(name)) continue;
      if (find_loop(body, name)->kind == LoopKind::Grid) grid_ = name;
      levels.push_back(name);
    }
    if (grid_.empty())
      throw UserError(
          line_.loop.span,
          fmt::format("no loop over tiles of `{}` is on the grid; there is nothing to take together", element_));
    walk(body, [&](const Stmt& stmt) {
      if (const If* branch = as<If>(stmt); branch && uses_var(branch->condition, grid_) && has_loop(branch->then_body, element_))
        throw UserError(line_.loop.span, fmt::format("`{}` is peeled; its whole tiles would be others", grid_), "put `coarsen` before `peel`");
      if (const Fold* fold = as<Fold>(stmt))
        throw UserError(line_.loop.span, fmt::format("threads share the reduction into `{}` already, an element of it each", fold->target.buffer), "put `coarsen` before `split`");
      return true;
    });
    if (levels.size() > 1)
      throw UserError(line_.loop.span, fmt::format("`{}` is tiled at several levels ({}); `coarsen` needs one",
                                                   element_, in_words(levels)));
  }

  bool divides(const Expr& extent, std::int64_t size) const { return known_divisor(extent, divisors_) % size == 0; }

  Block with_larger_grid(const Block& body, Expr& last) const {
    std::int64_t factor = line_.factor.value;
    return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
      const Loop* loop = as<Loop>(stmt);
      if (!loop || loop->kind != LoopKind::Grid) return {stmt};
      Loop node = *loop;
      for (Axis& axis : node.axes) {
        if (axis.name != grid_) continue;
        const Call* count = as<Call>(axis.hi);
        bool by_threads = count && count->function == "ceildiv" && integer_value(count->arguments[1]) == threads_;
        if (by_threads) {
          if (!divides(count->arguments[0], threads_ * factor)) last = count->arguments[0];
          axis.hi = ceildiv(count->arguments[0], integer(threads_ * factor));
        } else {
          if (!divides(axis.hi, factor)) last = tidy(axis.hi * threads_);
          axis.hi = ceildiv(axis.hi, integer(factor));
        }
      }
      return {make_stmt(std::move(node), stmt->span)};
    });
  }

  // Whether statements say already which elements exist, as `tile` has put it: another bound on the element, such as that
  // of a read beside it, does not.
  bool has_predicate(const Block& body, const Expr& last) const {
    bool found = false;
    const auto look = [&](const Expr& condition) {
      const Binary* bound = as<Binary>(condition);
      found |= bound && bound->op == BinaryOp::Lt && bound->lhs->dtype == Dtype::Index && is_same_index(bound->lhs - bound->rhs, var(grid_) * threads_ + var(element_) - last);
    };
    walk(body, [&](const Stmt& stmt) {
      if (const Store* store = as<Store>(stmt)) std::for_each(store->where.begin(), store->where.end(), look);
      if (const If* branch = as<If>(stmt)) look(branch->condition);
      return !found;
    });
    return found;
  }

  Block with_end(const Block& body, const Expr& last) const {
    Expr element = var(grid_) * threads_ + var(element_);
    return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
      if (!is_own_each(stmt)) return {stmt};
      return {
          map_bodies(stmt, [&](const Block& inner) { return with_predicate(inner, element_, less(element, last)); })};
    });
  }

  bool is_own_each(const Stmt& stmt) const {
    const Loop* loop = as<Loop>(stmt);
    return loop && loop->kind == LoopKind::Each &&
           std::any_of(loop->axes.begin(), loop->axes.end(), [&](const Axis& axis) { return axis.name == element_; });
  }

  // Register buffers of the block over the loop: where the loop's axis stands in each.
  void note_block_buffers(const Block& body) {
    walk(body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->space == Space::Register)
        registers_.insert(buffer->name);
      return true;
    });
    walk(body, [&](const Stmt& stmt) {
      if (const Loop* loop = as<Loop>(stmt); loop && loop->kind == LoopKind::Each) return false;
      const Buffer* buffer = as<Buffer>(stmt);
      if (buffer && buffer->space == Space::Register)
        for (std::size_t n = 0; n < buffer->axes.size(); ++n)
          if (buffer->axes[n].name == element_) own_axis_[buffer->name] = n;
      if (const Copy* copy = as<Copy>(stmt)) note_growth(*copy);
      return true;
    });
  }

  // By how much the axes of a staged tile grow: what its copy moves on when the grid loop does.
  void note_growth(const Copy& copy) {
    for (std::size_t d = 0; d < copy.source.index.size(); ++d) {
      auto moved = linear_in(copy.source.index[d], grid_);
      if (moved && moved->coefficient == 0) continue;
      std::size_t axis = copy.target.index.size();
      for (std::size_t n = 0; n < copy.target.index.size(); ++n)
        if (const Var* place = as<Var>(copy.target.index[n]); place && uses_var(copy.source.index[d], place->name))
          axis = n;
      if (!moved || moved->coefficient < 0 || axis == copy.target.index.size())
        throw UserError(line_.loop.span,
                        fmt::format("the tile `{}` does not move along with `{}` in a way that it could grow",
                                    copy.target.buffer, grid_),
                        "put `coarsen` before `stage`");
      growth_[copy.target.buffer].push_back({axis, moved->coefficient * (line_.factor.value - 1)});
    }
  }

  Block grown(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) {
      if (const Buffer* buffer = as<Buffer>(stmt)) {
        result.push_back(make_stmt(grown(*buffer), stmt->span));
      } else if (is_own_each(stmt)) {
        Loop node = *as<Loop>(stmt);
        names_ = varying_names(node.body, {element_});
        enlarged_.clear();
        for (const auto& [name, axis] : own_axis_) enlarged_.insert(name), names_.insert(name);
        node.body = sink(node.body);
        result.push_back(make_stmt(std::move(node), stmt->span));
      } else {
        Stmt moved = map_expressions(stmt, [&](const Expr& expr) { return replace(expr, {replacements_[0]}); });
        result.push_back(map_bodies(moved, [&](const Block& inner) { return grown(inner); }));
      }
    }
    return result;
  }

  Buffer grown(const Buffer& buffer) const {
    Buffer result = buffer;
    if (own_axis_.count(buffer.name)) {
      for (const Axis& part : parts_) append_part(result, part);
      return result;
    }
    auto found = growth_.find(buffer.name);
    if (found == growth_.end()) return result;
    for (const auto& [axis, amount] : found->second) result.axes[axis].extent += amount;
    auto layout = resized_layout(*buffer.layout, buffer.axes, result.axes);
    if (!layout)
      throw UserError(line_.loop.span, fmt::format("the swizzled tile `{}` cannot grow", buffer.name),
                      "put `coarsen` before `stage`");
    result.layout = layout;
    return result;
  }

  // One more axis in registers, the fastest; the others move apart.
  static void append_part(Buffer& buffer, const Axis& part) {
    std::int64_t extent = constant_extent(part).value_or(1);
    buffer.axes.push_back({part.name, extent});
    if (!buffer.layout) return;
    for (AxisLayout& axis : buffer.layout->axes)
      for (Factor& factor : axis.factors)
        if (factor.place == Place::Reg) factor.stride *= extent;
    buffer.layout->axes.push_back({part.name, {Factor{extent, Place::Reg, 1}}});
  }

  bool differs(const Expr& expr) const { return expr && is_varying(expr, {element_}, names_); }

  // ---- Inside an `each`: the parts sink to the statements that differ between the elements.
  Block sink(const Block& body) {
    Block result;
    for (std::size_t n = 0; n < body.size(); ++n) {
      const Stmt& stmt = body[n];
      if (const Let* let = as<Let>(stmt); let && differs(let->value)) {
        if (reads_memory(let->value, {}))
          throw UserError(line_.loop.span, fmt::format("`let {}` reads memory and differs between the elements of `{}`",
                                                       let->name, element_));
        Block rest =
            substitute(Block(body.begin() + static_cast<std::ptrdiff_t>(n) + 1, body.end()), {{let->name, let->value}});
        Block sunk = sink(rest);
        result.insert(result.end(), sunk.begin(), sunk.end());
        return result;
      }
      result.push_back(sink(stmt));
    }
    return result;
  }

  Stmt sink(const Stmt& stmt) {
    if (const Buffer* buffer = as<Buffer>(stmt)) {
      if (!names_.count(buffer->name)) return stmt;
      enlarged_.insert(buffer->name);
      Buffer node = *buffer;
      for (const Axis& part : parts_) append_part(node, part);
      return make_stmt(std::move(node), stmt->span);
    }
    if (const Loop* loop = as<Loop>(stmt)) {
      bool is_leaf =
          std::all_of(loop->axes.begin(), loop->axes.end(), [](const Axis& axis) { return is_part(axis.name); });
      bool apart = std::any_of(loop->axes.begin(), loop->axes.end(), [&](const Axis& axis) {
        return differs(axis.lo) || differs(axis.hi) || differs(axis.step);
      });
      if (is_leaf ? is_needed({stmt}) : apart) return wrapped(stmt);
    }
    if (const If* branch = as<If>(stmt); branch && differs(branch->condition)) return wrapped(stmt);
    if (const Store* store = as<Store>(stmt); store && is_needed({stmt})) return wrapped(stmt);
    Stmt moved = map_expressions(stmt, [&](const Expr& expr) { return replace(expr, {replacements_[0]}); });
    return map_bodies(moved, [&](const Block& inner) { return sink(inner); });
  }

  // Whether a leaf must run once an element: it writes memory, or what differs between the elements.
  bool is_needed(const Block& body) const {
    bool needed = false;
    walk(body, [&](const Stmt& stmt) {
      const Store* store = as<Store>(stmt);
      if (store) needed |= names_.count(store->target.buffer) > 0 || !is_register(store->target.buffer);
      return true;
    });
    return needed;
  }

  bool is_register(const std::string& name) const { return registers_.count(name) > 0; }

  Stmt wrapped(const Stmt& stmt) const {
    Block body = {stmt};
    std::vector<Axis> axes;
    const Loop* nest = as<Loop>(stmt);
    if (nest && nest->kind == LoopKind::Unroll &&
        std::all_of(nest->axes.begin(), nest->axes.end(), [](const Axis& axis) { return is_part(axis.name); })) {
      axes = nest->axes;
      body = nest->body;
    }
    axes.insert(axes.end(), parts_.begin(), parts_.end());
    return make_stmt(Loop{LoopKind::Unroll, std::move(axes), std::nullopt, with_parts(body)}, stmt->span);
  }

  Access with_parts(const Access& access) const {
    if (!enlarged_.count(access.buffer)) return access;
    Access result = access;
    if (auto own = own_axis_.find(access.buffer); own != own_axis_.end()) result.index[own->second] = var(element_);
    for (const Axis& part : parts_) result.index.push_back(var(part.name));
    return result;
  }

  Block with_parts(const Block& body) const {
    Block moved = rewrite_expressions(replace(body, replacements_), [&](const Expr& expr) {
      const Load* access = as<Load>(expr);
      return access ? load(with_parts(access->access), expr->dtype, expr->span) : expr;
    });
    return rewrite_statements(moved, [&](const Stmt& stmt) -> Block {
      const Store* store = as<Store>(stmt);
      if (!store) return {stmt};
      Store node = *store;
      node.target = with_parts(node.target);
      return {make_stmt(std::move(node), stmt->span)};
    });
  }

  struct Growth {
    std::size_t axis;
    std::int64_t amount;
  };

  Divisors divisors_;
  const Coarsening& line_;
  std::string element_;  // the loop of the threads
  std::string grid_;     // the loop of the tiles
  std::int64_t threads_ = 1;
  std::vector<Axis> parts_;
  std::vector<std::pair<std::string, Expr>> replacements_;  // of the grid loop, of the element
  std::map<std::string, std::size_t> own_axis_;
  std::map<std::string, std::vector<Growth>> growth_;
  std::set<std::string> registers_;
  // Of the `each` at hand:
  std::set<std::string> names_;
  std::set<std::string> enlarged_;
};

}  // namespace

Plan coarsen(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  std::vector<Coarsening> parts;
  std::vector<LineName> loops;
  do {
    Coarsening part;
    part.loop = reader.name("the name of a loop");
    part.factor = reader.number("a number of tiles", 2);
    if (reader.accept("by")) {
      LineNumber by = reader.number("a number of neighbours");
      part.by = by.value;
      if (part.factor.value % part.by != 0)
        throw UserError(by.span, fmt::format("{} neighbours do not divide the {} elements of a thread", part.by,
                                             part.factor.value));
    }
    loops.push_back(part.loop);
    parts.push_back(std::move(part));
  } while (reader.accept(","));
  reader.end();
  return map_kernels_with(plan, line, loops, [&](const Kernel& kernel) {
    Kernel result = kernel;
    for (const Coarsening& part : parts) result = Coarsener(plan, part).apply(result);
    require_shared_fits(result.body, target, line.span, "coarsen by less, or make the tile smaller");
    require_registers_fit(result, target, line.span, "coarsen by less, or make the tile smaller");
    return result;
  });
}

}  // namespace tilewright
