// The tile interpreter: runs the steps of a plan in order and reports broken promises.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ir/diagnostic.h"
#include "runtime/interpreter_compiler.h"
#include "runtime/table.h"

namespace tilewright {

namespace {

class Interpreter {
 public:
  Interpreter(const Plan& plan, Arguments& arguments, const InterpreterOptions& options) : plan_(plan), arguments_(arguments), options_(options) {
    for (const auto& [name, value] : dim_values(plan, arguments)) add_dim(name, value);
    // What `resident` gives is the number of workers that the caller wants to see tried.
    for (const Dim& dim : plan.dims)
      if (!dims_.contains(dim.name)) {
        const Call* call = as<Call>(dim.value);
        const bool is_resident = call != nullptr && call->function == "resident";
        add_dim(dim.name, is_resident ? options.workers : evaluate_index(dim.value, names_));
      }
    machine_.options = &options_;
    machine_.report = &report_;
    machine_.random.seed(options.seed);
  }

  RunReport run() {
    const auto start = std::chrono::steady_clock::now();
    for (const Param& param : plan_.params) add_param(param);
    for (const Temp& temp : plan_.temps) add_temp(temp);
    for (const Step& step : plan_.steps)
      match_variant(step, [&](const Clear& clear) { run_clear(clear); }, [&](const Table& table) { add_table(table); },
                    [&](const Kernel& kernel) { run_kernel(kernel); });
    check_outputs();
    report_.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  void add_dim(const std::string& name, std::int64_t value) {
    dims_[name] = value;
    names_.emplace_back(name, value);
  }

  CheckedMemory& add_tensor(const std::string& name, HostTensor& tensor) {
    auto memory = std::make_unique<CheckedMemory>();
    memory->name = name;
    memory->dtype = tensor.dtype;
    memory->base = tensor.data.data();
    memory->set_extents(tensor.shape);
    memory->is_global = true;
    tensors_[name] = memory.get();
    memories_.push_back(std::move(memory));
    return *memories_.back();
  }

  void add_param(const Param& param) {
    const auto tensor = arguments_.tensors.find(param.name);
    if (tensor == arguments_.tensors.end()) internal_error(fmt::format("no tensor for `{}`", param.name));
    CheckedMemory& memory = add_tensor(param.name, tensor->second);
    if (param.kind == ParamKind::Out) memory.is_written.resize(static_cast<std::size_t>(memory.elements()));
  }

  void add_temp(const Temp& temp) {
    owned_.push_back(std::make_unique<HostTensor>(make_tensor(temp.dtype, shape_of(temp.shape, names_))));
    poison(*owned_.back());
    CheckedMemory& memory = add_tensor(temp.name, *owned_.back());
    memory.is_written.resize(static_cast<std::size_t>(memory.elements()));
  }

  void add_table(const Table& table) {
    owned_.push_back(std::make_unique<HostTensor>(make_table(table, names_)));
    add_tensor(table.name, *owned_.back());
  }

  void run_clear(const Clear& clear) {
    const auto found = tensors_.find(clear.tensor);
    if (found == tensors_.end()) throw UserError({}, fmt::format("`clear` of `{}`, which nothing declares", clear.tensor));
    CheckedMemory& memory = *found->second;
    const auto constant = constant_scalar(clear.value);
    const Scalar value = constant ? *constant : integer_scalar(evaluate_index(clear.value, names_));
    for (std::int64_t element = 0; element < memory.elements(); ++element)
      store_scalar(memory.dtype, memory.base + element * bytes_of(memory.dtype), value);
    std::fill(memory.is_written.begin(), memory.is_written.end(), std::uint8_t{1});
  }

  // Tensors that the kernel writes are watched; readers too where it also reads them.
  void watch(const Kernel& kernel) {
    std::set<std::string> written, read;
    collect_accesses(kernel.body, written, read);
    for (const auto& [name, memory] : tensors_) {
      const auto count = static_cast<std::size_t>(memory->elements());
      memory->writers.assign(written.contains(name) ? count : 0, 0);
      memory->readers.assign(written.contains(name) && read.contains(name) ? 2 * count : 0, 0);
    }
  }

  void run_kernel(const Kernel& kernel) {
    if (kernel.stage == Stage::Thread)
      throw UserError({}, fmt::format("kernel `{}` is at thread stage; the interpreter runs the tile stage", kernel.name), "use --device sim");
    watch(kernel);
    InterpreterObjects objects;
    InterpreterCompiler compiler(tensors_, dims_, options_, objects);
    SlotProgram program = compiler.compile_kernel(kernel);
    std::vector<Scalar> slots = program.initial_slots;
    machine_.kernel = kernel.name;
    machine_.slots = slots.data();
    machine_.levels.clear();
    machine_.reported.clear();
    tilewright::run(program, machine_);
  }

  // An offence that went to the error word excuses what was left out.
  void check_outputs() {
    if (report_.error) return;
    for (const Param& param : plan_.params) {
      const CheckedMemory& memory = *tensors_.at(param.name);
      const auto missing = std::count(memory.is_written.begin(), memory.is_written.end(), std::uint8_t{0});
      if (missing == 0) continue;
      const auto first = std::find(memory.is_written.begin(), memory.is_written.end(), std::uint8_t{0}) - memory.is_written.begin();
      report_.faults.push_back(missing == 1 ? fmt::format("{} is never written", element_name(memory, first))
                                            : fmt::format("{} elements of `{}` are never written, {} the first of them", missing, param.name,
                                                          element_name(memory, first)));
    }
  }

  const Plan& plan_;
  Arguments& arguments_;
  InterpreterOptions options_;
  std::map<std::string, std::int64_t> dims_;
  std::vector<std::pair<std::string, std::int64_t>> names_;
  std::vector<std::unique_ptr<HostTensor>> owned_;
  std::vector<std::unique_ptr<CheckedMemory>> memories_;
  std::map<std::string, CheckedMemory*> tensors_;
  InterpreterMachine machine_;
  RunReport report_;
};

}  // namespace

RunReport interpret(const Plan& plan, Arguments& arguments, const InterpreterOptions& options) {
  return Interpreter(plan, arguments, options).run();
}

}  // namespace tilewright
