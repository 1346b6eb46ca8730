// Expressions as a flat program over slots: what the oracle and the tile interpreter run. Each instruction is a function
// and its operands; it returns the instruction to run next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "ir/scalar.h"

namespace tilewright {

using Slot = std::uint32_t;

// What instructions work on. Users derive from it. `errors` stands beside the slots where errors are followed: a bound
// of |true value - slot|; of a bool 1 where the comparison could have gone the other way.
struct Machine {
  Scalar* slots = nullptr;
  double* errors = nullptr;
};

struct Ins {
  using Run = const Ins* (*)(const Ins&, Machine&);
  Run run = nullptr;
  Slot dst = 0;
  Slot a = 0;
  Slot b = 0;
  Slot c = 0;
  std::int32_t jump = 0;  // distance to the target in instructions
  Dtype dtype = Dtype::Index;
  Dtype from = Dtype::Index;  // of a conversion
  double unit = 0;            // relative rounding error of the operation
  const void* object = nullptr;
};

struct SlotProgram {
  std::vector<Ins> code;             // ends with an instruction that returns null
  std::vector<Scalar> initial_slots; // constants in place
};

inline void run(const SlotProgram& program, Machine& machine) {
  for (const Ins* next = program.code.data(); next != nullptr;) next = next->run(*next, machine);
}

// How floats are evaluated. Typed: each operation in its dtype. Real: in f64, casts to narrower floats round.
// Unrounded: in f64 throughout.
enum class FloatMode : std::uint8_t { Typed, Real, Unrounded };

class SlotCompiler {
 public:
  SlotCompiler(FloatMode mode, bool follows_errors) : mode_(mode), follows_errors_(follows_errors) {}
  virtual ~SlotCompiler() = default;
  SlotCompiler(const SlotCompiler&) = delete;
  SlotCompiler& operator=(const SlotCompiler&) = delete;

  // The slot that holds the value behind the code emitted so far.
  Slot compile(const Expr& expr);
  SlotProgram finish();

 protected:
  // Provided by users. A variable has a slot of its own; a load emits its code.
  virtual Slot variable(const std::string& name, const Expr& expr) = 0;
  virtual Slot load(const Load& load, const Expr& expr) = 0;
  virtual Slot reduce(const Reduce& reduce, const Expr& expr) = 0;
  virtual Slot special_call(const Call& call, const Expr& expr) = 0;  // a function without a row in ir/scalar

  Slot new_slot();
  Slot constant_slot(Scalar value);
  std::size_t emit(Ins ins);
  std::size_t position() const { return code_.size(); }
  // The instruction at `at` jumps to the next one emitted.
  void land(std::size_t at) { code_[at].jump = static_cast<std::int32_t>(code_.size()) - static_cast<std::int32_t>(at); }
  void jump_back(std::size_t from, std::size_t target) {
    code_[from].jump = static_cast<std::int32_t>(target) - static_cast<std::int32_t>(from);
  }
  Ins& at(std::size_t position) { return code_[position]; }
  void emit_copy(Slot dst, Slot src);
  // dst = a op b of operands of `dtype`; `unit` is the relative rounding error.
  void emit_binary(BinaryOp op, Dtype dtype, Slot dst, Slot a, Slot b, double unit);
  std::size_t emit_jump();
  std::size_t emit_jump_if_false(Slot condition);
  std::size_t emit_jump_if_true(Slot condition);

  // A loop `variable = lo; while (variable < hi) { body; variable += step }`.
  void emit_loop(Slot variable, Slot lo, Slot hi, Slot step, const std::function<void()>& body);

  // Values computed before are reused only where the code that computes them has run: what a branch or a loop body
  // computes is forgotten behind it, and a value is forgotten when something it depends on changes.
  void enter_scope() { known_.emplace_back(); }
  void leave_scope() { known_.pop_back(); }
  void forget_all();

  FloatMode mode() const { return mode_; }
  bool follows_errors() const { return follows_errors_; }
  // The dtype that values of `dtype` are computed in.
  Dtype computed_dtype(Dtype dtype) const { return mode_ != FloatMode::Typed && is_float(dtype) ? Dtype::F64 : dtype; }

 private:
  struct ExprHash {
    std::size_t operator()(const Expr& expr) const { return hash_value(expr); }
  };
  Slot compile_node(const Expr& expr);
  Slot compile_binary(const Binary& node, const Expr& expr);
  Slot compile_logical(const Binary& node);
  Slot compile_select(const Select& node);
  Slot compile_cast(const Cast& node, const Expr& expr);
  Slot compile_call(const Call& node, const Expr& expr);

  FloatMode mode_;
  bool follows_errors_;
  std::vector<Ins> code_;
  std::vector<Scalar> initial_slots_;
  std::map<std::int64_t, Slot> constants_;
  std::vector<std::unordered_map<Expr, Slot, ExprHash>> known_{1};
};

// Relative rounding error of one operation that is computed in f32 for narrow floats; twice that of f64 for f64, whose
// reference is itself f64.
double unit_of_operation(Dtype dtype);
// Half the distance between neighbours of `dtype` near `value`.
double half_ulp(Dtype dtype, double value);
// Bound of the error of a monotone step function behind an argument with an error.
template <class F>
double error_of_monotone(F function, double argument, double error, double value) {
  if (error == 0) return 0;
  return std::max(std::fabs(function(argument + error) - value), std::fabs(function(argument - error) - value));
}

}  // namespace tilewright
