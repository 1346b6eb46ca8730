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
#include <cstdio>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"
#include "passes/finish/matrix_descriptor.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

struct WgmmaShape {
  int m = 0;
  int n = 0;
  int k = 0;
};

WgmmaShape shape_of(const std::string& instruction) {
  WgmmaShape shape;
  if (std::sscanf(instruction.c_str(), "wgmma.m%dn%dk%d", &shape.m, &shape.n, &shape.k) != 3) shape = {};
  return shape;
}

// A factor in front of those of an instruction's own fragment; its digit counts `unit` coordinates.
struct OuterFactor {
  Factor factor;
  std::int64_t unit = 1;
};

// Nothing where the axis does not end in `own`. The first of `own` may be the lower part of a longer factor.
std::optional<std::vector<OuterFactor>> in_front_of(const AxisLayout& axis, const std::vector<Factor>& own) {
  if (axis.factors.size() < own.size()) return std::nullopt;
  std::vector<OuterFactor> result;
  std::int64_t unit = 1;
  std::size_t first = axis.factors.size() - own.size();
  for (std::size_t n = own.size(); n-- > 0;) {
    Factor have = axis.factors[first + n];
    unit *= own[n].extent;
    if (have == own[n]) continue;
    bool is_longer = n == 0 && have.place == own[n].place && have.stride == own[n].stride && have.extent % own[n].extent == 0;
    if (!is_longer) return std::nullopt;
    result.push_back({Factor{have.extent / own[n].extent, have.place, have.stride * own[n].extent}, unit});
    unit *= have.extent / own[n].extent;
  }
  for (std::size_t n = first; n-- > 0; unit *= axis.factors[n].extent) result.push_back({axis.factors[n], unit});
  return result;
}

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

void Expander::absorb_fill(const Block& statements, std::size_t at, Block& out) {
  const Fill& fill = *as<Fill>(statements[at]);
  const Stmt& stmt = statements[at];
  std::size_t next = at + 1;
  while (next < statements.size() && !touches({statements[next]}, fill.buffer)) ++next;
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

void Expander::mma(const Mma& mma, const Stmt& stmt, Block& out) {
  auto refuse_layout = [&](const std::string& name, const std::string& need) {
    throw UserError(stmt->span, fmt::format("`{}` of `{}`: {}", name, mma.instruction, need));
  };
  WgmmaShape shape = shape_of(mma.instruction);
  if (shape.m == 0) refuse(stmt, fmt::format("`mma … by {}`", mma.instruction));
  needs_hopper(stmt, fmt::format("`{}`", mma.instruction));
  const Buffer* target = context_.flattener.find(mma.target.buffer);
  const Var* row = mma.target.index.size() == 2 ? as<Var>(mma.target.index[0]) : nullptr;
  const Var* column = mma.target.index.size() == 2 ? as<Var>(mma.target.index[1]) : nullptr;
  if (!target || !target->layout || !row || !column) internal_error("an mma whose target is no fragment of two axes");
  const std::vector<Factor> rows = {{4, Place::Warp, 1}, {2, Place::Reg, 2}, {8, Place::Lane, 4}};
  const std::vector<Factor> columns = {{shape.n / 8, Place::Reg, 4}, {4, Place::Lane, 1}, {2, Place::Reg, 1}};
  auto outer_rows = in_front_of(target->layout->axes[0], rows);
  auto outer_columns = in_front_of(target->layout->axes[1], columns);
  if (!outer_rows || !outer_columns) refuse_layout(mma.target.buffer, "its layout is not that of the instruction's accumulator");

  // Where this warpgroup's tile starts, step by step of what it does one after the other.
  std::vector<Axis> steps;
  Expr fragment = integer(0);
  auto start_of = [&](const std::vector<OuterFactor>& outer, const std::string& name) {
    Expr start = integer(0);
    for (const OuterFactor& own : outer) {
      Expr digit;
      if (own.factor.place == Place::Warpgroup) {
        digit = binary(BinaryOp::Div, warpgroup(), integer(own.factor.stride));
        if (own.factor.stride * own.factor.extent * 128 < context_.block.total()) digit = binary(BinaryOp::Mod, digit, integer(own.factor.extent));
      } else if (own.factor.place == Place::Reg) {
        std::string step = context_.fresh(name);
        steps.push_back(Axis{step, integer(0), integer(own.factor.extent), {}, stmt->span});
        digit = var(step);
        fragment = fragment + digit * own.factor.stride;
      } else {
        refuse_layout(mma.target.buffer, "tiles of one instruction are dealt to warpgroups and registers only");
      }
      start = digit * own.unit + start;
    }
    return start;
  };
  Expr first_row = start_of(*outer_rows, row->name + ".tile");
  Expr first_column = start_of(*outer_columns, column->name + ".tile");

  std::string k = context_.fresh("k");
  std::int64_t depth = 0;
  struct Operand {
    Expr descriptor;
    bool is_transposed = false;
  };
  auto operand = [&](const Access& access, const std::string& name, const Expr& first, int extent) {
    const Buffer* buffer = context_.flattener.find(access.buffer);
    if (!buffer || buffer->space != Space::Shared) refuse_layout(access.buffer, "it is not in shared memory");
    OperandTile tile{access.index.size(), access.index.size(), extent, shape.k};
    Access origin = access;
    for (std::size_t n = 0; n < access.index.size(); ++n) {
      const Var* own = as<Var>(access.index[n]);
      if (!own || n >= buffer->axes.size()) continue;
      if (own->name == name) {
        tile.row_axis = n;
        origin.index[n] = first;
      } else if (buffer->axes[n].name != "slot") {
        tile.depth_axis = n;
        origin.index[n] = var(k) * shape.k;
        depth = buffer->axes[n].extent;
      }
    }
    if (tile.row_axis == access.index.size() || tile.depth_axis == access.index.size()) internal_error("an operand of an mma without its two axes");
    auto descriptor = describe_matrix(*buffer, tile);
    if (!descriptor)
      refuse_layout(access.buffer, fmt::format("its layout {} is none that the instruction reads; `stage … swizzle 128` makes one", buffer->layout ? print(*buffer->layout) : ""));
    std::vector<Expr> operands = {load(context_.flattener.unswizzled(origin), buffer->dtype, stmt->span), integer(descriptor->leading_bytes),
                                  integer(descriptor->stride_bytes)};
    operands[0] = tidy(simplify_expr(operands[0], context_.ranges));
    if (descriptor->swizzle_bytes != 128) operands.push_back(integer(descriptor->swizzle_bytes));
    return Operand{call("desc", std::move(operands), Dtype::U64, stmt->span), descriptor->is_transposed};
  };
  Ranges outer = context_.ranges;
  for (const Axis& step : steps) add_axis(context_.ranges, step);
  const Buffer* staged = context_.flattener.find(mma.a.buffer);
  if (staged)
    for (const BufferAxis& axis : staged->axes) context_.ranges[k] = Interval{0, axis.extent / shape.k - 1};
  Operand a = operand(mma.a, row->name, first_row, shape.m);
  Operand b = operand(mma.b, column->name, first_column, shape.n);
  context_.ranges = std::move(outer);
  if (depth % shape.k != 0) refuse_layout(mma.a.buffer, fmt::format("{} of k are no multiple of {}", depth, shape.k));

  std::string instruction = fmt::format("{}.{}", mma.instruction, info(staged->dtype).name);
  if (!find_instruction(instruction)) refuse(stmt, fmt::format("`mma … by {}` of {}", mma.instruction, info(staged->dtype).name));
  Expr whole = load(Access{target->name, {}, {}, stmt->span}, target->dtype, stmt->span);
  bool is_one_tile = steps.empty();
  Expr place = is_one_tile ? whole : load(Access{target->name, {fragment}, {}, stmt->span}, target->dtype, stmt->span);
  Expr adds = boolean(true);
  if (auto known = adds_.find(target->name); known != adds_.end()) {
    Expr later_step = binary(BinaryOp::Gt, var(k), integer(0));
    adds = known->second ? binary(BinaryOp::Or, known->second, later_step) : later_step;
  }
  Block body = {make_stmt(Instr{instruction, {place, a.descriptor, b.descriptor, adds, integer(a.is_transposed), integer(b.is_transposed)}}, stmt->span)};
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    body = {make_stmt(Loop{LoopKind::Unroll, {*step}, std::nullopt, std::move(body)}, stmt->span)};
  Axis axis{k, integer(0), integer(depth / shape.k), {}, stmt->span};
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

Expr Expander::warpgroup_of_block() {
  std::string name = head_let("wg", call("uniform", {binary(BinaryOp::Div, var("warp"), integer(4))}, Dtype::Index), {});
  context_.ranges[name] = Interval{0, whole_.total() / 128 - 1};
  return var(name);
}

Expr Expander::warpgroup() { return warpgroup_of_block() - integer(context_.block.first / 128); }

}  // namespace tilewright
