// run N = 64
// All threads count in shared memory.
// fault plain: race in shared memory
// fault no_barrier_before: race in shared memory
// fault no_barrier_behind: race in shared memory
// launch count<<<1, 64>>>(X, Y, N)
__global__ void count(const float* X, float* Y, int N) {
  __shared__ int S[4];
  const int t = threadIdx.x;
  if (t < 4) S[t] = 0;
#ifndef no_barrier_before
  __syncthreads();
#endif
#ifdef plain
  S[t % 4] += static_cast<int>(X[t]);
#else
  atomicAdd(&S[t % 4], static_cast<int>(X[t]));
#endif
#ifndef no_barrier_behind
  __syncthreads();
#endif
  Y[t] = static_cast<float>(S[(t + 1) % 4]);
}
