// run N = 512
// The copy engine writes what the threads put into a slot of two.
// fault no_fence: use before a copy has landed
// fault no_barrier_before_store: race in shared memory
// fault wait_too_few: overwritten while still read
// fault no_barrier_behind_wait: overwritten while still read
// fault half_written: uninitialised read
// fault no_wait_at_end: shared memory ends before its copy
// launch store<<<1, 64>>>(X, Y, N)
__global__ void store(const float* X, float* Y, int N) {
  __shared__ alignas(128) float S[2][64];
  const int t = threadIdx.x;
  for (int k = 0; k < N / 64; ++k) {
#ifdef wait_too_few
    if (t == 0) bulk_wait_read<2>();
#else
    if (t == 0) bulk_wait_read<1>();
#endif
#ifndef no_barrier_behind_wait
    __syncthreads();
#endif
#ifdef half_written
    if (t < 32)
#endif
      S[k % 2][t] = X[k * 64 + 63 - t];
#ifndef no_fence
    fence_proxy();
#endif
#ifndef no_barrier_before_store
    __syncthreads();
#endif
    if (t == 0) {
      bulk_store(Y + k * 64, S[k % 2], 256);
      bulk_commit();
    }
  }
#ifndef no_wait_at_end
  if (t == 0) bulk_wait_read<0>();
#endif
}
