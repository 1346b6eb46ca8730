// PTX without a GPU: a module with its variables, tensors placed beside them, and launches of its kernels. What each
// instruction does is in the files of this folder; an instruction that none of them has is refused by name.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/ptx/counts.h"
#include "runtime/ptx/decode.h"
#include "runtime/ptx/faults.h"
#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

// A kernel may take this many operations of warps (of 32 lanes each): about a minute.
constexpr std::int64_t default_steps = 1'000'000'000;

class PtxMachine {
 public:
  // Throws MachineError where the text is no PTX.
  explicit PtxMachine(const std::string& ptx, std::int64_t most_steps = default_steps);

  // Makes a tensor known; its data stays the caller's. Gives its address.
  std::uint64_t place(Region region);
  Region& region_at(std::uint64_t address) { return *memory_.find(address); }
  // A variable of the module; null where it has none of this name.
  Region* variable(const std::string& name);
  // Bytes of all parameters of a kernel, and where each begins.
  const KernelProgram& kernel(const std::string& name);
  // Runs a kernel on parameters laid out as kernel() says. Throws Unsupported, and UserError for a launch that no GPU
  // takes. Faults are added to faults(); after one that ends the launch, further launches still run.
  void launch(const std::string& kernel, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, std::vector<std::byte> parameters);

  // Runs one block of a grid, by its number, and counts; what it writes of a virtual tensor is dropped.
  Counts count_block(const std::string& kernel, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, std::vector<std::byte> parameters, std::uint64_t only);

  const FaultLog& faults() const { return faults_; }
  const std::string& printed() const { return printed_; }
  std::int64_t steps() const { return steps_; }

 private:
  // The launch, its parameters in place. Throws UserError where no GPU takes it.
  Launch checked(const std::string& kernel, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, unsigned dynamic_shared_bytes, std::vector<std::byte> parameters);
  std::uint64_t address_of(const std::string& name);

  Module module_;
  Memory memory_;
  Region* parameters_ = nullptr;
  std::map<std::string, Region*> variables_;
  std::map<std::string, KernelProgram> kernels_;
  FaultLog faults_;
  std::string printed_;
  std::int64_t most_steps_;
  std::int64_t steps_ = 0;
};

}  // namespace tilewright::ptx
