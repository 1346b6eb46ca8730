// run N = 64
// Neighbours add each other's value.
// fault in_branch: divergent barrier
// launch neighbours<<<1, 64>>>(X, Y, N)
__global__ void neighbours(const float* X, float* Y, int N) {
  const int t = threadIdx.x;
  float value = X[t];
#ifdef in_branch
  if (t % 4 != 0)
#endif
    value += __shfl_xor_sync(0xffffffffu, value, 1);
  Y[t] = value;
}
