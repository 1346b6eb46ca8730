// The code of a rung or of a hand kernel in every form, line joined to line down to the SASS.
//
// A printed IR is read back, so that its statements stand where its text has them; what is made from it then carries
// these places along. So each form knows the lines of the form above it: program, IR, threads, CUDA C, and both PTX and
// SASS under CUDA C.
#pragma once

#include <vector>

#include "runtime/hand.h"
#include "runtime/library/ladder/ladder.h"
#include "runtime/library/rungs.h"

namespace tilewright {

// The line information changes no instruction. SASS is left out where nvdisasm is missing, and `note` then says so. LLVM's
// PTX stands under the threads, and its SASS has no lines.
std::vector<Form> forms_of(const Plan& plan, const CompileOptions& options, std::string* note);
std::vector<Form> forms_of(const HandProgram& hand, const std::string& arch, std::string* note);

}  // namespace tilewright
