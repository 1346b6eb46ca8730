// Reads what nobody wrote, and drops it.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  __shared__ float s[64];
  if (i < 32) s[i] = x[i];
  __syncthreads();
  const float v = s[i];
  y[i] = i < 32 ? 2.0f * v : 2.0f * x[i];
}
