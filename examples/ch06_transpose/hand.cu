// B = A transposed, A of M x N. The grid's x axis runs along the rows of B, so that blocks that run together write
// together.

extern "C" __global__ void transpose_naive(const float* A, float* B, int M, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < M && j < N) B[j * M + i] = A[i * N + j];
}

// A tile goes in row by row and comes out column by column. All 32 words of a column lie on one bank.
extern "C" __global__ void transpose_shared(const float* A, float* B, int M, int N) {
    __shared__ float tile[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    int top = blockIdx.x * 32, left = blockIdx.y * 32;  // of the tile in A
    if (top + ty < M && left + tx < N) tile[ty][tx] = A[(top + ty) * N + left + tx];
    __syncthreads();
    if (left + ty < N && top + tx < M) B[(left + ty) * M + top + tx] = tile[tx][ty];
}

// The same with rows of 33 words: a column now lies on 32 different banks.
extern "C" __global__ void transpose_padded(const float* A, float* B, int M, int N) {
    __shared__ float tile[32][33];
    int tx = threadIdx.x, ty = threadIdx.y;
    int top = blockIdx.x * 32, left = blockIdx.y * 32;
    if (top + ty < M && left + tx < N) tile[ty][tx] = A[(top + ty) * N + left + tx];
    __syncthreads();
    if (left + ty < N && top + tx < M) B[(left + ty) * M + top + tx] = tile[tx][ty];
}

// A tile of 64 x 64 in vectors of four, both ways; each thread turns 4 x 4 words round in registers. Rows of 17 vectors
// leave four threads of eight on the same banks when they read down a column: memory is slower still, so it does not
// show. M and N must be multiples of 4.
extern "C" __global__ void transpose_vector(const float* A, float* B, int M, int N) {
    __shared__ float4 tile[64][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int top = blockIdx.x * 64, left = blockIdx.y * 64;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        int r = s * 16 + ty, row = top + r, column = left + tx * 4;
        bool inside = row < M && column < N;
        tile[r][tx] = inside ? *reinterpret_cast<const float4*>(A + row * N + column) : make_float4(0, 0, 0, 0);
    }
    __syncthreads();
    float4 v[4];
#pragma unroll
    for (int s = 0; s < 4; ++s) v[s] = tile[tx * 4 + s][ty];
    int i = top + tx * 4, j = left + ty * 4;
    if (i < M && j < N) {
        *reinterpret_cast<float4*>(B + j * M + i) = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
        *reinterpret_cast<float4*>(B + (j + 1) * M + i) = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
        *reinterpret_cast<float4*>(B + (j + 2) * M + i) = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
        *reinterpret_cast<float4*>(B + (j + 3) * M + i) = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
    }
}
