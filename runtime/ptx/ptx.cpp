// A module in memory, and its launches.
#include "runtime/ptx/ptx.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/ptx/execute.h"

namespace tilewright::ptx {

namespace {

constexpr std::int64_t most_shared_bytes = 232448;  // of a block on the largest GPUs

}  // namespace

PtxMachine::PtxMachine(const std::string& ptx, std::int64_t most_steps) : module_(parse_module(ptx)), most_steps_(most_steps) {
  Region parameters;
  parameters.name = "the parameters";
  parameters.may_write = false;
  parameters_ = &memory_.add(std::move(parameters));
  for (const Variable& variable : module_.variables) {
    if (variable.space == Space::Shared) continue;
    Region region;
    region.name = variable.name;
    region.bytes = variable.bytes;
    region.own = variable.content;
    region.own.resize(variable.bytes);
    region.may_write = variable.space != Space::Const;
    variables_[variable.name] = &memory_.add(std::move(region));
  }
  for (const Variable& variable : module_.variables)
    for (const Variable::Address& address : variable.addresses) {
      const auto target = variables_.find(address.symbol);
      if (target == variables_.end()) throw Unsupported(fmt::format("unsupported: `{}` holds the address of `{}`", variable.name, address.symbol));
      const std::uint64_t value = target->second->begin + static_cast<std::uint64_t>(address.offset);
      std::memcpy(variables_.at(variable.name)->data + address.at, &value, sizeof value);
    }
}

std::uint64_t PtxMachine::place(Region region) { return memory_.add(std::move(region)).begin; }

Region* PtxMachine::variable(const std::string& name) {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second;
}

std::uint64_t PtxMachine::address_of(const std::string& name) {
  if (name.empty()) return parameters_->begin;
  const Region* region = variable(name);
  if (region == nullptr) throw Unsupported(fmt::format("unsupported: the address of `{}`", name));
  return region->begin;
}

const KernelProgram& PtxMachine::kernel(const std::string& name) {
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second;
  return kernels_.emplace(name, decode_kernel(module_, name, [this](const std::string& symbol) { return address_of(symbol); })).first->second;
}

Launch PtxMachine::checked(const std::string& name, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, std::vector<std::byte> parameters) {
  const KernelProgram& program = kernel(name);
  if (parameters.size() != program.parameter_bytes) throw UserError({}, fmt::format("kernel `{}` takes {} bytes of parameters, and the launch gives {}", name, program.parameter_bytes, parameters.size()));
  Launch launch{&program, grid, block, dynamic_shared_bytes, {}, {}};
  const std::uint64_t threads = std::uint64_t{1} * block[0] * block[1] * block[2];
  if (threads == 0 || threads > 1024) throw UserError({}, fmt::format("kernel `{}` is launched with {} threads a block, and a GPU takes 1 to 1024", name, threads));
  if (program.static_bytes + dynamic_shared_bytes > most_shared_bytes)
    throw UserError({}, fmt::format("kernel `{}` needs {} bytes of shared memory a block, and a GPU has {}", name, program.static_bytes + dynamic_shared_bytes, most_shared_bytes));
  parameters_->own = std::move(parameters);
  parameters_->data = parameters_->own.data();
  parameters_->bytes = parameters_->own.size();
  return launch;
}

void PtxMachine::launch(const std::string& name, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, std::vector<std::byte> parameters) {
  const Launch launch = checked(name, grid, block, dynamic_shared_bytes, std::move(parameters));
  const LaunchResult result = execute(launch, memory_, faults_, most_steps_);
  printed_ += result.printed;
  steps_ += result.steps;
}

Counts PtxMachine::count_block(const std::string& name, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, std::vector<std::byte> parameters, std::uint64_t only) {
  Launch launch = checked(name, grid, block, dynamic_shared_bytes, std::move(parameters));
  launch.only = only;
  Counter counter(*launch.program);
  steps_ += execute(launch, memory_, faults_, most_steps_, &counter).steps;
  return counter.result();
}

}  // namespace tilewright::ptx
