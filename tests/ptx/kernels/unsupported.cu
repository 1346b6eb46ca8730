// An instruction that the machine does not have.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  unsigned d = 0;
  asm volatile("{ .reg .b32 c; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128; }" ::"l"(y), "r"(d) : "memory");
  y[i] = 2.0f * x[i];
}
