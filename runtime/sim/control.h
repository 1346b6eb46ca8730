// Steps that steer a warp: branches, loops, barriers, the end.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// dst keeps the active lanes; those where the mask a holds go on, or the warp jumps where there is none.
WarpOp::Run run_of_branch();
WarpOp::Run run_of_branch_unless();  // where a does not hold
// The lanes kept in dst where the mask a does not hold go on, or the warp jumps.
WarpOp::Run run_of_otherwise();
WarpOp::Run run_of_keep();
// The lanes kept in dst are active again.
WarpOp::Run run_of_rejoin();
WarpOp::Run run_of_jump();

// A loop whose variable dst counts from a to b by c. Bounds that all lanes share: the entry jumps behind the loop where
// there is no trip, the end jumps back to the body while there is one more.
WarpOp::Run run_of_uniform_entry();
WarpOp::Run run_of_uniform_next();
// Others: lanes leave one after the other; the loop stands between keep and rejoin.
WarpOp::Run run_of_lane_entry();
WarpOp::Run run_of_lane_next();

WarpOp::Run run_of_end();

}  // namespace tilewright
