// Homework: tiled matrix multiplication, D = alpha * A * B. Build with nvcc and run it, or compare it with the compiler:
//   tilewright compare examples/ch05_tiled_matmul/matmul.tw --hand examples/student/matmul_student.cu
#include <cuda_runtime.h>

#include <cmath>
#include <cstdlib>
#include <stdio.h>

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        cudaError_t status = (call);                                                                  \
        if (status != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));           \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

__constant__ float alpha = 1.0f;

__device__ __forceinline__ float load_or_zero(const float* m, int rows, int cols, int r, int c) {
    return (r < rows && c < cols) ? m[r * cols + c] : 0.0f;
}

// launch tiled<16><<<(ceildiv(N, 16), ceildiv(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
template <int T>
__global__ void tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float ta[T][T];
    __shared__ float tb[T][T];

    const int r = blockIdx.y * T + threadIdx.y;
    const int col = blockIdx.x * T + threadIdx.x;
    float acc = 0.0f;

    for (int p = 0; p < (k + T - 1) / T; p++) {
        ta[threadIdx.y][threadIdx.x] = load_or_zero(a, m, k, r, p * T + threadIdx.x);
        tb[threadIdx.y][threadIdx.x] = load_or_zero(b, k, n, p * T + threadIdx.y, col);
        __syncthreads();
        for (int q = 0; q < T; q++) {
            acc += ta[threadIdx.y][q] * tb[q][threadIdx.x];
        }
        __syncthreads();
    }

    if (r < m && col < n) {
        c[r * n + col] = alpha * acc;
    }
}

static void fill(float* p, int n) {
    for (int i = 0; i < n; i++) p[i] = (float)(rand() % 7 - 3);
}

int main(int argc, char** argv) {
    const int m = argc > 1 ? atoi(argv[1]) : 100, n = argc > 2 ? atoi(argv[2]) : 70, k = argc > 3 ? atoi(argv[3]) : 90;
    float* a = (float*)malloc(m * k * sizeof(float));
    float* b = (float*)malloc(k * n * sizeof(float));
    float* c = (float*)malloc(m * n * sizeof(float));
    fill(a, m * k);
    fill(b, k * n);

    float *da, *db, *dc;
    CHECK(cudaMalloc(&da, m * k * sizeof(float)));
    CHECK(cudaMalloc(&db, k * n * sizeof(float)));
    CHECK(cudaMalloc(&dc, m * n * sizeof(float)));
    CHECK(cudaMemcpy(da, a, m * k * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b, k * n * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 block(16, 16);
    const dim3 grid((n + 15) / 16, (m + 15) / 16);
    tiled<16><<<grid, block>>>(da, db, dc, m, n, k);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c, dc, m * n * sizeof(float), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float want = 0.0f;
            for (int q = 0; q < k; q++) want += a[i * k + q] * b[q * n + j];
            if (fabsf(want - c[i * n + j]) > 1e-3f) wrong++;
        }
    }
    printf("%d of %d elements wrong\n", wrong, m * n);
    cudaFree(da);
    cudaFree(db);
    cudaFree(dc);
    free(a);
    free(b);
    free(c);
    return wrong != 0;
}
