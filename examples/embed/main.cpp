// A C++ program that writes a kernel, compiles it and calls it: a row-wise softmax over its own memory.
#include <cmath>
#include <cstdio>
#include <vector>

#include "runtime/tilewright.h"

int main() {
  const char* program = R"(
    fn softmax(X: f32[R, D]) -> Y: f32[R, D] {
      let m[r]    = max[d] X[r, d]
      let e[r, d] = exp(X[r, d] - m[r])
      Y[r, d]     = e[r, d] / (sum[c] e[r, c])
    }
  )";
  auto softmax = tilewright::compile(program, {});
  if (!softmax) {
    std::fputs(softmax.error().c_str(), stderr);
    return 1;
  }
  const std::int64_t rows = 3, columns = 5;
  std::vector<float> x(rows * columns), y(rows * columns);
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n % 7);
  auto called = softmax.value().call({{"X", x.data(), {rows, columns}, {}}, {"Y", y.data(), {rows, columns}, {}}});
  if (!called) {
    std::fputs(called.error().c_str(), stderr);
    return 1;
  }
  bool right = true;
  for (std::int64_t r = 0; r < rows; ++r) {
    float total = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      total += y[static_cast<std::size_t>(r * columns + c)];
      std::printf(" %.4f", static_cast<double>(y[static_cast<std::size_t>(r * columns + c)]));
    }
    std::printf("   sum %.6f\n", static_cast<double>(total));
    right = right && std::fabs(total - 1.0f) < 1e-5f;
  }
  return right ? 0 : 1;
}
