// mma: the sum of products over a staged tile becomes one operation of the tensor cores.
//
//   mma wgmma over i        (sm_90a: warpgroups share the rows `i`, 64 at a time)
//   mma mma.sync            (sm_80 and later: warps share the tile in both directions)
//   before   reg acc: f32[i 128, j 256] (i: 128 reg; j: 256 thread.x)
//            serial k.block … { …; each i in 128, j in 256 { serial k in 64 {
//              acc[i, j] = fma(f32(As[i, k]), f32(Bs[k, j]), acc[i, j]) } } }
//   after    reg acc: f32[i 128, j 256] (i: 2 warpgroup, 4 warp, 2 reg*2, 8 lane*4; j: 32 reg*4, 4 lane, 2 reg)
//            serial k.block … { …; mma acc[i, j] += As[i, k] * Bs[k, j] by wgmma.m64n256k16 }
//
// The accumulator, and what meets it in an `each`, takes the layout of the instruction's fragments; the `each` loops
// over it follow. `over` names the axis of the result that is the instruction's M; without it that is the first one.
//
// Needs: bf16 or f16 operands staged in shared memory (for wgmma with a swizzle), an f32 accumulator, `warps`, tile
// sizes that are multiples of the instruction, and a leaf without predicates: their fill must have absorbed them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "passes/fragments.h"
#include "passes/loops.h"
#include "passes/schedule/kernel_threads.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/sum_of_products.h"

namespace tilewright {

namespace {

std::string one_line(const Store& store) {
  std::string text = print(make_stmt(store));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class MatrixUnits {
 public:
  MatrixUnits(bool is_wgmma, LineName unit, std::optional<LineName> over)
      : is_wgmma_(is_wgmma), unit_(std::move(unit)), over_(std::move(over)) {}

  Kernel apply(const Kernel& kernel) {
    warps_ = computing_warps(kernel);
    if (warps_ == 0)
      throw UserError(unit_.span, fmt::format("kernel `{}` has no number of warps that share its tile", kernel.name),
                      "put `warps 8` in front");
    walk(kernel.body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) buffers_[buffer->name] = *buffer;
      return true;
    });
    Kernel result = kernel;
    result.body = rewrite_statements(kernel.body, [&](const Stmt& stmt) -> Block {
      auto leaf = sum_leaf(stmt);
      if (!leaf || !is_block_register(leaf->store->target.buffer)) return {stmt};
      auto factors = factors_of(leaf->store->value, leaf->store->target);
      if (factors) return {make_stmt(operation(*leaf, *factors), stmt->span)};
      other_sum_ = one_line(*leaf->store);
      return {stmt};
    });
    if (layouts_.empty())
      throw UserError(unit_.span,
                      other_sum_.empty()
                          ? fmt::format("kernel `{}` has no sum over a tile that a block shares", kernel.name)
                          : fmt::format("`{}` is no sum of products", other_sum_),
                      other_sum_.empty() ? "`stage` both operands at the loop over tiles of the reduced index" : "");
    spread_layouts(result.body);
    result.body = rewrite_statements(result.body, [&](const Stmt& stmt) -> Block {
      const Buffer* buffer = as<Buffer>(stmt);
      auto found = buffer ? layouts_.find(buffer->name) : layouts_.end();
      if (found == layouts_.end()) return {stmt};
      Buffer node = *buffer;
      node.layout = found->second;
      return {make_stmt(std::move(node), stmt->span)};
    });
    return result;
  }

 private:
  bool is_block_register(const std::string& name) const {
    auto found = buffers_.find(name);
    return found != buffers_.end() && found->second.space == Space::Register && found->second.layout;
  }

  Mma operation(const SumLeaf& leaf, const Factors& factors) {
    Access first = operand(factors.a);
    Access second = operand(factors.b);
    if (!leaf.store->where.empty())
      throw UserError(unit_.span,
                      fmt::format("`{}` keeps a predicate, for the fill of its operands does not leave the sum as it "
                                  "is; a matrix instruction sums whole tiles",
                                  one_line(*leaf.store)),
                      "`stage` the operands, both of them with a fill of 0");
    if (dtype_of(first) != dtype_of(second))
      throw UserError(unit_.span, fmt::format("`{}` is of {} and `{}` of {}; the operands of a matrix instruction have "
                                              "one type",
                                              first.buffer, info(dtype_of(first)).name, second.buffer,
                                              info(dtype_of(second)).name));
    const Buffer& acc = buffers_.at(leaf.store->target.buffer);
    if (acc.dtype != Dtype::F32)
      throw UserError(unit_.span, fmt::format("`{}` sums in {}; the matrix instruction sums in f32", acc.name,
                                              info(acc.dtype).name));
    if (leaf.each->axes.size() != 2 || acc.axes.size() != 2 || leaf.sum->axes.size() != 1)
      throw UserError(unit_.span, fmt::format("`{}` has {} axes and a sum over {}; a matrix instruction has 2 and 1",
                                              one_line(*leaf.store), acc.axes.size(), leaf.sum->axes.size()));
    const std::string& k = leaf.sum->axes[0].name;
    std::size_t row = row_axis(acc);
    const std::string& i = acc.axes[row].name;
    const std::string& j = acc.axes[1 - row].name;
    bool in_order = leaf.store->target.index == std::vector<Expr>{var(acc.axes[0].name), var(acc.axes[1].name)};
    Access a = is_indexed_by(first, i, k) ? first : second;
    Access b = is_indexed_by(first, i, k) ? second : first;
    if (!in_order || !is_indexed_by(a, i, k) || !is_indexed_by(b, k, j))
      throw UserError(unit_.span, fmt::format("`{}` is no product of a tile over `{}`, `{}` with one over `{}`, `{}`",
                                              one_line(*leaf.store), i, k, k, j));
    std::int64_t depth = constant_extent(leaf.sum->axes[0]).value_or(0);
    for (const Access* access : {&a, &b}) require_operand_layout(*access);
    MatrixInstruction instruction = is_wgmma_ ? choose_wgmma(acc, row, panel_along(b, j)) : choose_mma(acc, row);
    if (depth % instruction.k != 0)
      throw UserError(
          unit_.span,
          fmt::format("the tile of `{}` is {}; {} takes {} at a time", k, depth, name_of(instruction), instruction.k),
          fmt::format("`tile block {} {}`", k, (depth + instruction.k - 1) / instruction.k * instruction.k));
    return Mma{leaf.store->target, std::move(a), std::move(b), name_of(instruction)};
  }

  Dtype dtype_of(const Access& access) const { return buffers_.at(access.buffer).dtype; }

  // The access of `f32(As[…])`.
  Access operand(const Expr& factor) const {
    const Cast* cast = as<Cast>(factor);
    const Load* element = as<Load>(cast ? cast->operand : factor);
    if (!element) throw UserError(unit_.span, fmt::format("the factor `{}` is no element of a tile", print(factor)));
    const Access& access = element->access;
    auto buffer = buffers_.find(access.buffer);
    if (buffer == buffers_.end() || buffer->second.space != Space::Shared)
      throw UserError(unit_.span, fmt::format("the factor `{}` does not stand in shared memory", print(factor)),
                      fmt::format("`stage {} in shared at` the loop over tiles of the reduced index", access.buffer));
    bool is_narrow = buffer->second.dtype == Dtype::BF16 || buffer->second.dtype == Dtype::F16;
    if (!is_narrow)
      throw UserError(unit_.span, fmt::format("the factor `{}` is of {}; the instruction multiplies bf16 or f16",
                                              print(factor), info(buffer->second.dtype).name));
    return access;
  }

  std::size_t row_axis(const Buffer& acc) const {
    if (!over_) return 0;
    for (std::size_t n = 0; n < acc.axes.size(); ++n)
      if (acc.axes[n].name == over_->text) return n;
    throw UserError(over_->span, fmt::format("`{}` is no axis of `{}`, which has `{}` and `{}`", over_->text, acc.name,
                                             acc.axes[0].name, acc.axes[1].name));
  }

  // The bytes of the widest panel that the rows of a tile are made of.
  static std::int64_t widest_swizzle(const Layout& layout, std::int64_t element_bytes) {
    std::int64_t row = 1;
    for (const AxisLayout& axis : layout.axes)
      if (axis.factors.back().stride == 1) row = axis.factors.back().extent * element_bytes;
    for (std::int64_t bytes : {128, 64})
      if (row % bytes == 0) return bytes;
    return 32;
  }

  void require_operand_layout(const Access& access) const {
    const Layout& layout = *buffers_.at(access.buffer).layout;
    if (is_wgmma_ && layout.xor_bytes == 0)
      throw UserError(unit_.span,
                      fmt::format("`{}` lies in shared memory without a swizzle, as {}; wgmma reads panels "
                                  "of 32, 64 or 128 bytes",
                                  access.buffer, print(layout)),
                      fmt::format("add `swizzle {}` to the `stage` line", widest_swizzle(layout, 2)));
    constexpr std::int64_t row_of_matrix = 8;  // elements that one lane's address stands for
    for (const AxisLayout& axis : layout.axes)
      for (const Factor& factor : axis.factors)
        if (factor.stride != 1 && factor.stride % row_of_matrix != 0)
          throw UserError(unit_.span,
                          fmt::format("rows of `{}` lie {} elements apart; the instruction reads rows that "
                                      "start at multiples of 16 bytes",
                                      access.buffer, factor.stride),
                          "`tile` and `pad` by multiples of 8");
  }

  static SharedAxis axis_of(const BufferAxis& axis) { return {axis.name, axis.extent, 1, Place::Warp, 1}; }

  void set_layout(const Buffer& acc, std::size_t row, const MatrixInstruction& instruction, const SharedAxis& rows,
                  const SharedAxis& columns) {
    std::vector<AxisLayout> axes = accumulator_layout(instruction, rows, columns);
    if (row == 1) std::swap(axes[0], axes[1]);
    layouts_[acc.name] = Layout{std::move(axes), 0};
  }

  // The elements of a panel that lie along an axis of an operand; 1 where its rows run along the other axis.
  std::int64_t panel_along(const Access& access, const std::string& name) const {
    for (const AxisLayout& axis : buffers_.at(access.buffer).layout->axes)
      if (axis.axis == name && axis.factors.back().stride == 1) return axis.factors.back().extent;
    return 1;
  }

  // One instruction for all columns of the tile, or several of equal size, each of whole panels.
  MatrixInstruction choose_wgmma(const Buffer& acc, std::size_t row, std::int64_t panel) {
    constexpr std::int64_t group = 4;  // warps
    if (warps_ % group != 0)
      throw UserError(unit_.span, fmt::format("{} warps are no whole warpgroups of {}", warps_, group),
                      fmt::format("`warps {}`", (warps_ + group - 1) / group * group));
    SharedAxis rows = axis_of(acc.axes[row]);
    SharedAxis columns = axis_of(acc.axes[1 - row]);
    rows.groups = warps_ / group;
    rows.place = Place::Warpgroup;
    std::int64_t n = std::min<std::int64_t>(columns.extent, 256) / 8 * 8;
    while (n > 0 && (columns.extent % n != 0 || (n < columns.extent && n % panel != 0))) n -= 8;
    if (rows.extent % (64 * rows.groups) != 0)
      throw UserError(unit_.span,
                      fmt::format("the tile of `{}` is {}; {} warpgroup{} of 64 rows each need a multiple of {}",
                                  rows.name, rows.extent, rows.groups, rows.groups == 1 ? "" : "s", 64 * rows.groups),
                      fmt::format("`tile block {} {}`, or other `warps`", rows.name, 64 * rows.groups));
    if (n == 0)
      throw UserError(unit_.span,
                      fmt::format("the tile of `{}` is {}; an instruction has a multiple of 8 columns up to 256, and "
                                  "several of them whole panels of {}",
                                  columns.name, columns.extent, panel));
    MatrixInstruction instruction = *matrix_instruction(fmt::format("wgmma.m64n{}k16", n));
    set_layout(acc, row, instruction, rows, columns);
    return instruction;
  }

  // The warps as a grid over rows and columns, such that each reads as little of the operands as possible.
  MatrixInstruction choose_mma(const Buffer& acc, std::size_t row) {
    MatrixInstruction instruction = *matrix_instruction("mma.m16n8k16");
    SharedAxis rows = axis_of(acc.axes[row]);
    SharedAxis columns = axis_of(acc.axes[1 - row]);
    std::int64_t best = 0;
    for (std::int64_t down = 1; down <= warps_; ++down) {
      std::int64_t across = warps_ / down;
      if (down * across != warps_ || rows.extent % (down * instruction.m) != 0 ||
          columns.extent % (across * instruction.n) != 0)
        continue;
      std::int64_t read = rows.extent / down + columns.extent / across;
      if (best && read >= best) continue;
      best = read;
      rows.groups = down;
      rows.stride = across;
      columns.groups = across;
    }
    if (!best)
      throw UserError(unit_.span,
                      fmt::format("{} warps cannot share a tile of {} by {}: each takes a multiple of {} by {}", warps_,
                                  rows.extent, columns.extent, instruction.m, instruction.n),
                      "choose `tile` sizes that are powers of 2 times these");
    set_layout(acc, row, instruction, rows, columns);
    return instruction;
  }

  // What stands in one `each` with an accumulator has its layout.
  void spread_layouts(const Block& body) {
    for (std::size_t before = 0; before != layouts_.size();) {
      before = layouts_.size();
      walk(body, [&](const Stmt& stmt) {
        const Loop* each = as<Loop>(stmt);
        if (!each || each->kind != LoopKind::Each) return true;
        for (const auto& [name, buffer] : buffers_)
          if (is_block_register(name) && !layouts_.count(name) && mentions_buffer(each->body, name))
            follow(each->body, buffer);
        return false;
      });
    }
  }

  void follow(const Block& body, const Buffer& buffer) {
    for (const auto& [name, layout] : layouts_) {
      if (!mentions_buffer(body, name)) continue;
      if (buffers_.at(name).axes != buffer.axes)
        throw UserError(unit_.span,
                        fmt::format("`{}` meets `{}` in an `each` and has other axes, so it cannot take its "
                                    "layout",
                                    buffer.name, name));
      layouts_[buffer.name] = Layout(layout);
      return;
    }
  }

  bool is_wgmma_;
  LineName unit_;
  std::optional<LineName> over_;
  int warps_ = 0;
  std::string other_sum_;
  std::map<std::string, Buffer> buffers_;
  std::map<std::string, Layout> layouts_;  // of accumulators
};

}  // namespace

Plan mma(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line);
  LineName unit = reader.name("`wgmma` or `mma.sync`");
  std::optional<LineName> over;
  if (reader.accept("over")) over = reader.name("an axis of the result");
  reader.end();
  bool is_wgmma = unit.text == "wgmma";
  if (!is_wgmma && unit.text != "mma.sync")
    throw UserError(unit.span, fmt::format("there is no matrix instruction `{}`", unit.text),
                    "`wgmma` (sm_90a) and `mma.sync` (sm_80 and later) are there");
  bool has_it = is_wgmma ? target.arch == "sm_90a" : capability(target) >= 80;
  if (!has_it)
    throw UserError(unit.span, fmt::format("{} has no `{}`", target.arch, unit.text),
                    is_wgmma && capability(target) >= 80 ? "`mma mma.sync` is there" : "");
  std::vector<LineName> loops;
  if (over) loops.push_back(*over);
  if (!over && line.target.empty() && kernels_of(plan).size() > 1)
    throw UserError(line.span, "several kernels: which of them is not said",
                    fmt::format("`{}: {}`", kernels_of(plan).back()->name, line.text));
  return map_kernels_with(plan, line, loops,
                          [&](const Kernel& kernel) { return MatrixUnits(is_wgmma, unit, over).apply(kernel); });
}

}  // namespace tilewright
