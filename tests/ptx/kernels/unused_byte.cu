// The compiler reads the three floats as four and says that the last is not in use.
// launch k<<<1, 32>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  __shared__ float three[3];
  const int i = threadIdx.x;
  if (i < 3) three[i] = x[i];
  __syncthreads();
  if (i < n) y[i] = 2.0f * x[i] + (three[0] + three[1] + three[2]) - (three[2] + three[1] + three[0]) + 1.0f;
}
