// Uses a variable that only some threads set.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  float v;
  if (index[i] < 60) v = 2.0f * x[i];
  y[i] = v;
}
