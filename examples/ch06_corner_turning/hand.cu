// C = A * Bt with A of M x K and B of N x K (B stored column by column, seen as rows): tiled with and without turning
// the corner.

#define TILE 16

// Thread (tx, ty) fetches the word of B that it would fetch of a row-major B: its neighbour in tx reads K words away.
extern "C" __global__ void matmul_bt_uncoalesced(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];  // [k][column]
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[ty][tx] = column < N && k0 + ty < K ? B[column * K + k0 + ty] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = sum;
}

// tx and ty change places for the fetch of B: neighbours read neighbouring words, and write down a column of Bs. The
// seventeenth column keeps those writes on different banks.
extern "C" __global__ void matmul_bt_turned(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE + 1];  // [k][column]
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int column = blockIdx.x * TILE + tx;
    int fetched = blockIdx.x * TILE + ty;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        Bs[tx][ty] = fetched < N && k0 + tx < K ? B[fetched * K + k0 + tx] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = sum;
}
