// `mma` by single warps (mma.sync, sm_80 and later): fragments of both operands by ldmatrix, then one mma a pair of tiles.
//
//   before   mma acc[i, j] += As[i, k] * Bs[k, j] by mma.m16n8k16
//   after    unroll k in 4 {
//              reg As.f: u32[8]; reg Bs.f: u32[8]
//              unroll i.tile in 2 { ldmatrix.x4(As.f[i.tile*4], …, As[…]) }
//              unroll j.tile.pair in 2 { ldmatrix.x4.trans(Bs.f[j.tile.pair*4], …, Bs[…]) }
//              unroll i.tile in 2 { unroll j.tile in 4 { mma.m16n8k16.bf16(acc[i.tile*16 + j.tile*4], …, As.f[i.tile*4], …, Bs.f[j.tile*2], …) } }
//            }
//
// An operand whose contiguous axis is not k is transposed on its way. Needs: rows of 8 elements side by side.
#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

// Whether 8 neighbours along the axis are 16 bytes of memory, wherever they start at a multiple of 8.
bool has_chunks(const Layout& layout, std::size_t axis) {
  const Factor& inner = layout.axes[axis].factors.back();
  bool result = inner.stride == 1 && inner.extent % 8 == 0;
  for (std::size_t n = 0; n < layout.axes.size(); ++n)
    for (const Factor& factor : layout.axes[n].factors)
      if (&factor != &inner) result &= factor.extent == 1 || factor.stride % 8 == 0;
  return result;
}

// The number of a tile among those that a warp walks, and how many there are.
Expr number_of(const std::vector<Axis>& steps, std::int64_t& count) {
  Expr number = integer(0);
  count = 1;
  for (const Axis& step : steps) {
    std::int64_t extent = integer_value(step.hi).value_or(1);
    number = number * extent + var(step.name);
    count *= extent;
  }
  return number;
}

}  // namespace

// ldmatrix.x4 of the four 8 x 8 matrices whose rows the lanes name: matrix q = lane/8 starts at `row`, `depth`.
Stmt Expander::load_matrices(const OperandAxes& axes, const Expr& row, const Expr& depth, const std::string& fragment, const Expr& first, const Stmt& stmt) {
  const Buffer* buffer = context_.flattener.find(axes.access.buffer);
  bool is_transposed = has_chunks(*buffer->layout, axes.row);
  if (!is_transposed && !has_chunks(*buffer->layout, axes.depth))
    throw UserError(stmt->span, fmt::format("`{}` has no rows of 8 elements side by side at multiples of 16 bytes: {}", buffer->name, print(*buffer->layout)),
                    "`stage … swizzle 128`, or a `pad` that is a multiple of 8");
  Expr row_of_matrix = binary(BinaryOp::Mod, var("lane"), integer(8));
  Access place = axes.access;
  place.index[axes.row] = is_transposed ? row : row + row_of_matrix;
  place.index[axes.depth] = is_transposed ? depth + row_of_matrix : depth;
  Ranges ranges = context_.ranges;
  ranges["lane"] = Interval{0, 31};
  for (Expr& index : place.index) index = tidy(simplify_expr(index, ranges));
  place = context_.flattener.flat(place);
  place.index.back() = tidy(simplify_expr(place.index.back(), ranges));
  std::vector<Expr> operands;
  for (std::int64_t n = 0; n < 4; ++n) operands.push_back(load(Access{fragment, {tidy(first + n)}, {}, stmt->span}, Dtype::U32, stmt->span));
  operands.push_back(load(place, buffer->dtype, stmt->span));
  return make_stmt(Instr{is_transposed ? "ldmatrix.x4.trans" : "ldmatrix.x4", std::move(operands)}, stmt->span);
}

void Expander::mma_by_warps(const Mma& mma, const MatrixTiles& tiles, const Stmt& stmt, Block& out) {
  Span span = stmt->span;
  const Buffer* target = context_.flattener.find(mma.target.buffer);
  std::string k = context_.fresh("k");
  Ranges outer = context_.ranges;
  Axis axis{k, integer(0), integer(tiles.depth / tiles.instruction.k), {}, span};
  add_axis(context_.ranges, axis);
  for (const Axis& step : tiles.row_steps) add_axis(context_.ranges, step);
  for (const Axis& step : tiles.column_steps) add_axis(context_.ranges, step);

  std::int64_t rows = 0, columns = 0;
  Expr row_number = number_of(tiles.row_steps, rows);
  Expr column_number = number_of(tiles.column_steps, columns);
  std::string a = context_.fresh(mma.a.buffer + ".f");
  std::string b = context_.fresh(mma.b.buffer + ".f");
  Expr low = binary(BinaryOp::Mod, binary(BinaryOp::Div, var("lane"), integer(8)), integer(2)) * 8;
  Expr high = binary(BinaryOp::Div, var("lane"), integer(16)) * 8;
  Expr depth = var(k) * tiles.instruction.k;

  // A: rows 0 and 8 at k 0, then at k 8. B: k 0 and 8 of a tile, then of the next one where tiles come in pairs.
  bool in_pairs = tiles.column_steps.size() == 1 && columns % 2 == 0;
  std::int64_t words_of_b = in_pairs ? 2 : 4;
  auto declare = [&](const std::string& name, std::int64_t words) {
    return make_stmt(Buffer{Space::Register, name, Dtype::U32, {BufferAxis{"", words}}, std::nullopt, std::nullopt}, span);
  };
  Block body = {declare(a, rows * 4), declare(b, columns * words_of_b)};
  auto add = [&](const std::vector<Axis>& steps, Block work) {
    Block made = walk_steps(steps, LoopKind::Unroll, std::move(work), span);
    body.insert(body.end(), made.begin(), made.end());
  };
  add(tiles.row_steps, {load_matrices(tiles.a, tiles.first_row + low, depth + high, a, row_number * 4, stmt)});
  if (in_pairs) {
    Axis pair = tiles.column_steps[0];
    std::string step = pair.name;
    pair.name = context_.fresh(step + ".pair");
    pair.hi = integer(columns / 2);
    add_axis(context_.ranges, pair);
    Expr first = substitute(tiles.first_column, {{step, var(pair.name) * 2}});
    add({pair}, {load_matrices(tiles.b, first + high, depth + low, b, var(pair.name) * 4, stmt)});
  } else {
    add(tiles.column_steps, {load_matrices(tiles.b, tiles.first_column, depth + low, b, column_number * 4, stmt)});
  }
  Instr multiply{instruction_of(mma, stmt), {}};
  auto take = [&](const std::string& name, const Expr& first, std::int64_t count, Dtype dtype) {
    for (std::int64_t n = 0; n < count; ++n) multiply.operands.push_back(load(Access{name, {tidy(first + n)}, {}, span}, dtype, span));
  };
  take(target->name, tiles.fragment, 4, target->dtype);
  take(a, row_number * 4, 4, Dtype::U32);
  take(b, column_number * words_of_b, 2, Dtype::U32);
  add(tiles.row_steps, walk_steps(tiles.column_steps, LoopKind::Unroll, {make_stmt(std::move(multiply), span)}, span));
  context_.ranges = std::move(outer);
  out.push_back(make_stmt(Loop{LoopKind::Unroll, {axis}, std::nullopt, std::move(body)}, span));
}

}  // namespace tilewright
