// The simulator on matmul, naive and tiled, at boundary shapes; and its speed.
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

// f32 and bf16 operands, f32 accumulation by fma in order of k.
void expect_matmul(const Plan& plan, Dtype dtype, const Shape& shape, std::uint64_t seed) {
  CAPTURE(shape.m);
  CAPTURE(shape.n);
  CAPTURE(shape.k);
  const HostTensor a = exact_tensor(dtype, {shape.m, shape.k}, 1);
  const HostTensor b = exact_tensor(dtype, {shape.k, shape.n}, 3);
  SimulatorOptions options;
  options.seed = seed;
  const Arguments result = run_without_faults(plan, {{"A", a}, {"B", b}}, {}, options);
  const HostTensor& c = result.tensors.at("C");
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < shape.m; ++i)
    for (std::int64_t j = 0; j < shape.n; ++j) {
      Scalar sum = real_scalar(0);
      for (std::int64_t k = 0; k < shape.k; ++k)
        sum = fused_multiply_add(Dtype::F32, real_scalar(read_real(a, i * shape.k + k)), real_scalar(read_real(b, k * shape.n + j)), sum);
      wrong += read_real(c, i * shape.n + j) != round_to(dtype, sum.f) ? 1 : 0;
    }
  CHECK(wrong == 0);
}

std::string with_dtype(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

constexpr std::string_view tiled_bf16 = R"(plan matmul {
  dim M, N, K
  in A: bf16[M, K]
  in B: bf16[K, N]
  out C: bf16[M, N]
  kernel C thread grid (ceildiv(N, 16), ceildiv(M, 16)) block (16, 16) shared 1024 args (A, B, C, M, N, K) {
    shared As: bf16[256] at 0
    shared Bs: bf16[256] at 512
    let i = block.y*16 + thread.y
    let j = block.x*16 + thread.x
    reg acc: f32
    acc = 0.0
    serial k.block in ceildiv(K, 16) {
      As[thread.y*16 + thread.x] = if i < M and k.block*16 + thread.x < K then A[i*K + k.block*16 + thread.x] else bf16(0.0)
      Bs[thread.y*16 + thread.x] = if k.block*16 + thread.y < K and j < N then B[(k.block*16 + thread.y)*N + j] else bf16(0.0)
      barrier.block()
      unroll k in 16 {
        acc = fma(f32(As[thread.y*16 + k]), f32(Bs[k*16 + thread.x]), acc)
      }
      barrier.block()
    }
    if i < M and j < N {
      C[i*N + j] = bf16(acc)
    }
  }
}
)";

const Shape shapes[] = {{1, 1, 1},  {16, 16, 16}, {15, 17, 16}, {17, 15, 31}, {33, 16, 1}, {7, 13, 0}, {0, 8, 8},
                        {8, 0, 8},  {31, 37, 29}, {64, 48, 40}, {1, 65, 17},  {0, 0, 0}};

double seconds_of(const Plan& plan, std::int64_t size, bool checks) {
  const HostTensor a = exact_tensor(Dtype::F32, {size, size}, 1);
  const HostTensor b = exact_tensor(Dtype::F32, {size, size}, 2);
  Arguments arguments = bind_arguments(plan, {{"A", a}, {"B", b}});
  SimulatorOptions options;
  options.checks = checks;
  options.sms = 1;
  const std::clock_t start = std::clock();  // of this process: other work on the machine does not count
  const RunReport report = simulate(plan, arguments, options);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(report.faults.empty());
  return seconds;
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("naive matmul at boundary shapes") {
    const Plan plan = ladder_plan("matmul.00.lowered.thread.ir");
    for (const Shape& shape : shapes) expect_matmul(plan, Dtype::BF16, shape, 1);
  }

  TEST_CASE("tiled matmul at boundary shapes, whatever the order of the warps") {
    const Plan f32 = ladder_plan("matmul.ch5.thread.ir");
    const Plan bf16 = plan_of(std::string(tiled_bf16));
    for (const Shape& shape : shapes)
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        expect_matmul(f32, Dtype::F32, shape, seed);
        expect_matmul(bf16, Dtype::BF16, shape, seed);
      }
  }

  TEST_CASE("a barrier left out gives a wrong result under some order of the warps") {
    std::string text = with_dtype(std::string(tiled_bf16), "      barrier.block()\n    }", "    }");
    const Plan plan = plan_of(text);
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Arguments arguments = bind_arguments(plan, {{"A", exact_tensor(Dtype::BF16, {64, 64}, 1)}, {"B", exact_tensor(Dtype::BF16, {64, 64}, 3)}});
      SimulatorOptions options;
      options.seed = seed;
      simulate(plan, arguments, options);
      const Arguments right = run_without_faults(ladder_plan("matmul.00.lowered.thread.ir"),
                                                 {{"A", exact_tensor(Dtype::BF16, {64, 64}, 1)}, {"B", exact_tensor(Dtype::BF16, {64, 64}, 3)}});
      wrong += arguments.tensors.at("C").data != right.tensors.at("C").data ? 1 : 0;
    }
    CHECK(wrong > 0);
  }

  TEST_CASE("the same seed gives the same run") {
    const Plan plan = ladder_plan("matmul.ch5.thread.ir");
    const auto bytes = [&] {
      return run_without_faults(plan, {{"A", exact_tensor(Dtype::F32, {40, 33}, 1)}, {"B", exact_tensor(Dtype::F32, {33, 21}, 3)}}).tensors.at("C").data;
    };
    CHECK(bytes() == bytes());
  }

  // The bounds are those of the design, with room for a busy machine; without optimisation a smaller matrix is enough.
  TEST_CASE("tiled matmul is quick enough for tests") {
    const Plan plan = ladder_plan("matmul.ch5.thread.ir");
    const bool is_optimised = seconds_of(plan, 96, false) < 0.05;
    const std::int64_t size = is_optimised ? 256 : 96;
    const double bare = seconds_of(plan, size, false);
    const double checked = seconds_of(plan, size, true);
    MESSAGE(fmt::format("tiled matmul {0}x{0}x{0} on one core: {1:.3f} s bare, {2:.3f} s with checks", size, bare, checked));
    CHECK(bare < (is_optimised ? 0.6 : 5));
    CHECK(checked < (is_optimised ? 1.8 : 8));
  }
}

}  // namespace tilewright
