// Stops on purpose.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  if (x[i] == 5.5f) __trap();
  y[i] = 2.0f * x[i];
}
