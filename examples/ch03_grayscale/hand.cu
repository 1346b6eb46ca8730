// Colour to grey, one pixel a thread, and four with 16-byte accesses. A pixel's colours are neighbours in memory.

// The launch decides the shape of a block: 16 x 16 as a picture suggests, 32 x 8 as a warp prefers.
extern "C" __global__ void grayscale(const float* I, float* G, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < W && y < H) {
        int pixel = y * W + x;
        const float* rgb = I + pixel * 3;
        G[pixel] = 0.2989f * rgb[0] + 0.5870f * rgb[1] + 0.1140f * rgb[2];
    }
}

// Four neighbouring pixels are twelve numbers: three vectors in, one out. W must be a multiple of 4.
extern "C" __global__ void grayscale_vector(const float* I, float* G, int H, int W) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < W && y < H) {
        int pixel = y * W + x;
        const float4* in = reinterpret_cast<const float4*>(I + pixel * 3);
        float4 p = in[0], q = in[1], r = in[2];  // RGBR GBRG BRGB
        float4 g;
        g.x = 0.2989f * p.x + 0.5870f * p.y + 0.1140f * p.z;
        g.y = 0.2989f * p.w + 0.5870f * q.x + 0.1140f * q.y;
        g.z = 0.2989f * q.z + 0.5870f * q.w + 0.1140f * r.x;
        g.w = 0.2989f * r.y + 0.5870f * r.z + 0.1140f * r.w;
        *reinterpret_cast<float4*>(G + pixel) = g;
    }
}

// Bytes, in hundredths: see grayscale.tw for why integers.
extern "C" __global__ void grey(const unsigned char* I, unsigned char* G, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < W && y < H) {
        int pixel = y * W + x;
        int r = I[pixel * 3], g = I[pixel * 3 + 1], b = I[pixel * 3 + 2];
        G[pixel] = (unsigned char)((21 * r + 72 * g + 7 * b + 50) / 100);
    }
}
