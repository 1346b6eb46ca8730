// NVIDIA's management library, where it is there: what a measurement notes of the GPU's state. Nothing needs it.
#pragma once

#include <optional>

namespace tilewright {

// The SM clock of the GPU in use, now, in MHz; nothing where the library or the answer is missing.
std::optional<int> sm_clock_mhz();

}  // namespace tilewright
