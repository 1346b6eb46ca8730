// Generated kernels without a GPU: the PTX of both generators gives, on the PTX machine, the bits that the simulator gives
// for the plan. Functions of the library are within a bound instead: there the simulator rounds once.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "codegen/codegen.h"
#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "runtime/execute.h"
#include "runtime/instruments.h"
#include "runtime/library/rungs.h"
#include "runtime/library/session.h"
#include "runtime/plan_ptx.h"
#include "runtime/ptx/ptx.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

// How many elements differ; NaN equals NaN. `tolerance` in units of the value.
std::int64_t differing(const HostTensor& a, const HostTensor& b, double tolerance) {
  std::int64_t count = 0;
  for (std::int64_t n = 0; n < a.elements(); ++n) {
    if (!is_float(a.dtype)) {
      count += read_integer(a, n) != read_integer(b, n) ? 1 : 0;
      continue;
    }
    const double x = read_real(a, n), y = read_real(b, n);
    if (std::isnan(x) && std::isnan(y)) continue;
    count += x == y || std::fabs(x - y) <= tolerance * std::fmax(std::fabs(x), 1e-3) ? 0 : 1;
  }
  return count;
}

// Gives what the machine lacks, or nothing.
std::string compare_with_simulator(const Plan& plan, const TensorFn& fn, const DimMap& dims, double tolerance) {
  std::string missing;
  Arguments simulated = bind_arguments(plan, instrument_inputs(Instrument::Random, fn, dims, 3), dims);
  const Arguments before = simulated;
  CHECK(simulate(plan, simulated).faults.empty());
  for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
    CAPTURE(backend == Backend::Nvrtc ? "CUDA C" : "LLVM");
    Arguments executed = before;
    CompileOptions options;
    options.backend = backend;
    options.arch = "sm_90a";
    try {
      const RunReport report = run_on_ptx(plan, executed, options);
      CHECK_MESSAGE(report.faults.empty(), (report.faults.empty() ? "" : report.faults.front()));
    } catch (const ptx::Unsupported& lacks) {
      missing = lacks.what();
      continue;
    }
    for (const Param& param : fn.params)
      if (param.kind != ParamKind::In) CHECK_MESSAGE(differing(simulated.tensors.at(param.name), executed.tensors.at(param.name), tolerance) == 0, param.name);
  }
  return missing;
}

Plan finished_plan(const Program& program, const TensorFn& fn, const std::string& schedule, const DimMap& dims) {
  SelectionRequest request;
  request.schedule = schedule;
  const Selection selection = select_schedule(program, fn, dims, request);
  return finish(rungs_of(fn, selection, dims, "sm_90a").back().plan, target_for("sm_90a"));
}

}  // namespace

TEST_SUITE("ptx") {
  TEST_CASE("PTX machine: both generators give the simulator's bits") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Libdevice)) TILEWRIGHT_SKIP("NVRTC or libdevice was not found");
    struct Job {
      const char* text;
      const char* schedule;
      DimMap dims;
      double tolerance;
    };
    const Job jobs[] = {
        {"fn f(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] { C[i, j] = sum[k] A[i, k] * B[k, j] }\n"
         "schedule f \"tiled\" { tile block i 16, j 16, k 16\n bind i thread.y, j thread.x\n stage A, B in shared at k.block }",
         "tiled", {{"M", 19}, {"N", 35}, {"K", 21}}, 0},
        {"fn f(A: bf16[M, K], B: bf16[K, N]) -> C: bf16[M, N] { C[i, j] = sum[k] A[i, k] * B[k, j] }", "none", {{"M", 5}, {"N", 9}, {"K", 21}}, 0},
        {"fn f(X: f32[N], Y: f32[N]) -> (A: f32[N], B: f32[N], C: f16[N], D: i32[N], E: f64[N]) {\n"
         " A[i] = X[i] / Y[i] + sqrt(abs(X[i]))\n B[i] = max(X[i], Y[i]) - min(X[i], floor(Y[i]))\n C[i] = X[i] * Y[i]\n D[i] = i32(X[i] * 1000.0) / 7 % 5\n E[i] = f64(X[i]) / f64(Y[i]) }",
         "none", {{"N", 77}}, 0},
        {"fn f(X: u8[H, W]) -> Y: i32[256] { Y[X[i, j]] += 1 }", "none", {{"H", 9}, {"W", 31}}, 0},
        {"fn f(X: i64[N], Y: i64[N]) -> (A: i64[N], B: u32[N]) { A[i] = X[i] * 3 / (abs(Y[i]) + 1) - X[i] % 7\n B[i] = u32(X[i]) }", "none", {{"N", 70}}, 0},
        {"fn f(X: f32[R, D]) -> Y: f32[R, D] { let m[r] = max[d] X[r, d]\n let e[r, d] = exp(X[r, d] - m[r])\n Y[r, d] = e[r, d] / (sum[c] e[r, c]) }", "none", {{"R", 6}, {"D", 33}}, 1e-5},
    };
    for (const Job& job : jobs) {
      CAPTURE(job.text);
      const Program program = parse_program(job.text, "job.tw");
      const TensorFn& fn = choose_fn(program);
      CHECK(compare_with_simulator(finished_plan(program, fn, job.schedule, job.dims), fn, job.dims, job.tolerance) == "");
    }
  }
}

TEST_SUITE("ptx full") {
  TEST_CASE("PTX machine: every schedule of every example by both generators, as the simulator has it") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Libdevice)) TILEWRIGHT_SKIP("NVRTC or libdevice was not found");
    int compared = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_root() / "examples")) {
      if (entry.path().extension() != ".tw") continue;
      const Program program = load_program(entry.path().string());
      for (const Schedule& schedule : program.schedules) {
        const TensorFn& fn = choose_fn(program, schedule.fn);
        for (const std::int64_t size : {32, 37}) {
          DimMap dims;
          for (const std::string& dim : fn.dims) dims[dim] = size;
          if (!failed_conditions(fn, schedule.when, dims).empty()) continue;
          CAPTURE(entry.path().string());
          CAPTURE(schedule.name);
          CAPTURE(size);
          Plan plan;
          try {
            plan = finished_plan(program, fn, schedule.name, dims);
          } catch (const UserError& refused) {  // at these sizes; the tests of the passes look at that
            MESSAGE(refused.what());
            continue;
          }
          if (const std::string missing = compare_with_simulator(plan, fn, dims, 1e-5); missing.empty()) ++compared;
          else MESSAGE(missing);
        }
      }
    }
    CHECK(compared > 10);
  }
}

}  // namespace tilewright
