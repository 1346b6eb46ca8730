// How the instructions with files of their own compile; runtime/sim/instructions.cpp has the table.
#pragma once

#include "ir/stmt.h"
#include "runtime/sim/compiler.h"

namespace tilewright {

// mbarriers.cpp
void compile_mbarrier_init(KernelCompiler& compiler, const Instr& instr);
void compile_mbarrier_arrive(KernelCompiler& compiler, const Instr& instr);
void compile_mbarrier_wait(KernelCompiler& compiler, const Instr& instr);

// clusters.cpp
void compile_cluster_arrive(KernelCompiler& compiler, const Instr& instr);
void compile_cluster_wait(KernelCompiler& compiler, const Instr& instr);
void compile_registers(KernelCompiler& compiler, const Instr& instr);

// copies.cpp
void compile_box_load(KernelCompiler& compiler, const Instr& instr);
void compile_box_store(KernelCompiler& compiler, const Instr& instr);
void compile_bulk_commit(KernelCompiler& compiler, const Instr& instr);
void compile_bulk_wait(KernelCompiler& compiler, const Instr& instr);
void compile_element_copy(KernelCompiler& compiler, const Instr& instr);
void compile_element_commit(KernelCompiler& compiler, const Instr& instr);
void compile_element_wait(KernelCompiler& compiler, const Instr& instr);

// wgmma.cpp
LaneValue compile_descriptor(KernelCompiler& compiler, const Call& call);
void compile_wgmma(KernelCompiler& compiler, const Instr& instr);
void compile_wgmma_fence(KernelCompiler& compiler, const Instr& instr);
void compile_wgmma_commit(KernelCompiler& compiler, const Instr& instr);
void compile_wgmma_wait(KernelCompiler& compiler, const Instr& instr);

// matrices.cpp
void compile_load_matrix(KernelCompiler& compiler, const Instr& instr);
void compile_store_matrix(KernelCompiler& compiler, const Instr& instr);

// warp_mma.cpp
void compile_warp_mma(KernelCompiler& compiler, const Instr& instr);

// The values of all operands, in order.
std::vector<Operand> operands_of(KernelCompiler& compiler, const std::vector<Expr>& operands);
// The place that an operand of an instruction names.
const Access& place_of(const Instr& instr, std::size_t operand);

}  // namespace tilewright
