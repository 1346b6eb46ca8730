// Layouts of tiles in shared memory, and what a kernel uses of it and of registers.
#pragma once

#include <vector>

#include "passes/loops.h"
#include "passes/pass.h"

namespace tilewright {

struct TileOptions {
  std::int64_t pad = 0;     // elements behind each row
  bool transposed = false;  // the last two axes change places in memory
  LineNumber swizzle;       // bytes of a panel; 0: none
};

// Row-major, or as the options say. Refuses a swizzle that the tile is no multiple of.
Layout tile_layout(const std::vector<BufferAxis>& axes, Dtype dtype, const TileOptions& options);

// The layout of a tile with the same order of axes and the same padding, but other extents; nothing for a swizzled one.
std::optional<Layout> resized_layout(const Layout& layout, const std::vector<BufferAxis>& before,
                                     const std::vector<BufferAxis>& after);

// Elements from one copy of a tile to the next: all its rows with their padding.
std::int64_t tile_elements(const Layout& layout);

// Bytes that the shared buffers of a kernel take.
std::int64_t shared_bytes_of(const Block& kernel_body);

// Refuses, at `span`, a kernel body whose shared buffers do not fit in a block's memory, with the numbers.
void require_shared_fits(const Block& kernel_body, const Target& target, Span span, const std::string& cure);

// 32-bit registers of a thread that register buffers need. Of arrays that a thread has for itself only the largest
// counts, for the others may not be alive with it.
std::int64_t registers_of(const Block& kernel_body);

// The same for registers: what register buffers need, and 40 more, must fit in a thread's share, or in what the role
// `consumer` has.
void require_registers_fit(const Kernel& kernel, const Target& target, Span span, const std::string& cure);

}  // namespace tilewright
