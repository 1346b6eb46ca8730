// The last rung of the Hopper ladder in the simulator: tensor maps, barrier objects, wgmma, clusters, persistent workers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ctime>

#include "ir/scalar.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

struct Shape {
  std::int64_t m, n, k;
};

// Every sum of exact data is an integer; it is rounded once.
std::int64_t wrong_elements(const Shape& shape, const HostTensor& a, const HostTensor& b, const HostTensor& c) {
  std::int64_t wrong = 0;
  std::vector<std::int64_t> left, right;
  for (std::int64_t e = 0; e < a.elements(); ++e) left.push_back(read_integer(a, e));
  for (std::int64_t e = 0; e < b.elements(); ++e) right.push_back(read_integer(b, e));
  for (std::int64_t i = 0; i < shape.m; ++i)
    for (std::int64_t j = 0; j < shape.n; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) sum += left[static_cast<std::size_t>(i * shape.k + k)] * right[static_cast<std::size_t>(k * shape.n + j)];
      wrong += read_real(c, i * shape.n + j) != round_to(Dtype::BF16, static_cast<double>(sum)) ? 1 : 0;
    }
  return wrong;
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("the persistent Hopper matmul at boundary shapes, whatever the order and the landing") {
    const Plan plan = ladder_plan("matmul.09.persist.thread.ir");
    // Trips of 0, 1, 3, 4 and 5 through four slots; whole tiles, part of one, two tiles an axis.
    const Shape shapes[] = {{256, 256, 64}, {256, 512, 320}, {1, 8, 8}, {200, 264, 200}, {257, 256, 256}, {512, 264, 320}, {40, 40, 0}};
    std::uint64_t seed = 1;
    for (const Shape& shape : shapes)
      for (int run = 0; run < 3; ++run) {
        CAPTURE(shape.m);
        CAPTURE(shape.n);
        CAPTURE(shape.k);
        CAPTURE(seed);
        const HostTensor a = exact_tensor(Dtype::BF16, {shape.m, shape.k}, 1);
        const HostTensor b = exact_tensor(Dtype::BF16, {shape.k, shape.n}, 3);
        SimulatorOptions options;
        options.seed = seed++;
        const Arguments result = run_without_faults(plan, {{"A", a}, {"B", b}}, {}, options);
        CHECK(wrong_elements(shape, a, b, result.tensors.at("C")) == 0);
      }
  }

  TEST_CASE("the persistent Hopper matmul with two tiles a block is quick enough for tests") {
    const Plan plan = ladder_plan("matmul.09.persist.thread.ir");
    const HostTensor a = exact_tensor(Dtype::BF16, {256, 320}, 1);
    const HostTensor b = exact_tensor(Dtype::BF16, {320, 512}, 3);
    Arguments arguments = bind_arguments(plan, {{"A", a}, {"B", b}});
    const std::clock_t start = std::clock();
    CHECK(simulate(plan, arguments).faults.empty());
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    MESSAGE(fmt::format("Hopper matmul 256x512x320, two tiles a block, all checks: {:.3f} s", seconds));
    CHECK(seconds < 10);
  }
}

}  // namespace tilewright
