// printf, by a few threads.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  if (i % 20 == 3) printf("%d: %5.1f %s %x %lld\n", i, x[i], "text", index[i], 1234567890123ll * i);
  y[i] = 2.0f * x[i];
}
