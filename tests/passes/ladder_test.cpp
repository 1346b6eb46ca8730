// The longest schedule, line by line: each line gives the plan written by hand in tests/ir/ladder, and every one of
// them computes the product, on the cpu device and in the tile interpreter, whatever the number of workers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "frontend/program.h"
#include "runtime/files.h"
#include "runtime/host_device.h"
#include "tests/locations.h"
#include "tests/passes/plan_checks.h"

namespace tilewright {

namespace {

// The lowered plan and that after each line.
std::vector<Plan> rungs_of(const std::string& program_text) {
  Program program = parse_program(program_text, "matmul.tw");
  const Schedule& schedule = program.schedules.back();
  Plan plan = lower(program.fns[0]);
  plan.facts = schedule.when;
  std::vector<Plan> rungs = {plan};
  for (const ScheduleLine& line : schedule.lines) {
    INFO("line ", line.text);
    plan = apply_line(plan, line, target_for("sm_90a"));
    check_plan(plan);
    rungs.push_back(plan);
  }
  return rungs;
}

std::filesystem::path ladder_folder() { return source_root() / "tests/ir/ladder"; }

// Small integers, so that every sum is exact, in any order.
HostTensor ternary(Dtype dtype, std::vector<std::int64_t> shape, std::int64_t seed) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::int64_t n = 0; n < tensor.elements(); ++n)
    write_real(tensor, n, static_cast<double>((n * 31 + n / 7 + seed) % 3 - 1));
  return tensor;
}

struct Shape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

Arguments arguments_of(const Plan& plan, const Shape& shape) {
  Dtype dtype = plan.params[0].dtype;
  return bind_arguments(plan,
                        {{"A", ternary(dtype, {shape.m, shape.k}, 0)}, {"B", ternary(dtype, {shape.k, shape.n}, 1)}},
                        {{"M", shape.m}, {"N", shape.n}, {"K", shape.k}});
}

// The product of the operands above, computed once a shape.
const std::vector<float>& expected_product(const Shape& shape) {
  static std::map<std::array<std::int64_t, 3>, std::vector<float>> known;
  auto [found, is_new] = known.try_emplace({shape.m, shape.n, shape.k});
  std::vector<float>& c = found->second;
  if (!is_new) return c;
  HostTensor a = ternary(Dtype::F32, {shape.m, shape.k}, 0);
  HostTensor b = ternary(Dtype::F32, {shape.k, shape.n}, 1);
  const auto* b_row = reinterpret_cast<const float*>(b.data.data());
  c.resize(static_cast<std::size_t>(shape.m * shape.n));
  for (std::int64_t i = 0; i < shape.m; ++i)
    for (std::int64_t k = 0; k < shape.k; ++k) {
      float factor = static_cast<float>(read_real(a, i * shape.k + k));
      for (std::int64_t j = 0; j < shape.n; ++j)
        c[static_cast<std::size_t>(i * shape.n + j)] += factor * b_row[k * shape.n + j];
    }
  return c;
}

std::int64_t wrong_elements(const Arguments& arguments, const Shape& shape) {
  const HostTensor& c = arguments.tensors.at("C");
  std::int64_t wrong = 0;
  for (std::int64_t n = 0; n < c.elements(); ++n)
    wrong += read_real(c, n) != expected_product(shape)[static_cast<std::size_t>(n)];
  return wrong;
}

void check_on_cpu(const Plan& plan, const HostPlan& compiled, const Shape& shape, int threads) {
  INFO("cpu, ", shape.m, "x", shape.n, "x", shape.k, ", workers ", threads);
  Arguments arguments = arguments_of(plan, shape);
  HostOptions options;
  options.threads = threads;
  compiled.run(arguments, options);
  CHECK(wrong_elements(arguments, shape) == 0);
}

void check_in_interpreter(const Plan& plan, const Shape& shape, LoopOrder order, std::int64_t workers) {
  INFO("interpreter, ", shape.m, "x", shape.n, "x", shape.k, ", workers ", workers);
  Arguments arguments = arguments_of(plan, shape);
  InterpreterOptions options;
  options.order = order;
  options.workers = workers;
  for (const std::string& fault : interpret(plan, arguments, options).faults) FAIL_CHECK(fault);
  CHECK(wrong_elements(arguments, shape) == 0);
}

constexpr std::array<Shape, 4> shapes = {{{300, 520, 200}, {1, 8, 8}, {128, 256, 64}, {257, 264, 0}}};

// The same lines with tiles small enough for the interpreter; every mechanism still turns several times.
constexpr const char* small_program = R"(
fn matmul(A: bf16[M, K], B: bf16[K, N]) -> C: bf16[M, N] { C[i, j] = sum[k] A[i, k] * B[k, j] }
schedule matmul "small" for sm_90a when K % 8 == 0, N % 8 == 0, aligned 16 {
    tile     block i 64, j 32, k 16
    warps    4
    stage    A, B in shared at k.block swizzle 32
    mma      wgmma over i
    pipeline k.block depth 3 via tma, in flight 1
    roles    producer 1 warpgroup registers 40, consumer 1 warpgroup registers 232
    cluster  i.block 2 multicast B
    epilogue C via shared tma, tile j 16 buffers 2
    persist  order grouped 2
}
)";

struct Tiles {
  int i, j, k;
  int warpgroups;  // of the consumer
  int depth, in_flight;
  int cluster;
  int slice;  // columns of the epilogue
  const char* dtype;
  const char* order;
};

// A layer of a network; its two statements become one kernel, and what follows the product its epilogue.
constexpr const char* layer_program = R"(
fn gelu(x: f32) -> y: f32 { y = x / (1.0 + exp(-1.5957691 * (x + 0.044715 * x * x * x))) }
fn layer(A: bf16[M, K], B: bf16[K, N], bias: bf16[N]) -> C: bf16[M, N] {
    let z[i, j] = sum[k] A[i, k] * B[k, j]
    C[i, j]     = gelu(z[i, j] + bias[j])
}
schedule layer "fused" for sm_90a when K % 8 == 0, N % 8 == 0, aligned 16 {
    inline   z
    tile     block i 128, j 128, k 64
    warps    8
    stage    A, B in shared at k.block swizzle 128
    mma      wgmma over i
    pipeline k.block depth 4 via tma, in flight 1
    roles    producer 1 warpgroup registers 40, consumer 2 warpgroups registers 232
    cluster  j.block 2 multicast A
    epilogue C via shared tma, tile j 64 buffers 2
    persist  order grouped
}
)";

constexpr const char* product_schedule = R"(
schedule product "hopper" for sm_90a when M % 8 == 0, K % 8 == 0, N % 8 == 0, aligned 16 {
    tile     block i 128, j 128, k 64
    warps    8
    stage    A, B in shared at k.block swizzle 128
    mma      wgmma over i
    pipeline k.block depth 4 via tma
    pipeline k.block in flight 1
    roles    producer 1 warpgroup registers 40, consumer 2 warpgroups registers 232
    cluster  i.block 2 multicast B
    epilogue C via shared tma, tile j 64 buffers 2
    persist  order rows
    persist  order hilbert
}
)";

// The plans give the bits of the naive one on data whose sums are exact, on the cpu device.
void check_against_naive(const Plan& naive, const std::vector<Plan>& rungs, const Sizes& sizes) {
  auto result_of = [&](const Plan& plan) {
    Arguments arguments = bind_arguments(plan, random_inputs(plan, sizes, Agreement::ExactData), sizes);
    run_on_host(plan, arguments, {});
    return arguments.tensors.at("C").data;
  };
  auto expected = result_of(naive);
  for (const Plan& plan : rungs) {
    INFO(print(plan));
    bool same = result_of(plan) == expected;
    CHECK(same);
  }
}

std::string program_of(const Tiles& t) {
  return fmt::format(R"(
fn matmul(A: {0}[M, K], B: {0}[K, N]) -> C: {0}[M, N] {{ C[i, j] = sum[k] A[i, k] * B[k, j] }}
schedule matmul "tiles" for sm_90a when K % 8 == 0, N % 8 == 0, aligned 16 {{
    tile     block i {1}, j {2}, k {3}
    warps    {4}
    stage    A, B in shared at k.block swizzle {5}
    mma      wgmma over i
    pipeline k.block depth {6} via tma, in flight {7}
    roles    producer 1 warpgroup registers 40, consumer {8} warpgroup registers 232
    cluster  i.block {9} multicast B
    epilogue C via shared tma, tile j {10} buffers 2
    persist  order {11}
}})",
                     t.dtype, t.i, t.j, t.k, 4 * t.warpgroups, 2 * std::min(64, t.k), t.depth, t.in_flight,
                     t.warpgroups, t.cluster, t.slice, t.order);
}

}  // namespace

TEST_SUITE("ladder") {
  TEST_CASE("each line gives the plan that was written by hand") {
    std::vector<Plan> rungs = rungs_of(read_whole_file(ladder_folder() / "matmul.tw"));
    const std::array names = {"00.lowered",  "01.tile",  "02.warps",   "03.stage",    "04.mma",
                              "05.pipeline", "06.roles", "07.cluster", "08.epilogue", "09.persist"};
    REQUIRE(rungs.size() == names.size());
    for (std::size_t n = 0; n < names.size(); ++n) {
      INFO(names[n]);
      Plan expected = parse_plan(read_whole_file(ladder_folder() / (std::string("matmul.") + names[n] + ".ir")));
      // The files name the schedule and its facts once, at the end, and list the dims in an order of their own.
      rungs[n].schedule = expected.schedule;
      rungs[n].arch = expected.arch;
      rungs[n].facts = expected.facts;
      for (Plan* plan : {&rungs[n], &expected})
        std::sort(plan->dims.begin(), plan->dims.end(), [](const Dim& a, const Dim& b) { return a.name < b.name; });
      CHECK(print(rungs[n]) == print(expected));
      bool is_same = rungs[n] == expected;
      CHECK(is_same);
    }
  }

  TEST_CASE("each rung multiplies, on the cpu device") {
    std::vector<Plan> rungs = rungs_of(read_whole_file(ladder_folder() / "matmul.tw"));
    for (const Plan& plan : rungs) {
      INFO(print(plan));
      HostPlan compiled(plan);
      for (const Shape& shape : shapes) check_on_cpu(plan, compiled, shape, 2);
    }
    HostPlan last(rungs.back());
    for (int workers : {1, 3, 5, 66}) check_on_cpu(rungs.back(), last, shapes[0], workers);
  }

  TEST_CASE("tiles of other sizes, depths, clusters and orders multiply, on the cpu device") {
    for (const Tiles& tiles :
         {Tiles{64, 64, 32, 1, 2, 0, 2, 32, "f16", "rows"}, Tiles{64, 256, 64, 1, 4, 1, 4, 64, "bf16", "grouped"},
          Tiles{128, 128, 64, 2, 5, 2, 2, 128, "bf16", "hilbert"},
          Tiles{128, 192, 64, 2, 4, 1, 3, 64, "f16", "grouped 3"},
          Tiles{256, 128, 64, 2, 4, 1, 2, 32, "bf16", "hilbert"}, Tiles{192, 96, 32, 1, 8, 3, 2, 16, "bf16", "rows"},
          Tiles{64, 320, 64, 1, 3, 1, 5, 64, "bf16", "hilbert"}}) {
      std::string text = program_of(tiles);
      INFO(text);
      Plan plan = rungs_of(text).back();
      HostPlan compiled(plan);
      for (const Shape& shape : shapes) check_on_cpu(plan, compiled, shape, 3);
    }
  }

  TEST_CASE("a layer with bias and gelu gives the bits of its two kernels, line by line, on the cpu device") {
    std::vector<Plan> rungs = rungs_of(layer_program);
    check_against_naive(rungs[0], rungs, {{"M", 130}, {"N", 200}, {"K", 72}});
  }

  TEST_CASE("operands that lie the other way round, and a batch, on the cpu device") {
    for (const char* fn :
         {"fn product(A: bf16[K, M], B: bf16[K, N]) -> C: bf16[M, N] { C[i, j] = sum[k] A[k, i] * B[k, j] }",
          "fn product(A: bf16[M, K], B: bf16[N, K]) -> C: bf16[M, N] { C[i, j] = sum[k] A[i, k] * B[j, k] }",
          "fn product(A: f16[K, M], B: f16[N, K]) -> C: f16[M, N] { C[i, j] = sum[k] A[k, i] * B[j, k] }",
          "fn product(A: bf16[S, M, K], B: bf16[S, K, N]) -> C: bf16[S, M, N] {"
          " C[s, i, j] = sum[k] A[s, i, k] * B[s, k, j] }"}) {
      INFO(fn);
      Sizes sizes = {{"M", 264}, {"N", 136}, {"K", 72}};
      if (std::string(fn).find("[S") != std::string::npos) sizes["S"] = 3;
      std::vector<Plan> rungs = rungs_of(std::string(fn) + product_schedule);
      check_against_naive(rungs.front(), {rungs.back()}, sizes);
    }
  }

  TEST_CASE("each rung of a small schedule multiplies, in the tile interpreter") {
    std::vector<Plan> rungs = rungs_of(small_program);
    for (const Plan& plan : rungs) {
      INFO(print(plan));
      for (LoopOrder order : {LoopOrder::Forwards, LoopOrder::Backwards, LoopOrder::Shuffled})
        check_in_interpreter(plan, {70, 72, 40}, order, 2);
      check_in_interpreter(plan, {1, 8, 8}, LoopOrder::Forwards, 2);
      check_in_interpreter(plan, {65, 40, 0}, LoopOrder::Forwards, 2);
    }
    for (std::int64_t trips : {0, 1, 2, 3, 4})  // of a pipeline of depth 3
      check_in_interpreter(rungs.back(), {130, 40, 16 * trips}, LoopOrder::Shuffled, 1);
    for (std::int64_t workers : {1, 2, 3, 5, 66})
      check_in_interpreter(rungs.back(), {330, 72, 40}, LoopOrder::Shuffled, workers);
  }
}

TEST_SUITE("ladder full") {
  TEST_CASE("each rung multiplies, in the tile interpreter") {
    std::vector<Plan> rungs = rungs_of(read_whole_file(ladder_folder() / "matmul.tw"));
    for (const Plan& plan : rungs)
      for (const Shape& shape : shapes) check_in_interpreter(plan, shape, LoopOrder::Shuffled, 2);
    for (std::int64_t workers : {1, 3, 5, 66})
      check_in_interpreter(rungs.back(), shapes[0], LoopOrder::Backwards, workers);
  }
}

}  // namespace tilewright
