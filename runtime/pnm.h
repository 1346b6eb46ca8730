// Images: binary .pgm (u8[H, W]) and .ppm (u8[H, W, 3]) of the Netpbm formats.
#pragma once

#include <string>

#include "runtime/tensor.h"

namespace tilewright {

// Throws UserError for a file that is no such image or is truncated.
HostTensor read_pnm(const std::string& path);
// Throws UserError for a tensor of another dtype or shape. Writes beside and renames.
void write_pnm(const std::string& path, const HostTensor& tensor);

}  // namespace tilewright
