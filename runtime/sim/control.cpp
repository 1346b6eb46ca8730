// Branches and loops narrow the mask of active lanes, which is never empty between steps: a part that no lane takes is
// jumped over.
#include "runtime/sim/control.h"

#include <fmt/format.h>

#include "runtime/sim/clocks.h"
#include "runtime/sim/faults.h"

namespace tilewright {

namespace {

const WarpOp* narrow(const WarpOp& op, Warp& warp, LaneMask condition) {
  mask_at(warp, op.dst) = warp.mask;
  const LaneMask mask = warp.mask & condition;
  if (mask == 0) return &op + op.jump;
  warp.mask = mask;
  return following(op);
}

bool is_bad_step(Warp& warp, const WarpOp& op, LaneMask lanes, std::int64_t step) {
  if (step > 0) return false;
  warp.block->core->faults->add(warp, op, FaultKind::BadStep, lanes, [&](int lane) {
    return fmt::format("a loop of {} has step {}, which is not positive", thread_text(warp, lane), step);
  });
  return true;
}

// The lanes of `mask` with a trip left.
LaneMask lanes_inside(const WarpOp& op, const Warp& warp, LaneMask mask) {
  const std::int64_t* value = lanes<std::int64_t>(warp, op.dst);
  const std::int64_t* hi = lanes<std::int64_t>(warp, op.b);
  const int hi_step = (op.uniform & 2) != 0 ? 0 : 1;
  LaneMask inside = 0;
  each_lane(mask, [&](int lane) { inside |= static_cast<LaneMask>(value[lane] < hi[lane * hi_step]) << lane; });
  return inside;
}

}  // namespace

const WarpOp* run_branch(const WarpOp& op, Warp& warp) { return narrow(op, warp, mask_at(warp, op.a)); }

const WarpOp* run_branch_unless(const WarpOp& op, Warp& warp) { return narrow(op, warp, ~mask_at(warp, op.a)); }

const WarpOp* run_otherwise(const WarpOp& op, Warp& warp) {
  const LaneMask kept = mask_at(warp, op.dst);
  const LaneMask mask = kept & ~mask_at(warp, op.a);
  warp.mask = mask != 0 ? mask : kept;
  return mask != 0 ? following(op) : &op + op.jump;
}

const WarpOp* run_keep(const WarpOp& op, Warp& warp) {
  mask_at(warp, op.dst) = warp.mask;
  return following(op);
}

const WarpOp* run_rejoin(const WarpOp& op, Warp& warp) {
  warp.mask = mask_at(warp, op.dst);
  return following(op);
}

const WarpOp* run_uniform_entry(const WarpOp& op, Warp& warp) {
  const std::int64_t lo = *lanes<std::int64_t>(warp, op.a);
  const std::int64_t hi = *lanes<std::int64_t>(warp, op.b);
  *lanes<std::int64_t>(warp, op.dst) = lo;
  if (lo >= hi || is_bad_step(warp, op, warp.mask, *lanes<std::int64_t>(warp, op.c))) return &op + op.jump;
  return following(op);
}

const WarpOp* run_uniform_next(const WarpOp& op, Warp& warp) {
  std::int64_t& value = *lanes<std::int64_t>(warp, op.dst);
  value += *lanes<std::int64_t>(warp, op.c);
  return value < *lanes<std::int64_t>(warp, op.b) ? &op + op.jump : following(op);
}

const WarpOp* run_lane_entry(const WarpOp& op, Warp& warp) {
  std::int64_t* value = lanes<std::int64_t>(warp, op.dst);
  for (int lane = 0; lane < lane_count; ++lane) value[lane] = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
  LaneMask inside = lanes_inside(op, warp, warp.mask);
  each_lane(inside, [&](int lane) {
    if (is_bad_step(warp, op, 1u << lane, read_lane(warp, op.c, Dtype::Index, (op.uniform & 4) != 0, lane).i)) inside &= ~(1u << lane);
  });
  if (inside == 0) return &op + op.jump;
  warp.mask = inside;
  return following(op);
}

const WarpOp* run_lane_next(const WarpOp& op, Warp& warp) {
  std::int64_t* value = lanes<std::int64_t>(warp, op.dst);
  each_lane(warp.mask, [&](int lane) { value[lane] += read_lane(warp, op.c, Dtype::Index, (op.uniform & 4) != 0, lane).i; });
  const LaneMask inside = lanes_inside(op, warp, warp.mask);
  if (inside == 0) return following(op);
  warp.mask = inside;
  return &op + op.jump;
}

const WarpOp* run_moment(const WarpOp& op, Warp& warp) {
  const int lane = __builtin_ctz(warp.mask);
  warp.clock->loops[static_cast<std::size_t>(op.jump)] = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
  warp.block->cluster->clocks->advance(*warp.clock);
  return following(op);
}

const WarpOp* run_end(const WarpOp& op, Warp& warp) {
  warp.state = WarpState::Done;
  return &op;
}

}  // namespace tilewright
