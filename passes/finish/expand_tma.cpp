// Copies by the copy engine: boxes, coordinates and tensor maps from the layout of the tile.
//
//   before   copy Bs[p.in, Bs.k, Bs.j] <- B[k.block*64 + Bs.k, j.block*256 + Bs.j; 0.0] multicast i.cluster
//   after    maps (mB = tiled(B, 64, 64) xor 128)
//            unroll h in 2 { tma.load.2d.multicast(Bs[p.in, (i.cluster*2 + h)*4096], mB, j.block*256 + (i.cluster*2 + h)*64, k.block*64, p.full[p.in], 3) }
//
// Of a multicast tile each block of the cluster fetches its share, for all. Needs: strides of the tensor that are multiples
// of 16 bytes by the plan's facts; the fill is 0, as the engine's. A store is cut at the tensor's edge.
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"
#include "passes/finish/tensor_box.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

bool is_constant_zero(const Expr& value) { return real_value(value) == 0.0 || is_integer_constant(value, 0); }

}  // namespace

// The map of a tensor by boxes of this shape; equal ones are one.
std::string Expander::map_of(const std::string& tensor, const std::vector<std::int64_t>& box, int xor_bytes, const Stmt& stmt) {
  for (const TensorMap& map : maps_)
    if (map.tensor == tensor && map.box == box && map.xor_bytes == xor_bytes) return map.name;
  auto facts = find_tensor(context_.plan, tensor);
  if (!facts) internal_error(fmt::format("a tensor map of `{}`, which is no tensor", tensor));
  std::int64_t bytes = bytes_of(facts->dtype);
  std::string missing;
  Expr stride = integer(bytes);
  for (std::size_t d = facts->shape.size(); d-- > 1;) {
    stride = stride * facts->shape[d];
    if (known_divisor(stride, context_.divisors) % 16 != 0)
      missing += fmt::format("{}{} % {} == 0", missing.empty() ? "" : ", ", print(facts->shape[d]), 16 / bytes);
  }
  if (context_.alignment_of(tensor) % 16 != 0) missing += fmt::format("{}aligned 16", missing.empty() ? "" : ", ");
  if (!missing.empty())
    throw UserError(stmt->span, fmt::format("the copy engine needs rows of `{}` that start at multiples of 16 bytes", tensor), fmt::format("add `when {}`", missing));
  TensorMap map{context_.fresh("m" + tensor), tensor, box, xor_bytes};
  maps_.push_back(map);
  return map.name;
}

Expander::EngineCopy Expander::engine_copy(const Access& shared_side, const Access& tensor_side, const Expr& part, std::int64_t parts, Share share, const Stmt& stmt) {
  const Buffer* shared = context_.flattener.find(shared_side.buffer);
  if (!shared || shared->space != Space::Shared || !find_tensor(context_.plan, tensor_side.buffer))
    refuse(stmt, "a copy by the engine that is not between shared memory and a tensor");
  BoxResult found = tensor_box(*shared, shared_side, tensor_side);
  if (!found.box) throw UserError(stmt->span, fmt::format("the copy engine cannot move `{}`: {}", shared->name, found.why_not));
  TensorBox box = *found.box;

  // Shares: whole panels, or rows of the outermost axis in multiples of 8, where swizzles begin anew.
  EngineCopy result;
  Expr first_panel = integer(0);
  Expr first_row = integer(0);
  std::size_t outermost = box.box.size() - 1;
  while (outermost > 0 && box.axes[outermost].empty()) --outermost;
  if (parts > 1 && share == Share::PanelsOrRows && box.panels % parts == 0) {
    box.panels /= parts;
    first_panel = part * box.panels;
  } else if (parts > 1) {
    if (outermost == 0 || box.box[outermost] % (8 * parts) != 0)
      throw UserError(stmt->span, fmt::format("`{}` cannot be cut into {} parts", shared->name, parts));
    box.box[outermost] /= parts;
    first_row = part * box.box[outermost];
  }
  Expr panel = first_panel;
  if (box.panels > 1) {
    result.loop = Axis{context_.fresh("h"), integer(0), integer(box.panels), {}, stmt->span};
    panel = first_panel + var(result.loop.name);
  }

  result.operands.push_back(var(map_of(tensor_side.buffer, box.box, shared->layout->xor_bytes, stmt), Dtype::U64));
  for (std::size_t n = 0; n < box.box.size(); ++n) {
    Expr start = integer(0);
    if (n == 0) start = panel * box.box[0];
    else if (n == outermost) start = first_row;
    Expr index = tensor_side.index[box.box.size() - 1 - n];
    if (!box.axes[n].empty()) index = substitute(index, {{box.axes[n], start}});
    result.operands.push_back(tidy(simplify_expr(context_.flattener.flat(index), context_.ranges)));
  }
  Access place = shared_side;
  for (Expr& index : place.index) {
    const Var* loop = as<Var>(index);
    if (loop && std::find(box.axes.begin(), box.axes.end(), loop->name) != box.axes.end()) index = integer(0);
  }
  place = context_.flattener.unswizzled(place);
  place.index.back() = tidy(simplify_expr(place.index.back() + panel * box.panel_stride + first_row * box.strides[outermost], context_.ranges));
  result.place = load(place, shared->dtype, stmt->span);
  result.rank = box.box.size();
  return result;
}

void Expander::emit(const EngineCopy& copy, Instr instr, Span span, Block& out) {
  if (!find_instruction(instr.op)) throw UserError(span, fmt::format("the copy engine moves tensors of {} axes by `{}`, which is not in the table of instructions", copy.rank, instr.op));
  Stmt move = make_stmt(std::move(instr), span);
  if (copy.loop.name.empty()) out.push_back(move);
  else out.push_back(make_stmt(Loop{LoopKind::Unroll, {copy.loop}, std::nullopt, {move}}, span));
}

void Expander::load_by_engine(const Copy& copy, const Stmt& stmt, const Expr& full, Block& out) {
  bool fills_zero = copy.source.rule.kind == Rule::Kind::None || (copy.source.rule.kind == Rule::Kind::Fill && is_constant_zero(copy.source.rule.fill));
  if (!fills_zero || !copy.where.empty())
    throw UserError(stmt->span, fmt::format("the copy engine fills what is out of range with 0, and `{}` asks for something else", print(stmt)));
  bool is_shared = !copy.multicast.empty();
  EngineCopy engine = engine_copy(copy.target, copy.source, is_shared ? var(copy.multicast) : Expr{}, is_shared ? cluster_ : 1, Share::PanelsOrRows, stmt);
  Instr instr{fmt::format("tma.load.{}d{}", engine.rank, is_shared ? ".multicast" : ""), {engine.place}};
  instr.operands.insert(instr.operands.end(), engine.operands.begin(), engine.operands.end());
  instr.operands.push_back(full);
  if (is_shared) instr.operands.push_back(integer((std::int64_t{1} << cluster_) - 1));
  emit(engine, std::move(instr), stmt->span, out);
}

}  // namespace tilewright
