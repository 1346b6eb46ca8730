// C = A * B with A of M x K, B of K x N, all rows contiguous: without tiles, with a fixed tile, with a run-time tile.

extern "C" __global__ void matmul_naive(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && column < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
        C[row * N + column] = sum;
    }
}

#define TILE 16

// A block walks along K in steps of a tile. In each step a thread fetches one word of each tile, waits for the others,
// uses a row and a column of what all have fetched, and waits again before the tiles are overwritten.
extern "C" __global__ void matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Each load has its own guard: a thread without an element of C may still own a word of a tile.
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[ty][tx] = k0 + ty < K && column < N ? B[(k0 + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = sum;
}

// The same with the width chosen at the launch: both tiles lie in one dynamic array of 2 * width * width floats. The
// compiler no longer knows the inner loop's length, which is the price.
extern "C" __global__ void matmul_width(const float* A, const float* B, float* C, int M, int N, int K, int width) {
    extern __shared__ float tiles[];
    float* As = tiles;
    float* Bs = tiles + width * width;
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * width + ty;
    int column = blockIdx.x * width + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += width) {
        As[ty * width + tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[ty * width + tx] = k0 + ty < K && column < N ? B[(k0 + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < width; ++k) sum += As[ty * width + k] * Bs[k * width + tx];
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = sum;
}
