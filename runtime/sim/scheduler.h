// The SMs: which blocks are resident and which warp runs next.
#pragma once

#include <cstdint>

#include "runtime/execute.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/machine.h"

namespace tilewright {

// What an SM holds, as an H200 does.
constexpr std::int64_t shared_bytes_of_sm = 233472;
constexpr std::int64_t shared_bytes_of_block = 232448;  // at most; 1 KB more is the system's
constexpr std::int64_t threads_of_sm = 2048;
constexpr std::int64_t blocks_of_sm = 32;
constexpr std::int64_t registers_of_block = 65536;

// How many blocks of this size an SM holds at once.
std::int64_t resident_blocks(std::int64_t threads, std::int64_t shared_bytes);

struct LaunchResult {
  bool has_error = false;
  ErrorHit error;
  std::int64_t steps = 0;
};

// Runs all blocks of the grid. Block b runs on SM b % sms (clusters on all SMs together); each SM starts its blocks in order, as
// many at once as fit, and picks among their warps, for a random number of steps: between barriers nothing orders warps. The seed
// says how: at random, one warp far ahead, one far behind; asynchronous copies at random, as early or as late as can be.
// The same seed gives the same run. Blocks that share no memory are spread over more SMs, and these over the cores of this machine
// (not where one SM is asked for). Throws UserError where more than
// `steps_left` steps were taken (0: no limit). What was done is added to `counts`, where it is not null.
LaunchResult launch(const KernelProgram& program, const SimulatorOptions& options, std::uint64_t seed, std::int64_t steps_left, FaultLog& faults,
                    std::vector<KernelCounts>* counts = nullptr);

}  // namespace tilewright
