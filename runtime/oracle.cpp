// The oracle: which statements are evaluated in full, which on demand, and by how many threads.
#include "runtime/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "ir/diagnostic.h"
#include "runtime/oracle_compiler.h"
#include "runtime/slot_errors.h"

namespace tilewright {

namespace {

class Oracle {
 public:
  Oracle(const TensorFn& fn, const Arguments& arguments, const OracleOptions& options)
      : fn_(fn), arguments_(arguments), options_(options), dims_(arguments.dims), dim_names_(dims_.begin(), dims_.end()) {
    follows_errors_ = options.follows_errors && options.mode != FloatMode::Typed;
  }

  OracleResult run() {
    for (const Param& param : fn_.params) add_param(param);
    for (const Temp& let : fn_.lets) add_tensor(let.name, let.dtype, let.shape);
    for (const TensorStmt& stmt : fn_.statements) statements_of_[stmt.target].push_back(&stmt);
    statements_.reserve(fn_.statements.size());
    for (const TensorStmt& stmt : fn_.statements) evaluate_statement(stmt);
    for (const Param& param : fn_.params)
      if (param.kind != ParamKind::In) result_.outputs.push_back(output_of(param));
    return std::move(result_);
  }

 private:
  OracleMemory& add_tensor(const std::string& name, Dtype dtype, const std::vector<Expr>& shape) {
    auto memory = std::make_unique<OracleMemory>();
    memory->name = name;
    memory->declared = dtype;
    memory->dtype = options_.mode != FloatMode::Typed && is_float(dtype) ? Dtype::F64 : is_float(dtype) ? Dtype::F64 : Dtype::I64;
    memory->set_extents(shape_of(shape, dim_names_));
    memories_[name] = memory.get();
    owned_.push_back(std::move(memory));
    return *owned_.back();
  }

  void add_param(const Param& param) {
    OracleMemory& memory = add_tensor(param.name, param.dtype, param.shape);
    if (param.kind == ParamKind::Out) return;
    const auto given = arguments_.tensors.find(param.name);
    if (given == arguments_.tensors.end()) internal_error(fmt::format("no tensor for `{}`", param.name));
    if (param.kind == ParamKind::In) {  // read in place
      memory.dtype = param.dtype;
      memory.base = const_cast<std::byte*>(given->second.data.data());
      return;
    }
    allocate(memory);
    for (std::size_t element = 0; element < memory.values.size(); ++element)
      memory.values[element] = load_scalar(param.dtype, given->second.data.data() + element * static_cast<std::size_t>(bytes_of(param.dtype)));
    memory.is_started = true;
  }

  void allocate(OracleMemory& memory) {
    memory.values.resize(static_cast<std::size_t>(memory.elements()));
    memory.base = reinterpret_cast<std::byte*>(memory.values.data());
    if (!follows_errors_) return;
    memory.error_values.assign(memory.values.size(), 0.0);
    memory.errors = memory.error_values.data();
  }

  bool is_let(const std::string& name) const {
    return std::any_of(fn_.lets.begin(), fn_.lets.end(), [&](const Temp& let) { return let.name == name; });
  }

  void evaluate_statement(const TensorStmt& stmt) {
    OracleCompiler compiler(memories_, dims_, sites_, options_);
    OracleMemory& target = *memories_.at(stmt.target);
    if (stmt.combine) {
      statements_.push_back(compiler.compile_update(stmt));
      statements_.back().number = statements_.size() - 1;
      run_update(statements_.back(), target);
      return;
    }
    statements_.push_back(compiler.compile_definition(stmt));
    OracleStatement& statement = statements_.back();
    statement.number = statements_.size() - 1;
    // A sample asks only for some elements of a tensor that one `=` defines; what these read is found on demand.
    const bool is_only = statements_of_.at(stmt.target).size() == 1;
    const bool is_sampled = options_.sample.contains(stmt.target);
    if (is_only && !options_.sample.empty() && (is_let(stmt.target) || is_sampled) && !target.is_started) {
      target.on_demand = &statement;
      return;
    }
    if (target.values.empty()) allocate(target);
    run_definition(statement, target);
    target.is_started = true;
  }

  OracleMachine make_machine() const {
    OracleMachine machine;
    machine.frames.resize(fn_.statements.size());
    machine.follows_errors = follows_errors_;
    machine.is_worst_case = options_.is_worst_case;
    return machine;
  }

  // Runs `work(machine, position)` for all positions, on all threads where there is much to do.
  template <class Work>
  void for_all(std::size_t count, const Work& work) {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t threads = std::min(options_.threads > 0 ? static_cast<std::size_t>(options_.threads) : cores, (count + 15) / 16);
    const std::size_t chunk = std::clamp<std::size_t>(count / (threads * 16 + 1), 1, 4096);
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto serve = [&] {
      OracleMachine machine = make_machine();
      try {
        for (std::size_t first = next.fetch_add(chunk); first < count; first = next.fetch_add(chunk))
          for (std::size_t position = first; position < std::min(count, first + chunk); ++position) work(machine, position);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      if (machine.error && !result_.error) result_.error = machine.error;
    };
    std::vector<std::thread> others;
    for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(serve);
    serve();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
  }

  void run_definition(const OracleStatement& statement, OracleMemory& target) {
    for_all(target.values.size(), [&](OracleMachine& machine, std::size_t element) {
      const OracleMachine::Known made = evaluate_element(statement, machine, static_cast<std::int64_t>(element));
      target.values[element] = made.value;
      if (follows_errors_) target.error_values[element] = made.error;
    });
  }

  void run_update(const OracleStatement& statement, OracleMemory& target) {
    const TensorStmt& stmt = *statement.source;
    const Dtype dtype = is_float(target.declared) && options_.mode != FloatMode::Typed ? Dtype::F64 : target.declared;
    if (target.values.empty()) allocate(target);
    if (!target.is_started) std::fill(target.values.begin(), target.values.end(), identity_scalar(*stmt.combine, dtype));
    target.is_started = true;
    const bool is_float_sum = follows_errors_ && is_float(dtype) && *stmt.combine == CombineOp::Add;
    if (is_float_sum) {
      target.magnitudes.resize(target.values.size());
      for (std::size_t element = 0; element < target.values.size(); ++element) target.magnitudes[element] = std::fabs(target.values[element].f);
      target.depths.assign(target.values.size(), 0.0);
    }
    OracleMachine machine = make_machine();
    OracleMachine::Frame frame{statement.program.initial_slots, {}};
    frame.errors.assign(frame.slots.size(), 0.0);
    machine.slots = frame.slots.data();
    machine.errors = follows_errors_ ? frame.errors.data() : nullptr;
    tilewright::run(statement.program, machine);
    if (machine.error && !result_.error) result_.error = machine.error;
    finish_update(target, is_float_sum);
  }

  // The rounding errors of all terms, and for narrow targets the rounding at the end.
  void finish_update(OracleMemory& target, bool is_float_sum) {
    if (!is_float(target.declared)) return;
    for (std::size_t element = 0; element < target.values.size(); ++element) {
      double& value = target.values[element].f;
      if (is_float_sum) {
        const double depth = std::max(target.depths[element], 1.0);
        const double factor = options_.is_worst_case ? depth : std::min(depth, 6 * std::sqrt(depth));
        target.error_values[element] = error_of_sum(value, target.error_values[element], target.magnitudes[element], factor * unit_of_operation(target.declared));
      }
      const double exact = value;
      if (options_.mode == FloatMode::Real) value = round_to(target.declared, value);
      if (!follows_errors_) continue;
      double& error = target.error_values[element];
      if (!std::isfinite(value) || std::isinf(error)) error = std::isinf(error) ? error : 0;
      else if (options_.mode == FloatMode::Unrounded) error += half_ulp(target.declared, value);
      else error = error_of_monotone([&](double x) { return round_to(target.declared, x); }, exact, error, value);
    }
    target.magnitudes.clear();
    target.depths.clear();
  }

  OracleTensor output_of(const Param& param) {
    OracleMemory& memory = *memories_.at(param.name);
    OracleTensor output{param.name, param.dtype, memory.extents, {}, {}, {}};
    const auto sample = options_.sample.find(param.name);
    if (sample != options_.sample.end()) output.elements = sample->second;
    if (memory.on_demand != nullptr) {
      output.values.resize(output.elements.size());
      if (follows_errors_) output.bounds.resize(output.elements.size());
      for_all(output.elements.size(), [&](OracleMachine& machine, std::size_t position) {
        const OracleMachine::Known made = evaluate_element(*memory.on_demand, machine, output.elements[position]);
        output.values[position] = made.value;
        if (follows_errors_) output.bounds[position] = made.error;
      });
      return output;
    }
    if (memory.values.empty() && memory.elements() > 0) throw UserError(fn_.span, fmt::format("nothing defines the output `{}`", param.name));
    if (sample == options_.sample.end()) {
      output.values = std::move(memory.values);
      output.bounds = std::move(memory.error_values);
      return output;
    }
    for (const std::int64_t element : output.elements) {
      output.values.push_back(memory.values[static_cast<std::size_t>(element)]);
      if (follows_errors_) output.bounds.push_back(memory.error_values[static_cast<std::size_t>(element)]);
    }
    return output;
  }

  const TensorFn& fn_;
  const Arguments& arguments_;
  const OracleOptions& options_;
  std::map<std::string, std::int64_t> dims_;
  std::vector<std::pair<std::string, std::int64_t>> dim_names_;
  bool follows_errors_ = true;
  std::vector<std::unique_ptr<OracleMemory>> owned_;
  std::map<std::string, OracleMemory*> memories_;
  std::map<std::string, std::vector<const TensorStmt*>> statements_of_;
  std::vector<std::unique_ptr<OracleSite>> sites_;
  std::vector<OracleStatement> statements_;  // never grows beyond what was reserved
  OracleResult result_;
};

}  // namespace

OracleResult evaluate(const TensorFn& fn, const Arguments& arguments, const OracleOptions& options) {
  return Oracle(fn, arguments, options).run();
}

Plan signature_plan(const TensorFn& fn) {
  Plan plan;
  plan.name = fn.name;
  for (const std::string& dim : fn.dims) plan.dims.push_back(Dim{dim, {}});
  plan.params = fn.params;
  return plan;
}

}  // namespace tilewright
