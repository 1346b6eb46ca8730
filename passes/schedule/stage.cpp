// stage: keep the tile of a tensor that a block reads in shared memory.
//
//   stage A, B in shared at k.block
//   before   grid i.block, j.block { each i in 16, j in 16 on (…) {
//              reg acc; acc = 0.0
//              serial k.block in ceildiv(K, 16) { serial k in 16 {
//                acc = fma(A[i.block*16 + i, k.block*16 + k], …, acc) where … } }
//              C[…] = acc where … } }
//   after    grid i.block, j.block {
//              reg acc: f32[i 16, j 16] (…); shared As: f32[i 16, k 16] (…); shared Bs: f32[k 16, j 16] (…)
//              fill acc <- 0.0
//              serial k.block in ceildiv(K, 16) {
//                copy As[As.i, As.k] <- A[i.block*16 + As.i, k.block*16 + As.k; 0.0]
//                copy Bs[Bs.k, Bs.j] <- B[k.block*16 + Bs.k, j.block*16 + Bs.j; 0.0]
//                each i in 16, j in 16 { serial k in 16 { acc[i, j] = fma(As[i, k], Bs[k, j], acc[i, j]) } } }
//              each i in 16, j in 16 { C[…] = acc[i, j] where … } }
//
// `pad 1` makes each row that much longer, `transposed` lays the last two axes the other way round, `swizzle 128`
// permutes 16-byte chunks in panels of as many bytes. Shifts of one access are one tile with a halo. Where several
// accesses of a tensor differ otherwise, write the one that is meant: `stage A[i, k] in shared at k.block`.
//
// Needs: loops bound, a tile of constant size, room in shared memory. Refuses: a tensor that the kernel writes.
#include "passes/schedule/shared_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/schedule/absorb.h"
#include "passes/schedule/cut.h"
#include "passes/schedule/footprint.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

// `A`, or `A[i, k]` with the names in each index.
struct Operand {
  LineName tensor;
  std::vector<std::set<std::string>> index;  // empty: the tensor's only access
};

Operand read_operand(LineReader& reader) {
  Operand operand{reader.name("a tensor"), {}};
  if (!reader.accept("[")) return operand;
  operand.index.emplace_back();
  for (int depth = 1; depth > 0;) {
    const ScheduleToken& token = reader.take();
    if (token.kind == ScheduleToken::Kind::Name) operand.index.back().insert(token.text);
    if (token.text == "(" || token.text == "[") ++depth;
    if (token.text == ")" || token.text == "]") --depth;
    if (token.text == "," && depth == 1) operand.index.emplace_back();
  }
  return operand;
}

class Staging {
 public:
  Staging(const Plan& plan, const Target& target, LineName at, TileOptions options)
      : plan_(plan), target_(target), names_(plan), at_(std::move(at)), options_(options) {}

  Kernel apply(const Kernel& kernel, const std::vector<Operand>& operands, Span line) {
    auto found = find_loop(kernel.body, at_.text);
    if (found->kind == LoopKind::Parallel || has_kind(kernel.body, LoopKind::Parallel))
      throw UserError(
          at_.span,
          fmt::format("the loops of kernel `{}` are not bound; `stage` needs to know what a block is", kernel.name),
          "`bind` or `warps` first");
    if (found->kind != LoopKind::Serial && found->kind != LoopKind::Grid)
      throw UserError(
          at_.span,
          fmt::format("`{}` is `{}`; `stage` puts a tile at a loop over tiles that a block runs, or at its grid",
                      at_.text, name_of(found->kind)));
    Kernel result = kernel;
    bool at_grid = found->kind == LoopKind::Grid;
    if (at_grid) require_innermost_grid(kernel.body);
    result.body = map_block_body(kernel.body, [&](const Block& body) {
      Block block = at_grid ? body : bring_outside(body, at_);
      for (const Operand& operand : operands) block = stage_operand(block, operand, at_grid, kernel.name);
      return drop_absorbed_predicates(block, plan_);
    });
    require_shared_fits(result.body, target_, line, "make the tile smaller");
    require_registers_fit(result, target_, line, "make the tile smaller, or share it among more threads");
    return result;
  }

 private:
  static bool has_kind(const Block& body, LoopKind kind) {
    bool found = false;
    walk(body, [&](const Stmt& stmt) {
      if (const Loop* loop = as<Loop>(stmt)) found |= loop->kind == kind;
      return !found;
    });
    return found;
  }

  void require_innermost_grid(const Block& body) const {
    std::string innermost;
    walk(body, [&](const Stmt& stmt) {
      if (const Loop* loop = as<Loop>(stmt); loop && (loop->kind == LoopKind::Grid || loop->kind == LoopKind::Cluster))
        innermost = loop->axes.back().name;
      return true;
    });
    if (innermost != at_.text)
      throw UserError(at_.span,
                      fmt::format("`{}` stands inside `{}`; a block's tile is staged at the innermost of them",
                                  innermost, at_.text),
                      fmt::format("`at {}`", innermost));
  }

  Block stage_operand(const Block& block, const Operand& operand, bool at_grid, const std::string& kernel) {
    auto tensor = find_tensor(plan_, operand.tensor.text);
    if (!tensor)
      throw UserError(operand.tensor.span, fmt::format("`{}` is no tensor of `{}`", operand.tensor.text, plan_.name));
    walk(block, [&](const Stmt& stmt) {
      const Store* store = as<Store>(stmt);
      if (store && store->target.buffer == operand.tensor.text)
        throw UserError(operand.tensor.span, fmt::format("kernel `{}` writes `{}`; only what it reads can be staged",
                                                         kernel, operand.tensor.text));
      return true;
    });
    Block declarations;
    bool used = false;
    Block result =
        at_grid ? stage_region(block, operand, declarations, used) : stage_in_loops(block, operand, declarations, used);
    if (!used)
      throw UserError(operand.tensor.span,
                      fmt::format("kernel `{}` has no access of `{}` inside `{}` that is not staged", kernel,
                                  operand.tensor.text, at_.text));
    for (const Stmt& declaration : declarations) insert_declaration(result, declaration);
    return result;
  }

  Block stage_in_loops(const Block& body, const Operand& operand, Block& declarations, bool& used) {
    Block result;
    for (const Stmt& stmt : body) {
      const Loop* loop = as<Loop>(stmt);
      bool here = loop && loop->kind == LoopKind::Serial && loop->axes.back().name == at_.text;
      result.push_back(map_bodies(stmt, [&](const Block& inner) {
        return here ? stage_region(inner, operand, declarations, used)
                    : stage_in_loops(inner, operand, declarations, used);
      }));
    }
    return result;
  }

  static std::string list_of(const std::vector<std::vector<TileAccess>>& groups) {
    std::vector<std::string> texts;
    for (const auto& group : groups) texts.push_back(print(load(group[0].access, Dtype::F32)));
    return in_words(texts);
  }

  // Accesses that are shifts of one another, and that the operand means.
  std::vector<TileAccess> meant_accesses(const Block& region, const Operand& operand) const {
    std::vector<std::vector<TileAccess>> groups;
    for (TileAccess& access : accesses_in(region, operand.tensor.text)) {
      if (!operand.index.empty() && !is_written_as(access.access, operand)) continue;
      auto same = std::find_if(groups.begin(), groups.end(),
                               [&](const auto& group) { return are_shifts(group[0].access, access.access); });
      if (same == groups.end())
        groups.push_back({std::move(access)});
      else
        same->push_back(std::move(access));
    }
    if (groups.size() > 1)
      throw UserError(operand.tensor.span,
                      fmt::format("`{}` is read in {} ways inside `{}`: {}", operand.tensor.text, groups.size(),
                                  at_.text, list_of(groups)),
                      fmt::format("write the access that is meant, as in `stage {}[i, k]`", operand.tensor.text));
    return groups.empty() ? std::vector<TileAccess>{} : groups[0];
  }

  static bool is_written_as(const Access& access, const Operand& operand) {
    if (access.index.size() != operand.index.size()) return false;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      std::set<std::string> bare;
      for (const std::string& name : variables_of(access.index[d])) bare.insert(bare_name(name));
      if (bare != operand.index[d]) return false;
    }
    return true;
  }

  // Declares the tile, copies it at the head of the region and reads it there.
  Block stage_region(const Block& region, const Operand& operand, Block& declarations, bool& used) {
    for (const Stmt& stmt : region)
      if (as<Verb>(stmt))
        throw UserError(at_.span,
                        fmt::format("`{}` is a pipeline already; `stage` stands before `pipeline`", at_.text));
    std::vector<TileAccess> accesses = meant_accesses(region, operand);
    if (accesses.empty()) return region;
    used = true;
    Footprint box = footprint_of(accesses, at_);
    Dtype dtype = find_tensor(plan_, operand.tensor.text)->dtype;
    Buffer tile{Space::Shared, names_.fresh(operand.tensor.text + "s"), dtype, {}, std::nullopt, std::nullopt};
    Copy copy;
    copy.target.buffer = tile.name;
    copy.source.buffer = operand.tensor.text;
    copy.source.rule = box.rule.kind == Rule::Kind::None ? Rule{Rule::Kind::Fill, constant(0, dtype), 0} : box.rule;
    for (const FootprintAxis& axis : box.axes) {
      Expr index = axis.base;
      if (!axis.name.empty()) {
        tile.axes.push_back({axis.name, axis.extent});
        Expr place = var(tile.name + "." + axis.name);
        copy.target.index.push_back(place);
        index = index + place;
      }
      copy.source.index.push_back(tidy(axis.offset < 0 ? index - integer(-axis.offset) : index + integer(axis.offset)));
    }
    if (tile.axes.empty())
      throw UserError(operand.tensor.span,
                      fmt::format("a block reads one element of `{}` at `{}`; there is no tile to keep",
                                  operand.tensor.text, at_.text));
    tile.layout = tile_layout(tile.axes, dtype, options_);
    Span span = accesses[0].statement;
    declarations.push_back(make_stmt(tile, span));

    Block result = read_tile(region, accesses[0].access, tile.name, box);
    auto behind = std::find_if(result.begin(), result.end(), [](const Stmt& stmt) {
      return !as<Buffer>(stmt) && !as<Copy>(stmt) && !as<Pipe>(stmt) && !as<Role>(stmt);
    });
    result.insert(behind, make_stmt(std::move(copy), span));
    return result;
  }

  Block read_tile(const Block& body, const Access& meant, const std::string& tile, const Footprint& box) const {
    std::vector<Axis> loops;
    return read_tile(body, meant, tile, box, loops);
  }

  Block read_tile(const Block& body, const Access& meant, const std::string& tile, const Footprint& box,
                  std::vector<Axis>& loops) const {
    Block result;
    for (const Stmt& stmt : body) {
      Stmt changed = map_expressions(stmt, [&](const Expr& expr) {
        return rewrite(expr, [&](const Expr& node) {
          const Load* access = as<Load>(node);
          if (!access || !are_shifts(access->access, meant)) return node;
          return load(Access{tile, local_index(access->access, loops, box), {}, access->access.span}, node->dtype,
                      node->span);
        });
      });
      std::size_t outside = loops.size();
      if (const Loop* loop = as<Loop>(stmt)) loops.insert(loops.end(), loop->axes.begin(), loop->axes.end());
      result.push_back(
          map_bodies(changed, [&](const Block& inner) { return read_tile(inner, meant, tile, box, loops); }));
      loops.resize(outside);
    }
    return result;
  }

  const Plan& plan_;
  const Target& target_;
  Names names_;
  LineName at_;
  TileOptions options_;
};

}  // namespace

Plan stage(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  std::vector<Operand> operands;
  do operands.push_back(read_operand(reader));
  while (reader.accept(","));
  reader.expect("in");
  reader.expect("shared");
  reader.expect("at");
  LineName at = reader.name("the name of a loop");
  TileOptions options;
  while (!reader.at_end()) {
    if (reader.accept("pad"))
      options.pad = reader.number("a number of elements").value;
    else if (reader.accept("transposed"))
      options.transposed = true;
    else if (reader.accept("swizzle"))
      options.swizzle = reader.number("the bytes of a panel");
    else
      reader.fail("`pad`, `transposed`, `swizzle` or the end of the line");
  }
  if (options.pad && options.swizzle.value)
    throw UserError(options.swizzle.span, "a swizzled tile needs no `pad`: choose one of the two");
  return map_kernels_with(plan, line, {at}, [&](const Kernel& kernel) {
    if (line.target.empty()) {
      bool reads_any = std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
        return mentions_buffer(kernel.body, operand.tensor.text);
      });
      if (!reads_any && kernels_of(plan).size() > 1) return kernel;
    }
    return Staging(plan, target, at, options).apply(kernel, operands, line.span);
  });
}

}  // namespace tilewright
