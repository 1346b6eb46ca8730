// cluster: neighbouring blocks run together, and an operand that they share is fetched once for all of them.
//
//   cluster i.block 2 multicast B
//   before   pipe p: As, Bs slots 4 via tma in flight 1 scope block
//            grid i.block in ceildiv(M, 128), j.block … { … copy As[…] <- A[i.block*128 + As.i, …; 0.0]
//              copy Bs[…] <- B[k.block*64 + Bs.k, …; 0.0] … }
//   after    pipe p: As, Bs slots 4 via tma in flight 1 scope cluster
//            grid i.block in ceildiv(M, 256), j.block … { cluster i.cluster in 2 {
//              … copy As[…] <- A[i.block*256 + i.cluster*128 + As.i, …; 0.0]
//              copy Bs[…] <- B[k.block*64 + Bs.k, …; 0.0] multicast i.cluster … } }
//
// `i.block` counts clusters from here on. A block past the end computes filled rows and stores nothing, but takes part
// in every verb. A multicast copy still says "the whole tile": only expansion slices it.
//
// Needs: a grid loop, sm_90 or later; for `multicast` an operand staged through a pipeline via tma that does not depend
// on the loop; stores that are bounded in it, or a number of tiles that is known to be a multiple.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "passes/affine.h"
#include "passes/loops.h"
#include "passes/schedule/kernel_threads.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

class Clustering {
 public:
  Clustering(const Plan& plan, Names& names, LineName loop, LineNumber size, std::vector<LineName> shared)
      : plan_(plan),
        loop_(std::move(loop)),
        size_(size),
        shared_(std::move(shared)),
        part_(names.fresh(bare_name(loop_.text) + ".cluster")) {}

  Kernel apply(const Kernel& kernel) {
    auto found = find_loop(kernel.body, loop_.text);
    if (found->kind != LoopKind::Grid)
      throw UserError(loop_.span,
                      fmt::format("`{}` is `{}`; a cluster is made of neighbouring blocks along a grid loop",
                                  loop_.text, name_of(found->kind)),
                      found->kind == LoopKind::Parallel ? "`warps` or `bind` first" : "");
    Kernel result = kernel;
    for (Stmt& stmt : result.body)
      if (const Loop* grid = as<Loop>(stmt); grid && grid->kind == LoopKind::Grid) stmt = split(*grid, stmt->span);
    return result;
  }

 private:
  Stmt split(const Loop& grid, Span span) {
    for (const Stmt& stmt : grid.body)
      if (const Loop* inner = as<Loop>(stmt); inner && inner->kind == LoopKind::Cluster)
        throw UserError(loop_.span,
                        fmt::format("there is a cluster along `{}` already", bare_name(inner->axes[0].name)));
    Loop outer = grid;
    auto axis =
        std::find_if(outer.axes.begin(), outer.axes.end(), [&](const Axis& other) { return other.name == loop_.text; });
    Expr tiles = extent_of(*axis);
    bool is_multiple = known_divisor(tiles, divisors_of(plan_.facts)) % size_.value == 0 || is_whole(tiles);
    if (!is_multiple) require_bounded_stores(grid.body, tiles);
    axis->hi = clusters_of(tiles);
    Block body = with_parts(grid.body);
    body = share_operands(body);
    Axis part = counted(part_, size_.value, axis->span);
    outer.body = {make_stmt(Loop{LoopKind::Cluster, {part}, std::nullopt, std::move(body)}, span)};
    return make_stmt(std::move(outer), span);
  }

  // ceildiv(M, 128) becomes ceildiv(M, 256).
  Expr clusters_of(const Expr& tiles) const {
    const Call* call = as<Call>(tiles);
    auto tile = call && call->function == "ceildiv" ? integer_value(call->arguments[1]) : std::nullopt;
    if (tile) return ceildiv(call->arguments[0], integer(*tile * size_.value));
    return ceildiv(tiles, integer(size_.value));
  }

  // Whether ceildiv(M, 128) is known to be a multiple, from M % 256 == 0.
  bool is_whole(const Expr& tiles) const {
    const Call* call = as<Call>(tiles);
    auto tile = call && call->function == "ceildiv" ? integer_value(call->arguments[1]) : std::nullopt;
    return tile && known_divisor(call->arguments[0], divisors_of(plan_.facts)) % (*tile * size_.value) == 0;
  }

  // `M % 256`, for ceildiv(M, 128) tiles.
  std::string clause(const Expr& tiles) const {
    const Call* call = as<Call>(tiles);
    auto tile = call && call->function == "ceildiv" ? integer_value(call->arguments[1]) : std::nullopt;
    const Expr& size = tile ? call->arguments[0] : tiles;
    return print(binary(BinaryOp::Mod, size, integer(tile.value_or(1) * size_.value)));
  }

  // A store past the last tile must not happen: each has a condition in which the loop stands, or is a copy that leaves out what lies outside.
  void require_bounded_stores(const Block& body, const Expr& tiles) const {
    auto refuse = [&](const Access& target) {
      throw UserError(loop_.span,
                      fmt::format("`{}` is stored without a condition on `{}`, whose number of tiles need not be a "
                                  "multiple of {}",
                                  print(load(target, Dtype::F32)), loop_.text, size_.value),
                      fmt::format("add `when {} == 0` to the schedule", clause(tiles)));
    };
    walk(body, [&](const Stmt& stmt) {
      if (const Store* store = as<Store>(stmt); store && find_tensor(plan_, store->target.buffer)) {
        bool bounded = std::any_of(store->where.begin(), store->where.end(),
                                   [&](const Expr& condition) { return uses_var(condition, loop_.text); });
        if (!bounded) refuse(store->target);  // a `skip` of its own looks at where it stores, not at what it reads
      }
      if (const Copy* copy = as<Copy>(stmt); copy && find_tensor(plan_, copy->target.buffer))
        if (copy->target.rule.kind != Rule::Kind::Skip) refuse(copy->target);
      return true;
    });
  }

  // i.block is i.block*2 + i.cluster.
  Expr with_part(const Expr& expr) const {
    auto is_loop = [&](const Expr& node) {
      const Var* variable = as<Var>(node);
      return variable && variable->name == loop_.text;
    };
    auto parts = [&](std::int64_t factor) { return var(loop_.text) * (size_.value * factor) + var(part_) * factor; };
    if (is_loop(expr)) return parts(1);
    if (const Binary* node = as<Binary>(expr); node && node->op == BinaryOp::Mul && is_loop(node->lhs))
      if (auto factor = integer_value(node->rhs)) return parts(*factor);
    return map_children(expr, [&](const Expr& child) { return with_part(child); });
  }

  Block with_parts(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) {
      Stmt changed = map_expressions(
          stmt, [&](const Expr& expr) { return uses_var(expr, loop_.text) ? tidy(with_part(expr)) : expr; });
      result.push_back(map_bodies(changed, [&](const Block& inner) { return with_parts(inner); }));
    }
    return result;
  }

  Block share_operands(const Block& body) {
    std::set<std::string> tiles;
    for (const LineName& tensor : shared_) {
      bool found = false;
      walk(body, [&](const Stmt& stmt) {
        const Copy* copy = as<Copy>(stmt);
        if (!copy || copy->source.buffer != tensor.text) return true;
        found = true;
        require_shareable(*copy, tensor, body);
        tiles.insert(copy->target.buffer);
        return true;
      });
      if (!found)
        throw UserError(tensor.span, fmt::format("`{}` is not staged in shared memory", tensor.text),
                        fmt::format("`stage {} in shared at` the loop of the pipeline", tensor.text));
    }
    return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
      if (const Copy* copy = as<Copy>(stmt); copy && tiles.count(copy->target.buffer)) {
        Copy node = *copy;
        node.multicast = part_;
        return {make_stmt(std::move(node), stmt->span)};
      }
      if (const Pipe* pipe = as<Pipe>(stmt); pipe && carries(*pipe, tiles)) {
        Pipe node = *pipe;
        node.scope = PipeScope::Cluster;
        return {make_stmt(std::move(node), stmt->span)};
      }
      return {stmt};
    });
  }

  static bool carries(const Pipe& pipe, const std::set<std::string>& tiles) {
    return std::any_of(pipe.buffers.begin(), pipe.buffers.end(),
                       [&](const std::string& buffer) { return tiles.count(buffer) > 0; });
  }

  void require_shareable(const Copy& copy, const LineName& tensor, const Block& body) const {
    for (const Expr& index : copy.source.index)
      if (uses_var(index, part_))
        throw UserError(tensor.span, fmt::format("the tile of `{}` depends on `{}`: the blocks of the cluster need "
                                                 "different ones, `{}`",
                                                 tensor.text, loop_.text, print(load(copy.source, Dtype::F32))));
    const Pipe* pipe = nullptr;
    walk(body, [&](const Stmt& stmt) {
      if (const Pipe* other = as<Pipe>(stmt); other && carries(*other, {copy.target.buffer})) pipe = other;
      return true;
    });
    if (!pipe || pipe->mechanism != "tma")
      throw UserError(tensor.span,
                      fmt::format("the tile of `{}` is {}; only the copy engine writes to several blocks", tensor.text,
                                  pipe ? "fetched via " + pipe->mechanism : "in no pipeline"),
                      "put `pipeline … via tma` in front");
    require_slices(copy, tensor, body);
    require_same_trips(body, pipe->name);
  }

  // Each block fetches the same part: some of the panels, or some of the groups of 8 rows.
  void require_slices(const Copy& copy, const LineName& tensor, const Block& body) const {
    walk(body, [&](const Stmt& stmt) {
      const Buffer* buffer = as<Buffer>(stmt);
      if (!buffer || buffer->name != copy.target.buffer) return true;
      std::int64_t panels = 1;
      std::int64_t rows = 1;
      for (const AxisLayout& axis : buffer->layout->axes) {
        if (axis.axis == "slot") continue;
        bool is_contiguous = axis.factors.back().stride == 1;
        if (is_contiguous && axis.factors.size() > 1) panels = axis.factors[0].extent;
        for (const Factor& factor : axis.factors)
          if (!is_contiguous) rows *= factor.extent;
      }
      constexpr std::int64_t group = 8;
      if (panels % size_.value != 0 && rows % (group * size_.value) != 0)
        throw UserError(size_.span,
                        fmt::format("the tile of `{}` has {} panel{} of {} rows; {} blocks cannot fetch equal "
                                    "parts of it",
                                    tensor.text, panels, panels == 1 ? "" : "s", rows, size_.value));
      return true;
    });
  }

  // All blocks of the cluster go through the same verbs.
  void require_same_trips(const Block& body, const std::string& pipe) const {
    for (const Stmt& stmt : body) {
      if (const Labelled* labelled = as<Labelled>(stmt)) require_same_trips({labelled->statement}, pipe);
      const Loop* loop = as<Loop>(stmt);
      if (!loop || !has_verb(loop->body, pipe)) continue;
      for (const Axis& axis : loop->axes)
        for (const Expr& bound : {axis.lo, axis.hi, axis.step})
          if (bound && uses_var(bound, part_))
            throw UserError(loop_.span, fmt::format("`{}` runs to `{}`, which differs between the blocks of a cluster",
                                                    axis.name, print(bound)));
      require_same_trips(loop->body, pipe);
    }
  }

  static bool has_verb(const Block& body, const std::string& pipe) {
    bool found = false;
    walk(body, [&](const Stmt& stmt) {
      const Verb* verb = as<Verb>(stmt);
      found |= verb && verb->pipe == pipe;
      return !found;
    });
    return found;
  }

  const Plan& plan_;
  LineName loop_;
  LineNumber size_;
  std::vector<LineName> shared_;
  std::string part_;
};

}  // namespace

Plan cluster(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  LineName loop = reader.name("a grid loop");
  LineNumber size = reader.number("a number of blocks", 2);
  std::vector<LineName> shared;
  if (reader.accept("multicast")) do
      shared.push_back(reader.name("a tensor"));
    while (reader.accept(","));
  reader.end();
  if (capability(target) < 90)
    throw UserError(line.span, fmt::format("{} has no clusters of blocks, sm_90 and later have", target.arch));
  constexpr std::int64_t most = 8;
  if (size.value > most)
    throw UserError(size.span, fmt::format("a cluster of {} blocks; {} run on every such GPU", size.value, most));
  Names names(plan);
  return map_kernels_with(plan, line, {loop}, [&](const Kernel& kernel) {
    return Clustering(plan, names, loop, size, shared).apply(kernel);
  });
}

}  // namespace tilewright
