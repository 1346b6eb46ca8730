// Layouts: which place holds each element of a buffer, or which thread runs each iteration of a deal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// Mem: offset in elements. Reg: the thread's own slot. Lane, Warp, Warpgroup: counted from the role's first warp.
// Thread*: components of the thread index (ThreadX alone is the linear index in a 1-D block). In a deal also Step
// (the thread does these one after the other) and Vector (one access of this many elements).
enum class Place : std::uint8_t { Mem, Reg, Lane, Warp, Warpgroup, ThreadX, ThreadY, ThreadZ, Thread, Step, Vector };

std::string_view name_of(Place place);  // "mem", "thread.x", … ; Thread is "thread": the linear thread of the block
std::optional<Place> place_by_name(std::string_view name);

// `extent place*stride`
struct Factor {
  std::int64_t extent = 1;
  Place place = Place::Mem;
  std::int64_t stride = 1;
  friend bool operator==(const Factor&, const Factor&) = default;
};

struct AxisLayout {
  std::string axis;
  std::vector<Factor> factors;  // outermost first; the product of extents is the axis' extent
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;
};

// `(i: 128 mem*64; k: 64 mem) xor 128`. A coordinate of an axis is split by the factors (mixed radix, outermost first),
// each digit times its stride is added to its place. `xor_bytes` W permutes the 16-byte chunks of the mem offset within
// each row of W bytes: chunk index ^= (byte offset / 128) modulo W/16, as the copy engine and the tensor cores do.
struct Layout {
  std::vector<AxisLayout> axes;
  int xor_bytes = 0;
  friend bool operator==(const Layout&, const Layout&) = default;
};

std::string print(const Layout& layout);

// Row-major memory layout of the given axes.
Layout row_major(const std::vector<std::pair<std::string, std::int64_t>>& axes);
// Number of distinct values a place takes: 1 + the sum of (extent-1)*stride over its factors.
std::int64_t extent_of(const Layout& layout, Place place);
// The value a place takes for these coordinates (xor not applied).
std::int64_t place_value(const Layout& layout, Place place, const std::vector<std::int64_t>& coordinates);
// Elements that a buffer with this layout occupies in memory.
std::int64_t memory_elements(const Layout& layout);

}  // namespace tilewright
