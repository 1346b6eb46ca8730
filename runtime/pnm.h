// Images as tensors: .pgm (grey) and .ppm (colour), 8 bits a sample.
#pragma once

#include <string>

#include "runtime/tensor.h"

namespace tilewright {

// u8[height, width] of a grey image, u8[height, width, 3] of a colour one; binary (P5, P6) or text (P2, P3). Samples whose
// largest value is below 255 are scaled to 0 .. 255. Throws UserError.
HostTensor read_pnm(const std::string& path);

// Writes P5 or P6 by the tensor's shape. Throws UserError on another shape or dtype, or one that the ending does not fit.
void write_pnm(const std::string& path, const HostTensor& tensor);

}  // namespace tilewright
