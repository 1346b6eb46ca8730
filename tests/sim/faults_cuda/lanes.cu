// run N = 64
// Lanes of a warp hand values to each other through shared memory.
// fault no_barrier: race in shared memory
// fault one_word: race in shared memory
// fault other_warp: race in shared memory
// launch lanes<<<1, 64>>>(X, Y, N)
__global__ void lanes(const float* X, float* Y, int N) {
  __shared__ float S[64];
  const int t = threadIdx.x;
#ifdef one_word
  S[t / 2] = X[t];
#else
  S[t] = X[t];
#endif
#ifndef no_barrier
  __syncwarp();
#endif
#ifdef other_warp
  Y[t] = S[63 - t];
#else
  Y[t] = S[t / 32 * 32 + 31 - t % 32];
#endif
}
