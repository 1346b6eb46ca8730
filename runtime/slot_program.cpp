// The compiler from expressions to the flat program, and the instructions without errors.
#include "runtime/slot_program.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "runtime/slot_errors.h"

namespace tilewright {

namespace {

template <BinaryOp Op, Dtype D>
const Ins* run_binary(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = apply(Op, D, machine.slots[ins.a], machine.slots[ins.b]);
  return &ins + 1;
}

constexpr std::size_t dtype_count = 17;
constexpr std::size_t binary_count = 20;

template <std::size_t... I>
constexpr std::array<Ins::Run, sizeof...(I)> binary_table(std::index_sequence<I...>) {
  return {run_binary<static_cast<BinaryOp>(I / dtype_count), static_cast<Dtype>(I % dtype_count)>...};
}
constexpr auto binary_runs = binary_table(std::make_index_sequence<binary_count * dtype_count>());

const Ins* run_unary_neg(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = apply(UnaryOp::Neg, ins.dtype, machine.slots[ins.a]);
  return &ins + 1;
}
const Ins* run_unary_not(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = integer_scalar(machine.slots[ins.a].i == 0);
  return &ins + 1;
}
const Ins* run_unary_bit_not(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = apply(UnaryOp::BitNot, ins.dtype, machine.slots[ins.a]);
  return &ins + 1;
}
const Ins* run_convert(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = convert(ins.dtype, ins.from, machine.slots[ins.a]);
  return &ins + 1;
}
const Ins* run_function(const Ins& ins, Machine& machine) {
  const Scalar arguments[3] = {machine.slots[ins.a], machine.slots[ins.b], machine.slots[ins.c]};
  machine.slots[ins.dst] = reinterpret_cast<ScalarFunction>(const_cast<void*>(ins.object))(ins.from, arguments);
  return &ins + 1;
}
template <Dtype D>
const Ins* run_fma(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = fused_multiply_add(D, machine.slots[ins.a], machine.slots[ins.b], machine.slots[ins.c]);
  return &ins + 1;
}
const Ins* run_copy(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = machine.slots[ins.a];
  return &ins + 1;
}
const Ins* run_jump(const Ins& ins, Machine&) { return &ins + ins.jump; }
const Ins* run_jump_if_false(const Ins& ins, Machine& machine) {
  return machine.slots[ins.a].i != 0 ? &ins + 1 : &ins + ins.jump;
}
const Ins* run_jump_if_true(const Ins& ins, Machine& machine) {
  return machine.slots[ins.a].i == 0 ? &ins + 1 : &ins + ins.jump;
}
const Ins* run_stop(const Ins&, Machine&) { return nullptr; }
const Ins* run_loop_begin(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = machine.slots[ins.a];
  return machine.slots[ins.dst].i < machine.slots[ins.b].i ? &ins + 1 : &ins + ins.jump;
}
const Ins* run_loop_next(const Ins& ins, Machine& machine) {
  const std::int64_t next = machine.slots[ins.dst].i + machine.slots[ins.c].i;
  machine.slots[ins.dst].i = next;
  return next < machine.slots[ins.b].i ? &ins + ins.jump : &ins + 1;
}

// True where every value of `from` is a value of `to` with the same 64 bits, so that the conversion needs no code.
bool is_same_in_slots(Dtype to, Dtype from) {
  if (to == from) return true;
  const DtypeInfo& target = info(to);
  const DtypeInfo& source = info(from);
  if (is_float(to) && is_float(from))
    return to == Dtype::F64 || (to == Dtype::F32 && is_narrow_float(from));
  if (from == Dtype::Bool) return is_integer(to);
  if (!is_integer(to) || !is_integer(from)) return false;
  if (is_signed(to)) return is_signed(from) ? target.bits >= source.bits : target.bits > source.bits || target.bits == 64;
  return (is_unsigned(from) && target.bits >= source.bits) || target.bits == 64;
}

}  // namespace

Slot SlotCompiler::new_slot() {
  initial_slots_.emplace_back();
  return static_cast<Slot>(initial_slots_.size() - 1);
}

Slot SlotCompiler::constant_slot(Scalar value) {
  const auto [entry, is_new] = constants_.try_emplace(value.i, 0);
  if (is_new) {
    entry->second = new_slot();
    initial_slots_[entry->second] = value;
  }
  return entry->second;
}

std::size_t SlotCompiler::emit(Ins ins) {
  code_.push_back(ins);
  return code_.size() - 1;
}

void SlotCompiler::emit_copy(Slot dst, Slot src) {
  emit({.run = follows_errors_ ? run_copy_with_error : run_copy, .dst = dst, .a = src});
}

void SlotCompiler::emit_binary(BinaryOp op, Dtype dtype, Slot dst, Slot a, Slot b, double unit) {
  Ins ins{.run = binary_runs[static_cast<std::size_t>(op) * dtype_count + static_cast<std::size_t>(dtype)],
          .dst = dst, .a = a, .b = b, .dtype = dtype, .unit = unit};
  if (follows_errors_ && dtype != Dtype::Index) ins.run = run_of_binary_with_error(op, dtype);
  emit(ins);
}

std::size_t SlotCompiler::emit_jump() { return emit({.run = run_jump}); }
std::size_t SlotCompiler::emit_jump_if_false(Slot condition) { return emit({.run = run_jump_if_false, .a = condition}); }
std::size_t SlotCompiler::emit_jump_if_true(Slot condition) { return emit({.run = run_jump_if_true, .a = condition}); }

void SlotCompiler::emit_loop(Slot variable, Slot lo, Slot hi, Slot step, const std::function<void()>& body) {
  enter_scope();
  const std::size_t begin = emit({.run = run_loop_begin, .dst = variable, .a = lo, .b = hi});
  body();
  const std::size_t next = emit({.run = run_loop_next, .dst = variable, .b = hi, .c = step});
  jump_back(next, begin + 1);
  land(begin);
  leave_scope();
}

void SlotCompiler::forget_all() {
  for (auto& scope : known_) scope.clear();
}

SlotProgram SlotCompiler::finish() {
  emit({.run = run_stop});
  return {std::move(code_), std::move(initial_slots_)};
}

Slot SlotCompiler::compile(const Expr& expr) {
  if (const Const* value = as<Const>(expr)) return constant_slot(integer_scalar(value->bits));
  if (const Var* name = as<Var>(expr)) return variable(name->name, expr);
  for (const auto& scope : known_)
    if (const auto entry = scope.find(expr); entry != scope.end()) return entry->second;
  const Slot slot = compile_node(expr);
  known_.back().emplace(expr, slot);
  return slot;
}

Slot SlotCompiler::compile_node(const Expr& expr) {
  return match(
      expr, [&](const Const& node) { return constant_slot(integer_scalar(node.bits)); },
      [&](const Var& node) { return variable(node.name, expr); },
      [&](const Unary& node) {
        const Slot operand = compile(node.operand);
        const Slot dst = new_slot();
        const Dtype dtype = computed_dtype(expr->dtype);
        Ins::Run run = nullptr;
        switch (node.op) {
          case UnaryOp::Neg: run = run_unary_neg; break;
          case UnaryOp::Not: run = run_unary_not; break;
          case UnaryOp::BitNot: run = run_unary_bit_not; break;
        }
        emit({.run = run, .dst = dst, .a = operand, .dtype = dtype});
        if (follows_errors_) emit({.run = run_copy_error, .dst = dst, .a = operand});
        return dst;
      },
      [&](const Binary& node) { return compile_binary(node, expr); }, [&](const Select& node) { return compile_select(node); },
      [&](const Cast& node) { return compile_cast(node, expr); }, [&](const Call& node) { return compile_call(node, expr); },
      [&](const Load& node) { return load(node, expr); }, [&](const Reduce& node) { return reduce(node, expr); });
}

Slot SlotCompiler::compile_binary(const Binary& node, const Expr& expr) {
  if (node.op == BinaryOp::And || node.op == BinaryOp::Or) return compile_logical(node);
  const Slot lhs = compile(node.lhs);
  const Slot rhs = compile(node.rhs);
  const Slot dst = new_slot();
  const Dtype dtype = computed_dtype(node.lhs->dtype);
  emit_binary(node.op, dtype, dst, lhs, rhs, unit_of_operation(expr->dtype));
  return dst;
}

// The right side has code of its own only where the left side does not decide.
Slot SlotCompiler::compile_logical(const Binary& node) {
  const Slot lhs = compile(node.lhs);
  const Slot dst = new_slot();
  emit_copy(dst, lhs);
  std::size_t skip = 0;
  if (follows_errors_)
    skip = emit({.run = node.op == BinaryOp::And ? run_jump_if_surely_false : run_jump_if_surely_true, .a = lhs});
  else
    skip = node.op == BinaryOp::And ? emit_jump_if_false(lhs) : emit_jump_if_true(lhs);
  enter_scope();
  const Slot rhs = compile(node.rhs);
  if (follows_errors_)
    emit({.run = node.op == BinaryOp::And ? run_and_with_error : run_or_with_error, .dst = dst, .a = lhs, .b = rhs});
  else
    emit_copy(dst, rhs);
  leave_scope();
  land(skip);
  return dst;
}

Slot SlotCompiler::compile_select(const Select& node) {
  const Slot condition = compile(node.condition);
  const Slot dst = new_slot();
  if (!follows_errors_) {
    const std::size_t to_else = emit_jump_if_false(condition);
    enter_scope();
    emit_copy(dst, compile(node.if_true));
    leave_scope();
    const std::size_t to_end = emit_jump();
    land(to_else);
    enter_scope();
    emit_copy(dst, compile(node.if_false));
    leave_scope();
    land(to_end);
    return dst;
  }
  // Where the condition is uncertain both branches are evaluated, and the error covers both.
  const std::size_t to_else = emit({.run = run_jump_if_surely_false, .a = condition});
  enter_scope();
  const Slot if_true = compile(node.if_true);
  leave_scope();
  const std::size_t to_merge = emit({.run = run_jump_if_surely_true, .a = condition});
  land(to_else);
  enter_scope();
  const Slot if_false = compile(node.if_false);
  leave_scope();
  land(to_merge);
  // The condition's slot may be a variable's that the branches do not touch: it still holds.
  emit({.run = run_merge, .dst = dst, .a = condition, .b = if_true, .c = if_false, .dtype = computed_dtype(node.if_true->dtype)});
  return dst;
}

Slot SlotCompiler::compile_cast(const Cast& node, const Expr& expr) {
  const Slot operand = compile(node.operand);
  const Dtype from = computed_dtype(node.operand->dtype);
  Dtype to = expr->dtype;
  if (mode_ == FloatMode::Unrounded) to = computed_dtype(to);
  // In Real mode a cast rounds to its dtype; a widening one changes nothing.
  if (is_same_in_slots(expr->dtype, node.operand->dtype) || is_same_in_slots(to, from)) return operand;
  const Slot dst = new_slot();
  emit({.run = follows_errors_ ? run_convert_with_error : run_convert, .dst = dst, .a = operand, .dtype = to, .from = from});
  return dst;
}

Slot SlotCompiler::compile_call(const Call& node, const Expr& expr) {
  const ScalarFunction function = find_scalar_function(node.function);
  if (function == nullptr || node.arguments.empty() || node.arguments.size() > 3) return special_call(node, expr);
  Slot arguments[3] = {0, 0, 0};
  for (std::size_t position = 0; position < node.arguments.size(); ++position) arguments[position] = compile(node.arguments[position]);
  const Slot dst = new_slot();
  const Dtype from = computed_dtype(node.arguments.front()->dtype);
  Ins ins{.run = run_function, .dst = dst, .a = arguments[0], .b = arguments[1], .c = arguments[2],
          .dtype = computed_dtype(expr->dtype), .from = from, .unit = unit_of_operation(expr->dtype),
          .object = reinterpret_cast<const void*>(function)};
  const bool is_fma = node.function == "fma" || node.function == "fma.kept";
  if (is_fma && from == Dtype::F32) ins.run = run_fma<Dtype::F32>;
  if (is_fma && from == Dtype::F64) ins.run = run_fma<Dtype::F64>;
  if (follows_errors_ && from != Dtype::Index) {
    const FunctionInfo* facts = find_function(node.function);
    if (facts != nullptr && facts->group == FunctionGroup::Library) ins.unit *= 8;  // as many ulps as CUDA's tables list
    if (facts != nullptr && facts->group == FunctionGroup::Fast) ins.unit *= 4096;
    ins.run = run_of_function_with_error(node.function, node.arguments.size());
  }
  emit(ins);
  return dst;
}

double unit_of_operation(Dtype dtype) {
  if (!is_float(dtype)) return 0;
  return dtype == Dtype::F64 ? 0x1p-52 : 0x1p-24;
}

double half_ulp(Dtype dtype, double value) {
  if (!is_float(dtype) || !std::isfinite(value)) return 0;
  int precision = 53, least = -1022;
  switch (dtype) {
    case Dtype::F32: precision = 24; least = -126; break;
    case Dtype::F16: precision = 11; least = -14; break;
    case Dtype::BF16: precision = 8; least = -126; break;
    case Dtype::E4M3: precision = 4; least = -6; break;
    case Dtype::E5M2: precision = 3; least = -14; break;
    case Dtype::F64: case Dtype::I64: case Dtype::I32: case Dtype::I16: case Dtype::I8: case Dtype::U64: case Dtype::U32:
    case Dtype::U16: case Dtype::U8: case Dtype::Bool: case Dtype::Index: case Dtype::Mbarrier: break;
  }
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - precision);
}

}  // namespace tilewright
