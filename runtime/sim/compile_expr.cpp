// Expressions as steps over lane vectors: uniform values once a warp, constants now, branches of a select only where some
// lane takes them.
#include <fmt/format.h>

#include <bit>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "ir/printer.h"
#include "runtime/sim/access.h"
#include "runtime/sim/arithmetic.h"
#include "runtime/sim/compiler.h"
#include "runtime/sim/control.h"
#include "runtime/sim/instructions.h"

namespace tilewright {

namespace {

// `f32 add`, `integer other`.
std::string kind_of(Dtype dtype, std::string_view what) { return fmt::format("{} {}", is_float(dtype) ? info(dtype).name : dtype == Dtype::Bool ? "bool" : "integer", what); }

std::string_view word_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add: case BinaryOp::Sub: return "add";
    case BinaryOp::Mul: return "multiply";
    case BinaryOp::Div: case BinaryOp::Mod: return "divide";
    case BinaryOp::Min: case BinaryOp::Max: return "min or max";
    case BinaryOp::Eq: case BinaryOp::Ne: case BinaryOp::Lt: case BinaryOp::Le: case BinaryOp::Gt: case BinaryOp::Ge: return "compare";
    case BinaryOp::And: case BinaryOp::Or: case BinaryOp::BitAnd: case BinaryOp::BitOr: case BinaryOp::BitXor: case BinaryOp::Shl: case BinaryOp::Shr: return "other";
  }
  return "";
}

}  // namespace

LaneValue KernelCompiler::value(const Expr& expr) {
  const Dtype dtype = expr->dtype;
  return match(
      expr, [&](const Const& node) { return constant(std::bit_cast<Scalar>(node.bits), dtype); }, [&](const Var& node) { return variable(node); },
      [&](const Unary& node) { return unary(node, dtype); }, [&](const Binary& node) { return binary(node, dtype); },
      [&](const Select& node) { return select(node, dtype); }, [&](const Cast& node) { return cast(node, dtype); },
      [&](const Call& node) { return call(node, dtype); }, [&](const Load& node) { return load(node); },
      [&](const Reduce&) -> LaneValue { internal_error("the simulator met a reduction at the thread stage"); });
}

LaneValue KernelCompiler::constant(Scalar value, Dtype dtype) {
  // 0: integers, 1: f32 and narrower, 2: f64, 3: bool
  const int kind = dtype == Dtype::Bool ? 3 : !is_float(dtype) ? 0 : dtype == Dtype::F64 ? 2 : 1;
  const auto [found, is_new] = constants_.try_emplace({bits_of(value), kind}, constant_end_);
  if (is_new) {
    if (constant_end_ + 8 > program_.image.size()) internal_error("more constants than expressions");
    Warp image;
    image.cells = program_.image.data();
    write_uniform(image, constant_end_, dtype, value);
    constant_end_ += 8;
  }
  return {{found->second, dtype, true}, false, value};
}

LaneValue KernelCompiler::variable(const Var& node) {
  const Symbol* symbol = find(node.name);
  const LaneValue* known = symbol != nullptr ? std::get_if<LaneValue>(symbol) : nullptr;
  if (known == nullptr) unsupported(fmt::format("the name `{}`", node.name));
  return *known;
}

LaneValue KernelCompiler::unary(const Unary& node, Dtype dtype) {
  const LaneValue operand = value(node.operand);
  if (operand.constant) return constant(apply(node.op, dtype, *operand.constant), dtype);
  const Operand result = new_operand(dtype, operand.is_uniform());
  WarpOp& op = emit(run_of_unary(node.op, dtype));
  op.dst = result.cell;
  op.a = operand.at.cell;
  op.dtype = dtype;
  op.code = static_cast<std::uint8_t>(node.op);
  op.uniform = operand.is_uniform() ? 9 : 0;
  count_as(kind_of(dtype, "other"));
  return {result, false, std::nullopt};
}

LaneValue KernelCompiler::binary(const Binary& node, Dtype dtype) {
  if (node.op == BinaryOp::And || node.op == BinaryOp::Or) return logical(node);
  const LaneValue a = value(node.lhs);
  const LaneValue b = value(node.rhs);
  return binary_of(node.op, a, b, dtype);
}

LaneValue KernelCompiler::binary_of(BinaryOp op, const LaneValue& a, const LaneValue& b, Dtype dtype) {
  if (a.constant && b.constant) return constant(apply(op, a.dtype(), *a.constant, *b.constant), dtype);
  const bool uniform = a.is_uniform() && b.is_uniform();
  const Operand result = new_operand(dtype, uniform);
  WarpOp& step = emit(run_of_binary(op, a.dtype(), a.is_uniform(), b.is_uniform()));
  step.dst = result.cell;
  step.a = a.at.cell;
  step.b = b.at.cell;
  step.dtype = a.dtype();
  step.from = b.dtype();
  step.code = static_cast<std::uint8_t>(op);
  step.uniform = static_cast<std::uint8_t>((a.is_uniform() ? 1 : 0) | (b.is_uniform() ? 2 : 0) | (uniform ? 8 : 0));
  count_as(kind_of(a.dtype(), word_of(op)));
  return {result, false, std::nullopt};
}

// The right side is evaluated in the lanes that need it, where that makes a difference.
LaneValue KernelCompiler::logical(const Binary& node) {
  const bool is_and = node.op == BinaryOp::And;
  const LaneValue lhs = value(node.lhs);
  if (lhs.constant) {
    if ((lhs.constant->i != 0) != is_and) return lhs;
    return value(node.rhs);
  }
  if (is_pure(node.rhs)) return binary_of(node.op, lhs, value(node.rhs), Dtype::Bool);
  const Operand kept = new_operand(Dtype::Bool, false);
  // Where the right side is not reached, the left side is the result, whatever stands in the right one's cell.
  const std::size_t start = position();
  WarpOp& enter_op = emit(is_and ? run_branch : run_branch_unless);
  enter_op.dst = kept.cell;
  enter_op.a = lhs.at.cell;
  const LaneValue rhs = value(node.rhs);
  land(start);
  emit(run_rejoin).dst = kept.cell;
  return binary_of(node.op, lhs, rhs, Dtype::Bool);
}

LaneValue KernelCompiler::select(const Select& node, Dtype dtype) {
  const LaneValue condition = value(node.condition);
  if (condition.constant) return value(condition.constant->i != 0 ? node.if_true : node.if_false);
  const bool uniform = condition.is_uniform() && is_uniform(node.if_true) && is_uniform(node.if_false);
  if (is_pure(node.if_true) && is_pure(node.if_false)) {
    const LaneValue a = value(node.if_true);
    const LaneValue b = value(node.if_false);
    const Operand result = new_operand(dtype, uniform);
    WarpOp& op = emit(run_of_blend(dtype));
    op.dst = result.cell;
    op.a = a.at.cell;
    op.b = b.at.cell;
    op.c = condition.at.cell;
    op.uniform = static_cast<std::uint8_t>((a.is_uniform() ? 1 : 0) | (b.is_uniform() ? 2 : 0) | (uniform ? 8 : 0));
    return {result, false, std::nullopt};
  }
  const Operand result = new_operand(dtype, uniform);
  const Operand kept = new_operand(Dtype::Bool, false);
  const std::size_t start = position();
  WarpOp& branch_op = emit(run_branch);
  branch_op.dst = kept.cell;
  branch_op.a = condition.at.cell;
  move(result, value(node.if_true));
  land(start);
  const std::size_t otherwise = position();
  WarpOp& otherwise_op = emit(run_otherwise);
  otherwise_op.dst = kept.cell;
  otherwise_op.a = condition.at.cell;
  move(result, value(node.if_false));
  land(otherwise);
  emit(run_rejoin).dst = kept.cell;
  return {result, false, std::nullopt};
}

LaneValue KernelCompiler::cast(const Cast& node, Dtype dtype) { return convert(value(node.operand), dtype); }

LaneValue KernelCompiler::convert(const LaneValue& from, Dtype dtype) {
  if (from.constant) return constant(tilewright::convert(dtype, from.dtype(), *from.constant), dtype);
  if (is_same_cell(dtype, from.dtype())) {
    LaneValue same = from;
    same.at.dtype = dtype;
    return same;
  }
  const Operand result = new_operand(dtype, from.is_uniform());
  WarpOp& op = emit(run_of_cast(dtype, from.dtype()));
  op.dst = result.cell;
  op.a = from.at.cell;
  op.dtype = dtype;
  op.from = from.dtype();
  op.uniform = from.is_uniform() ? 9 : 0;
  count_as("convert");
  return {result, false, std::nullopt};
}

LaneValue KernelCompiler::call(const Call& node, Dtype dtype) {
  if (find_instruction(node.function) != nullptr) {
    const std::string outer = text_;
    text_ = node.function;
    const LaneValue result = compile_instruction(*this, node, dtype);
    count_as(node.function);
    text_ = outer;
    return result;
  }
  if (node.function == "within") return within(node);
  const ScalarFunction function = find_scalar_function(node.function);
  if (function == nullptr) unsupported(fmt::format("the function `{}`", node.function));
  std::vector<LaneValue> arguments;
  bool uniform = true;
  bool constants = true;
  for (const Expr& argument : node.arguments) {
    arguments.push_back(value(argument));
    uniform &= arguments.back().is_uniform();
    constants &= arguments.back().constant.has_value();
  }
  const Dtype of = arguments.at(0).dtype();
  if (constants) {
    std::vector<Scalar> values;
    for (const LaneValue& argument : arguments) values.push_back(*argument.constant);
    return constant(function(of, values.data()), dtype);
  }
  while (arguments.size() < 3) arguments.push_back(arguments.back());
  const Operand result = new_operand(dtype, uniform);
  WarpOp& op = emit(run_of_function(node.function, of));
  op.object = object_of(function);
  op.dst = result.cell;
  op.a = arguments[0].at.cell;
  op.b = arguments[1].at.cell;
  op.c = arguments[2].at.cell;
  op.dtype = of;
  op.from = dtype;
  for (std::size_t n = 0; n < 3; ++n)
    if (arguments[n].is_uniform()) op.uniform = static_cast<std::uint8_t>(op.uniform | 1u << n);
  if (uniform) op.uniform |= 8;
  count_as(kind_of(of, node.function));
  return {result, false, std::nullopt};
}

LaneValue KernelCompiler::within(const Call& node) {
  const LaneValue bound = settled(convert(value(node.arguments.at(0)), Dtype::Index));
  const LaneValue most = convert(value(node.arguments.at(1)), Dtype::Index);
  const LaneValue zero = constant(Scalar{}, Dtype::Index);
  const LaneValue site = value(node.arguments.at(2));
  emit_report(*this, binary_of(BinaryOp::Or, binary_of(BinaryOp::Lt, bound, zero, Dtype::Bool), binary_of(BinaryOp::Gt, bound, most, Dtype::Bool), Dtype::Bool), site, bound);
  return binary_of(BinaryOp::Min, binary_of(BinaryOp::Max, bound, zero, Dtype::Index), most, Dtype::Index);
}

// ---- Places.
Operand KernelCompiler::flat_index(const Access& access, const std::vector<std::int64_t>& extents, std::vector<Operand>& index) {
  std::optional<LaneValue> flat;
  for (std::size_t axis = 0; axis < access.index.size(); ++axis) {
    const LaneValue digit = settled(value(access.index[axis]));
    index.push_back(digit.at);
    if (!flat) {
      flat = digit;
      continue;
    }
    const bool uniform = flat->is_uniform() && digit.is_uniform();
    const Operand next = new_operand(Dtype::Index, uniform);
    WarpOp& op = emit(run_flatten);
    op.dst = next.cell;
    op.a = flat->at.cell;
    op.b = digit.at.cell;
    op.jump = static_cast<std::int32_t>(extents.at(axis));
    op.uniform = static_cast<std::uint8_t>((flat->is_uniform() ? 1 : 0) | (digit.is_uniform() ? 2 : 0) | (uniform ? 8 : 0));
    flat = LaneValue{next, false, std::nullopt};
  }
  if (!flat) flat = constant(Scalar{}, Dtype::Index);
  return flat->at;
}

MemorySite& KernelCompiler::memory_site(const Access& access, Operand& element) {
  MemorySite site;
  site.name = access.buffer;
  site.text = print_access(access);
  const Symbol* symbol = find(access.buffer);
  if (const SharedBuffer* shared = symbol != nullptr ? std::get_if<SharedBuffer>(symbol) : nullptr) {
    if (shared->dtype == Dtype::Mbarrier) refuse(fmt::format("the barrier object `{}` as data", access.buffer));
    site.dtype = shared->dtype;
    site.is_shared = true;
    site.offset = shared->offset;
    site.elements = 1;
    for (const std::int64_t extent : shared->extents) site.elements *= extent;
    const std::vector<std::int64_t> extents = shared->extents;
    element = flat_index(access, extents, site.index);
  } else {
    const auto tensor = environment_.tensors.find(access.buffer);
    if (symbol != nullptr || tensor == environment_.tensors.end()) unsupported(fmt::format("`{}` as a place in memory", access.buffer));
    GlobalTensor& global = *tensor->second;
    site.dtype = global.dtype;
    site.elements = global.elements;
    site.base = global.base;
    site.written = global.written.empty() ? nullptr : global.written.data();
    site.marks = global.marks.get();
    element = flat_index(access, global.shape, site.index);
  }
  program_.memory_sites.push_back(std::move(site));
  return program_.memory_sites.back();
}

RegisterSite& KernelCompiler::register_site(const Access& access, Operand& element) {
  if (!is_register_buffer(access.buffer)) unsupported(fmt::format("`{}` as a register", access.buffer));
  const RegisterBuffer known = std::get<RegisterBuffer>(*find(access.buffer));
  RegisterSite site = known.site;
  site.text = print_access(access);
  element = flat_index(access, known.extents, site.index);
  program_.register_sites.push_back(std::move(site));
  return program_.register_sites.back();
}

BarrierSite KernelCompiler::barrier_site(const Access& access) {
  const Symbol* symbol = find(access.buffer);
  const SharedBuffer* shared = symbol != nullptr ? std::get_if<SharedBuffer>(symbol) : nullptr;
  if (shared == nullptr || shared->dtype != Dtype::Mbarrier) refuse(fmt::format("`{}` is no barrier object", access.buffer));
  BarrierSite site;
  site.name = access.buffer;
  site.text = print_access(access);
  site.first = shared->first_object;
  site.elements = 1;
  for (const std::int64_t extent : shared->extents) site.elements *= extent;
  const std::vector<std::int64_t> extents = shared->extents;
  site.element = flat_index(access, extents, site.index);
  return site;
}

const MapInfo& KernelCompiler::tensor_map(const Expr& expr) const {
  const Var* name = as<Var>(expr);
  for (const MapInfo& map : program_.maps)
    if (name != nullptr && map.name == name->name) return map;
  refuse("an operand that is no tensor map");
}

LaneValue KernelCompiler::load(const Load& node) {
  const Access& access = node.access;
  if (access.rule.kind != Rule::Kind::None) internal_error(fmt::format("the simulator met the rule of `{}`", print_access(access)));
  Operand element;
  if (is_register_buffer(access.buffer)) {
    const bool is_scalar = std::get<RegisterBuffer>(*find(access.buffer)).extents.empty();
    RegisterSite& site = register_site(access, element);
    if (is_scalar) {
      if (site.is_checked) emit(run_register_check).object = &site;
      return {{site.first, site.dtype, false}, true, std::nullopt};
    }
    const Operand result = new_operand(site.dtype, false);
    WarpOp& op = emit(run_register_load);
    op.object = &site;
    op.dst = result.cell;
    op.a = element.cell;
    op.uniform = element.is_uniform ? 1 : 0;
    return {result, false, std::nullopt};
  }
  MemorySite& site = memory_site(access, element);
  const Operand result = new_operand(site.dtype, element.is_uniform);
  WarpOp& op = emit(run_of_load(site, element.is_uniform));
  op.object = &site;
  op.dst = result.cell;
  op.a = element.cell;
  op.uniform = element.is_uniform ? 1 : 0;
  count_access(AccessKind::Load, access, site);
  count_as(site.is_shared ? "load shared" : "load global");
  return {result, false, std::nullopt};
}

// ---- Facts.
LaneValue KernelCompiler::settled(const LaneValue& from) {
  if (!from.is_register) return from;
  const Operand copy = new_operand(from.dtype(), false);
  move(copy, from);
  return {copy, false, std::nullopt};
}

void KernelCompiler::move(Operand to, const LaneValue& from) {
  if (to.is_uniform && !from.is_uniform()) internal_error("a value of each lane for a uniform cell");
  WarpOp& op = emit(run_of_move(to.dtype));
  op.dst = to.cell;
  op.a = from.at.cell;
  op.uniform = static_cast<std::uint8_t>((from.is_uniform() ? 1 : 0) | (to.is_uniform ? 8 : 0));
}

bool KernelCompiler::is_uniform(const Expr& expr) const {
  if (const Var* node = as<Var>(expr)) {
    const Symbol* symbol = find(node->name);
    const LaneValue* known = symbol != nullptr ? std::get_if<LaneValue>(symbol) : nullptr;
    return known != nullptr && known->is_uniform();
  }
  if (const Load* node = as<Load>(expr); node && is_register_buffer(node->access.buffer)) return false;
  if (const Call* node = as<Call>(expr); node && find_instruction(node->function) != nullptr) return false;
  bool all = true;
  map_children(expr, [&](const Expr& child) {
    all = all && is_uniform(child);
    return child;
  });
  return all;
}

bool KernelCompiler::is_pure(const Expr& expr) const {
  bool pure = true;
  walk(expr, [&](const Expr& node) {
    const Call* function = as<Call>(node);
    pure = pure && as<Load>(node) == nullptr && (function == nullptr || (function->function != "within" && find_instruction(function->function) == nullptr));
    return pure;
  });
  return pure;
}

}  // namespace tilewright
