// simulate: the steps of a plan in order on the model, with what each found.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "ir/diagnostic.h"
#include "runtime/execute.h"
#include "runtime/sim/compiler.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/scheduler.h"
#include "runtime/table.h"

namespace tilewright {

namespace {

class Simulation {
 public:
  Simulation(const Plan& plan, Arguments& arguments, const SimulatorOptions& options) : plan_(plan), arguments_(arguments), options_(options) {
    environment_.checks = options.checks;
    environment_.counts = options.counts != nullptr;
    if (environment_.counts || options.names_ir_lines) print(plan, lines_);
    resolve_dims();
    for (const Param& param : plan.params) {
      const auto tensor = arguments.tensors.find(param.name);
      if (tensor == arguments.tensors.end()) internal_error(fmt::format("no tensor for the parameter `{}`", param.name));
      add(param.name, tensor->second, param.kind == ParamKind::Out);
    }
    for (const Temp& temp : plan.temps) add_own(temp.name, temp.dtype, temp.shape, true);
  }

  RunReport run() {
    const auto start = std::chrono::steady_clock::now();
    for (const Step& step : plan_.steps)
      match_variant(
          step, [&](const Clear& clear) { run_clear(clear); }, [&](const Table& table) { run_table(table); }, [&](const Kernel& kernel) { run_kernel(kernel); });
    check_outputs();
    report_.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  // `resident(C)`: the blocks of kernel C that the SMs hold at once.
  void resolve_dims() {
    for (const Dim& dim : plan_.dims) {
      if (!dim.value) {
        const auto given = arguments_.dims.find(dim.name);
        if (given == arguments_.dims.end()) internal_error(fmt::format("no value for the dim `{}`", dim.name));
        environment_.dims.emplace_back(dim.name, given->second);
        continue;
      }
      const Expr value = rewrite(dim.value, [&](const Expr& expr) {
        const Call* node = as<Call>(expr);
        return node && node->function == "resident" ? integer(residents(*node)) : expr;
      });
      environment_.dims.emplace_back(dim.name, evaluate_index(value, environment_.dims));
    }
  }

  std::int64_t residents(const Call& node) const {
    const Var* name = node.arguments.empty() ? nullptr : as<Var>(node.arguments[0]);
    for (const Kernel* kernel : kernels_of(plan_)) {
      if (name == nullptr || kernel->name != name->name) continue;
      std::int64_t threads = 1;
      for (const std::int64_t extent : kernel->launch.block) threads *= extent;
      std::int64_t cluster = 1;
      for (const std::int64_t extent : kernel->launch.cluster) cluster *= extent;
      return std::max<std::int64_t>(1, options_.sms * resident_blocks(threads, kernel->launch.shared_bytes) / cluster);
    }
    throw UserError({}, fmt::format("`{}` names no kernel of the plan", print(call(node.function, node.arguments, Dtype::Index))));
  }

  GlobalTensor& add(const std::string& name, HostTensor& tensor, bool starts_unwritten) {
    auto global = std::make_unique<GlobalTensor>();
    global->name = name;
    global->dtype = tensor.dtype;
    global->shape = tensor.shape;
    global->elements = tensor.elements();
    global->base = tensor.data.data();
    if (starts_unwritten && options_.checks) global->written.resize(static_cast<std::size_t>(global->elements));
    environment_.tensors[name] = global.get();
    tensors_.push_back(std::move(global));
    return *tensors_.back();
  }

  GlobalTensor& add_own(const std::string& name, Dtype dtype, const std::vector<Expr>& shape, bool starts_unwritten) {
    own_.push_back(std::make_unique<HostTensor>(make_tensor(dtype, shape_of(shape, environment_.dims))));
    if (starts_unwritten) poison(*own_.back());
    return add(name, *own_.back(), starts_unwritten);
  }

  void run_clear(const Clear& clear) {
    const auto found = environment_.tensors.find(clear.tensor);
    if (found == environment_.tensors.end()) internal_error(fmt::format("a clear of `{}`, which is no tensor", clear.tensor));
    GlobalTensor& tensor = *found->second;
    const Expr typed = cast(tensor.dtype, clear.value);
    const std::optional<Scalar> value = constant_scalar(typed);
    if (!value) throw UserError(clear.value->span, fmt::format("unsupported: a clear of `{}` with a value that is no constant", clear.tensor));
    for (std::int64_t element = 0; element < tensor.elements; ++element) store_scalar(tensor.dtype, tensor.base + element * bytes_of(tensor.dtype), *value);
    std::fill(tensor.written.begin(), tensor.written.end(), std::uint8_t{1});
  }

  void run_table(const Table& table) {
    own_.push_back(std::make_unique<HostTensor>(make_table(table, environment_.dims)));
    add(table.name, *own_.back(), false);
  }

  void run_kernel(const Kernel& kernel) {
    for (const auto& tensor : tensors_) tensor->marks.reset();  // a launch sees all that launches before have done
    environment_.ir_lines = lines_of(kernel);
    const KernelProgram program = compile_for_simulator(plan_, kernel, environment_);
    FaultLog faults;
    std::int64_t left = 0;
    if (options_.most_steps > 0) left = std::max<std::int64_t>(1, options_.most_steps - steps_);
    const LaunchResult result = launch(program, options_, options_.seed + 0x632be59bd9b4e019ull * launches_++, left, faults, options_.counts);
    steps_ += result.steps;
    if (result.has_error && !report_.error) report_.error = result.error;
    for (std::string& sentence : faults.sentences()) report_.faults.push_back(std::move(sentence));
  }

  // Where the kernel's statements stand in the printed plan; those of kernels are all that a plan has.
  std::vector<int> lines_of(const Kernel& kernel) {
    std::vector<int> lines;
    if (lines_.empty()) return lines;
    walk(kernel.body, [&](const Stmt&) {
      lines.push_back(lines_.at(next_line_++).line);
      return true;
    });
    return lines;
  }

  // Each element of an output has a value in the end.
  void check_outputs() {
    for (const auto& tensor : tensors_) {
      const bool is_param = std::any_of(plan_.params.begin(), plan_.params.end(), [&](const Param& param) { return param.name == tensor->name; });
      if (!is_param || tensor->written.empty()) continue;
      const auto missing = std::count(tensor->written.begin(), tensor->written.end(), std::uint8_t{0});
      if (missing == 0) continue;
      std::int64_t rest = std::find(tensor->written.begin(), tensor->written.end(), std::uint8_t{0}) - tensor->written.begin();
      std::vector<std::int64_t> position(tensor->shape.size());
      for (std::size_t axis = tensor->shape.size(); axis-- > 0;) {
        position[axis] = rest % tensor->shape[axis];
        rest /= tensor->shape[axis];
      }
      report_.faults.push_back(fmt::format("`{}` has {} of {} elements that nothing has written, the first of them `{}[{}]`", tensor->name, missing,
                                           tensor->elements, tensor->name, fmt::join(position, ", ")));
    }
  }

  const Plan& plan_;
  Arguments& arguments_;
  const SimulatorOptions& options_;
  SimEnvironment environment_;
  std::vector<std::unique_ptr<GlobalTensor>> tensors_;
  std::vector<std::unique_ptr<HostTensor>> own_;
  RunReport report_;
  std::vector<PrintedLine> lines_;  // empty: not asked for
  std::size_t next_line_ = 0;
  std::int64_t steps_ = 0;
  std::uint64_t launches_ = 0;
};

}  // namespace

RunReport simulate(const Plan& plan, Arguments& arguments, const SimulatorOptions& options) { return Simulation(plan, arguments, options).run(); }

}  // namespace tilewright
