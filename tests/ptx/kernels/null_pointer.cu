// A pointer of nothing.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  const float* nothing = index[i] == 5 ? reinterpret_cast<const float*>(static_cast<size_t>(n - 64)) : x;
  y[i] = 2.0f * nothing[i];
}
