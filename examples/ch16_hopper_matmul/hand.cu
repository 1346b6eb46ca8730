// C = A * B in bf16 with sums in f32: chapter 5's kernel, where what a tile holds is widened as it is used. No tensor
// cores: each thread multiplies what it reads.

// A bf16 is the upper half of a float.
__device__ float widen(unsigned short value) { return __uint_as_float((unsigned int)value << 16); }

// To the nearest bf16, of two equally near the even one; a NaN stays a NaN.
__device__ unsigned short narrow(float value) {
    unsigned int bits = __float_as_uint(value);
    if (value != value) return (unsigned short)(bits >> 16 | 0x40);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define TILE 16

extern "C" __global__ void matmul_tiled(const unsigned short* A, const unsigned short* B, unsigned short* C, int M, int N,
                                        int K) {
    __shared__ unsigned short As[TILE][TILE];
    __shared__ unsigned short Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        As[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0;
        Bs[ty][tx] = k0 + ty < K && column < N ? B[(k0 + ty) * N + column] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += widen(As[ty][k]) * widen(Bs[k][tx]);
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = narrow(sum);
}
