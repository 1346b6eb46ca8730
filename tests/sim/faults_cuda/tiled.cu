// run N = 250
// Each block sums neighbours through a tile in shared memory, tile after tile.
// fault no_barrier_behind_copies: race in shared memory
// fault no_barrier_before_overwrite: race in shared memory
// fault overlap: race in shared memory
// fault half_staged: uninitialised read
// fault no_edge_predicate: out of range
// fault before_the_tensor: out of range
// fault behind_shared: out of range
// fault barrier_in_branch: divergent barrier
// launch tiled<<<4, 64>>>(X, Y, N)
__global__ void tiled(const float* X, float* Y, int N) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  const int i = blockIdx.x * 64 + t;
  float sum = 0;
  for (int trip = 0; trip < 4; ++trip) {
    const int from = (i + trip * 64) % 256;
#ifdef overlap
    tile[t / 2] = from < N ? X[from] : 0;
#elif defined(half_staged)
    if (t < 32) tile[t] = from < N ? X[from] : 0;
#elif defined(before_the_tensor)
    tile[t] = from < N ? X[from - 1] : 0;
#else
    tile[t] = from < N ? X[from] : 0;
#endif
#ifdef barrier_in_branch
    if (t % 4 != 0) __syncthreads();
#elif !defined(no_barrier_behind_copies)
    __syncthreads();
#endif
#ifdef behind_shared
    sum += tile[63 - t] + tile[t * 4096];
#else
    sum += tile[63 - t] + tile[t / 2];
#endif
#ifndef no_barrier_before_overwrite
    __syncthreads();
#endif
  }
#ifndef no_edge_predicate
  if (i < N)
#endif
    Y[i] = sum;
}
