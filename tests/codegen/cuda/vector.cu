__device__ __forceinline__ float f32_from_f16(unsigned short bits) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
  return r;
}

__device__ __forceinline__ unsigned short f16_from_f32(float x) {
  unsigned short r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

__device__ __forceinline__ float f32_from_bf16(unsigned short bits) {
  return __uint_as_float((unsigned int)bits << 16);
}

// launch Y<<<ceildiv(N, 2048), 256>>>(a, X, Y, S, N)
extern "C" __global__ void __launch_bounds__(256)
Y(float a, const unsigned short* __restrict__ X, unsigned short* __restrict__ Y, int* __restrict__ S, int N) {
  const int thread_x = threadIdx.x;
  const int block_x = blockIdx.x;
  const int e = block_x * 2048 + thread_x * 8;
  if (e < N) {
    __align__(16) unsigned short X_v[8];
    __align__(16) unsigned short Y_v[8];
    *(uint4*)&X_v[0] = *(const uint4*)&X[e];
    *(uint4*)&Y_v[0] = *(const uint4*)&Y[e];
    #pragma unroll
    for (int x = 0; x < 8; ++x) {
      Y_v[x] = f16_from_f32(fmaf(a, f32_from_bf16(X_v[x]), f32_from_f16(Y_v[x])));
    }
    *(uint4*)&Y[e] = *(const uint4*)&Y_v[0];
    atomicAdd(S, 1);
  }
}
