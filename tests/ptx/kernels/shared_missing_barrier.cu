// No barrier between the writes of one warp and the reads of the other.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  __shared__ float s[64];
  s[i] = x[i];
  y[63 - i] = 2.0f * s[63 - i];
}
