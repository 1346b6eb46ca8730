// run N = 64
// Blocks write elements of their own, and read those back.
// fault two_blocks_one_element: race in global memory
// fault other_block: race in global memory
// fault no_barrier: race in global memory
// fault unwritten: uninitialised read
// launch own<<<2, 32>>>(X, Y, N)
__global__ void own(const float* X, float* Y, int N) {
  volatile float* out = Y;
  const int t = threadIdx.x;
  const int first = blockIdx.x * 32;
#ifdef two_blocks_one_element
  out[t] = X[first + t];
#elif defined(unwritten)
  if (t < 31) out[first + t] = X[first + t];
#else
  out[first + t] = X[first + t];
#endif
#ifndef no_barrier
  __syncthreads();
#endif
#ifdef other_block
  const float value = out[63 - first - t];
#else
  const float value = out[first + 31 - t];
#endif
  __syncthreads();
#ifndef two_blocks_one_element
  out[first + t] = value + 1;
#endif
}
