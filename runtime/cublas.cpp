// cuBLAS, opened at run time; see cublas.h.
#include "runtime/cublas.h"

#include <fmt/format.h>

#include <array>

#include "ir/diagnostic.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

using Handle = void*;

// cuBLAS' and CUDA's numbers.
constexpr int no_transpose = 0;
constexpr int type_f32 = 0;
constexpr int type_f16 = 2;
constexpr int type_bf16 = 14;
constexpr int compute_f32 = 68;
constexpr int default_algorithm = -1;

struct Cublas {
  SharedLibrary library{Tool::Cublas};
  Handle handle = nullptr;
  int (*create)(Handle*);
  int (*set_stream)(Handle, Handle);
  int (*gemm)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
              void*, int, int, int, int);
  const char* (*status_string)(int);

  Cublas() {
    library.bind(create, "cublasCreate_v2");
    library.bind(set_stream, "cublasSetStream_v2");
    library.bind(gemm, "cublasGemmEx");
    library.bind(status_string, "cublasGetStatusString");
    check(create(&handle), "cublasCreate");
  }
  void check(int code, const char* call) const {
    if (code != 0) throw MachineError(fmt::format("cuBLAS: {} failed: {}", call, status_string(code)));
  }
};

// Created once and kept: it holds workspace on the GPU.
const Cublas& cublas() {
  static const Cublas opened;
  return opened;
}

class CublasMatmul : public Candidate {
 public:
  CublasMatmul(Dtype dtype, std::array<int, 3> sizes, std::array<std::string, 3> names, const RotatedTensors& tensors)
      : Candidate("cuBLAS"), dtype_(dtype), sizes_(sizes), names_(std::move(names)), tensors_(&tensors) {
    cublas();
  }

  void run(std::size_t set, const Stream& stream) const override {
    const auto [m, n, k] = sizes_;
    const DeviceTensors& tensors = (*tensors_)[set];
    const auto pointer = [&](std::size_t index) { return reinterpret_cast<void*>(tensors.pointer(names_[index])); };
    const float one = 1.0f;
    const float zero = 0.0f;
    const int type = dtype_ == Dtype::F32 ? type_f32 : dtype_ == Dtype::F16 ? type_f16 : type_bf16;
    // In the default math mode f32 stays f32. Column-major Cᵀ = Bᵀ · Aᵀ is row-major C = A · B.
    cublas().check(cublas().set_stream(cublas().handle, stream.handle()), "cublasSetStream");
    cublas().check(cublas().gemm(cublas().handle, no_transpose, no_transpose, n, m, k, &one, pointer(1), type, n,
                                 pointer(0), type, k, &zero, pointer(2), type, n, compute_f32, default_algorithm),
                   "cublasGemmEx");
  }

 private:
  Dtype dtype_;
  std::array<int, 3> sizes_;
  std::array<std::string, 3> names_;
  const RotatedTensors* tensors_;
};

}  // namespace

std::unique_ptr<Candidate> cublas_matmul(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                                         const std::string& a, const std::string& b, const std::string& c,
                                         const RotatedTensors& tensors) {
  if (dtype != Dtype::F32 && dtype != Dtype::F16 && dtype != Dtype::BF16) {
    throw MachineError(fmt::format("cuBLAS as a peer multiplies f32, f16 and bf16 here, not {}", info(dtype).name));
  }
  for (const std::int64_t size : {m, n, k})
    if (size <= 0 || size > 2147483647)
      throw MachineError(fmt::format("cuBLAS takes sizes from 1 to 2^31 - 1, not {}", size));
  return std::make_unique<CublasMatmul>(
      dtype, std::array{static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)}, std::array{a, b, c}, tensors);
}

}  // namespace tilewright
