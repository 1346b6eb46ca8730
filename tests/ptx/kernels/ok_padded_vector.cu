// A value beside one that was never set in a register: LLVM pads a vector so. Only the value is taken out again.
// launch k<<<2, 32>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  float v;
  asm("{ .reg .b32 u; .reg .b64 w; mov.b64 w, {%1, u}; mov.b64 {%0, _}, w; }" : "=f"(v) : "f"(x[i]));
  y[i] = 2.0f * v;
}
