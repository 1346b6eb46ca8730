// Steps that read and write memory and register buffers.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// dst = the element op.a of the MemorySite op.object, in the active lanes.
WarpOp::Run run_of_load(const MemorySite& site, bool is_uniform);
// The element op.a of the MemorySite = b.
WarpOp::Run run_of_store(const MemorySite& site);
// The element op.a of the MemorySite combines with b by the BinaryOp op.code, lane after lane.
const WarpOp* run_atomic(const WarpOp& op, Warp& warp);
// dst = a*op.jump + b, or far below 0 where b is not in 0 .. op.jump: the next digit of a flat index.
const WarpOp* run_flatten(const WarpOp& op, Warp& warp);

// A scalar register's content is used where it lies; this step checks that the active lanes wrote it.
const WarpOp* run_register_check(const WarpOp& op, Warp& warp);
const WarpOp* run_register_written(const WarpOp& op, Warp& warp);  // the active lanes wrote it
// The element op.a of the RegisterSite op.object: dst = it, or it = b.
const WarpOp* run_register_load(const WarpOp& op, Warp& warp);
const WarpOp* run_register_store(const WarpOp& op, Warp& warp);
// Forgets that the RegisterSite was written: its declaration.
const WarpOp* run_register_declaration(const WarpOp& op, Warp& warp);

// load.vN and store.vN of a VectorSite.
const WarpOp* run_vector_load(const WarpOp& op, Warp& warp);
const WarpOp* run_vector_store(const WarpOp& op, Warp& warp);

}  // namespace tilewright
