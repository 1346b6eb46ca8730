// peel: whole tiles lose their bounds checks, the last one keeps them.
//
//   peel k.block
//   before   serial k.block in ceildiv(K, 16) { … where k.block*16 + k < K }
//   after    serial k.block in K / 16 { … }
//            serial k.block in K / 16 .. ceildiv(K, 16) { … where k.block*16 + k < K }
//
//   peel i.block, on the grid
//   before   grid i.block in ceildiv(M, 16) { … where i.block*16 + i < M }
//   after    grid i.block in ceildiv(M, 16) { if i.block < M / 16 { … } else { … where i.block*16 + i < M } }
//
// A copy loses its fill once every index of its source is known to lie inside, so after all its loops are peeled.
//
// Needs: a loop over tiles whose last one may be partial. Peel before `pipeline`: a pipe belongs to one loop.
#include <fmt/format.h>

#include <algorithm>

#include "passes/affine.h"
#include "passes/linear_form.h"
#include "passes/loops.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

// Where tile < extent / size: tile*size + e < extent for every e below size.
struct WholeTiles {
  std::string tile;
  std::int64_t size = 1;
  Expr extent;
};

// Removes the checks that whole tiles make superfluous.
class CheckRemoval {
 public:
  CheckRemoval(const Plan& plan, const Block& kernel_body) : plan_(plan) {
    for (const Dim& dim : plan.dims) ranges_[dim.name] = Interval{0, std::nullopt};
    walk(kernel_body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt))
        for (const BufferAxis& axis : buffer->axes)
          ranges_[buffer->name + "." + axis.name] = Interval{0, axis.extent - 1};
      return true;
    });
  }

  Block apply(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) result.push_back(apply(stmt));
    return result;
  }

 private:
  Stmt apply(const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) {
      Store node = *store;
      std::erase_if(node.where, [&](const Expr& condition) { return always_holds(condition); });
      node.target = without_rule(node.target);
      node.value = without_rules(node.value);
      return make_stmt(std::move(node), stmt->span);
    }
    if (const Copy* copy = as<Copy>(stmt)) {
      Copy node = *copy;
      std::erase_if(node.where, [&](const Expr& condition) { return always_holds(condition); });
      if (node.where.empty()) node.source = without_rule(node.source);
      return make_stmt(std::move(node), stmt->span);
    }
    std::size_t outside = known_.size();
    if (const If* branch = as<If>(stmt)) {
      Block else_body = apply(branch->else_body);
      if (auto tiles = whole_tiles(branch->condition)) known_.push_back(*tiles);
      Block then_body = apply(branch->then_body);
      known_.resize(outside);
      return make_stmt(If{branch->condition, std::move(then_body), std::move(else_body)}, stmt->span);
    }
    if (const Loop* loop = as<Loop>(stmt))
      for (const Axis& axis : loop->axes) {
        Interval lo = axis.lo ? interval_of(axis.lo, ranges_) : Interval{0, 0};
        Interval hi = interval_of(axis.hi, ranges_);
        ranges_[axis.name] = Interval{lo.lo, hi.hi ? std::optional(*hi.hi - 1) : std::nullopt};
        bool from_zero = !axis.lo || is_integer_constant(axis.lo, 0);
        if (auto tiles = whole_tiles(less(var(axis.name), axis.hi)); tiles && from_zero) known_.push_back(*tiles);
      }
    Stmt result = map_bodies(stmt, [&](const Block& inner) { return apply(inner); });
    known_.resize(outside);
    return result;
  }

  // `tile < extent / size`
  static std::optional<WholeTiles> whole_tiles(const Expr& condition) {
    const Binary* bound = as<Binary>(condition);
    const Var* tile = bound && bound->op == BinaryOp::Lt ? as<Var>(bound->lhs) : nullptr;
    const Binary* count = tile ? as<Binary>(bound->rhs) : nullptr;
    if (!count || count->op != BinaryOp::Div) return std::nullopt;
    auto size = integer_value(count->rhs);
    if (!size || *size <= 0) return std::nullopt;
    return WholeTiles{tile->name, *size, count->lhs};
  }

  bool is_below(const Expr& index, const Expr& limit) const {
    if (decide(less(index, limit), ranges_) == true) return true;
    LinearForm form = linear_form(index);
    for (const WholeTiles& tiles : known_) {
      if (!is_same_index(tiles.extent, limit)) continue;
      LinearForm inside = minus(form, linear_form(var(tiles.tile) * tiles.size));
      Expr rest = integer(inside.constant);
      for (const LinearForm::Term& term : inside.terms) rest = rest + term.atom * term.coefficient;
      Interval range = interval_of(rest, ranges_);
      if (!uses_var(rest, tiles.tile) && range.hi && *range.hi < tiles.size) return true;
    }
    return false;
  }

  bool always_holds(const Expr& condition) const {
    const Binary* bound = as<Binary>(condition);
    return bound && bound->op == BinaryOp::Lt && bound->lhs->dtype == Dtype::Index && is_below(bound->lhs, bound->rhs);
  }

  // The access without its rule, if every index is known to lie inside.
  Access without_rule(const Access& access) const {
    auto tensor = find_tensor(plan_, access.buffer);
    if (access.rule.kind == Rule::Kind::None || access.rule.kind == Rule::Kind::Check || !tensor) return access;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      Interval range = interval_of(access.index[d], ranges_);
      if (access.index[d]->dtype != Dtype::Index || !range.lo || *range.lo < 0 ||
          !is_below(access.index[d], tensor->shape[d]))
        return access;
    }
    Access result = access;
    result.rule = Rule{};
    return result;
  }

  Expr without_rules(const Expr& expr) const {
    return rewrite(expr, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      return access ? load(without_rule(access->access), node->dtype, node->span) : node;
    });
  }

  const Plan& plan_;
  Ranges ranges_;
  std::vector<WholeTiles> known_;
};

class Peeling {
 public:
  explicit Peeling(LineName name) : name_(std::move(name)) {}

  Block apply(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      auto axis = loop ? std::find_if(loop->axes.begin(), loop->axes.end(),
                                      [&](const Axis& candidate) { return candidate.name == name_.text; })
                       : std::vector<Axis>::const_iterator{};
      if (!loop || axis == loop->axes.end()) {
        result.push_back(map_bodies(stmt, [&](const Block& inner) { return apply(inner); }));
      } else if (loop->kind == LoopKind::Serial && loop->axes.size() == 1) {
        for (Stmt& part : split(*loop, stmt->span)) result.push_back(std::move(part));
      } else if (loop->kind == LoopKind::Grid) {
        result.push_back(branched(stmt, *axis));
      } else {
        throw UserError(name_.span,
                        fmt::format("`{}` is `{}`; `peel` takes a serial loop over tiles or one of the grid",
                                    name_.text, name_of(loop->kind)));
      }
    }
    return result;
  }

 private:
  // extent / size of a loop in ceildiv(extent, size).
  Expr whole(const Axis& axis) const {
    const Call* count = as<Call>(axis.hi);
    bool from_zero = !axis.lo || is_integer_constant(axis.lo, 0);
    if (!count || count->function != "ceildiv" || !from_zero)
      throw UserError(name_.span,
                      fmt::format("`{}` in `{}` has no partial last tile to peel", axis.name, print(axis.hi)),
                      "`peel` takes a loop over tiles, as `k.block` of `tile block k 16`");
    return binary(BinaryOp::Div, count->arguments[0], count->arguments[1]);
  }

  void refuse_pipes(const Block& body) const {
    walk(body, [&](const Stmt& stmt) {
      if (as<Verb>(stmt))
        throw UserError(name_.span, fmt::format("`{}` has a pipeline in it; put `peel` before `pipeline`", name_.text));
      return true;
    });
  }

  Block split(const Loop& loop, Span span) const {
    refuse_pipes(loop.body);
    Loop interior = loop;
    Loop edge = loop;
    interior.axes[0].hi = whole(loop.axes[0]);
    edge.axes[0].lo = interior.axes[0].hi;
    // Of a negative extent, as a scan's may be, there are no tiles.
    Ranges ranges;
    for (const std::string& name : variables_of(edge.axes[0].lo)) ranges[name] = Interval{0, std::nullopt};
    if (!interval_of(edge.axes[0].lo, ranges).lo.has_value() || *interval_of(edge.axes[0].lo, ranges).lo < 0)
      edge.axes[0].lo = binary(BinaryOp::Max, edge.axes[0].lo, integer(0));
    return {make_stmt(std::move(interior), span), make_stmt(std::move(edge), span)};
  }

  Stmt branched(const Stmt& grid, const Axis& axis) const {
    Expr condition = less(var(axis.name), whole(axis));
    return map_bodies(grid, [&](const Block& body) {
      return map_block_body(body, [&](const Block& block) {
        refuse_pipes(block);
        Block declarations;
        Block rest;
        for (const Stmt& stmt : block) (as<Buffer>(stmt) ? declarations : rest).push_back(stmt);
        Span span = rest.empty() ? grid->span : rest[0]->span;
        declarations.push_back(make_stmt(If{condition, rest, rest}, span));
        return declarations;
      });
    });
  }

  LineName name_;
};

}  // namespace

Plan peel(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  std::vector<LineName> loops;
  do loops.push_back(reader.name("the name of a loop"));
  while (reader.accept(","));
  reader.end();
  return map_kernels_with(plan, line, loops, [&](const Kernel& kernel) {
    Kernel result = kernel;
    for (const LineName& name : loops) result.body = Peeling(name).apply(result.body);
    result.body = CheckRemoval(plan, result.body).apply(result.body);
    return result;
  });
}

}  // namespace tilewright
