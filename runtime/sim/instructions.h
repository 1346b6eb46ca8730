// The instructions of ir/instructions.h that the simulator executes: one row and one function each.
#pragma once

#include "ir/stmt.h"
#include "runtime/sim/compiler.h"

namespace tilewright {

// An instruction without a result.
void compile_instruction(KernelCompiler& compiler, const Instr& instr);
// One with a result, of `dtype`.
LaneValue compile_instruction(KernelCompiler& compiler, const Call& call, Dtype dtype);

// Whether there is a step for this row of the table.
bool executes_instruction(std::string_view name);

// `error.report(site, value)` in the active lanes where `condition` holds.
void emit_report(KernelCompiler& compiler, const LaneValue& condition, const LaneValue& site, const LaneValue& value);

}  // namespace tilewright
