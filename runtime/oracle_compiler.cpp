// Statements of tensor IR as flat programs: loads by rule, reductions, updates.
#include "runtime/oracle_compiler.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/diagnostic.h"
#include "runtime/slot_errors.h"

namespace tilewright {

namespace {

OracleMachine& of(Machine& machine) { return static_cast<OracleMachine&>(machine); }

const OracleSite& site_of(const Ins& ins) { return *static_cast<const OracleSite*>(ins.object); }

// What an access outside gives. Without a rule the frontend has seen to it that this is not the branch taken: the value
// says so to whoever takes it after all.
void put_outside(const Ins& ins, OracleMachine& machine, const OracleSite& site, std::int64_t outside) {
  const bool is_checked = site.rule == Rule::Kind::Check;
  if (is_checked && !machine.error) machine.error = ErrorHit{site.check_id, outside};
  machine.slots[ins.dst] = is_checked || !is_float(site.memory->dtype) ? Scalar{} : real_scalar(std::nan(""));
  if (machine.errors != nullptr) machine.errors[ins.dst] = is_checked ? 0 : INFINITY;
}

template <Dtype D>
struct OracleLoad {
  static const Ins* run(const Ins& ins, Machine& machine) {
    const OracleSite& site = site_of(ins);
    std::int64_t outside = 0;
    const std::int64_t element = locate(site, machine.slots, outside);
    if (element < 0) {
      if (site.rule == Rule::Kind::Fill) return &ins + ins.jump;
      put_outside(ins, of(machine), site, outside);
      return &ins + 1;
    }
    const OracleMemory& memory = *site.memory;
    machine.slots[ins.dst] = load_typed<D>(memory.base + element * static_cast<std::int64_t>(sizeof_dtype));
    if (machine.errors != nullptr) machine.errors[ins.dst] = memory.errors != nullptr ? memory.errors[element] : 0;
    return &ins + 1;
  }
  static constexpr std::size_t sizeof_dtype =
      D == Dtype::F64 || D == Dtype::I64 ? 8 : D == Dtype::F32 || D == Dtype::I32 || D == Dtype::U32 ? 4
      : D == Dtype::F16 || D == Dtype::BF16 || D == Dtype::I16 || D == Dtype::U16 ? 2 : 1;
};

const Ins* run_load_on_demand(const Ins& ins, Machine& machine) {
  const OracleSite& site = site_of(ins);
  std::int64_t outside = 0;
  const std::int64_t element = locate(site, machine.slots, outside);
  if (element < 0) {
    if (site.rule == Rule::Kind::Fill) return &ins + ins.jump;
    put_outside(ins, of(machine), site, outside);
    return &ins + 1;
  }
  auto& known = of(machine).known[site.memory];
  auto entry = known.find(element);
  if (entry == known.end()) {
    Scalar* const slots = machine.slots;
    double* const errors = machine.errors;
    const OracleMachine::Known made = evaluate_element(*site.memory->on_demand, of(machine), element);
    machine.slots = slots;
    machine.errors = errors;
    entry = known.emplace(element, made).first;
  }
  machine.slots[ins.dst] = entry->second.value;
  if (machine.errors != nullptr) machine.errors[ins.dst] = entry->second.error;
  return &ins + 1;
}

// dst = within(a, b, id): a bound cut to 0 ..= b.
const Ins* run_within(const Ins& ins, Machine& machine) {
  const std::int64_t bound = machine.slots[ins.a].i;
  const std::int64_t most = machine.slots[ins.b].i;
  const bool is_inside = bound >= 0 && bound <= most;
  if (!is_inside && !of(machine).error) of(machine).error = ErrorHit{static_cast<int>(machine.slots[ins.c].i), bound};
  machine.slots[ins.dst] = integer_scalar(bound < 0 ? 0 : is_inside ? bound : most);
  return &ins + 1;
}

// A term of a float sum: dst the sum, b its magnitude, c the number of terms.
const Ins* run_add_term(const Ins& ins, Machine& machine) {
  const double term = machine.slots[ins.a].f;
  machine.slots[ins.dst].f += term;
  machine.errors[ins.dst] += machine.errors[ins.a];
  if (std::isfinite(term)) machine.slots[ins.b].f += std::fabs(term);
  machine.slots[ins.c].f += 1;
  return &ins + 1;
}

const Ins* run_finish_sum(const Ins& ins, Machine& machine) {
  const double depth = std::max(machine.slots[ins.c].f, 1.0);
  const double factor = of(machine).is_worst_case ? depth : std::min(depth, 6 * std::sqrt(depth));
  machine.errors[ins.dst] = error_of_sum(machine.slots[ins.dst].f, machine.errors[ins.dst], machine.slots[ins.b].f, factor * ins.unit);
  return &ins + 1;
}

// A factor of a float product: dst the product of those above 1, b of those below. In another order these may meet first.
const Ins* run_note_factor(const Ins& ins, Machine& machine) {
  const double factor = std::fabs(machine.slots[ins.a].f);
  if (factor > 1) machine.slots[ins.dst].f *= factor;
  else if (factor > 0) machine.slots[ins.b].f *= factor;
  return &ins + 1;
}

// Where some order of the factors overflows or underflows in `dtype`, nothing is said of the product.
const Ins* run_finish_product(const Ins& ins, Machine& machine) {
  const bool is_f64 = ins.dtype == Dtype::F64;
  const double largest = is_f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double smallest = is_f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  if (machine.slots[ins.a].f > largest || machine.slots[ins.b].f < smallest) machine.errors[ins.dst] = std::numeric_limits<double>::infinity();
  return &ins + 1;
}

// target[…] op= a; `dtype` is the dtype of the target's values, `from` holds the operator.
const Ins* run_update(const Ins& ins, Machine& machine) {
  const OracleSite& site = site_of(ins);
  std::int64_t outside = 0;
  const std::int64_t element = locate(site, machine.slots, outside);
  if (element < 0) {
    if (site.rule == Rule::Kind::Check && !of(machine).error) of(machine).error = ErrorHit{site.check_id, outside};
    return &ins + 1;
  }
  OracleMemory& memory = *site.memory;
  const auto at = static_cast<std::size_t>(element);
  const auto op = static_cast<BinaryOp>(ins.c);
  const Scalar term = machine.slots[ins.a];
  const Scalar old = memory.values[at];
  memory.values[at] = apply(op, ins.dtype, old, term);
  if (machine.errors == nullptr) return &ins + 1;
  double& error = memory.error_values[at];
  const double other = machine.errors[ins.a];
  if (op == BinaryOp::Max || op == BinaryOp::Min) error = std::max(error, other);
  else if (op == BinaryOp::Mul && is_float(ins.dtype))
    error = error_of_rounded(memory.values[at].f, std::isinf(error) || std::isinf(other) ? error + other : std::fabs(old.f) * other + std::fabs(term.f) * error + error * other, ins.unit);
  else error += other;
  if (!memory.magnitudes.empty()) {
    if (std::isfinite(term.f)) memory.magnitudes[at] += std::fabs(term.f);
    memory.depths[at] += 1;
  }
  return &ins + 1;
}

// Rounding of a stored value; where the dtype is that of the computation nothing moves but the error.
const Ins* run_round(const Ins& ins, Machine& machine) { return run_convert_with_error(ins, machine); }
const Ins* run_round_only(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = real_scalar(round_to(ins.dtype, machine.slots[ins.a].f));
  return &ins + 1;
}
const Ins* run_add_half_ulp(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = machine.slots[ins.a];
  const double error = machine.errors[ins.a];
  machine.errors[ins.dst] = error + half_ulp(ins.dtype, machine.slots[ins.a].f);
  return &ins + 1;
}

}  // namespace

OracleMachine::Known evaluate_element(const OracleStatement& statement, OracleMachine& machine, std::int64_t element) {
  OracleMachine::Frame& frame = machine.frames[statement.number];
  if (frame.slots.empty()) {
    frame.slots = statement.program.initial_slots;
    frame.errors.assign(frame.slots.size(), 0.0);
  }
  machine.slots = frame.slots.data();
  machine.errors = machine.follows_errors ? frame.errors.data() : nullptr;
  std::int64_t rest = element;
  for (std::size_t axis = 0; axis < statement.axis_slots.size(); ++axis) {
    const std::int64_t stride = statement.target->strides[axis];
    machine.slots[statement.axis_slots[axis]].i = rest / stride;
    rest %= stride;
  }
  run(statement.program, machine);
  return {machine.slots[statement.result], machine.errors != nullptr ? machine.errors[statement.result] : 0};
}

Slot OracleCompiler::variable(const std::string& name, const Expr&) {
  if (const auto loop = loop_slots_.find(name); loop != loop_slots_.end()) return loop->second;
  if (const auto dim = dims_.find(name); dim != dims_.end()) return constant_slot(integer_scalar(dim->second));
  internal_error(fmt::format("the oracle meets an unknown name `{}`", name));
}

OracleSite* OracleCompiler::make_site(const Access& access) {
  const auto memory = memories_.find(access.buffer);
  if (memory == memories_.end()) internal_error(fmt::format("the oracle meets an unknown tensor `{}`", access.buffer));
  auto site = std::make_unique<OracleSite>();
  site->memory = memory->second;
  for (const Expr& index : access.index) site->index.push_back(compile(index));
  site->rule = access.rule.kind;
  site->check_id = access.rule.check_id;
  site->span = access.span;
  sites_.push_back(std::move(site));
  return sites_.back().get();
}

Slot OracleCompiler::load(const Load& load, const Expr&) {
  OracleSite* site = make_site(load.access);
  const Slot dst = new_slot();
  const Ins::Run read = site->memory->on_demand != nullptr ? run_load_on_demand : run_for_dtype<OracleLoad>(site->memory->dtype);
  const std::size_t at_load = emit({.run = read, .dst = dst, .object = site});
  if (load.access.rule.kind == Rule::Kind::Fill) {
    const std::size_t over = emit_jump();
    land(at_load);
    enter_scope();
    emit_copy(dst, compile(load.access.rule.fill));
    leave_scope();
    land(over);
  }
  return dst;
}

Slot OracleCompiler::special_call(const Call& call, const Expr& expr) {
  if (call.function != "within")
    throw UserError(expr->span, fmt::format("the oracle cannot evaluate `{}`", call.function));
  const Slot dst = new_slot();
  emit({.run = run_within, .dst = dst, .a = compile(call.arguments.at(0)), .b = compile(call.arguments.at(1)),
        .c = compile(call.arguments.at(2))});
  return dst;
}

void OracleCompiler::emit_axes(const std::vector<Axis>& axes, std::size_t position, const std::function<void()>& body) {
  if (position == axes.size()) return body();
  const Axis& axis = axes[position];
  const Slot lo = axis.lo ? compile(axis.lo) : constant_slot({});
  const Slot hi = compile(axis.hi);
  const Slot step = axis.step ? compile(axis.step) : constant_slot(integer_scalar(1));
  const Slot index = new_slot();
  loop_slots_[axis.name] = index;
  emit_loop(index, lo, hi, step, [&] { emit_axes(axes, position + 1, body); });
  loop_slots_.erase(axis.name);
}

// As Reduce::gives_index says.
Slot OracleCompiler::index_of_extreme(const Reduce& reduce) {
  const Dtype dtype = computed_dtype(reduce.body->dtype);
  const Slot dst = new_slot(), best = new_slot(), better = new_slot(), other = new_slot(), another = new_slot();
  const Slot zero = constant_slot({});
  emit_copy(dst, constant_slot(integer_scalar(-1)));
  emit_copy(best, constant_slot(identity_scalar(reduce.op, dtype)));
  emit_axes(reduce.axes, 0, [&] {
    std::vector<std::size_t> skips;
    for (const Expr& condition : reduce.where) skips.push_back(emit_jump_if_false(compile(condition)));
    const Slot term = compile(reduce.body);
    emit_binary(BinaryOp::Lt, Dtype::I64, better, dst, zero, 0);
    emit_binary(reduce.op == CombineOp::Max ? BinaryOp::Gt : BinaryOp::Lt, dtype, other, term, best, 0);
    emit_binary(BinaryOp::Or, Dtype::Bool, better, better, other, 0);
    if (is_float(dtype)) {
      emit_binary(BinaryOp::Ne, dtype, other, term, term, 0);
      emit_binary(BinaryOp::Eq, dtype, another, best, best, 0);
      emit_binary(BinaryOp::And, Dtype::Bool, other, other, another, 0);
      emit_binary(BinaryOp::Or, Dtype::Bool, better, better, other, 0);
    }
    skips.push_back(emit_jump_if_false(better));
    emit_copy(best, term);
    emit_copy(dst, loop_slots_.at(reduce.axes[0].name));
    for (const std::size_t skip : skips) land(skip);
  });
  return dst;
}

Slot OracleCompiler::reduce(const Reduce& reduce, const Expr& expr) {
  if (reduce.gives_index) return index_of_extreme(reduce);
  const Dtype dtype = computed_dtype(expr->dtype);
  const bool is_float_sum = follows_errors() && reduce.op == CombineOp::Add && is_float(dtype);
  const Slot dst = new_slot();
  const Slot magnitude = is_float_sum ? new_slot() : 0;
  const Slot depth = is_float_sum ? new_slot() : 0;
  const bool is_float_product = follows_errors() && reduce.op == CombineOp::Mul && is_float(dtype);
  const Slot above = is_float_product ? new_slot() : 0, below = is_float_product ? new_slot() : 0;
  emit_copy(dst, constant_slot(identity_scalar(reduce.op, dtype)));
  if (is_float_sum) {
    emit_copy(magnitude, constant_slot({}));
    emit_copy(depth, constant_slot({}));
  }
  for (const Slot factors : {above, below})
    if (is_float_product) emit_copy(factors, constant_slot(real_scalar(1)));
  emit_axes(reduce.axes, 0, [&] {
    std::vector<std::size_t> skips;
    for (const Expr& condition : reduce.where) skips.push_back(emit_jump_if_false(compile(condition)));
    const Slot term = compile(reduce.body);
    if (is_float_product) emit({.run = run_note_factor, .dst = above, .a = term, .b = below});
    if (is_float_sum) emit({.run = run_add_term, .dst = dst, .a = term, .b = magnitude, .c = depth});
    else emit_binary(binary_of(reduce.op, dtype), dtype, dst, dst, term, unit_of_operation(expr->dtype));
    for (const std::size_t skip : skips) land(skip);
  });
  if (is_float_sum) emit({.run = run_finish_sum, .dst = dst, .b = magnitude, .c = depth, .unit = unit_of_operation(expr->dtype)});
  if (is_float_product) emit({.run = run_finish_product, .dst = dst, .a = above, .b = below, .dtype = expr->dtype});
  return dst;
}

Slot OracleCompiler::rounded(Slot value, Dtype declared) {
  if (!is_float(declared) || mode() == FloatMode::Typed) return value;
  if (mode() == FloatMode::Unrounded || declared == Dtype::F64) {
    if (!follows_errors() || declared == Dtype::F64) return value;
    const Slot dst = new_slot();
    emit({.run = run_add_half_ulp, .dst = dst, .a = value, .dtype = declared, .from = Dtype::F64});
    return dst;
  }
  const Slot dst = new_slot();
  emit({.run = follows_errors() ? run_round : run_round_only, .dst = dst, .a = value, .dtype = declared, .from = Dtype::F64});
  return dst;
}

OracleStatement OracleCompiler::compile_definition(const TensorStmt& stmt) {
  OracleStatement result;
  result.source = &stmt;
  result.target = memories_.at(stmt.target);
  for (const Expr& index : stmt.index) {
    const Slot slot = new_slot();
    loop_slots_[as<Var>(index)->name] = slot;
    result.axis_slots.push_back(slot);
  }
  // Every element is defined: conditions of a `=` hold everywhere (the verifier refuses others).
  result.result = rounded(compile(stmt.value), result.target->declared);
  result.program = finish();
  return result;
}

OracleStatement OracleCompiler::compile_update(const TensorStmt& stmt) {
  OracleStatement result;
  result.source = &stmt;
  result.target = memories_.at(stmt.target);
  const Dtype dtype = computed_dtype(result.target->declared);
  emit_axes(stmt.axes, 0, [&] {
    std::vector<std::size_t> skips;
    for (const Expr& condition : stmt.where) skips.push_back(emit_jump_if_false(compile(condition)));
    const OracleSite* site = make_site(Access{stmt.target, stmt.index, stmt.rule, stmt.span});
    const Slot term = compile(stmt.value);
    emit({.run = run_update, .a = term, .c = static_cast<Slot>(binary_of(*stmt.combine, dtype)), .dtype = dtype,
          .unit = unit_of_operation(result.target->declared), .object = site});
    for (const std::size_t skip : skips) land(skip);
  });
  result.program = finish();
  return result;
}

}  // namespace tilewright
