// Atomic operations in shared and global memory, and a barrier that counts.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  __shared__ int count[4];
  __shared__ float sum;
  __shared__ int most;
  if (i < 4) count[i] = 0;
  if (i == 0) sum = 0.0f, most = -5;
  __syncthreads();
  atomicAdd(&count[i % 4], 1);
  atomicMax(&most, i % 7);
  const int old = atomicCAS(&count[2], -1, 5);
  atomicAdd(&sum, 1.0f);
  const int positive = __syncthreads_count(x[i] > 0.0f);
  y[i] = 0.0f;
  atomicAdd(&y[i], x[i]);
  const bool fine = count[0] == 16 && count[3] == 16 && most == 6 && old >= 0 && sum == 64.0f && positive == 43;
  atomicAdd(&y[i], fine ? x[i] : 1000.0f);
}
