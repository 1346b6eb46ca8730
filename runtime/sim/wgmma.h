// Registers that wgmma works on, as other steps use them.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

constexpr int most_accumulators = 8;

// An ordinary step reads or writes registers of an accumulator: reported where wgmma may still write them.
void touch_accumulator(Warp& warp, const WarpOp& op, const RegisterSite& site);

}  // namespace tilewright
