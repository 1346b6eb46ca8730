// run N = 640
// The copy engine fills two slots of 128 words, told by one barrier object when to and telling by another when it has.
// fault no_wait_for_full: use before a copy has landed
// fault too_few_bytes: use before a copy has landed
// fault no_wait_for_empty: overwritten while still read
// fault no_fence: overwritten while still read
// fault no_barrier_behind_init: race in shared memory
// fault no_init: uninitialised read
// fault count: wrong participation count
// fault all_lanes_arrive: wrong participation count
// fault no_release: deadlock
// fault phase_of_full: deadlock
// launch ring<<<1, 64>>>(X, Y, N)
__global__ void ring(const float* X, float* Y, int N) {
  __shared__ alignas(128) float S[2][128];
  __shared__ uint64_t full[2], empty[2];
  const int t = threadIdx.x;
  const int trips = N / 128;
  if (t == 0) {
    for (int slot = 0; slot < 2; ++slot) {
#ifndef no_init
#ifdef count
      init(&full[slot], 2);
#else
      init(&full[slot], 1);
#endif
#endif
      init(&empty[slot], 1);
    }
    fence_init();
  }
#ifndef no_barrier_behind_init
  __syncthreads();
#endif
  if (t == 32)
    for (int k = 0; k < trips; ++k) {
#ifndef no_wait_for_empty
      wait(&empty[k % 2], k / 2 % 2 ^ 1);
#endif
#ifdef too_few_bytes
      arrive_expecting(&full[k % 2], 256);
#else
      arrive_expecting(&full[k % 2], 512);
#endif
      bulk_load(S[k % 2], X + k * 128, 512, &full[k % 2]);
    }
  if (t < 32)
    for (int k = 0; k < trips; ++k) {
#ifdef phase_of_full
      wait(&full[k % 2], k / 2 % 2 ^ 1);
#elif !defined(no_wait_for_full)
      wait(&full[k % 2], k / 2 % 2);
#endif
      for (int e = 0; e < 4; ++e) Y[k * 128 + e * 32 + t] = S[k % 2][e * 32 + 31 - t];
#ifndef no_fence
      fence_proxy();
#endif
      __syncwarp();
#ifdef all_lanes_arrive
      arrive(&empty[k % 2]);
#elif !defined(no_release)
      if (t == 0) arrive(&empty[k % 2]);
#endif
    }
}
