__device__ __forceinline__ int ceildiv(int a, int b) {
  if (b == 0 || b == -1) return b == 0 ? 0 : (int)(0 - (unsigned int)a);
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

// launch C<<<(ceildiv(N, 16), ceildiv(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
extern "C" __global__ void __launch_bounds__(256)
C(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
  const int thread_x = threadIdx.x;
  const int thread_y = threadIdx.y;
  const int block_x = blockIdx.x;
  const int block_y = blockIdx.y;
  __shared__ __align__(16) unsigned char shared[2048];
  float* const As = (float*)shared;
  float* const Bs = (float*)(shared + 1024);
  const int i_block = block_y;
  const int j_block = block_x;
  const int i = thread_y;
  const int j = thread_x;
  float acc;
  acc = 0.0f;
  for (int k_block = 0; k_block < ceildiv(K, 16); ++k_block) {
    As[i * 16 + j] = i_block * 16 + i < M && k_block * 16 + j < K ? A[(i_block * 16 + i) * K + k_block * 16 + j] : 0.0f;
    Bs[i * 16 + j] = k_block * 16 + i < K && j_block * 16 + j < N ? B[(k_block * 16 + i) * N + j_block * 16 + j] : 0.0f;
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
      acc = fmaf(As[i * 16 + k], Bs[k * 16 + j], acc);
    }
    __syncthreads();
  }
  if (i_block * 16 + i < M && j_block * 16 + j < N) {
    C[(i_block * 16 + i) * N + j_block * 16 + j] = acc;
  }
}
