// Bounds of errors, carried through each operation: |result - true result| <= what the operands' errors do to it, plus
// the operation's own rounding.
#include "runtime/slot_errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace tilewright {

namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

void put(Machine& machine, const Ins& ins, double value, double error) {
  machine.slots[ins.dst] = real_scalar(value);
  machine.errors[ins.dst] = error_of_rounded(value, error, ins.unit);
}

// How far a / b may move: |a| / (|b| - eb) - |a / b| and a's share. A divisor that overflows f32 lies between f32's
// largest number and infinity, so the quotient lies between its true value and 0.
double error_of_quotient(double value, double b, double ea, double eb) {
  if (ea == 0 && eb == 0) return 0;
  if (std::isinf(ea)) return unknown;  // inf / inf is no number
  if (std::isinf(eb) && std::fabs(b) > std::numeric_limits<float>::max() / 2) return std::fabs(value) + ea / std::fabs(b);
  const double least = std::fabs(b) - eb;
  if (!(least > 0)) return unknown;
  return std::isfinite(value) ? (ea + std::fabs(value) * eb) / least : 0;
}

double error_of_product(double a, double b, double ea, double eb) {
  if (std::isinf(ea) || std::isinf(eb)) return unknown;  // 0 * unknown is no number
  if (ea == 0 && eb == 0) return 0;
  const auto may_vanish = [](double x, double error) { return error > 0 && std::fabs(x) <= error; };
  if ((std::isinf(a) && may_vanish(b, eb)) || (std::isinf(b) && may_vanish(a, ea))) return unknown;  // 0 * inf, or the other sign
  if (!std::isfinite(a) || !std::isfinite(b)) return 0;
  return std::fabs(a) * eb + std::fabs(b) * ea + ea * eb;
}

template <BinaryOp Op>
const Ins* run_float(const Ins& ins, Machine& machine) {
  const double a = machine.slots[ins.a].f, b = machine.slots[ins.b].f;
  const double ea = machine.errors[ins.a], eb = machine.errors[ins.b];
  const double value = apply(Op, Dtype::F64, machine.slots[ins.a], machine.slots[ins.b]).f;
  // A kernel that contracts, or adds in another order, may stay below what overflows f64 here.
  [[maybe_unused]] const bool overflows = std::isinf(value) && std::isfinite(a) && std::isfinite(b);
  if constexpr (Op == BinaryOp::Add || Op == BinaryOp::Sub) {
    put(machine, ins, value, overflows ? unknown : ea + eb);
  } else if constexpr (Op == BinaryOp::Mul) {
    put(machine, ins, value, overflows ? unknown : error_of_product(a, b, ea, eb));
  } else if constexpr (Op == BinaryOp::Div) {
    put(machine, ins, value, error_of_quotient(value, b, ea, eb));
  } else if constexpr (Op == BinaryOp::Mod) {
    put(machine, ins, value, ea == 0 && eb == 0 ? 0 : ea + eb * std::fabs(a / b) < std::min(std::fabs(value), std::fabs(b - value)) ? ea + eb * std::fabs(a / b) : std::fabs(b) + eb);
  } else {  // Min, Max round nothing
    machine.slots[ins.dst] = real_scalar(value);
    machine.errors[ins.dst] = std::max(ea, eb);
  }
  return &ins + 1;
}

template <BinaryOp Op, bool IsFloat>
const Ins* run_comparison(const Ins& ins, Machine& machine) {
  const Scalar a = machine.slots[ins.a], b = machine.slots[ins.b];
  const double error = machine.errors[ins.a] + machine.errors[ins.b];
  machine.slots[ins.dst] = apply(Op, IsFloat ? Dtype::F64 : ins.dtype, a, b);
  const double distance = IsFloat ? std::fabs(a.f - b.f) : std::fabs(static_cast<double>(a.i) - static_cast<double>(b.i));
  machine.errors[ins.dst] = error > 0 && !(distance > error) ? 1 : 0;
  return &ins + 1;
}

template <BinaryOp Op>
const Ins* run_integer(const Ins& ins, Machine& machine) {
  const Scalar a = machine.slots[ins.a], b = machine.slots[ins.b];
  const double ea = machine.errors[ins.a], eb = machine.errors[ins.b];
  machine.slots[ins.dst] = apply(Op, ins.dtype, a, b);
  double error = 0;
  if (ea != 0 || eb != 0) {
    const double ma = std::fabs(static_cast<double>(a.i)), mb = std::fabs(static_cast<double>(b.i));
    if (Op == BinaryOp::Add || Op == BinaryOp::Sub) error = ea + eb;
    else if (Op == BinaryOp::Min || Op == BinaryOp::Max) error = std::max(ea, eb);
    else if (Op == BinaryOp::Mul) error = ma * eb + mb * ea + ea * eb;
    else error = unknown;
  }
  machine.errors[ins.dst] = error;
  return &ins + 1;
}

template <std::size_t I>
constexpr Ins::Run float_run() {
  constexpr auto op = static_cast<BinaryOp>(I);
  if constexpr (op <= BinaryOp::Max) return run_float<op>;
  if constexpr (op >= BinaryOp::Eq && op <= BinaryOp::Ge) return run_comparison<op, true>;
  return nullptr;
}
template <std::size_t I>
constexpr Ins::Run integer_run() {
  constexpr auto op = static_cast<BinaryOp>(I);
  if constexpr (op >= BinaryOp::Eq && op <= BinaryOp::Ge) return run_comparison<op, false>;
  return run_integer<op>;
}
template <std::size_t... I>
constexpr auto float_runs_of(std::index_sequence<I...>) { return std::array<Ins::Run, sizeof...(I)>{float_run<I>()...}; }
template <std::size_t... I>
constexpr auto integer_runs_of(std::index_sequence<I...>) { return std::array<Ins::Run, sizeof...(I)>{integer_run<I>()...}; }
constexpr auto float_runs = float_runs_of(std::make_index_sequence<20>());
constexpr auto integer_runs = integer_runs_of(std::make_index_sequence<20>());

Scalar call_of(const Ins& ins, const Scalar* arguments) {
  return reinterpret_cast<ScalarFunction>(const_cast<void*>(ins.object))(ins.from, arguments);
}

// A function that is monotone between argument - error and argument + error (all of one argument but sin, cos and tan;
// even functions are, on either side of 0).
const Ins* run_monotone(const Ins& ins, Machine& machine) {
  const Scalar argument = machine.slots[ins.a];
  const Scalar result = call_of(ins, &argument);
  const double error = machine.errors[ins.a];
  if (!is_float(ins.dtype)) {  // isnan, isinf
    machine.slots[ins.dst] = result;
    machine.errors[ins.dst] = 0;
    return &ins + 1;
  }
  const auto at = [&](double x) {
    const Scalar moved = real_scalar(x);
    return call_of(ins, &moved).f;
  };
  // What may be anything may be no number.
  put(machine, ins, result.f, std::isinf(error) ? unknown : error_of_monotone(at, argument.f, error, result.f));
  return &ins + 1;
}

const Ins* run_bounded_slope(const Ins& ins, Machine& machine) {  // sin, cos
  const Scalar argument = machine.slots[ins.a];
  const double value = call_of(ins, &argument).f;
  const double error = machine.errors[ins.a];
  put(machine, ins, value, std::isinf(error) ? unknown : std::min(error, 2.0) + ins.unit);
  return &ins + 1;
}

// Two or three arguments: each moved alone to either side, the differences added.
template <std::size_t Arity>
const Ins* run_separate(const Ins& ins, Machine& machine) {
  const Slot from[3] = {ins.a, ins.b, ins.c};
  Scalar arguments[3];
  for (std::size_t i = 0; i < Arity; ++i) arguments[i] = machine.slots[from[i]];
  const Scalar value = call_of(ins, arguments);
  double error = 0;
  for (std::size_t i = 0; i < Arity; ++i) {
    if (machine.errors[from[i]] == 0) continue;
    const Scalar original = arguments[i];
    const auto at = [&](double x) {
      arguments[i] = real_scalar(x);
      return call_of(ins, arguments).f;
    };
    error += std::isinf(machine.errors[from[i]]) ? unknown : error_of_monotone(at, original.f, machine.errors[from[i]], value.f);
    arguments[i] = original;
  }
  put(machine, ins, value.f, error);
  return &ins + 1;
}

const Ins* run_fma_with_error(const Ins& ins, Machine& machine) {
  const double a = machine.slots[ins.a].f, b = machine.slots[ins.b].f, c = machine.slots[ins.c].f;
  const double ea = machine.errors[ins.a], eb = machine.errors[ins.b];
  put(machine, ins, std::fma(a, b, c), error_of_product(a, b, ea, eb) + machine.errors[ins.c]);
  return &ins + 1;
}

}  // namespace

double error_of_rounded(double value, double error, double unit) {
  if (!std::isfinite(value)) return std::isinf(error) ? unknown : 0;
  if (std::isnan(error)) return unknown;
  const double magnitude = std::fabs(value);
  double result = error + unit * magnitude;
  if (unit == 0) return result;
  const bool is_f32 = unit >= 0x1p-24;  // a library function's unit is a multiple of an operation's
  const double smallest_normal = is_f32 ? 0x1p-126 : 0x1p-1022, smallest = is_f32 ? 0x1p-149 : 0x1p-1074;
  if (magnitude < 2 * smallest_normal && magnitude > 0) result += unit / (is_f32 ? 0x1p-24 : 0x1p-52) * smallest;
  return is_f32 && magnitude + result > std::numeric_limits<float>::max() ? unknown : result;
}

double error_of_sum(double value, double error, double magnitude, double relative) {
  const double largest = relative >= 0x1p-24 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  // Where a part of the sum may overflow: in f32 the oracle's own value does not, so that a NaN is certain there.
  const bool is_certain_nan = std::isnan(value) && relative >= 0x1p-24;
  if (std::isinf(error) || (magnitude > largest && !is_certain_nan)) return unknown;
  return std::isfinite(value) ? error + relative * magnitude : 0;
}

Ins::Run run_of_binary_with_error(BinaryOp op, Dtype dtype) {
  return is_float(dtype) ? float_runs[static_cast<std::size_t>(op)] : integer_runs[static_cast<std::size_t>(op)];
}

Ins::Run run_of_function_with_error(std::string_view function, std::size_t arity) {
  if (function.starts_with("fma")) return run_fma_with_error;
  if (function.starts_with("sin") || function.starts_with("cos"))
    if (!function.starts_with("sinh") && !function.starts_with("cosh")) return run_bounded_slope;
  if (arity == 1) return run_monotone;
  return arity == 2 ? run_separate<2> : run_separate<3>;
}

const Ins* run_copy_with_error(const Ins& ins, Machine& machine) {
  machine.slots[ins.dst] = machine.slots[ins.a];
  machine.errors[ins.dst] = machine.errors[ins.a];
  return &ins + 1;
}
const Ins* run_copy_error(const Ins& ins, Machine& machine) {
  machine.errors[ins.dst] = machine.errors[ins.a];
  return &ins + 1;
}

const Ins* run_convert_with_error(const Ins& ins, Machine& machine) {
  const Scalar value = machine.slots[ins.a];
  const double error = machine.errors[ins.a];
  const Scalar result = convert(ins.dtype, ins.from, value);
  machine.slots[ins.dst] = result;
  if (error == 0) {
    machine.errors[ins.dst] = 0;
    return &ins + 1;
  }
  const auto at = [&](double x) {
    const Scalar moved = is_float(ins.from) ? real_scalar(x) : convert(ins.from, Dtype::F64, real_scalar(x));
    return convert(Dtype::F64, ins.dtype, convert(ins.dtype, ins.from, moved)).f;
  };
  const double center = convert(Dtype::F64, ins.from, value).f;
  const double rounded = convert(Dtype::F64, ins.dtype, result).f;
  const double spread = error_of_monotone(at, center, error, rounded);
  if (ins.dtype == Dtype::Bool) machine.errors[ins.dst] = std::fabs(center) <= error ? 1 : 0;
  else machine.errors[ins.dst] = std::isinf(error) ? unknown : std::isnan(spread) ? 0 : spread;
  return &ins + 1;
}

const Ins* run_jump_if_surely_false(const Ins& ins, Machine& machine) {
  return machine.slots[ins.a].i == 0 && machine.errors[ins.a] == 0 ? &ins + ins.jump : &ins + 1;
}
const Ins* run_jump_if_surely_true(const Ins& ins, Machine& machine) {
  return machine.slots[ins.a].i != 0 && machine.errors[ins.a] == 0 ? &ins + ins.jump : &ins + 1;
}
const Ins* run_and_with_error(const Ins& ins, Machine& machine) {
  const bool value = machine.slots[ins.a].i != 0 && machine.slots[ins.b].i != 0;
  const bool is_surely_false = machine.slots[ins.b].i == 0 && machine.errors[ins.b] == 0;
  machine.errors[ins.dst] = !is_surely_false && (machine.errors[ins.a] != 0 || machine.errors[ins.b] != 0) ? 1 : 0;
  machine.slots[ins.dst] = integer_scalar(value);
  return &ins + 1;
}
const Ins* run_or_with_error(const Ins& ins, Machine& machine) {
  const bool value = machine.slots[ins.a].i != 0 || machine.slots[ins.b].i != 0;
  const bool is_surely_true = machine.slots[ins.b].i != 0 && machine.errors[ins.b] == 0;
  machine.errors[ins.dst] = !is_surely_true && (machine.errors[ins.a] != 0 || machine.errors[ins.b] != 0) ? 1 : 0;
  machine.slots[ins.dst] = integer_scalar(value);
  return &ins + 1;
}

const Ins* run_merge(const Ins& ins, Machine& machine) {
  const bool condition = machine.slots[ins.a].i != 0;
  const Slot taken = condition ? ins.b : ins.c;
  const Slot other = condition ? ins.c : ins.b;
  double error = machine.errors[taken];
  if (machine.errors[ins.a] != 0) {
    const Scalar x = machine.slots[taken], y = machine.slots[other];
    const double distance = is_float(ins.dtype) ? std::fabs(x.f - y.f) : std::fabs(static_cast<double>(x.i) - static_cast<double>(y.i));
    error = std::isfinite(distance) ? std::max(error, distance + machine.errors[other]) : unknown;
  }
  machine.errors[ins.dst] = error;
  machine.slots[ins.dst] = machine.slots[taken];
  return &ins + 1;
}

}  // namespace tilewright
