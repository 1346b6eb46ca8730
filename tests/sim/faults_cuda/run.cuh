// One launch of a kernel of this folder, as the comments in its file say; scripts/sanitize makes a program of both. X holds small
// integers, Y has no values yet. The exit status is 0 where no call failed.
#define CHECK(call)                                                                            \
  if (cudaError_t code = call; code != cudaSuccess) {                                          \
    std::printf("%s: %s\n", #call, cudaGetErrorString(code));                                  \
    return 1;                                                                                  \
  }

int main() {
  const int N = SIZE;
  std::vector<float> values(N);
  for (int n = 0; n < N; ++n) values[n] = static_cast<float>(n * 7 % 5 - 2);
  float *X, *Y;
  CHECK(cudaMalloc(&X, N * sizeof(float)));
  CHECK(cudaMalloc(&Y, N * sizeof(float)));
  CHECK(cudaMemcpy(X, values.data(), N * sizeof(float), cudaMemcpyHostToDevice));
#ifdef SHARED
  CHECK(cudaFuncSetAttribute(KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
#endif
  LAUNCH;
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(X));
  CHECK(cudaFree(Y));
  return 0;
}
