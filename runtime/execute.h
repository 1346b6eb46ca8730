// The devices of one process that run a plan on host tensors. All share the meaning of the arguments: outputs are in
// `arguments` already (poisoned by bind_arguments), temporaries and tables are made by the call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/sim/counts.h"
#include "runtime/tensor.h"

namespace tilewright {

// The order in which the tile interpreter runs parallel loops (parallel, grid, cluster, each).
enum class LoopOrder : std::uint8_t { Forwards, Backwards, Shuffled };

struct InterpreterOptions {
  LoopOrder order = LoopOrder::Forwards;
  std::uint64_t seed = 1;        // Shuffled
  std::int64_t workers = 2;      // what `resident(…)` gives
  std::int64_t most_steps = 0;   // 0: no limit; else UserError when more statements were executed
};

// Executes a tile-stage plan sequentially and checks: bounds, initialisation, who wrote what (an element of a global
// tensor written by two iterations of parallel loops, or read by one while another writes it), slot states of pipes.
RunReport interpret(const Plan& plan, Arguments& arguments, const InterpreterOptions& options = {});

struct SimulatorOptions {
  int sms = 2;
  std::uint64_t seed = 1;
  bool checks = true;  // races and initialisation; bounds are always checked
  std::int64_t most_steps = 0;
  bool names_ir_lines = false;  // reports name the lines of the printed plan too: for a plan that was made from a program
  std::vector<KernelCounts>* counts = nullptr;  // gets one a launch, in order; null: nothing is counted, and that costs nothing
};

// Executes a thread-stage plan warp by warp.
RunReport simulate(const Plan& plan, Arguments& arguments, const SimulatorOptions& options = {});

}  // namespace tilewright
