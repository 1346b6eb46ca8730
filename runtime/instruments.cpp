// The three kinds of data and what is expected of them.
#include "runtime/instruments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/operators.h"
#include "runtime/random.h"

namespace tilewright {

namespace {

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  std::int64_t below(std::int64_t count) { return count <= 0 ? 0 : static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count)); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // The sum of 12 uniform numbers less 6: close to normal, with no library function whose last bit differs.
  double normal() {
    double sum = -6;
    for (int term = 0; term < 12; ++term) sum += uniform();
    return sum;
  }
};

std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// What an integer tensor is used for, with the number that its values stay within.
struct Role {
  enum class Kind : std::uint8_t { Value, Index, Bound };
  Kind kind = Kind::Value;
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
};

class Roles {
 public:
  Roles(const TensorFn& fn, const std::map<std::string, std::int64_t>& dims) : fn_(fn), names_(dims.begin(), dims.end()) {
    for (const TensorStmt& stmt : fn.statements) {
      note_access(Access{stmt.target, stmt.index, {}, {}});
      note_axes(stmt.axes);
      for (const Expr& index : stmt.index) note(index);
      for (const Expr& condition : stmt.where) note(condition);
      note(stmt.value);
    }
  }
  Role of(const std::string& name) const {
    const auto entry = roles_.find(name);
    return entry == roles_.end() ? Role{} : entry->second;
  }

 private:
  void put(const Expr& expr, Role::Kind kind, std::optional<std::int64_t> limit) {
    walk(expr, [&](const Expr& node) {
      const Load* load = as<Load>(node);
      if (load == nullptr || is_float(node->dtype)) return true;
      Role& role = roles_[load->access.buffer];
      role.kind = std::max(role.kind, kind);
      if (limit) role.limit = std::min(role.limit, *limit);
      return false;
    });
  }
  std::optional<std::int64_t> value_of(const Expr& expr) const {
    bool is_size = true;
    walk(expr, [&](const Expr& node) {
      if (const Var* name = as<Var>(node))
        is_size = is_size && std::any_of(names_.begin(), names_.end(), [&](const auto& entry) { return entry.first == name->name; });
      is_size = is_size && as<Load>(node) == nullptr && as<Call>(node) == nullptr && as<Reduce>(node) == nullptr;
      return is_size;
    });
    if (!is_size) return std::nullopt;
    return evaluate_index(expr, names_);
  }
  const std::vector<Expr>* shape_of_tensor(const std::string& name) const {
    for (const Param& param : fn_.params)
      if (param.name == name) return &param.shape;
    for (const Temp& let : fn_.lets)
      if (let.name == name) return &let.shape;
    return nullptr;
  }
  void note_access(const Access& access) {
    const std::vector<Expr>* shape = shape_of_tensor(access.buffer);
    for (std::size_t axis = 0; shape != nullptr && axis < access.index.size() && axis < shape->size(); ++axis)
      put(access.index[axis], Role::Kind::Index, value_of((*shape)[axis]));
  }
  void note_axes(const std::vector<Axis>& axes) {
    for (const Axis& axis : axes)
      for (const Expr& bound : {axis.lo, axis.hi}) {
        if (!bound) continue;
        const Call* call = as<Call>(bound);
        const bool is_cut = call != nullptr && call->function == "within" && call->arguments.size() == 3;
        put(bound, Role::Kind::Bound, is_cut ? value_of(call->arguments[1]) : std::nullopt);
        note(bound);
      }
  }
  void note(const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      if (const Load* load = as<Load>(node)) note_access(load->access);
      if (const Reduce* reduce = as<Reduce>(node)) note_axes(reduce->axes);
      return true;
    });
  }

  const TensorFn& fn_;
  std::vector<std::pair<std::string, std::int64_t>> names_;
  std::map<std::string, Role> roles_;
};

void fill_integers(HostTensor& tensor, const Role& role, Instrument instrument, Random& random) {
  const std::int64_t count = tensor.elements();
  if (role.kind == Role::Kind::Index) {
    for (std::int64_t n = 0; n < count; ++n) write_integer(tensor, n, random.below(std::min<std::int64_t>(role.limit, std::int64_t{1} << 31)));
    return;
  }
  if (role.kind == Role::Kind::Bound) {  // rising from 0 to the limit, some rows empty
    const std::int64_t limit = role.limit == std::numeric_limits<std::int64_t>::max() ? 8 * count : role.limit;
    std::vector<std::int64_t> bounds;
    for (std::int64_t n = 0; n < count; ++n) bounds.push_back(n == 0 ? 0 : n + 1 == count ? limit : random.below(limit + 1));
    std::sort(bounds.begin(), bounds.end());
    for (std::int64_t n = 0; n < count; ++n) write_integer(tensor, n, bounds[static_cast<std::size_t>(n)]);
    return;
  }
  const bool is_narrow = info(tensor.dtype).bits == 8 && instrument != Instrument::Exact;
  for (std::int64_t n = 0; n < count; ++n) {
    if (tensor.dtype == Dtype::Bool) write_integer(tensor, n, random.below(2));
    else if (is_narrow) write_integer(tensor, n, random.below(256));
    else if (is_unsigned(tensor.dtype)) write_integer(tensor, n, random.below(instrument == Instrument::Exact ? 3 : 100));
    else write_integer(tensor, n, instrument == Instrument::Exact ? random.below(3) - 1 : random.below(201) - 100);
  }
}

double special_value(Dtype dtype, Random& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double denormal = dtype == Dtype::F64 ? 0x1p-1060 : dtype == Dtype::F16 || dtype == Dtype::E5M2 ? 0x1p-16 : dtype == Dtype::E4M3 ? 0x1p-8 : 0x1p-130;
  const double values[] = {std::nan(""), infinity, -infinity, 0.0, -0.0, denormal, -denormal};
  return values[random.below(7)];
}

void fill_floats(HostTensor& tensor, Instrument instrument, Random& random) {
  const std::int64_t count = tensor.elements();
  for (std::int64_t n = 0; n < count; ++n)
    write_real(tensor, n, instrument == Instrument::Exact ? static_cast<double>(random.below(3) - 1) : random.normal());
  if (instrument != Instrument::Special || count == 0) return;
  // Few, so that sums of many elements stay finite in most places.
  const auto places = static_cast<std::int64_t>(std::sqrt(static_cast<double>(count)) / 2) + 1;
  for (std::int64_t n = 0; n < places; ++n) write_real(tensor, random.below(count), special_value(tensor.dtype, random));
}

// True where every operation maps small integers to integers, with no rounding.
bool keeps_integers(const Expr& expr) {
  bool keeps = true;
  walk(expr, [&](const Expr& node) {
    if (const Const* value = as<Const>(node); value != nullptr && is_float(node->dtype)) {
      const double real = integer_scalar(value->bits).f;
      keeps = keeps && (std::isinf(real) || (real == std::nearbyint(real) && std::fabs(real) <= 1024));
    }
    if (const Binary* binary = as<Binary>(node); binary != nullptr && is_float(binary->lhs->dtype))
      keeps = keeps && binary->op != BinaryOp::Div && binary->op != BinaryOp::Mod;
    if (const Call* call = as<Call>(node)) {
      const FunctionInfo* facts = find_function(call->function);
      const bool is_root = call->function == "sqrt";
      keeps = keeps && facts != nullptr && !is_root && (facts->group == FunctionGroup::Exact || facts->group == FunctionGroup::Structural);
    }
    return keeps;
  });
  return keeps;
}

bool has_float_sum(const TensorFn& fn) {
  bool found = false;
  for (const TensorStmt& stmt : fn.statements) {
    found = found || stmt.combine.has_value();
    walk(stmt.value, [&](const Expr& node) {
      found = found || (as<Reduce>(node) != nullptr && is_float(node->dtype));
      return !found;
    });
  }
  return found;
}

// True where rounding every operation gives the same as rounding none but the declared places, and sums stay within the
// integers that f32 holds: then no order of summation can round.
bool is_exact_on(const TensorFn& fn, const Arguments& arguments, const OracleResult& real, const OracleOptions& options) {
  if (!std::all_of(fn.statements.begin(), fn.statements.end(), [](const TensorStmt& stmt) { return keeps_integers(stmt.value); })) return false;
  OracleOptions typed = options;
  typed.mode = FloatMode::Typed;
  const OracleResult rounded = evaluate(fn, arguments, typed);
  for (std::size_t output = 0; output < real.outputs.size(); ++output)
    for (std::size_t position = 0; position < real.outputs[output].count(); ++position) {
      const OracleTensor& tensor = real.outputs[output];
      const Scalar a = tensor.values[position], b = rounded.outputs[output].values[position];
      if (is_float(tensor.dtype) ? !(a.f == b.f || (std::isnan(a.f) && std::isnan(b.f))) : a.i != b.i) return false;
      // The bound is at least Σ|terms|·2^-24 for a sum: 1 means that it may leave 2^24.
      if (is_float(tensor.dtype) && !tensor.bounds.empty() && tensor.dtype != Dtype::F64 && !is_narrow_float(tensor.dtype) && tensor.bounds[position] >= 1)
        return false;
    }
  return true;
}

}  // namespace

std::map<std::string, HostTensor> instrument_inputs(Instrument instrument, const TensorFn& fn, const std::map<std::string, std::int64_t>& dims,
                                                    std::uint64_t seed) {
  const Roles roles(fn, dims);
  const std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  std::map<std::string, HostTensor> inputs;
  for (const Param& param : fn.params) {
    if (param.kind == ParamKind::Out) continue;
    HostTensor tensor = make_tensor(param.dtype, shape_of(param.shape, names));
    Random random(seed_of(param.name, seed));
    if (is_float(param.dtype)) fill_floats(tensor, param.shape.empty() && instrument == Instrument::Special ? Instrument::Random : instrument, random);
    else fill_integers(tensor, roles.of(param.name), instrument, random);
    inputs.emplace(param.name, std::move(tensor));
  }
  return inputs;
}

Expectation expect(const TensorFn& fn, Instrument instrument, const Arguments& arguments,
                   const std::map<std::string, std::vector<std::int64_t>>& sample, bool is_worst_case) {
  OracleOptions options;
  options.sample = sample;
  options.is_worst_case = is_worst_case;
  Expectation result{evaluate(fn, arguments, options), {}};
  if (instrument == Instrument::Exact) result.rule.is_bitwise = is_exact_on(fn, arguments, result.oracle, options);
  if (instrument == Instrument::Special) result.rule.compares_zero_sign = !has_float_sum(fn);
  return result;
}

}  // namespace tilewright
