// C = A * B with A of M x K, B of K x N, all rows contiguous: four tiles a block, then a tile of 128 x 128 whose
// elements live in registers.

#define TILE 32
#define COARSE 4

// One tile of A serves four tiles of B, one after the other; a thread keeps four sums, TILE columns apart.
extern "C" __global__ void matmul_coarsened(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int first = blockIdx.x * TILE * COARSE + tx;
    float sum[COARSE];
    for (int c = 0; c < COARSE; ++c) sum[c] = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
#pragma unroll
        for (int c = 0; c < COARSE; ++c) {
            int column = first + c * TILE;
            Bs[ty][tx] = k0 + ty < K && column < N ? B[(k0 + ty) * N + column] : 0.0f;
            __syncthreads();
            for (int k = 0; k < TILE; ++k) sum[c] += As[ty][k] * Bs[k][tx];
            __syncthreads();
        }
    }
    for (int c = 0; c < COARSE; ++c) {
        int column = first + c * TILE;
        if (row < M && column < N) C[row * N + column] = sum[c];
    }
}

#define BM 128
#define BN 128
#define BK 16

// The vector of four at row, column of a matrix, or zeros outside it. columns is a multiple of 4, so a vector is never
// half inside.
static __device__ float4 vector_at(const float* matrix, int rows, int columns, int row, int column) {
    if (row < rows && column < columns) return *reinterpret_cast<const float4*>(matrix + row * columns + column);
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// 256 threads, 64 sums each: rows 4*ty .. 4*ty+3 and 64 further, columns 4*tx .. 4*tx+3 and 64 further. A's tile stands
// on its side in shared memory, so that a thread's four rows are one vector. Two slots: while one is used, the next
// tiles are on their way in registers, and one barrier a step is enough. K and N must be multiples of 4.
extern "C" __global__ void __launch_bounds__(256, 2)
matmul_registers(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float As[2][BK][BM + 4];
    __shared__ __align__(16) float Bs[2][BK][BN];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int a_row = t / 4, a_k = t % 4 * 4;        // this thread's vector of A's tile, and the one 64 rows below
    int b_k = t / 32, b_column = t % 32 * 4;   // and of B's tile, and the one 8 rows below
    float sum[8][8];
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] = 0.0f;

    float4 a_next[2], b_next[2];
    for (int h = 0; h < 2; ++h) {
        a_next[h] = vector_at(A, M, K, top + a_row + h * 64, a_k);
        b_next[h] = vector_at(B, K, N, b_k + h * 8, left + b_column);
    }
    int slot = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            As[slot][a_k][a_row + h * 64] = a_next[h].x;
            As[slot][a_k + 1][a_row + h * 64] = a_next[h].y;
            As[slot][a_k + 2][a_row + h * 64] = a_next[h].z;
            As[slot][a_k + 3][a_row + h * 64] = a_next[h].w;
            *reinterpret_cast<float4*>(&Bs[slot][b_k + h * 8][b_column]) = b_next[h];
        }
        __syncthreads();
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            a_next[h] = vector_at(A, M, K, top + a_row + h * 64, k0 + BK + a_k);
            b_next[h] = vector_at(B, K, N, k0 + BK + b_k + h * 8, left + b_column);
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[8], b[8];
#pragma unroll
            for (int g = 0; g < 2; ++g) {
                *reinterpret_cast<float4*>(a + g * 4) = *reinterpret_cast<const float4*>(&As[slot][k][g * 64 + ty * 4]);
                *reinterpret_cast<float4*>(b + g * 4) = *reinterpret_cast<const float4*>(&Bs[slot][k][g * 64 + tx * 4]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += a[i] * b[j];
        }
        slot ^= 1;
    }
    for (int i = 0; i < 8; ++i) {
        int row = top + i / 4 * 64 + ty * 4 + i % 4;
        for (int g = 0; g < 2; ++g) {
            int column = left + g * 64 + tx * 4;
            if (row < M && column < N) {
                *reinterpret_cast<float4*>(C + row * N + column) =
                    make_float4(sum[i][g * 4], sum[i][g * 4 + 1], sum[i][g * 4 + 2], sum[i][g * 4 + 3]);
            }
        }
    }
}
