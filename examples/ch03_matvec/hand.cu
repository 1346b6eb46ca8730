// y = A * x, one row a thread: straight from global memory, and through a padded tile in shared memory.

extern "C" __global__ void matvec(const float* A, const float* x, float* y, int M, int K) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < M) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[i * K + k] * x[k];
        y[i] = sum;
    }
}

// 128 threads fetch a tile of 128 rows by 32 columns, a warp a row at a time; then each thread walks its own row.
extern "C" __global__ void matvec_staged(const float* A, const float* x, float* y, int M, int K) {
    __shared__ float tile[128][33];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int first = blockIdx.x * 128;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32) {
        for (int row = warp; row < 128; row += 4) {
            bool inside = first + row < M && k0 + lane < K;
            tile[row][lane] = inside ? A[(first + row) * K + k0 + lane] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 32 && k0 + k < K; ++k) sum += tile[t][k] * x[k0 + k];
        __syncthreads();
    }
    if (first + t < M) y[first + t] = sum;
}
