// cuTensorMapEncodeTiled, opened at first use; see tensor_map.h.
#include "runtime/tensor_map.h"

#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

// CUDA's numbers.
constexpr int no_interleave = 0;
constexpr int promote_128_bytes = 2;  // an L2 miss fetches as much: 256 asked the far half of L2 for 44 % more sectors
constexpr int fill_zero = 0;

struct Encoder {
  SharedLibrary library{Tool::Driver};
  int (*encode)(void*, int, std::uint32_t, DevicePointer, const std::uint64_t*, const std::uint64_t*,
                const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  Encoder() { library.bind(encode, "cuTensorMapEncodeTiled"); }
};

const Encoder& encoder() {
  static const Encoder opened;
  return opened;
}

// CUtensorMapDataType.
int map_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::U8:
    case Dtype::I8:
    case Dtype::Bool:
    case Dtype::E4M3:
    case Dtype::E5M2:
      return 0;
    case Dtype::U16:
    case Dtype::I16:
      return 1;
    case Dtype::U32:
      return 2;
    case Dtype::I32:
      return 3;
    case Dtype::U64:
      return 4;
    case Dtype::I64:
      return 5;
    case Dtype::F16:
      return 6;
    case Dtype::F32:
      return 7;
    case Dtype::F64:
      return 8;
    case Dtype::BF16:
      return 9;
    case Dtype::Index:
    case Dtype::Mbarrier:
      break;
  }
  internal_error("encode_tensor_map: an element type that no tensor has");
}

}  // namespace

EncodedTensorMap encode_tensor_map(const TensorMapRequest& request) {
  const std::size_t rank = request.extents.size();
  if (rank == 0 || rank > 5 || request.box.size() != rank)
    internal_error("encode_tensor_map: a box has one extent for each of 1 to 5 axes");
  std::vector<std::uint64_t> strides;  // of the axes behind the first, in bytes
  std::uint64_t stride = static_cast<std::uint64_t>(bytes_of(request.dtype));
  for (std::size_t axis = 0; axis + 1 < rank; ++axis) strides.push_back(stride *= request.extents[axis]);
  const std::vector<std::uint32_t> every_element(rank, 1);
  const int swizzle = request.xor_bytes == 0 ? 0 : request.xor_bytes == 32 ? 1 : request.xor_bytes == 64 ? 2 : 3;
  EncodedTensorMap map;
  const int code = encoder().encode(map.bytes.data(), map_type(request.dtype), static_cast<std::uint32_t>(rank),
                                         request.base, request.extents.data(), strides.data(), request.box.data(),
                                         every_element.data(), no_interleave, swizzle, promote_128_bytes, fill_zero);
  if (code != 0) {
    check_driver(code, fmt::format("cuTensorMapEncodeTiled of {} with extents ({}), strides ({}) bytes, box ({}), "
                                     "swizzle {}, contiguous axis first,",
                                     info(request.dtype).name, fmt::join(request.extents, ", "),
                                     fmt::join(strides, ", "), fmt::join(request.box, ", "), request.xor_bytes));
  }
  return map;
}

}  // namespace tilewright
