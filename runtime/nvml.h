// NVIDIA's management library, where it is there: what a measurement notes of the GPU's state. Nothing needs it.
#pragma once

#include <optional>

namespace tilewright {

// What else bears on a measurement: the power limit (0: not known) and how many other processes use the GPU (-1: not known).
struct GpuState {
  int power_limit_watts = 0;
  int other_processes = -1;
};
GpuState gpu_state();

// The SM clock of the GPU in use, now, in MHz; nothing where the library or the answer is missing.
std::optional<int> sm_clock_mhz();

}  // namespace tilewright
