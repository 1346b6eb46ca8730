// Writes an input.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  const_cast<float*>(x)[i] = 1.0f;
  y[i] = 2.0f * x[i];
}
