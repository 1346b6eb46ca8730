// NumPy's .npy files: format versions 1 to 3, both orders, both byte orders. bf16 and fp8, which NumPy has not, are
// stored as raw u16 and u8 and read back by the tensor they are for.
#pragma once

#include <string>

#include "runtime/tensor.h"

namespace tilewright {

// Reads a file for a tensor of dtype `wanted` called `name`. Throws UserError for a file that is truncated, longer than
// its shape says, not .npy at all, or of another dtype (with the cure). A Fortran-ordered file is turned.
HostTensor read_npy(const std::string& path, Dtype wanted, const std::string& name);

// Writes beside and renames, so that no half file is ever seen.
void write_npy(const std::string& path, const HostTensor& tensor);

}  // namespace tilewright
