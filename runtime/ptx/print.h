// printf in kernels.
#pragma once

#include <string>

#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

// The text of zeros' end at a generic address, at most 4,096 characters.
std::string text_at(Warp& warp, const Op& op, int lane, std::uint64_t address);
// Appends to what the launch has printed; the number of arguments.
int print_formatted(Warp& warp, const Op& op, int lane, std::uint64_t format, std::uint64_t arguments);

}  // namespace tilewright::ptx
