// A block walks over the array in steps of the whole grid, and folds its threads' sums in shared memory, by halves.

__global__ void sum_of_blocks(const float* x, float* result, int n) {
    __shared__ float sums[256];
    float own = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        own += x[i];
    }
    sums[threadIdx.x] = own;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        result[blockIdx.x] = sums[0];
    }
}
