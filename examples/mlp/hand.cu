// A network layer by layer: Y = X * W + bias, with relu where asked, and softmax along rows.

// One thread an element of Y (rows x outputs).
extern "C" __global__ void dense(const float* X, const float* W, const float* bias, float* Y, int rows, int inputs,
                                 int outputs, int relu) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= outputs) return;
    float sum = 0.0f;
    for (int k = 0; k < inputs; ++k) sum += X[row * inputs + k] * W[k * outputs + column];
    sum += bias[column];
    // Written so that a NaN stays one.
    Y[row * outputs + column] = relu && sum < 0.0f ? 0.0f : sum;
}

// One thread a row: the largest, the sum, the quotients.
extern "C" __global__ void softmax_rows(const float* Z, float* P, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* z = Z + row * columns;
    float largest = z[0];
    for (int c = 1; c < columns; ++c) largest = z[c] > largest ? z[c] : largest;
    float sum = 0.0f;
    for (int c = 0; c < columns; ++c) sum += expf(z[c] - largest);
    for (int c = 0; c < columns; ++c) P[row * columns + c] = expf(z[c] - largest) / sum;
}
