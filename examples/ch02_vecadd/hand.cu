// Vector addition, from one element a thread to two 16-byte vectors a thread.

// Thread t of block b adds element b * 256 + t; the guard keeps the last block inside the arrays.
extern "C" __global__ void vecadd(const float* A, const float* B, float* C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}

// A block covers 512 elements, each thread the pair (2t, 2t + 1) of them.
extern "C" __global__ void vecadd_two_neighbours(const float* A, const float* B, float* C, int N) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    if (i < N) C[i] = A[i] + B[i];
    if (i + 1 < N) C[i + 1] = A[i + 1] + B[i + 1];
}

// A block covers 512 elements, each thread element t and element t + 256: neighbouring threads stay on neighbouring words.
extern "C" __global__ void vecadd_two_strided(const float* A, const float* B, float* C, int N) {
    int i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
    i += blockDim.x;
    if (i < N) C[i] = A[i] + B[i];
}

// A block covers 2048 elements. All four loads of a thread are asked for before the first addition needs one.
// N must be a multiple of 4, so that a vector is inside the arrays or outside, never half.
extern "C" __global__ void vecadd_vector(const float* A, const float* B, float* C, int N) {
    const float4* A4 = reinterpret_cast<const float4*>(A);
    const float4* B4 = reinterpret_cast<const float4*>(B);
    float4* C4 = reinterpret_cast<float4*>(C);
    int first = blockIdx.x * 512 + threadIdx.x;
    int vectors = N / 4;
    float4 a[2], b[2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        int v = first + s * 256;
        if (v < vectors) {
            a[s] = A4[v];
            b[s] = B4[v];
        }
    }
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        int v = first + s * 256;
        if (v < vectors) C4[v] = make_float4(a[s].x + b[s].x, a[s].y + b[s].y, a[s].z + b[s].z, a[s].w + b[s].w);
    }
}
