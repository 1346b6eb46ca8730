// The class of a call: how wide its indices are, whether its sums are long.
#include <algorithm>
#include <map>
#include <set>

#include "ir/operators.h"
#include "passes/affine.h"
#include "runtime/library/call_class.h"
#include "runtime/tensor.h"

namespace tilewright {

namespace {

constexpr std::int64_t long_sum_terms = 65536;

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

// Whether indices, or what is compared with them, leave 32 bits for the scalars of a call. All in exact intervals: of loop
// variables by their bounds, of scalars by their values.
class ScalarArithmetic {
 public:
  ScalarArithmetic(const TensorFn& fn, const std::vector<std::pair<std::string, std::int64_t>>& values) {
    for (const auto& [name, value] : values) values_[name] = value;
    for (const Param& param : fn.params)
      if (param.shape.empty() && param.kind != ParamKind::Out && is_integer(param.dtype) && values_.count(param.name)) scalars_.insert(param.name);
    if (scalars_.empty()) return;
    for (const TensorStmt& stmt : fn.statements) {
      for (const Axis& axis : stmt.axes) enter(axis);
      for (const Expr& index : stmt.index) look(index);
      for (const Expr& condition : stmt.where) look(condition);
      look(stmt.value);
    }
  }
  bool is_wide() const { return is_wide_; }

 private:
  void enter(const Axis& axis) {
    look(axis.lo), look(axis.hi);
    const Interval lo = axis.lo ? interval_of(known(axis.lo), ranges_) : Interval{0, 0};
    const Interval hi = interval_of(known(axis.hi), ranges_);
    ranges_[axis.name] = Interval{lo.lo, hi.hi ? std::optional(*hi.hi - 1) : std::nullopt};
    if ((axis.lo && depends_on_scalar(axis.lo)) || depends_on_scalar(axis.hi)) dependent_.insert(axis.name);
    else dependent_.erase(axis.name);
  }

  void look(const Expr& expr) {
    if (!expr) return;
    walk(expr, [&](const Expr& node) {
      if (const Reduce* reduce = as<Reduce>(node))
        for (const Axis& axis : reduce->axes) enter(axis);
      if (node->dtype != Dtype::Index || !depends_on_scalar(node)) return true;
      constexpr std::int64_t most = (std::int64_t{1} << 31) - (1 << 24);  // tiles may go past an end
      const Interval interval = interval_of(known(node), ranges_);
      is_wide_ |= !interval.lo || !interval.hi || *interval.lo < -most || *interval.hi > most;
      return true;
    });
  }

  bool depends_on_scalar(const Expr& expr) const {
    bool found = false;
    walk(expr, [&](const Expr& node) {
      if (const Load* load = as<Load>(node)) found |= scalars_.count(load->access.buffer) > 0;
      if (const Var* variable = as<Var>(node)) found |= dependent_.count(variable->name) > 0;
      return !found;
    });
    return found;
  }

  // With the values of dims and scalars in the place of their names.
  Expr known(const Expr& expr) const {
    return rewrite(expr, [&](const Expr& node) -> Expr {
      const Load* load = as<Load>(node);
      if (load && load->access.index.empty() && scalars_.count(load->access.buffer)) return integer(values_.at(load->access.buffer));
      if (const Var* variable = as<Var>(node); variable && !ranges_.count(variable->name) && values_.count(variable->name)) return integer(values_.at(variable->name));
      if (const Cast* cast = as<Cast>(node); cast && node->dtype == Dtype::Index && cast->operand->dtype == Dtype::Index) return cast->operand;
      return node;
    });
  }

  std::map<std::string, std::int64_t> values_;
  std::set<std::string> scalars_;
  std::set<std::string> dependent_;  // loop variables whose bounds have a scalar in them
  Ranges ranges_;
  bool is_wide_ = false;
};

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
  result.index_bits = ScalarArithmetic(fn, dims).is_wide() ? 64 : index_bits_of(fn);
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

DimMap class_values(const TensorFn& fn, const DimMap& dims, const std::map<std::string, HostTensor>& inputs) {
  DimMap values = dims;
  for (const Param& param : fn.params)
    if (auto given = inputs.find(param.name); given != inputs.end() && param.shape.empty() && is_integer(param.dtype)) values[param.name] = read_integer(given->second, 0);
  return values;
}

}  // namespace tilewright
