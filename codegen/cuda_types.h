// How element types and constants are written in CUDA C. f16, bf16 and fp8 are held as their bits (no headers).
#pragma once

#include <string>

#include "ir/dtype.h"
#include "ir/expr.h"

namespace tilewright {

// "float", "unsigned short" (f16, bf16), "int" or "long long" (index), …
std::string cuda_type(Dtype dtype, int index_bits);
// A literal of this dtype; narrow floats are not written here but converted from f32.
std::string cuda_constant(std::int64_t bits, Dtype dtype);
// The type that holds `bytes` bytes in one access: "float4" for 16 bytes of f32, "uint2" for 8 bytes of f16, …
std::string cuda_vector_type(Dtype dtype, int elements);

}  // namespace tilewright
