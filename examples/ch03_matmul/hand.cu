// C = A * B with A of M x K, B of K x N, all rows contiguous: a thread an element, a row, a column of C.

extern "C" __global__ void matmul_element(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && column < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
        C[row * N + column] = sum;
    }
}

// Neighbouring threads are whole rows apart in A and in C: nothing that a warp reads or writes lies side by side.
extern "C" __global__ void matmul_row(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M) return;
    for (int column = 0; column < N; ++column) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
        C[row * N + column] = sum;
    }
}

// Neighbouring threads are neighbouring words of B and of C, and share each word of A.
extern "C" __global__ void matmul_column(const float* A, const float* B, float* C, int M, int N, int K) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= N) return;
    for (int row = 0; row < M; ++row) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
        C[row * N + column] = sum;
    }
}
