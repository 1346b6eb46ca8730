// Launching generated kernels on the PTX machine; the steps of a plan are those of cuda_device.cpp.
#include "runtime/plan_ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "runtime/ptx/ptx.h"
#include "runtime/table.h"

namespace tilewright {

namespace {

using DimValues = std::vector<std::pair<std::string, std::int64_t>>;

class PlanOnPtx {
 public:
  // `counts` (may be null): tensors have no data then, and each kernel's counts are added instead of running it.
  PlanOnPtx(const Plan& plan, Arguments& arguments, const CompileOptions& options, std::vector<GridCounts>* counts = nullptr)
      : plan_(plan), arguments_(arguments), options_(options), dims_(dim_values(plan, arguments)), counts_(counts) {
    // `resident(C)`: any number gives the same result; there is no GPU to ask.
    for (const Dim& dim : plan.dims)
      if (const Call* query = as<Call>(dim.value); query && query->function == "resident") {
        if (counts != nullptr) throw ptx::Unsupported(fmt::format("`{}` is known on a GPU only, and a block's part of the work depends on it", dim.name));
        dims_.emplace_back(dim.name, 2);
      }
    for (const Temp& temp : plan.temps) {
      HostTensor tensor{temp.dtype, shape_of(temp.shape, dims_), {}};
      if (counts == nullptr) tensor = make_tensor(temp.dtype, tensor.shape);
      temporaries_.emplace(temp.name, std::move(tensor));
    }
    for (const Step& step : plan.steps)
      if (const auto* table = std::get_if<Table>(&step)) {
        tables_.push_back(table->name);
        temporaries_[table->name] = make_table(*table, dims_);
      }
  }

  RunReport run() {
    RunReport report;
    for (const Step& step : plan_.steps) {
      if (const auto* clear = std::get_if<Clear>(&step); clear != nullptr && counts_ == nullptr) fill(*clear);
      if (const auto* kernel = std::get_if<Kernel>(&step)) launch(*kernel, report);
    }
    if (error_word_[0] != 0) report.error = ErrorHit{static_cast<int>(error_word_[0] - 1), error_word_[1]};
    return report;
  }

 private:
  void fill(const Clear& clear) {
    const auto value = constant_scalar(clear.value);
    HostTensor& tensor = tensor_of(clear.tensor);
    if (!value) internal_error(fmt::format("run on the PTX machine: cannot clear `{}`", clear.tensor));
    const auto size = static_cast<std::size_t>(bytes_of(tensor.dtype));
    for (std::size_t at = 0; at < tensor.data.size(); at += size) store_scalar(tensor.dtype, tensor.data.data() + at, *value);
    written_[clear.tensor].assign(tensor.data.size(), std::uint8_t{1});
  }

  HostTensor& tensor_of(const std::string& name) {
    const auto temporary = temporaries_.find(name);
    return temporary == temporaries_.end() ? arguments_.tensors.at(name) : temporary->second;
  }

  // Each kernel is a module of its own; what it has written of a tensor is kept for the next one.
  void launch(const Kernel& kernel, RunReport& report) {
    if (!kernel.launch.maps.empty() || !kernel.launch.cluster.empty()) throw ptx::Unsupported(fmt::format("unsupported: kernel `{}` takes tensor maps or clusters, which the PTX machine does not have", kernel.name));
    std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
    for (std::size_t axis = 0; axis < kernel.launch.grid.size() && axis < 3; ++axis) {
      const std::int64_t extent = evaluate_index(kernel.launch.grid[axis], dims_);
      if (extent <= 0) return;
      grid[axis] = static_cast<unsigned>(extent);
    }
    for (std::size_t axis = 0; axis < kernel.launch.block.size() && axis < 3; ++axis) block[axis] = static_cast<unsigned>(kernel.launch.block[axis]);
    CompileOptions options = options_;
    options.line_info = counts_ != nullptr;  // counts are told by line
    ptx::PtxMachine machine(ptx_of(plan_, kernel, options), counts_ == nullptr ? ptx::default_steps : most_block_steps);
    std::vector<std::array<std::byte, 8>> values;
    std::vector<std::pair<std::string, std::uint64_t>> placed;
    const auto add = [&](const void* value, std::size_t bytes) {
      values.emplace_back();
      std::memcpy(values.back().data(), value, std::min(bytes, values.back().size()));
    };
    for (const std::string& argument : kernel.launch.arguments) {
      const Param* param = find_param(plan_, argument);
      if (param && is_by_value(*param)) {
        const HostTensor& scalar = arguments_.tensors.at(argument);
        add(scalar.data.data(), scalar.data.size());
      } else if (find_tensor(plan_, argument)) {
        const std::uint64_t address = place(machine, argument, param);
        placed.emplace_back(argument, address);
        add(&address, sizeof address);
      } else {
        const std::int64_t value = evaluate_index(var(argument), dims_);
        add(&value, sizeof value);
      }
    }
    if (!plan_.error_name.empty()) {
      ptx::Region error;
      error.name = plan_.error_name;
      error.bytes = sizeof error_word_;
      error.data = reinterpret_cast<std::byte*>(error_word_.data());
      const std::uint64_t address = machine.place(std::move(error));
      add(&address, sizeof address);
    }
    const std::string name = c_name(kernel.name);
    const ptx::KernelProgram& program = machine.kernel(name);
    if (program.parameters.size() != values.size()) internal_error(fmt::format("kernel `{}` has {} parameters in PTX and {} in its plan", kernel.name, program.parameters.size(), values.size()));
    std::vector<std::byte> parameters(program.parameter_bytes);
    for (std::size_t n = 0; n < values.size(); ++n) std::memcpy(parameters.data() + program.parameter_offsets[n], values[n].data(), std::min(program.parameters[n].bytes, values[n].size()));
    const bool is_dynamic = program.static_bytes == 0 && kernel.launch.shared_bytes > 0;
    if (counts_ != nullptr) {
      counts_->push_back(count_grid(machine, kernel.name, name, grid, block, is_dynamic ? static_cast<unsigned>(kernel.launch.shared_bytes) : 0, parameters));
      return;
    }
    machine.launch(name, grid, block, is_dynamic ? static_cast<unsigned>(kernel.launch.shared_bytes) : 0, std::move(parameters));
    for (const auto& [tensor, address] : placed) written_[tensor] = machine.region_at(address).written;
    for (const std::string& fault : machine.faults().sentences()) report.faults.push_back(fault);
  }

  std::uint64_t place(ptx::PtxMachine& machine, const std::string& name, const Param* param) {
    HostTensor& tensor = tensor_of(name);
    ptx::Region region;
    region.name = name;
    const bool is_table = std::find(tables_.begin(), tables_.end(), name) != tables_.end();
    region.is_virtual = counts_ != nullptr && !is_table;
    region.bytes = region.is_virtual ? static_cast<std::uint64_t>(tensor.elements()) * static_cast<std::uint64_t>(bytes_of(tensor.dtype)) : tensor.data.size();
    region.data = tensor.data.data();
    region.is_tensor = true;
    region.dtype = tensor.dtype;
    region.shape = tensor.shape;
    region.may_write = param == nullptr ? !is_table : param->kind != ParamKind::In;
    if (region.is_virtual) return machine.place(std::move(region));
    region.is_result = param != nullptr && region.may_write;
    if (is_table || (param != nullptr && param->kind != ParamKind::Out)) return machine.place(std::move(region));
    const auto before = written_.find(name);
    region.written = before == written_.end() ? std::vector<std::uint8_t>(tensor.data.size()) : before->second;
    return machine.place(std::move(region));
  }

  const Plan& plan_;
  Arguments& arguments_;
  const CompileOptions& options_;
  DimValues dims_;
  std::map<std::string, HostTensor> temporaries_;
  std::vector<std::string> tables_;
  std::map<std::string, std::vector<std::uint8_t>> written_;
  std::array<std::int64_t, 3> error_word_{};
  std::vector<GridCounts>* counts_;
};

}  // namespace

std::vector<GridCounts> count_on_ptx(const Plan& plan, Arguments& arguments, const CompileOptions& options) {
  std::vector<GridCounts> counts;
  try {
    PlanOnPtx(plan, arguments, options, &counts).run();
  } catch (const ptx::Unsupported& missing) {
    counts.push_back({});
    counts.back().how = missing.what();
  } catch (const UserError& error) {  // a size that only a GPU gives
    counts.push_back({});
    counts.back().how = error.diagnostics().front().message;
  }
  return counts;
}

RunReport run_on_ptx(const Plan& plan, Arguments& arguments, const CompileOptions& options) { return PlanOnPtx(plan, arguments, options).run(); }

}  // namespace tilewright
