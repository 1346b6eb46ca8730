// A vector of four floats that does not begin at a multiple of 16 bytes.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  if (i < 15) {
    const float4 v = *reinterpret_cast<const float4*>(x + 4 * i + 1);
    reinterpret_cast<float4*>(y)[i] = make_float4(2.0f * v.x, 2.0f * v.y, 2.0f * v.z, 2.0f * v.w);
  }
}
