// Launching hand kernels on a GPU; see hand.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/diagnostic.h"
#include "runtime/hand.h"

namespace tilewright {

LoadedHand::LoadedHand(const CompiledHand& compiled, const Plan& plan, const Arguments& arguments, const Stream& stream)
    : prepared_(prepare_hand(compiled.program, compiled.source, compiled.cubin.entries, plan, arguments)),
      module_(compiled.cubin.bytes),
      error_word_(error_word_bytes) {
  fill_device(error_word_.pointer(), {std::byte{0}}, error_word_bytes, stream);
  for (const PreparedTemp& temp : prepared_.temps) {
    const auto placed = temporaries_.emplace(temp.name, GuardedMemory(temp.bytes, stream)).first;
    fill_device(placed->second.pointer(), {std::byte{0xFF}}, temp.bytes, stream);
  }
  for (const auto& step : prepared_.steps) {
    if (const auto* launch = std::get_if<PreparedLaunch>(&step)) {
      load(*launch);
    } else if (const auto* constant = std::get_if<PreparedConstant>(&step)) {
      std::size_t symbol_bytes = 0;
      symbols_[constant->symbol] = module_.global(constant->symbol, symbol_bytes);
      if (constant->bytes > symbol_bytes) {
        throw UserError({}, fmt::format("`{}` has {} bytes, and the constant `{}` holds {}", constant->tensor, constant->bytes, constant->written_symbol, symbol_bytes));
      }
    }
  }
}

void LoadedHand::load(const PreparedLaunch& launch) {
  Launch loaded{module_.function(launch.entry), &launch};
  if (launch.shared_bytes > use_gpu().shared_bytes) {
    throw UserError(launch.span, fmt::format("`{}` is launched with {} bytes of shared memory, and a block of this GPU has at most {}", launch.kernel,
                                             launch.shared_bytes, use_gpu().shared_bytes));
  }
  if (launch.shared_bytes > most_static_shared_bytes) loaded.function.allow_shared(static_cast<int>(launch.shared_bytes));
  launches_.push_back(std::move(loaded));
}

DevicePointer LoadedHand::pointer_of(const std::string& tensor, const DeviceTensors& tensors) const {
  if (tensor == "error_word") return error_word_.pointer();
  const auto temporary = temporaries_.find(tensor);
  return temporary == temporaries_.end() ? tensors.pointer(tensor) : temporary->second.pointer();
}

void LoadedHand::run(const DeviceTensors& tensors, const Stream& stream) const {
  auto loaded = launches_.begin();
  for (const auto& step : prepared_.steps) {
    if (const auto* zero = std::get_if<PreparedZero>(&step)) {
      const auto temporary = temporaries_.find(zero->tensor);
      const std::size_t bytes = temporary == temporaries_.end() ? tensors.bytes(zero->tensor) : temporary->second.bytes();
      fill_device(pointer_of(zero->tensor, tensors), {std::byte{0}}, bytes, stream);
    } else if (const auto* constant = std::get_if<PreparedConstant>(&step)) {
      copy_on_device(symbols_.at(constant->symbol), pointer_of(constant->tensor, tensors), constant->bytes, stream);
    } else if (const auto* launch = std::get_if<PreparedLaunch>(&step)) {
      const Function& function = (loaded++)->function;
      if (launch->is_empty) continue;
      std::vector<std::array<std::byte, 8>> values;
      for (const PreparedArgument& argument : launch->arguments) {
        values.push_back(argument.value);
        if (argument.tensor.empty()) continue;
        const DevicePointer pointer = pointer_of(argument.tensor, tensors);
        std::memcpy(values.back().data(), &pointer, sizeof pointer);
      }
      std::vector<void*> pointers;
      for (auto& value : values) pointers.push_back(value.data());
      tilewright::launch(function, launch->grid, launch->block, {}, static_cast<unsigned>(launch->shared_bytes), stream, pointers);
    }
  }
}

std::vector<std::string> LoadedHand::overwritten() const {
  std::vector<std::string> faults;
  for (const auto& [name, memory] : temporaries_)
    if (memory.first_overwritten() >= 0)
      faults.push_back(fmt::format("the temporary `{}` ({} bytes) was written behind its end", name, memory.bytes()));
  return faults;
}

std::optional<ErrorHit> LoadedHand::error() const {
  std::array<std::int64_t, 3> word{};
  copy_to_host(word.data(), error_word_.pointer(), error_word_bytes);
  if (word[0] == 0) return std::nullopt;
  return ErrorHit{static_cast<int>(word[0] - 1), word[1]};
}

RunReport run_hand_on_cuda(const CompiledHand& compiled, const Plan& plan, Arguments& arguments) {
  use_gpu();
  const Stream stream;
  const DeviceTensors tensors(plan, arguments, stream);
  const LoadedHand loaded(compiled, plan, arguments, stream);
  const Event start;
  const Event stop;
  start.record(stream);
  loaded.run(tensors, stream);
  stop.record(stream);
  stream.synchronise();

  RunReport report;
  report.milliseconds = stop.milliseconds_since(start);
  report.error = loaded.error();
  report.faults = tensors.overwritten();
  for (const std::string& fault : loaded.overwritten()) report.faults.push_back(fault);
  tensors.copy_outputs(arguments);
  return report;
}

}  // namespace tilewright
