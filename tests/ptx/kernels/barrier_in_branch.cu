// A barrier that one half of a warp reaches.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  __shared__ float s[64];
  s[i] = x[i];
  if (i < 16) __syncthreads();
  y[i] = 2.0f * s[i];
}
