// Barrier objects in shared memory, as threads and the copy engine use them.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// The object that a lane names, in `block`; null where it is outside or not initialised, which is reported.
Mbarrier* find_mbarrier(Warp& warp, const WarpOp& op, const BarrierSite& site, int lane, SimBlock& block);
// So many bytes have landed for its phase.
void complete_bytes(SimBlock& block, Mbarrier& object, std::int64_t bytes);
// `p.full[2]` of a waiting mbarrier.wait, and what its phase lacks.
std::string missing_text(const Warp& warp, const WarpOp& op);

}  // namespace tilewright
