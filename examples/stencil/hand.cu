// Five-point stencils on a grid of H x W points: straight from memory, and through a tile with its halo.

static __device__ float at(const float* I, int H, int W, int y, int x) {
    return y >= 0 && y < H && x >= 0 && x < W ? I[y * W + x] : 0.0f;
}

extern "C" __global__ void five(const float* I, float* O, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < H && x < W) {
        O[y * W + x] = 0.2f * (at(I, H, W, y, x) + at(I, H, W, y - 1, x) + at(I, H, W, y + 1, x) +
                               at(I, H, W, y, x - 1) + at(I, H, W, y, x + 1));
    }
}

// 256 threads fetch the 10 x 34 points that their 8 x 32 results need; zeros stand for what is outside.
extern "C" __global__ void five_staged(const float* I, float* O, int H, int W) {
    __shared__ float tile[10][34];
    int top = blockIdx.y * 8 - 1, left = blockIdx.x * 32 - 1;
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int p = ty * 32 + tx; p < 10 * 34; p += 256) tile[p / 34][p % 34] = at(I, H, W, top + p / 34, left + p % 34);
    __syncthreads();
    int y = blockIdx.y * 8 + ty, x = blockIdx.x * 32 + tx;
    if (y < H && x < W) {
        O[y * W + x] = 0.2f * (tile[ty + 1][tx + 1] + tile[ty][tx + 1] + tile[ty + 2][tx + 1] + tile[ty + 1][tx] +
                               tile[ty + 1][tx + 2]);
    }
}

extern "C" __global__ void jacobi(const float* I, float* O, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y >= H || x >= W) return;
    int p = y * W + x;
    bool inside = y > 0 && y < H - 1 && x > 0 && x < W - 1;
    O[p] = inside ? 0.25f * (I[p - W] + I[p + W] + I[p - 1] + I[p + 1]) : I[p];
}
