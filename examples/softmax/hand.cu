// Softmax along the rows of an R x D matrix: a row a thread, and a row a block.

#define MINUS_INFINITY __int_as_float(0xff800000)

extern "C" __global__ void softmax_row(const float* X, float* Y, int R, int D) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= R) return;
    const float* x = X + r * D;
    float largest = MINUS_INFINITY;
    for (int d = 0; d < D; ++d) largest = x[d] > largest ? x[d] : largest;
    float sum = 0.0f;
    for (int d = 0; d < D; ++d) sum += expf(x[d] - largest);
    for (int d = 0; d < D; ++d) Y[r * D + d] = expf(x[d] - largest) / sum;
}

// 256 threads a row: each folds every 256th element, then halves of the block fold each other's results.
extern "C" __global__ void softmax_block(const float* X, float* Y, int R, int D) {
    __shared__ float part[256];
    int t = threadIdx.x;
    const float* x = X + blockIdx.x * D;
    float largest = MINUS_INFINITY;
    for (int d = t; d < D; d += 256) largest = x[d] > largest ? x[d] : largest;
    part[t] = largest;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half && part[t + half] > part[t]) part[t] = part[t + half];
        __syncthreads();
    }
    largest = part[0];
    __syncthreads();  // all have read it before the sums take its place
    float sum = 0.0f;
    for (int d = t; d < D; d += 256) sum += expf(x[d] - largest);
    part[t] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    sum = part[0];
    for (int d = t; d < D; d += 256) Y[blockIdx.x * D + d] = expf(x[d] - largest) / sum;
}
