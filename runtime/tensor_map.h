// Tensor maps: what the copy engine (TMA) of sm_90 and later knows of a tensor. The driver encodes them; kernels take
// them by value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"
#include "runtime/driver.h"

namespace tilewright {

// A contiguous tensor, read or written box by box. All lists have the contiguous axis first.
struct TensorMapRequest {
  DevicePointer base = 0;
  Dtype dtype = Dtype::F32;
  std::vector<std::uint64_t> extents;  // in elements
  std::vector<std::uint32_t> box;      // in elements
  int xor_bytes = 0;                   // 0, 32, 64 or 128
};

// Elements outside the tensor are read as 0 and never written. All zero bytes: no map (of a tensor without elements).
struct alignas(64) EncodedTensorMap {
  std::array<std::byte, 128> bytes{};
};

// Throws MachineError, with the request, where the driver refuses it or is too old.
EncodedTensorMap encode_tensor_map(const TensorMapRequest& request);

}  // namespace tilewright
