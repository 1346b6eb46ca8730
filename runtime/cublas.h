// cuBLAS as a peer of matmul: C = A · B of row-major matrices.
#pragma once

#include "runtime/timing.h"

namespace tilewright {

// A: [M, K], B: [K, N], C: [M, N], all of one dtype: f32 (no TF32) or bf16, f16 (f32 accumulation). Names are those of
// the plan's tensors. Throws MachineError where cuBLAS is missing.
std::unique_ptr<Candidate> cublas_matmul(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                                         const std::string& a, const std::string& b, const std::string& c,
                                         const RotatedTensors& tensors);

}  // namespace tilewright
