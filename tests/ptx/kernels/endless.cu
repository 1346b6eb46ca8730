// Waits for a value that nobody writes.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  volatile __shared__ int flag;
  if (i == 0) flag = 0;
  __syncthreads();
  while (flag == 0) {
  }
  y[i] = 2.0f * x[i];
}
