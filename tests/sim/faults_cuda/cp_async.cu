// run N = 1280
// Tiles of 256 words come by cp.async, two ahead, into three slots.
// fault no_wait: use before a copy has landed
// fault no_commit: use before a copy has landed
// fault wait_too_few: use before a copy has landed
// fault no_barrier: race in shared memory
// fault slot_in_use: overwritten while still read
// launch copies<<<1, 64>>>(X, Y, N)
__global__ void copies(const float* X, float* Y, int N) {
  __shared__ alignas(16) float S[3][256];
  const int t = threadIdx.x;
  const int trips = N / 256;
  for (int slot = 0; slot < 2; ++slot) {
    cp_async_16(&S[slot][t * 4], &X[slot * 256 + t * 4]);
#ifndef no_commit
    cp_async_commit();
#endif
  }
  for (int trip = 0; trip < trips; ++trip) {
#ifdef wait_too_few
    cp_async_wait<2>();
#elif !defined(no_wait)
    cp_async_wait<1>();
#endif
#ifndef no_barrier
    __syncthreads();
#endif
#ifdef slot_in_use
    const int next = trip + 3;
#else
    const int next = trip + 2;
#endif
    if (next < trips) cp_async_16(&S[next % 3][t * 4], &X[next * 256 + t * 4]);
#ifndef no_commit
    cp_async_commit();
#endif
    for (int e = 0; e < 4; ++e) Y[trip * 256 + e * 64 + t] = S[trip % 3][255 - e * 64 - t];
  }
}
