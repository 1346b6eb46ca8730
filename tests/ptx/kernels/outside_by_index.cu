// An index read from memory is too large.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  y[63 - i] = 2.0f * x[63 - i] + (index[i] == 0 ? y[n + index[i] + 1] : 0.0f);
}
