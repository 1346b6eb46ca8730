// `mma` by the tensor cores of Hopper: descriptors of the operands' layouts, one wgmma a step of k.
//
//   before   fill acc <- 0.0
//            serial k.block in T { … mma acc[i, j] += As[i, k] * Bs[k, j] by wgmma.m64n256k16 }
//   after    if T == 0 { acc[…] = 0.0 }
//            serial k.block in T {
//              … wgmma.fence(acc)
//              unroll k in 4 { wgmma.m64n256k16.bf16(acc, desc(As[wg*4096 + k*16], 16, 1024), desc(Bs[k*1024], 8192, 1024), k.block > 0 or k > 0, 0, 1) }
//              wgmma.commit(); wgmma.wait(0, acc)
//            }
//
// The first step overwrites the accumulator, so that its fill is left for a loop without trips. Needs: swizzled operands and
// an accumulator in the layout of the instruction, which may be tiled further over warpgroups and registers.
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"
#include "passes/finish/matrix_descriptor.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

// Whether the body accumulates into the buffer in one wgmma of its own and does not touch it otherwise.
bool only_accumulates(const Block& body, const std::string& buffer) {
  int count = 0;
  for (const Stmt& stmt : body) {
    const Mma* mma = as<Mma>(stmt);
    if (mma && mma->target.buffer == buffer && mma->instruction.starts_with("wgmma")) ++count;
    else if (touches({stmt}, buffer)) return false;
  }
  return count == 1;
}

}  // namespace

bool touches(const Block& body, const std::string& buffer) {
  bool found = mentions_buffer(body, buffer);
  walk(body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) found |= store->target.buffer == buffer;
    if (const Fill* fill = as<Fill>(stmt)) found |= fill->buffer == buffer;
    if (const Copy* copy = as<Copy>(stmt)) found |= copy->target.buffer == buffer || copy->source.buffer == buffer;
    if (const Fold* fold = as<Fold>(stmt)) found |= fold->target.buffer == buffer || fold->source.buffer == buffer || fold->total == buffer;
    if (const Mma* mma = as<Mma>(stmt)) found |= mma->target.buffer == buffer || mma->a.buffer == buffer || mma->b.buffer == buffer;
    return !found;
  });
  return found;
}

void Expander::absorb_fill(const Block& statements, std::size_t at, Block& out) {
  const Fill& fill = *as<Fill>(statements[at]);
  const Stmt& stmt = statements[at];
  std::size_t next = at + 1;
  while (next < statements.size() && !touches({statements[next]}, fill.buffer)) ++next;
  adds_.erase(fill.buffer);
  if (next == statements.size() || real_value(fill.value) != 0.0) return fill_buffer(fill, stmt, out);
  if (only_accumulates({statements[next]}, fill.buffer)) {
    adds_[fill.buffer] = Expr{};
    return;
  }
  const Loop* loop = as<Loop>(statements[next]);
  if (!loop || !counts_up(*loop) || !only_accumulates(loop->body, fill.buffer)) return fill_buffer(fill, stmt, out);
  adds_[fill.buffer] = binary(BinaryOp::Gt, var(loop->axes[0].name), integer(0));
  Block body;
  fill_buffer(fill, stmt, body);
  out.push_back(make_stmt(If{binary(BinaryOp::Eq, context_.flattener.flat(loop->axes[0].hi), integer(0)), std::move(body), {}}, stmt->span));
}

// Whether a wgmma's step `k` of its loop adds to the accumulator.
Expr Expander::adds_in_step(const std::string& accumulator, const std::string& k) const {
  auto known = adds_.find(accumulator);
  if (known == adds_.end()) return boolean(true);
  Expr later_step = binary(BinaryOp::Gt, var(k), integer(0));
  return known->second ? binary(BinaryOp::Or, known->second, later_step) : later_step;
}

void Expander::mma(const Mma& mma, const Stmt& stmt, Block& out) {
  std::optional<MatrixInstruction> instruction = matrix_instruction(mma.instruction);
  if (!instruction) refuse(stmt, fmt::format("`mma … by {}`", mma.instruction));
  MatrixTiles tiles = matrix_tiles(mma, *instruction, stmt);
  if (instruction->family == "wgmma") mma_by_wgmma(mma, tiles, stmt, out);
  else mma_by_warps(mma, tiles, stmt, out);
}

void Expander::mma_by_wgmma(const Mma& mma, const MatrixTiles& tiles, const Stmt& stmt, Block& out) {
  needs_hopper(stmt, fmt::format("`{}`", mma.instruction));
  const Buffer* target = context_.flattener.find(mma.target.buffer);
  std::string k = context_.fresh("k");
  Ranges outer = context_.ranges;
  context_.ranges[k] = Interval{0, tiles.depth / tiles.instruction.k - 1};
  for (const Axis& step : tiles.row_steps) add_axis(context_.ranges, step);
  for (const Axis& step : tiles.column_steps) add_axis(context_.ranges, step);
  bool transposed[2] = {false, false};
  auto descriptor = [&](const OperandAxes& axes, const Expr& first, std::int64_t rows, bool& is_transposed) {
    const Buffer* buffer = context_.flattener.find(axes.access.buffer);
    auto found = describe_matrix(*buffer, OperandTile{axes.row, axes.depth, rows, tiles.instruction.k});
    if (!found)
      throw UserError(stmt->span, fmt::format("`{}` of `{}`: its layout {} is none that the instruction reads", buffer->name, mma.instruction, print(*buffer->layout)),
                      "`stage … swizzle 128` makes one");
    Access origin = axes.access;
    origin.index[axes.row] = first;
    origin.index[axes.depth] = var(k) * tiles.instruction.k;
    origin = context_.flattener.unswizzled(origin);
    origin.index.back() = tidy(simplify_expr(origin.index.back(), context_.ranges));
    std::vector<Expr> operands = {load(origin, buffer->dtype, stmt->span), integer(found->leading_bytes), integer(found->stride_bytes)};
    if (found->swizzle_bytes != 128) operands.push_back(integer(found->swizzle_bytes));
    is_transposed = found->is_transposed;
    return call("desc", std::move(operands), Dtype::U64, stmt->span);
  };
  Expr a = descriptor(tiles.a, tiles.first_row, tiles.instruction.m, transposed[0]);
  Expr b = descriptor(tiles.b, tiles.first_column, tiles.instruction.n, transposed[1]);
  context_.ranges = std::move(outer);

  Expr whole = load(Access{target->name, {}, {}, stmt->span}, target->dtype, stmt->span);
  bool is_one_tile = tiles.row_steps.empty() && tiles.column_steps.empty();
  Expr place = is_one_tile ? whole : load(Access{target->name, {tiles.fragment}, {}, stmt->span}, target->dtype, stmt->span);
  std::string name = instruction_of(mma, stmt);
  Block body = {make_stmt(Instr{name, {place, a, b, adds_in_step(target->name, k), integer(transposed[0]), integer(transposed[1])}}, stmt->span)};
  body = walk_steps(tiles.column_steps, LoopKind::Unroll, std::move(body), stmt->span);
  body = walk_steps(tiles.row_steps, LoopKind::Unroll, std::move(body), stmt->span);
  Axis axis{k, integer(0), integer(tiles.depth / tiles.instruction.k), {}, stmt->span};
  out.push_back(make_stmt(Instr{"wgmma.fence", {whole}}, stmt->span));
  out.push_back(make_stmt(Loop{LoopKind::Unroll, {axis}, std::nullopt, std::move(body)}, stmt->span));
  out.push_back(make_stmt(Instr{"wgmma.commit", {}}, stmt->span));
  open_accumulator_ = whole;
}

// Accumulators may be read, and operands overwritten, when at most `open` groups are still at work.
void Expander::wait_for_mma(int open, Span span, Block& out) {
  if (!open_accumulator_) return;
  out.push_back(make_stmt(Instr{"wgmma.wait", {integer(open), open_accumulator_}}, span));
  if (open == 0) open_accumulator_ = {};
}

}  // namespace tilewright
