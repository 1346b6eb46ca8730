// Box blur: mean of the neighbours that exist, rounded to the nearest.

extern "C" __global__ void blur(const unsigned char* I, unsigned char* O, int H, int W, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int sum = 0, count = 0;
    for (int a = -r; a <= r; ++a) {
        for (int b = -r; b <= r; ++b) {
            int row = y + a, column = x + b;
            if (row >= 0 && row < H && column >= 0 && column < W) {
                sum += I[row * W + column];
                ++count;
            }
        }
    }
    O[y * W + x] = (unsigned char)roundf((float)sum / (float)count);
}

// The grid's third axis is the colour.
extern "C" __global__ void blur_colour(const unsigned char* I, unsigned char* O, int H, int W, int C, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.z;
    if (x >= W || y >= H) return;
    int sum = 0, count = 0;
    for (int a = -r; a <= r; ++a) {
        for (int b = -r; b <= r; ++b) {
            int row = y + a, column = x + b;
            if (row >= 0 && row < H && column >= 0 && column < W) {
                sum += I[(row * W + column) * C + c];
                ++count;
            }
        }
    }
    O[(y * W + x) * C + c] = (unsigned char)roundf((float)sum / (float)count);
}
