// The GPU: plans at thread stage, hand kernels, guard zones, the error word, timing, cuBLAS. Skipped where there is
// none.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/cublas.h"
#include "runtime/cuda_device.h"
#include "runtime/gpcs.h"
#include "runtime/hand.h"
#include "runtime/timing.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

Plan read_plan_file(const std::string& name) {
  std::ifstream file(source_root() / "tests/codegen/cuda" / name);
  std::ostringstream text;
  text << file.rdbuf();
  return parse_plan(text.str());
}

// Small integers, so that every sum is exact in any order.
HostTensor small_integers(Dtype dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::int64_t element = 0; element < tensor.elements(); ++element)
    write_real(tensor, element, static_cast<double>((element * 7 + element / 13) % 7 - 3));
  return tensor;
}

Arguments matmul_arguments(const Plan& plan, std::int64_t m, std::int64_t n, std::int64_t k) {
  return bind_arguments(plan, {{"A", small_integers(Dtype::F32, {m, k})}, {"B", small_integers(Dtype::F32, {k, n})}},
                        {{"M", m}, {"N", n}, {"K", k}});
}

double expected(const Arguments& arguments, std::int64_t n, std::int64_t k, std::int64_t row, std::int64_t column) {
  double sum = 0;
  for (std::int64_t p = 0; p < k; ++p)
    sum += read_real(arguments.tensors.at("A"), row * k + p) * read_real(arguments.tensors.at("B"), p * n + column);
  return sum;
}

int wrong_elements(const Arguments& arguments, std::int64_t m, std::int64_t n, std::int64_t k) {
  int wrong = 0;
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < n; ++column)
      if (read_real(arguments.tensors.at("C"), row * n + column) != expected(arguments, n, k, row, column)) ++wrong;
  return wrong;
}

CompileOptions options_for_gpu(Backend backend) {
  CompileOptions options;
  options.backend = backend;
  options.arch = use_gpu().arch;
  options.use_cache = false;
  return options;
}

constexpr const char* hand_text = R"(#include <stdio.h>
__constant__ float by[1];
// launch scaled<16><<<(ceildiv(N, 16), ceildiv(M, 16)), (16, 16)>>>(A, B, C, M, N, K, 1.0)
template <int T>
__global__ void scaled(const float* a, const float* b, float* c, int m, int n, size_t k, float factor) {
  const int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (size_t p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + column];
  c[row * n + column] = sum * factor;
}
extern "C" __global__ void beyond(float* c, int n) { c[n] = 1.0f; }
int main() { printf("hello\n"); }
)";

HandProgram hand_program(const Plan& plan) {
  HandProgram program;
  program.name = "hand";
  program.file_name = "hand.cu";
  program.text = hand_text;
  HandLaunch launch;
  launch.kernel = "scaled<16>";
  launch.grid = {ceildiv(var("N"), integer(16)), ceildiv(var("M"), integer(16))};
  launch.block = {integer(16), integer(16)};
  for (const char* name : {"A", "B", "C", "M", "N", "K"}) launch.arguments.push_back(var(name));
  launch.arguments.push_back(real(1.0, Dtype::F32));
  program.steps.emplace_back(HandZero{plan.params[2].name});
  program.steps.emplace_back(launch);
  return program;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("gpu: the tiled matmul is right through both generators, at sizes off the tile and at 0") {
    const Plan plan = read_plan_file("tiled.ir");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      const CompiledPlan compiled = compile_plan(plan, options_for_gpu(backend));
      for (const std::array<int, 3>& sizes :
           {std::array{64, 48, 32}, {17, 31, 15}, {1, 1, 1}, {5, 3, 0}, {0, 4, 4}, {129, 65, 67}}) {
        const int m = sizes[0], n = sizes[1], k = sizes[2];
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        Arguments arguments = matmul_arguments(plan, m, n, k);
        const RunReport report = run_on_cuda(compiled, arguments);
        CHECK(report.faults.empty());
        CHECK(!report.error);
        CHECK(wrong_elements(arguments, m, n, k) == 0);
      }
    }
  }

  TEST_CASE("gpu: vector accesses of narrow floats, a scalar by value, a scalar result") {
    const Plan plan = read_plan_file("vector.ir");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      const CompiledPlan compiled = compile_plan(plan, options_for_gpu(backend));
      const std::int64_t n = 4096;
      HostTensor a = make_tensor(Dtype::F32, {});
      write_real(a, 0, 2.0);
      Arguments arguments = bind_arguments(
          plan, {{"a", a}, {"X", small_integers(Dtype::BF16, {n})}, {"Y", small_integers(Dtype::F16, {n})}},
          {{"N", n}});
      write_integer(arguments.tensors.at("S"), 0, 0);
      CHECK(run_on_cuda(compiled, arguments).faults.empty());
      int wrong = 0;
      const HostTensor x = small_integers(Dtype::F32, {n});
      for (std::int64_t e = 0; e < n; ++e)
        if (read_real(arguments.tensors.at("Y"), e) != 3 * read_real(x, e)) ++wrong;
      CHECK(wrong == 0);
      CHECK(read_integer(arguments.tensors.at("S"), 0) == n / 8);
    }
  }

  TEST_CASE("gpu: a checked access reports the offender") {
    const Plan plan = read_plan_file("checked.ir");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      const CompiledPlan compiled = compile_plan(plan, options_for_gpu(backend));
      HostTensor index = make_tensor(Dtype::I32, {8});
      Arguments arguments =
          bind_arguments(plan, {{"I", index}, {"X", small_integers(Dtype::F32, {4})}}, {{"N", 8}, {"R", 4}});
      CHECK(!run_on_cuda(compiled, arguments).error);
      write_integer(arguments.tensors.at("I"), 5, -7);
      const RunReport report = run_on_cuda(compiled, arguments);
      REQUIRE(report.error.has_value());
      CHECK(report.error->site == 0);
      CHECK(report.error->value == -7);
    }
  }

  TEST_CASE("gpu: a scatter into a tensor without elements reports the offender") {
    const Plan plan = parse_plan(R"(plan f {
  dim N, M
  in A: i32[N]
  out Y: f32[M]
  error e { 0: Y[index(A[i])] }
  kernel Y thread grid (ceildiv(N, 32)) block (32) args (A, Y, N, M) {
    let i = block.x*32 + thread.x
    if i < N {
      if not (index(A[i]) < M) {
        error.report(0, index(A[i]))
      }
      if index(A[i]) < M {
        Y[index(A[i])] = 1.0
      }
    }
  }
}
)");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      HostTensor index = make_tensor(Dtype::I32, {1});
      write_integer(index, 0, 3);
      Arguments arguments = bind_arguments(plan, {{"A", index}}, {{"N", 1}, {"M", 0}});
      const RunReport report = run_on_cuda(compile_plan(plan, options_for_gpu(backend)), arguments);
      REQUIRE(report.error.has_value());
      CHECK(report.error->value == 3);
    }
  }

  TEST_CASE("gpu: the lowest integer stays what it is, and a minus is not lost") {
    const Plan plan = parse_plan(R"(plan f {
  dim N
  in A: i32[N]
  in B: i32[N]
  out X: i32[N]
  out Y: i32[N]
  out Z: i32[N]
  kernel X thread grid (ceildiv(N, 32)) block (32) args (A, B, X, Y, Z, N) {
    let i = block.x*32 + thread.x
    if i < N {
      X[i] = abs(A[i]) >> 3
      Y[i] = (A[i] / B[i]) >> 3
      Z[i] = max(max(B[i], -A[i]), -5)
    }
  }
}
)");
    constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
    const std::vector<std::array<std::int64_t, 2>> pairs = {{lowest, -1}, {lowest, 1}, {lowest + 1, -1}, {7, -3}, {-9, -1}, {-40, 2}, {40, -2}};
    HostTensor a = make_tensor(Dtype::I32, {static_cast<std::int64_t>(pairs.size())});
    HostTensor b = a;
    for (std::size_t n = 0; n < pairs.size(); ++n) {
      write_integer(a, static_cast<std::int64_t>(n), pairs[n][0]);
      write_integer(b, static_cast<std::int64_t>(n), pairs[n][1]);
    }
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      Arguments arguments = bind_arguments(plan, {{"A", a}, {"B", b}}, {{"N", static_cast<std::int64_t>(pairs.size())}});
      run_on_cuda(compile_plan(plan, options_for_gpu(backend)), arguments);
      const auto as_word = [](std::int64_t value) { return static_cast<std::int64_t>(static_cast<std::int32_t>(value)); };
      for (std::size_t n = 0; n < pairs.size(); ++n) {
        const std::int64_t x = pairs[n][0];
        const std::int64_t y = pairs[n][1];
        const auto at = static_cast<std::int64_t>(n);
        CAPTURE(x);
        CAPTURE(y);
        CHECK(read_integer(arguments.tensors.at("X"), at) == as_word(std::abs(x)) >> 3);
        const std::int64_t quotient = x / y - (x % y != 0 && (x < 0) != (y < 0));
        CHECK(read_integer(arguments.tensors.at("Y"), at) == as_word(quotient) >> 3);
        CHECK(read_integer(arguments.tensors.at("Z"), at) == std::max({y, as_word(-x), std::int64_t{-5}}));
      }
    }
  }

  TEST_CASE("gpu: workers know their GPC") {
    if (use_gpu().major < 9) TILEWRIGHT_SKIP("no clusters before sm_90");
    const WorkerShape shape{{2, 1, 1}, {384, 1, 1}, 200'000};
    const unsigned workers = static_cast<unsigned>(use_gpu().sms / 2);
    const std::vector<int> gpcs = gpcs_of_workers(shape, workers);
    REQUIRE(gpcs.size() == workers);
    const std::set<int> different(gpcs.begin(), gpcs.end());
    CHECK(different.size() >= 2);
    CHECK(different.size() <= workers / 2);
    CHECK(gpcs_of_workers(shape, workers) == gpcs);
  }

  TEST_CASE("gpu: hand kernels run, and a write behind the end is found") {
    const Plan plan = read_plan_file("tiled.ir");
    Arguments arguments = matmul_arguments(plan, 33, 20, 19);
    HandProgram program = hand_program(plan);
    const CompiledHand hand = compile_hand(program, use_gpu().arch, false);
    const RunReport report = run_hand_on_cuda(hand, plan, arguments);
    CHECK(report.faults.empty());
    CHECK(wrong_elements(arguments, 33, 20, 19) == 0);

    HandLaunch beyond;
    beyond.kernel = "beyond";
    beyond.grid = {integer(1)};
    beyond.block = {integer(1)};
    beyond.arguments = {var("C"), var("M") * var("N")};
    program.steps = {beyond};
    const RunReport wrong = run_hand_on_cuda(compile_hand(program, use_gpu().arch, false), plan, arguments);
    REQUIRE(wrong.faults.size() == 1);
    CHECK(wrong.faults[0].find("`C`") != std::string::npos);
  }

  TEST_CASE("gpu: candidates are timed in turn; cuBLAS computes the same product") {
    const Plan plan = read_plan_file("tiled.ir");
    const std::int64_t size = 512;
    Arguments arguments = matmul_arguments(plan, size, size, size);
    const CompiledPlan compiled = compile_plan(plan, options_for_gpu(Backend::Nvrtc));
    const Stream stream;
    const RotatedTensors tensors(plan, arguments, stream);
    CHECK(tensors.count() >= 2);
    const PlanCandidate ours("tiled", compiled, arguments, tensors, stream);
    const HandCandidate hand(compile_hand(hand_program(plan), use_gpu().arch, false), plan, arguments, tensors, stream);
    std::vector<const Candidate*> candidates = {&ours, &hand};
    std::unique_ptr<Candidate> peer;
    try {
      peer = cublas_matmul(Dtype::F32, size, size, size, "A", "B", "C", tensors);
      candidates.push_back(peer.get());
    } catch (const MachineError& error) {
      MESSAGE(error.what());
    }
    TimingOptions options;
    options.rounds = 3;
    options.round_ms = 5;
    for (const Timing& timing : time_candidates(candidates, tensors.count(), stream, options)) {
      CAPTURE(timing.name);
      CHECK(timing.median_ms > 0);
      CHECK(timing.lowest_ms <= timing.median_ms);
      CHECK(timing.highest_ms >= timing.median_ms);
    }
    if (peer) {
      peer->run(0, stream);
      stream.synchronise();
      tensors[0].copy_outputs(arguments);
      int wrong = 0;
      for (std::int64_t row = 0; row < size; row += 37)
        for (std::int64_t column = 0; column < size; column += 29)
          if (read_real(arguments.tensors.at("C"), row * size + column) != expected(arguments, size, size, row, column))
            ++wrong;
      CHECK(wrong == 0);
    }
    options.once = true;
    CHECK(time_candidates(candidates, 1, stream, options)[0].launches == 1);
  }

  TEST_CASE("gpu: short jobs are replayed as graphs") {
    const Plan plan = read_plan_file("tiled.ir");
    const Arguments arguments = matmul_arguments(plan, 64, 64, 64);
    const Stream stream;
    const RotatedTensors tensors(plan, arguments, stream);
    const PlanCandidate ours("tiled", compile_plan(plan, options_for_gpu(Backend::Nvrtc)), arguments, tensors, stream);
    TimingOptions options;
    options.rounds = 2;
    options.round_ms = 2;
    CHECK(time_candidates({&ours}, tensors.count(), stream, options)[0].by_graph);
  }

  TEST_CASE("gpu: a fill writes every element and no more, at every width") {
    use_gpu();
    const Stream stream;
    for (const std::size_t width : {1U, 2U, 4U, 8U}) {
      CAPTURE(width);
      const DeviceMemory memory(width * 5 + 8);
      fill_device(memory.pointer(), {std::byte{0}}, width * 5 + 8, stream);
      std::vector<std::byte> pattern;
      for (std::size_t byte = 0; byte < width; ++byte) pattern.push_back(static_cast<std::byte>(byte + 1));
      fill_device(memory.pointer(), pattern, 5, stream);
      stream.synchronise();
      std::vector<std::byte> content(width * 5 + 8);
      copy_to_host(content.data(), memory.pointer(), content.size());
      for (std::size_t at = 0; at < content.size(); ++at)
        CHECK(static_cast<int>(content[at]) == (at < width * 5 ? static_cast<int>(at % width) + 1 : 0));
    }
  }

  TEST_CASE("gpu: failures of the driver are told in words") {
    use_gpu();
    CHECK_THROWS_WITH_AS(Module({'n', 'o', 'n', 'e', '\0'}), doctest::Contains("cuModuleLoadData failed"),
                         MachineError);
    CHECK_THROWS_WITH_AS(DeviceMemory(std::size_t{1} << 60), doctest::Contains("cuMemAlloc"), MachineError);
  }
}

}  // namespace tilewright
