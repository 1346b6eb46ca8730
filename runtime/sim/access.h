// Steps that read and write memory and register buffers.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// dst = the element op.a of the MemorySite op.object, in the active lanes.
WarpOp::Run run_of_load(const MemorySite& site, bool is_uniform);
// The element op.a of the MemorySite = b.
WarpOp::Run run_of_store(const MemorySite& site);
// The element op.a of the MemorySite combines with b by the BinaryOp op.code, lane after lane.
WarpOp::Run run_of_atomic();
// dst = a*op.jump + b, or far below 0 where b is not in 0 .. op.jump: the next digit of a flat index.
WarpOp::Run run_of_flatten();

// A scalar register's content is used where it lies; this step checks that the active lanes wrote it.
WarpOp::Run run_of_register_check();
WarpOp::Run run_of_register_written();  // the active lanes wrote it
// The element op.a of the RegisterSite op.object: dst = it, or it = b.
WarpOp::Run run_of_register_load();
WarpOp::Run run_of_register_store();
// Forgets that the RegisterSite was written: its declaration.
WarpOp::Run run_of_register_declaration();

// load.vN and store.vN of a VectorSite.
WarpOp::Run run_of_vector_load();
WarpOp::Run run_of_vector_store();

}  // namespace tilewright
