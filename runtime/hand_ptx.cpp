// Running hand kernels as PTX, without a GPU; see hand.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/diagnostic.h"
#include "runtime/hand.h"
#include "runtime/ptx/ptx.h"

namespace tilewright {

namespace {

// The tensors of a call and the temporaries, each with its address.
class Placed {
 public:
  // `is_virtual`: tensors and temporaries have addresses and no data.
  Placed(ptx::PtxMachine& machine, const PreparedHand& hand, const Plan& plan, Arguments& arguments, bool is_virtual = false) {
    for (const Param& param : plan.params) {
      if (param.kind == ParamKind::In && param.shape.empty()) continue;
      HostTensor& tensor = arguments.tensors.at(param.name);
      ptx::Region region;
      region.name = param.name;
      region.is_virtual = is_virtual;
      region.bytes = is_virtual ? static_cast<std::uint64_t>(tensor.elements()) * static_cast<std::uint64_t>(bytes_of(tensor.dtype)) : tensor.data.size();
      region.data = tensor.data.data();
      region.may_write = param.kind != ParamKind::In;
      region.is_result = region.may_write && !is_virtual;
      region.is_tensor = true;
      region.dtype = tensor.dtype;
      region.shape = tensor.shape;
      if (param.kind == ParamKind::Out && !is_virtual) region.written.resize(tensor.data.size());
      addresses_[param.name] = machine.place(std::move(region));
    }
    for (const PreparedTemp& temp : hand.temps) {
      ptx::Region region;
      region.name = temp.name;
      region.bytes = temp.bytes;
      region.is_virtual = is_virtual;
      if (!is_virtual) {
        region.own.assign(temp.bytes, std::byte{0xff});
        region.written.resize(temp.bytes);
      }
      region.is_tensor = true;
      region.dtype = temp.dtype;
      region.shape = temp.shape;
      addresses_[temp.name] = machine.place(std::move(region));
    }
    ptx::Region error;
    error.name = "error_word";
    error.bytes = error_word_bytes;
    error.data = reinterpret_cast<std::byte*>(error_word.data());
    addresses_["error_word"] = machine.place(std::move(error));
  }
  std::uint64_t address(const std::string& tensor) const { return addresses_.at(tensor); }

  std::array<std::int64_t, 3> error_word{};

 private:
  std::map<std::string, std::uint64_t> addresses_;
};

std::vector<std::byte> parameters_of(const ptx::KernelProgram& kernel, const PreparedLaunch& launch, const Placed& placed) {
  if (kernel.parameters.size() != launch.arguments.size()) internal_error(fmt::format("kernel `{}` has {} parameters in PTX and {} in its source", launch.kernel, kernel.parameters.size(), launch.arguments.size()));
  std::vector<std::byte> bytes(kernel.parameter_bytes);
  for (std::size_t n = 0; n < launch.arguments.size(); ++n) {
    std::array<std::byte, 8> value = launch.arguments[n].value;
    if (!launch.arguments[n].tensor.empty()) {
      const std::uint64_t address = placed.address(launch.arguments[n].tensor);
      std::memcpy(value.data(), &address, sizeof address);
    }
    if (kernel.parameters[n].bytes > value.size()) throw UserError(launch.span, fmt::format("a parameter of kernel `{}` has {} bytes, and a launch can give numbers and tensors only", launch.kernel, kernel.parameters[n].bytes));
    std::memcpy(bytes.data() + kernel.parameter_offsets[n], value.data(), kernel.parameters[n].bytes);
  }
  return bytes;
}

}  // namespace

RunReport run_hand_on_ptx(const HandPtx& compiled, const Plan& plan, Arguments& arguments, std::int64_t most_steps) {
  const PreparedHand hand = prepare_hand(compiled.program, compiled.source, compiled.entries, plan, arguments);
  ptx::PtxMachine machine(compiled.text, most_steps > 0 ? most_steps : ptx::default_steps);
  Placed placed(machine, hand, plan, arguments);
  for (const auto& step : hand.steps) {
    if (const auto* zero = std::get_if<PreparedZero>(&step)) {
      ptx::Region& region = machine.region_at(placed.address(zero->tensor));
      std::memset(region.data, 0, region.bytes);
      std::fill(region.written.begin(), region.written.end(), std::uint8_t{1});
    } else if (const auto* constant = std::get_if<PreparedConstant>(&step)) {
      ptx::Region* symbol = machine.variable(constant->symbol);
      if (symbol == nullptr) continue;  // no kernel reads it
      if (constant->bytes > symbol->bytes)
        throw UserError({}, fmt::format("`{}` has {} bytes, and the constant `{}` holds {}", constant->tensor, constant->bytes, constant->written_symbol, symbol->bytes));
      std::memcpy(symbol->data, machine.region_at(placed.address(constant->tensor)).data, constant->bytes);
    } else if (const auto* launch = std::get_if<PreparedLaunch>(&step)) {
      if (launch->is_empty) continue;
      machine.launch(launch->entry, launch->grid, launch->block, static_cast<unsigned>(launch->shared_bytes), parameters_of(machine.kernel(launch->entry), *launch, placed));
    }
  }
  RunReport report;
  report.faults = machine.faults().sentences();
  report.printed = machine.printed();
  if (placed.error_word[0] != 0) report.error = ErrorHit{static_cast<int>(placed.error_word[0] - 1), placed.error_word[1]};
  return report;
}

std::vector<GridCounts> count_hand_on_ptx(const HandPtx& compiled, const Plan& plan, Arguments& arguments) {
  std::vector<GridCounts> counts;
  try {
    const PreparedHand hand = prepare_hand(compiled.program, compiled.source, compiled.entries, plan, arguments);
    ptx::PtxMachine machine(compiled.text, most_block_steps);
    Placed placed(machine, hand, plan, arguments, true);
    for (const auto& step : hand.steps) {
      const auto* launch = std::get_if<PreparedLaunch>(&step);
      if (launch == nullptr || launch->is_empty) continue;
      counts.push_back(count_grid(machine, launch->kernel, launch->entry, launch->grid, launch->block, static_cast<unsigned>(launch->shared_bytes),
                                  parameters_of(machine.kernel(launch->entry), *launch, placed)));
    }
  } catch (const ptx::Unsupported& missing) {
    counts.push_back({});
    counts.back().how = missing.what();
  }
  return counts;
}

}  // namespace tilewright
