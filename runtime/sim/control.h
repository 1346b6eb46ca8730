// Steps that steer a warp: branches, loops, barriers, the end.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// dst keeps the active lanes; those where the mask a holds go on, or the warp jumps where there is none.
const WarpOp* run_branch(const WarpOp& op, Warp& warp);
const WarpOp* run_branch_unless(const WarpOp& op, Warp& warp);  // where a does not hold
// The lanes kept in dst where the mask a does not hold go on, or the warp jumps.
const WarpOp* run_otherwise(const WarpOp& op, Warp& warp);
const WarpOp* run_keep(const WarpOp& op, Warp& warp);
// The lanes kept in dst are active again.
const WarpOp* run_rejoin(const WarpOp& op, Warp& warp);

// A loop whose variable dst counts from a to b by c. Bounds that all lanes share: the entry jumps behind the loop where
// there is no trip, the end jumps back to the body while there is one more.
const WarpOp* run_uniform_entry(const WarpOp& op, Warp& warp);
const WarpOp* run_uniform_next(const WarpOp& op, Warp& warp);
// Others: lanes leave one after the other; the loop stands between keep and rejoin.
const WarpOp* run_lane_entry(const WarpOp& op, Warp& warp);
const WarpOp* run_lane_next(const WarpOp& op, Warp& warp);

// A trip of the loop op.jump, whose variable is a, begins: for the times of the race check.
const WarpOp* run_moment(const WarpOp& op, Warp& warp);

const WarpOp* run_end(const WarpOp& op, Warp& warp);

}  // namespace tilewright
