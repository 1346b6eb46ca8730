// run N = 128
// Each half of the block has its own barrier.
// fault one_number: race in shared memory
// fault other_half: race in shared memory
// fault no_whole_warps: wrong participation count
// fault counts_differ: wrong participation count
// fault one_too_many: deadlock
// launch halves<<<1, 128>>>(X, Y, N)
__global__ void halves(const float* X, float* Y, int N) {
  __shared__ float S[128];
  const int t = threadIdx.x;
  const int half = t / 64;
  S[t] = X[t];
#ifdef one_number
  named_barrier(1, 64);
#elif defined(no_whole_warps)
  named_barrier(1 + half, 60);
#elif defined(counts_differ)
  named_barrier(1, half == 0 ? 64 : 128);
#elif defined(one_too_many)
  named_barrier(1 + half, 96);
#else
  named_barrier(1 + half, 64);
#endif
#ifdef other_half
  Y[t] = S[127 - t];
#else
  Y[t] = S[half * 64 + 63 - t % 64];
#endif
}
