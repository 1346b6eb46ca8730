__device__ __forceinline__ void report(long long* error_word, int site, long long value) {
  unsigned long long* first = (unsigned long long*)error_word;
  if (*(volatile unsigned long long*)first == 0 && atomicCAS(first, 0ull, (unsigned long long)(site + 1)) == 0) error_word[1] = value;
}

// launch Y<<<ceildiv(N, 256), 256>>>(I, X, Y, N, R, error_word)
extern "C" __global__ void __launch_bounds__(256)
Y(const int* __restrict__ I, const float* __restrict__ X, float* __restrict__ Y, int N, int R, long long* error_word) {
  const int thread_x = threadIdx.x;
  const int block_x = blockIdx.x;
  const int i = block_x * 256 + thread_x;
  if (i < N) {
    const int at = I[i];
    if (!(0 <= at && at < R)) {
      report(error_word, 0, at);
    }
    Y[i] = 0 <= at && at < R ? X[at] : 0.0f;
  }
}
