// The last rung of the ladder on a GPU of sm_90: right by both generators at sizes off the tile, where K is 0 and where
// there is nothing to write; outputs are poisoned, and sums exact in any order.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "runtime/cuda_device.h"
#include "runtime/driver.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

HostTensor ternary(std::vector<std::int64_t> shape, std::int64_t seed) {
  HostTensor tensor = make_tensor(Dtype::BF16, std::move(shape));
  for (std::int64_t n = 0; n < tensor.elements(); ++n)
    write_real(tensor, n, static_cast<double>((n * 31 + n / 7 + seed) % 3 - 1));
  return tensor;
}

// Every element of small outputs; of large ones those of every 61st row.
std::int64_t wrong_elements(const Arguments& arguments, std::int64_t m, std::int64_t n, std::int64_t k) {
  const HostTensor& a = arguments.tensors.at("A");
  const HostTensor& b = arguments.tensors.at("B");
  const std::int64_t step = m * n * k > 20'000'000 ? 61 : 1;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < m; i += step)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += static_cast<float>(read_real(a, i * k + p) * read_real(b, p * n + j));
      HostTensor rounded = make_tensor(Dtype::BF16, {});
      write_real(rounded, 0, sum);
      wrong += read_real(arguments.tensors.at("C"), i * n + j) != read_real(rounded, 0);
    }
  return wrong;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("gpu: the last Hopper rung is right by both generators") {
    if (use_gpu().arch != "sm_90a") TILEWRIGHT_SKIP("the GPU is no sm_90");
    std::ifstream file(source_root() / "tests/ir/ladder/matmul.09.persist.thread.ir");
    std::ostringstream text;
    text << file.rdbuf();
    const Plan plan = read_plan(text.str());
    constexpr auto sizes = std::to_array<std::array<std::int64_t, 3>>({{256, 256, 64},
                                                                       {1, 8, 8},
                                                                       {257, 264, 72},
                                                                       {128, 512, 192},
                                                                       {300, 520, 200},
                                                                       {255, 1008, 256},
                                                                       {1000, 128, 320},
                                                                       {127, 256, 0},
                                                                       {0, 256, 64},
                                                                       {64, 0, 64},
                                                                       {4097, 4104, 136}});
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      CompileOptions options;
      options.backend = backend;
      options.use_cache = false;
      const CompiledPlan compiled = compile_plan(plan, options);
      for (const auto& size : sizes) {
        const auto [m, n, k] = size;
        INFO(size[0], " by ", size[1], " by ", size[2], ", generator ", static_cast<int>(backend));
        Arguments arguments = bind_arguments(plan, {{"A", ternary({m, k}, 0)}, {"B", ternary({k, n}, 1)}},
                                             {{"M", m}, {"N", n}, {"K", k}});
        const RunReport report = run_on_cuda(compiled, arguments);
        CHECK(report.faults.empty());
        CHECK(wrong_elements(arguments, m, n, k) == 0);
      }
    }
  }
}

}  // namespace tilewright
