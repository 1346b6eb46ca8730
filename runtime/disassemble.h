// Machine code as SASS text, by NVIDIA's nvdisasm.
#pragma once

#include <string>

#include "runtime/cubin.h"

namespace tilewright {

// Throws MachineError, with the command that gets it, where nvdisasm is missing. With `line_info` the text carries the
// lines of the source that the machine code was compiled with; without, the columns of live registers.
std::string disassemble(const Cubin& cubin, bool line_info = false);

// The bytes of one entry's instructions, without any tool: two kernels with the same bytes are the same code. Empty
// where the cubin has no such entry.
std::string instruction_bytes(const Cubin& cubin, const std::string& entry);

}  // namespace tilewright
