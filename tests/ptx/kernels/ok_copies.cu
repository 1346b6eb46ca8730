// Asynchronous copies into shared memory, in two groups.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  __shared__ float s[2][64];
  const int i = threadIdx.x;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[0][i]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n cp.async.commit_group;" ::"r"(to), "l"(x + i) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n cp.async.commit_group;" ::"r"(to + 256), "l"(x + i) : "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  const float first = s[0][i];
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[i] = first + s[1][i];
}
