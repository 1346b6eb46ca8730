// Addresses as PTX programs see them. Every tensor and variable has a window of 2^36 bytes of its own, so an access that
// leaves one never lands in another. Shared and local memory have windows too, for generic addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tilewright::ptx {

constexpr int window_bits = 36;
constexpr std::uint64_t window_begin(std::uint64_t window) { return (window << window_bits) + (std::uint64_t{1} << (window_bits - 1)); }
constexpr std::uint64_t window_of(std::uint64_t address) { return address >> window_bits; }
constexpr std::uint64_t shared_window = 1;
constexpr std::uint64_t local_window = 2;
constexpr std::uint64_t first_window = 3;  // of the regions

// A tensor, a variable of the module, or the parameters of a launch.
struct Region {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::byte* data = nullptr;
  std::vector<std::uint8_t> written;  // a byte each; empty: all have a value
  bool may_write = true;
  bool is_result = false;             // an undefined value must not be stored
  bool is_tensor = false;
  Dtype dtype = Dtype::U8;
  std::vector<std::int64_t> shape;    // of a tensor
  std::vector<std::byte> own;         // where the data is not the caller's
  bool is_virtual = false;            // it has addresses and no data: reads give zeros, what is written is dropped
};

class Memory {
 public:
  // Places a region; its address does not change any more.
  Region& add(Region region) {
    region.begin = window_begin(first_window + regions_.size());
    regions_.push_back(std::move(region));
    Region& placed = regions_.back();
    if (placed.data == nullptr) placed.data = placed.own.data();
    return placed;
  }
  // The region in whose window the address lies, which may be outside of it; null where there is none.
  Region* find(std::uint64_t address) {
    const std::uint64_t window = window_of(address);
    return window < first_window || window - first_window >= regions_.size() ? nullptr : &regions_[window - first_window];
  }
  std::deque<Region>& regions() { return regions_; }

 private:
  std::deque<Region> regions_;
};

}  // namespace tilewright::ptx
