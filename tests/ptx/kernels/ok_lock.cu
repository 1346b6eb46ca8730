// A lock between threads of a warp: each gets its turn.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  __shared__ int lock;
  __shared__ float sum;
  if (i == 0) lock = 0, sum = 0.0f;
  __syncthreads();
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      sum += 1.0f;
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  y[i] = sum == 64.0f ? 2.0f * x[i] : -1.0f;
}
