// gelu(A * B + bias): as three kernels, and as one whose epilogue does the rest.

#define TILE 16

static __device__ float gelu(float x) { return x / (1.0f + expf(-1.5957691f * (x + 0.044715f * x * x * x))); }

// The element of A * B that belongs to this thread; 0 outside the matrix. All threads of the block must call it.
static __device__ float tiled_product(const float* A, const float* B, int M, int N, int K, int row, int column) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[ty][tx] = k0 + ty < K && column < N ? B[(k0 + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    return sum;
}

extern "C" __global__ void matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = tiled_product(A, B, M, N, K, row, column);
    if (row < M && column < N) C[row * N + column] = sum;
}

extern "C" __global__ void add_bias(const float* Z, const float* bias, float* S, int M, int N) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && column < N) S[row * N + column] = Z[row * N + column] + bias[column];
}

extern "C" __global__ void apply_gelu(const float* S, float* C, int M, int N) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && column < N) C[row * N + column] = gelu(S[row * N + column]);
}

extern "C" __global__ void matmul_bias_gelu(const float* A, const float* B, const float* bias, float* C, int M, int N,
                                            int K) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = tiled_product(A, B, M, N, K, row, column);
    if (row < M && column < N) C[row * N + column] = gelu(sum + bias[column]);
}
