// Functions of the standard library: with tables, slow paths and calls.
// launch k<<<1, 64>>>(X, I, Y, N)
__global__ void k(const float* x, const int* index, float* y, int n) {
  const int i = threadIdx.x;
  const float v = x[i];
  const double d = static_cast<double>(v);
  bool fine = fabsf(sinf(v) - static_cast<float>(sin(d))) < 1e-6f && fabsf(sinf(v * 1e9f) - static_cast<float>(sin(static_cast<double>(v * 1e9f)))) < 1e-6f;
  fine = fine && fabs(exp(log(fabs(d))) - fabs(d)) < 1e-12 && fabs(pow(fabs(d), 0.5) - sqrt(fabs(d))) < 1e-13;
  fine = fine && fabsf(tanhf(v * 0.1f) - static_cast<float>(tanh(d * 0.1))) < 1e-6f && fabsf(erff(v * 0.1f) - static_cast<float>(erf(d * 0.1))) < 1e-6f;
  fine = fine && fmodf(v, 3.0f) == static_cast<float>(fmod(d, 3.0)) && (static_cast<long long>(index[i]) * 1234567890123ll) / 1234567890123ll == index[i];
  y[i] = fine ? 2.0f * v : -1.0f;
}
