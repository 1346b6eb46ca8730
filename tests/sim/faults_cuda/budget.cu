// run N = 64
// All the shared memory that a block may have.
// fault of_block: shared memory over the budget
// fault of_header: out of range
// shared 232448
// launch budget<<<1, 64, SHARED>>>(X, Y, N)
#ifdef of_block
#undef SHARED
#define SHARED 232704
#endif
__global__ void budget(const float* X, float* Y, int N) {
  extern __shared__ float S[];
  const int t = threadIdx.x;
#ifdef of_header
  float* tile = S + 58096;
#else
  float* tile = S + 58048;
#endif
  tile[t] = X[t];
  __syncthreads();
  Y[t] = tile[63 - t];
}
