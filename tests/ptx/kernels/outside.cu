// Reads one element behind the last.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  y[i] = 2.0f * x[i + 1] - 2.0f;
}
