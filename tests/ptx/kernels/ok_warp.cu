// Shuffles, votes and matches.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  float v = x[i];
  const int lane = i % 32;
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  float scan = x[i];
  for (int d = 1; d < 32; d *= 2) {
    const float other = __shfl_up_sync(0xffffffffu, scan, d);
    if (lane >= d) scan += other;
  }
  const float total = __shfl_sync(0xffffffffu, scan, 31);
  const unsigned even = __ballot_sync(0xffffffffu, lane % 2 == 0);
  const unsigned equal = __match_any_sync(0xffffffffu, lane / 4);
  const int most = __reduce_max_sync(0xffffffffu, lane);
  const bool fine = total == v && even == 0x55555555u && equal == 0xfu << (lane / 4 * 4) && most == 31 && __all_sync(0xffffffffu, lane < 32);
  y[i] = fine ? 2.0f * x[i] : -1.0f;
}
