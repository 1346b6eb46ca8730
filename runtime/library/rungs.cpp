// Rungs: lowering, then line after line.
#include "runtime/library/rungs.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "runtime/tensor.h"

namespace tilewright {

namespace {

NumericClass numeric_class_of(const std::string& word) {
  for (const SchedulePass& pass : schedule_passes())
    if (pass.word == word) return pass.numeric;
  return NumericClass::Exact;
}

constexpr std::int64_t long_sum_terms = 65536;

// A schedule that tiles a reduced index sets its own levels.
bool tiles_a_reduction(const TensorFn& fn, const std::vector<ScheduleLine>& lines) {
  bool found = false;
  for (const TensorStmt& stmt : fn.statements)
    walk(stmt.value, [&](const Expr& node) {
      if (const Reduce* reduction = as<Reduce>(node))
        for (const Axis& axis : reduction->axes)
          for (const ScheduleLine& line : lines)
            for (const ScheduleToken& token : line.tokens) found |= line.word == "tile" && token.text == axis.name;
      return !found;
    });
  return found;
}

}  // namespace

std::vector<Rung> build_rungs(const TensorFn& fn, const std::string& schedule_name, const std::string& arch, const std::vector<Fact>& when,
                              const std::vector<ScheduleLine>& lines, const Target& target, const CallClass& call_class) {
  std::vector<Rung> rungs;
  Plan plan = lower(fn, call_class.long_sums && !tiles_a_reduction(fn, lines));
  plan.schedule = schedule_name;
  plan.arch = arch;
  plan.facts = when;
  plan.index_bits = call_class.index_bits;
  rungs.push_back(Rung{"", NumericClass::Exact, plan});
  for (const ScheduleLine& line : lines) {
    plan = apply_line(plan, line, target);
    rungs.push_back(Rung{line.text, numeric_class_of(line.word), plan});
  }
  return rungs;
}

Plan thread_stage(const Plan& plan, const Target& target) {
  const std::vector<const Kernel*> kernels = kernels_of(plan);
  return !kernels.empty() && kernels[0]->stage == Stage::Thread ? plan : finish(plan, target);
}

std::string rung_file_name(const std::vector<Rung>& rungs, std::size_t n) {
  std::string word = "lowered";
  if (n > 0) {
    word = rungs[n].line.substr(0, rungs[n].line.find_first_of(" \t"));
    if (std::size_t colon = word.find(':'); colon != std::string::npos) {  // a target stands before the word
      std::string rest = rungs[n].line.substr(rungs[n].line.find(':') + 1);
      rest.erase(0, rest.find_first_not_of(' '));
      word = rest.substr(0, rest.find_first_of(" \t"));
    }
  }
  return fmt::format("{:02}-{}", n, word);
}

namespace {

// Whether an index, or a bound of a range, may need more than 32 bits: where a tensor gives more, or more is made of what it gives.
bool is_wide_index(const Expr& index) {
  Expr plain = index;
  while (const Cast* cast = as<Cast>(plain)) plain = cast->operand;
  const bool is_lone = as<Load>(plain) != nullptr;
  bool is_wide = false;
  walk(index, [&](const Expr& node) {
    if (const Load* load = as<Load>(node)) {
      const int bits = info(node->dtype).bits + (is_unsigned(node->dtype) ? 1 : 0);
      is_wide |= !load->access.index.empty() && (is_lone ? bits > 32 : bits > 17);
      is_wide |= load->access.index.empty() && bits > 32;
      return false;  // its own indices are looked at by themselves
    }
    return true;
  });
  return is_wide;
}

}  // namespace

int index_bits_of(const TensorFn& fn) {
  bool is_wide = false;
  const auto look = [&](const Expr& index) { is_wide |= index && is_wide_index(index); };
  const auto look_inside = [&](const Expr& expr) {
    if (expr)
      walk(expr, [&](const Expr& node) {
        if (const Load* load = as<Load>(node)) std::for_each(load->access.index.begin(), load->access.index.end(), look);
        if (const Reduce* reduce = as<Reduce>(node))
          for (const Axis& axis : reduce->axes) look(axis.lo), look(axis.hi);
        if (const Call* call = as<Call>(node); call && call->function == "within") look(call->arguments[0]);
        // What is compared with a size.
        if (const Cast* cast = as<Cast>(node); cast && node->dtype == Dtype::Index) is_wide |= info(cast->operand->dtype).bits + (is_unsigned(cast->operand->dtype) ? 1 : 0) > 32 && !is_float(cast->operand->dtype) && cast->operand->dtype != Dtype::Index;
        return true;
      });
  };
  for (const TensorStmt& stmt : fn.statements) {
    for (const Expr& index : stmt.index) look(index), look_inside(index);
    for (const Expr& condition : stmt.where) look_inside(condition);
    for (const Axis& axis : stmt.axes) look(axis.lo), look(axis.hi);
    look_inside(stmt.value);
  }
  return is_wide ? 64 : 32;
}

CallClass class_of(const TensorFn& fn, const std::vector<std::pair<std::string, std::int64_t>>& dims) {
  CallClass result;
  result.index_bits = index_bits_of(fn);
  auto count_tensor = [&](const std::vector<Expr>& shape) {
    std::int64_t elements = 1;
    for (const Expr& extent : shape)
      if (__builtin_mul_overflow(elements, evaluate_index(extent, dims), &elements)) elements = INT64_MAX;
    // A tile may reach past the end by as much as its own size before a predicate stops it.
    if (elements >= (std::int64_t{1} << 31) - (1 << 24)) result.index_bits = 64;
  };
  for (const Param& param : fn.params) count_tensor(param.shape);
  for (const Temp& temp : fn.lets) count_tensor(temp.shape);
  for (const TensorStmt& stmt : fn.statements)
    walk(stmt.value, [&](const Expr& node) {
      const Reduce* reduction = as<Reduce>(node);
      if (!reduction || node->dtype != Dtype::F32 || reduction->op != CombineOp::Add) return true;
      std::int64_t terms = 1;
      for (const Axis& axis : reduction->axes) {
        bool of_dims = true;  // a bound that a tensor or an outer index gives is known only in the kernel
        auto known = [&](const Expr& bound) {
          if (!bound) return;
          walk(bound, [&](const Expr& part) {
            of_dims &= as<Load>(part) == nullptr && as<Call>(part) == nullptr;
            if (const Var* variable = as<Var>(part)) {
              bool dim = false;
              for (const auto& [name, value] : dims) dim |= name == variable->name;
              of_dims &= dim;
            }
            return of_dims;
          });
        };
        known(axis.lo), known(axis.hi);
        if (!of_dims) {
          terms = INT64_MAX;
          break;
        }
        std::int64_t lo = axis.lo ? evaluate_index(axis.lo, dims) : 0;
        std::int64_t extent = std::max<std::int64_t>(0, evaluate_index(axis.hi, dims) - lo);
        if (__builtin_mul_overflow(terms, extent, &terms)) terms = INT64_MAX;
      }
      if (terms > long_sum_terms) result.long_sums = true;
      return true;
    });
  return result;
}

}  // namespace tilewright
