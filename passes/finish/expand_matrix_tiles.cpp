// The tiles of a matrix instruction in an accumulator: which of them the threads that run have, and where these start.
//
//   (i: 2 warpgroup, 4 warp, 2 reg*2, 8 lane*4; j: 2 reg*64, 16 reg*4, 4 lane, 2 reg) by wgmma.m64n128k16:
//   first row wg*64, first column j.tile*128 for j.tile in 2, registers from j.tile*64 on
#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "passes/finish/expander.h"

namespace tilewright {

namespace {

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

}  // namespace

Expander::OperandAxes Expander::operand_axes(const Access& access, const std::string& row, const Stmt& stmt) const {
  const Buffer* buffer = context_.flattener.find(access.buffer);
  if (!buffer || buffer->space != Space::Shared || !buffer->layout)
    throw UserError(stmt->span, fmt::format("`{}` is an operand of a matrix instruction and does not stand in shared memory with a layout", access.buffer));
  OperandAxes result{access, access.index.size(), access.index.size()};
  for (std::size_t n = 0; n < access.index.size(); ++n) {
    const Var* name = as<Var>(access.index[n]);
    if (!name || buffer->axes[n].name == "slot") continue;
    (name->name == row ? result.row : result.depth) = n;
  }
  if (result.row == access.index.size() || result.depth == access.index.size()) internal_error("an operand of an mma without its two axes");
  return result;
}

Expander::MatrixTiles Expander::matrix_tiles(const Mma& mma, const MatrixInstruction& instruction, const Stmt& stmt) {
  const Buffer* target = context_.flattener.find(mma.target.buffer);
  const Var* names[2] = {};
  for (std::size_t n = 0; n < 2 && mma.target.index.size() == 2; ++n) names[n] = as<Var>(mma.target.index[n]);
  if (!target || !target->layout || !names[0] || !names[1]) internal_error("an mma whose target is no fragment of two axes");
  // The instruction's rows are the axis that A has.
  std::size_t row = 0;
  for (const Expr& index : mma.a.index)
    if (uses_var(index, names[1]->name)) row = 1;
  MatrixTiles result;
  result.instruction = instruction;
  result.a = operand_axes(mma.a, names[row]->name, stmt);
  result.b = operand_axes(mma.b, names[1 - row]->name, stmt);
  result.depth = context_.flattener.find(mma.a.buffer)->axes[result.a.depth].extent;
  if (result.depth % instruction.k != 0)
    throw UserError(stmt->span, fmt::format("`{}` takes {} of k at a time, and the tile has {}", mma.instruction, instruction.k, result.depth));

  Fragment fragment = accumulator_fragment(instruction);
  auto rows = in_front_of(target->layout->axes[row], fragment.rows);
  auto columns = in_front_of(target->layout->axes[1 - row], fragment.columns);
  if (!rows || !columns)
    throw UserError(stmt->span, fmt::format("`{}` of `{}`: its layout {} is not that of the instruction's accumulator", target->name, mma.instruction, print(*target->layout)));
  result.fragment = integer(0);
  auto start_of = [&](const std::vector<OuterFactor>& outer, const std::string& name, std::vector<Axis>& steps) {
    Expr start = integer(0);
    for (const OuterFactor& own : outer) {
      Expr digit;
      std::int64_t threads = own.factor.place == Place::Warpgroup ? 128 : 32;
      if (own.factor.place == Place::Reg) {
        std::string step = context_.fresh(name);
        steps.insert(steps.begin(), Axis{step, integer(0), integer(own.factor.extent), {}, stmt->span});
        digit = var(step);
        result.fragment = result.fragment + digit * own.factor.stride;
      } else if (own.factor.place == Place::Warpgroup || (own.factor.place == Place::Warp && instruction.threads == 32)) {
        digit = binary(BinaryOp::Div, own.factor.place == Place::Warpgroup ? warpgroup() : warp(), integer(own.factor.stride));
        if (own.factor.stride * own.factor.extent * threads < context_.block.total()) digit = binary(BinaryOp::Mod, digit, integer(own.factor.extent));
      } else {
        throw UserError(stmt->span, fmt::format("`{}` of `{}`: its tiles are dealt to {}", target->name, mma.instruction, name_of(own.factor.place)));
      }
      start = digit * own.unit + start;
    }
    return start;
  };
  result.first_row = start_of(*rows, names[row]->name + ".tile", result.row_steps);
  result.first_column = start_of(*columns, names[1 - row]->name + ".tile", result.column_steps);
  return result;
}

std::string Expander::instruction_of(const Mma& mma, const Stmt& stmt) const {
  Dtype dtype = context_.flattener.find(mma.a.buffer)->dtype;
  std::string name = fmt::format("{}.{}", mma.instruction, info(dtype).name);
  if (!find_instruction(name)) refuse(stmt, fmt::format("`mma … by {}` of {}", mma.instruction, info(dtype).name));
  return name;
}

// Of the role; the same in all lanes of a warp, as the tensor cores want it.
Expr Expander::warpgroup() { return warpgroup_of_block() - integer(context_.block.first / 128); }

Expr Expander::warpgroup_of_block() {
  std::string name = head_let("wg", call("uniform", {binary(BinaryOp::Div, var("warp"), integer(4))}, Dtype::Index), {});
  context_.ranges[name] = Interval{0, whole_.total() / 128 - 1};
  return var(name);
}

Expr Expander::warp() {
  std::string name = head_let("w", call("uniform", {var("warp")}, Dtype::Index), {});
  context_.ranges[name] = Interval{0, whole_.total() / 32 - 1};
  return var(name) - integer(context_.block.first / 32);
}

}  // namespace tilewright
