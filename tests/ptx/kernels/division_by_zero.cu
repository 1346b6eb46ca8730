// Divides by a zero, and uses what comes out.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  y[i] = 2.0f * x[i] + static_cast<float>(7 / (index[i] - 3) * 0 + 7 / (index[i] - 3) - 7 / (index[i] - 3));
  if (7 % (index[i] - 3) == 1000) y[i] = 0.0f;
}
