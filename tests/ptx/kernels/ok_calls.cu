// Functions that are not inlined, a local array, a switch, a constant array and a global variable.
__constant__ float factors[4] = {2.0f, 2.0f, 2.0f, 2.0f};
__device__ int calls;
__device__ __noinline__ float pick(const float* values, int which) {
  float copy[8];
  for (int n = 0; n < 8; ++n) copy[n] = values[n] * factors[n % 4];
  atomicAdd(&calls, 1);
  return copy[which];
}
__device__ __noinline__ int turned(int i) {
  switch (i % 8) {
    case 0: return 3;
    case 1: return 1;
    case 2: return 7;
    case 3: return 0;
    case 4: return 5;
    case 5: return 2;
    case 6: return 6;
    default: return 4;
  }
}
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  const int to = i / 8 * 8 + turned(i);
  y[to] = pick(x + i / 8 * 8, turned(i));
}
