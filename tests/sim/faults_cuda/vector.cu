// run N = 256
// Vectors of 4 words, into shared memory and back.
// fault from_the_middle: misaligned vector
// fault of_shifted_buffer: misaligned vector
// launch vectors<<<1, 64>>>(X, Y, N)
__global__ void vectors(const float* X, float* Y, int N) {
  __shared__ alignas(16) float S[260];
  const int t = threadIdx.x;
#ifdef of_shifted_buffer
  float* place = S + 1;
#else
  float* place = S;
#endif
#ifdef from_the_middle
  const float* source = t > 0 ? X + t * 4 - 1 : X;
#else
  const float* source = X + t * 4;
#endif
  *reinterpret_cast<float4*>(place + t * 4) = *reinterpret_cast<const float4*>(source);
  __syncthreads();
  *reinterpret_cast<float4*>(Y + t * 4) = *reinterpret_cast<float4*>(place + 252 - t * 4);
}
