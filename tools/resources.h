// What compiled code takes of the machine, and what its accesses ask for, as fields of a row.
#pragma once

#include <string>

#include "runtime/compile.h"
#include "runtime/hand.h"
#include "runtime/library/access_report.h"
#include "runtime/library/ladder/ladder.h"

namespace tilewright {

// Registers, spills, shared memory, threads, occupancy, and of the SASS (where `wants_sass`) the instructions that matter. Where
// nvdisasm is missing the row says so.
void describe_plan(LadderRow& row, const CompiledPlan& compiled, const std::string& arch, bool wants_sass);
// Of the kernels that are launched; a file may hold others.
void describe_hand(LadderRow& row, const CompiledHand& hand, const std::string& arch, const DimMap& dims, bool wants_sass);
// The same code as `of`, which an assembler with a cache of its own may have reported once.
void keep_resources(LadderRow& row, const LadderRow& of);

// Accesses of one line that are written alike are one note.
std::vector<NoteRow> notes_of(const std::vector<KernelNote>& report);

}  // namespace tilewright
