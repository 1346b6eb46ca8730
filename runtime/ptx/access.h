// Finding the bytes that an address means, with every check on the way.
#pragma once

#include <cstring>

#include "runtime/ptx/faults.h"
#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

// What stands beside a byte that is checked.
constexpr std::uint8_t byte_unwritten = 0;
constexpr std::uint8_t byte_written = 1;
constexpr std::uint8_t byte_of_nobody = 2;  // a gap between shared variables

struct Place {
  std::byte* data = nullptr;        // null: outside, and reported
  std::uint8_t* written = nullptr;  // null: all have a value
  Region* region = nullptr;         // null: shared or local memory
};

// `bytes` bytes at an address, for one lane.
Place locate(Warp& warp, const Op& op, Space space, std::uint64_t address, int bytes, int lane, bool is_store);

// Whether all of `bytes` bytes have a value.
inline bool is_written(const Place& place, int bytes) {
  if (place.written == nullptr) return true;
  for (int n = 0; n < bytes; ++n)
    if (place.written[n] != byte_written) return false;
  return true;
}
// Notes a store of a value that is defined or not. An undefined one in a result is reported: it came from `row`.
void note_store(Warp& warp, const Op& op, const Place& place, std::uint64_t address, int bytes, int lane, bool is_undefined, Row row);

// Lanes with a sound address; the others are reported.
LaneMask with_known_address(Warp& warp, const Op& op, Row base, LaneMask lanes);

// The copies of cp.async that `lanes` wait for: all but the last `left_open` groups; -1: those in no group yet, too.
void finish_copies(Warp& warp, LaneMask lanes, std::int64_t left_open);

}  // namespace tilewright::ptx
