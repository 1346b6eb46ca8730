// Barrier objects in shared memory, as threads and the copy engine use them.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// The object that a lane names, in `block`, for itself or for the copy engine; null where it is outside or not initialised, which is
// reported, as is an initialisation that is not known.
Mbarrier* find_mbarrier(Warp& warp, const WarpOp& op, const BarrierSite& site, int lane, SimBlock& block, bool for_copy = false);
// So many bytes have landed for the phase of an object.
void complete_bytes(SimBlock& block, std::size_t object, std::int64_t bytes);
// `p.full[2]` of a waiting mbarrier.wait, and what its phase lacks.
std::string missing_text(const Warp& warp, const WarpOp& op);

}  // namespace tilewright
