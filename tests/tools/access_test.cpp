// What the simulator tells of a program: explain --access, and the lines that its reports name.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "frontend/program.h"
#include "runtime/library/access_report.h"
#include "runtime/library/inputs.h"

namespace tilewright {

namespace {

struct Reported {
  std::vector<KernelNote> report;
  std::string text;
};

Reported report_of(const std::string& text, const DimMap& dims) {
  const Program program = parse_program(text, "p.tw");
  const TensorFn& fn = choose_fn(program);
  const Selection selection = select_schedule(program, fn, dims, {});
  AccessRequest request;
  request.fn = &fn;
  request.selection = &selection;
  request.dims = dims;
  request.sources = {{"p.tw", text}};
  InputRequest inputs;
  Reported result;
  result.report = access_report(rungs_of(fn, selection, dims, "sm_90a").back().plan, make_inputs(fn, dims, inputs), request);
  result.text = text_of(result.report);
  return result;
}

bool says(const Reported& reported, const std::string& sentence) { return reported.text.find(sentence) != std::string::npos; }

const std::string product = "fn f(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] {\n  C[i, j] = sum[k] A[i, k] * B[k, j]\n}\n";
const DimMap sizes = {{"M", 64}, {"N", 64}, {"K", 64}};

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("access report: threads along rows, and the bind that turns them round") {
    const Reported wrong = report_of(product + "schedule f \"s\" { tile block i 32, j 8; bind i thread.x, j thread.y }\n", sizes);
    CHECK(says(wrong, "`A[i, k]`: 32 lanes read 32 sectors, 4 would do: the lanes walk rows; `bind i thread.y, j thread.x`"));
    CHECK(says(wrong, "`C[i, j]`: 32 lanes write 32 sectors, 4 would do: the lanes walk rows; `bind i thread.y, j thread.x`"));
    CHECK(says(wrong, "`A`: every element is asked for 64 times"));
    CHECK(wrong.report[0].accesses[0].line == 2);
    const Reported right = report_of(product + "schedule f \"s\" { tile block i 8, j 32; bind i thread.y, j thread.x }\n", sizes);
    CHECK(!says(right, "lanes read"));
    CHECK(!says(right, "lanes write"));
    CHECK(says(right, "`tile block i 8, j 32, k 16`, `stage A in shared at k.block`"));
  }

  TEST_CASE("access report: a transposition is cured by staging, its conflicts by padding") {
    const std::string turn = "fn f(A: f32[M, N]) -> B: f32[N, M] {\n  B[j, i] = A[i, j]\n}\n";
    const DimMap square = {{"M", 64}, {"N", 64}};
    const std::string tiles = "schedule f \"s\" { tile block j 32, i 32; bind j thread.y, i thread.x";
    CHECK(says(report_of(turn + tiles + " }\n", square), "`A[i, j]`: 32 lanes read 32 sectors, 4 would do: the lanes walk rows; `stage A in shared at i.block`"));
    CHECK(says(report_of(turn + tiles + "; stage A in shared at i.block }\n", square), "`A[i, j]` in `As`: a warp takes 32 passes over the banks, 1 would do; `stage A in shared at i.block pad 1`"));
    const Reported padded = report_of(turn + tiles + "; stage A in shared at i.block pad 1 }\n", square);
    CHECK(!says(padded, "would do"));
  }

  TEST_CASE("a race names both lines of the program and both of the IR") {
    const Program program = parse_program(product + "schedule f \"s\" { tile block i 16, j 16, k 16; bind i thread.y, j thread.x; stage A, B in shared at k.block }\n", "p.tw");
    const TensorFn& fn = choose_fn(program);
    const Selection selection = select_schedule(program, fn, sizes, {});
    Plan plan = thread_stage(rungs_of(fn, selection, sizes, "sm_90a").back().plan, target_for("sm_90a"));
    Kernel& kernel = std::get<Kernel>(plan.steps.back());
    kernel.body = rewrite_statements(kernel.body, [](const Stmt& stmt) { return as<Instr>(stmt) ? Block{} : Block{stmt}; });  // no barriers
    std::vector<std::string> lines{""};
    std::istringstream text(print(plan));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    SimulatorOptions options;
    options.names_ir_lines = true;
    Arguments arguments = bind_arguments(plan, make_inputs(fn, sizes, {}), sizes);
    const RunReport report = simulate(plan, arguments, options);
    std::size_t races = 0;
    const std::regex places(R"(race on `([AB]s)\[.*\(line 2, IR line (\d+)[,)].*\(line 2, IR line (\d+)[,)].*nothing orders them: .* would.*)");
    for (const std::string& fault : report.faults) {
      std::smatch found;
      if (!std::regex_match(fault, found, places)) continue;
      ++races;
      for (const std::size_t n : {std::size_t{2}, std::size_t{3}}) CHECK_MESSAGE(lines.at(std::stoul(found[n].str())).find(found[1].str() + "[") != std::string::npos, fault);
    }
    CHECK(races >= 2);
  }

  TEST_CASE("access report: updates that meet on one element") {
    CHECK(says(report_of("fn f(X: u8[N]) -> H: i32[4] {\n  H[X[i] / 64] += 1\n}\nschedule f \"s\" { tile block i 128; bind i thread.x }\n", {{"N", 1024}}), "meet on one element and wait for each other"));
  }

  TEST_CASE("counts: sectors of updates are counted by passes, as an H200's counters have them") {
    // The same programs and data by ncu: docs/results/2026-12-01-h200-access-counts.md.
    const auto sectors = [](const char* bins, const char* data) {
      const Program program = parse_program("fn bins(A: i32[N], inout H: i32[B]) { H[A[i] % B] += 1 }", "bins.tw");
      const TensorFn& fn = choose_fn(program);
      InputRequest request;
      request.values = {{"N", "10007"}, {"B", bins}};
      request.inputs = {std::string("A=") + data};
      request.seed = 1;
      const DimMap dims = dims_of_request(fn, request);
      const Plan plan = rungs_of(fn, select_schedule(program, fn, dims, {}), dims, "sm_90a").back().plan;
      Arguments arguments = bind_arguments(plan, make_inputs(fn, dims, request), dims);
      std::vector<KernelCounts> counts;
      SimulatorOptions options;
      options.checks = false;
      options.counts = &counts;
      simulate(thread_stage(plan, target_for("sm_90a")), arguments, options);
      std::int64_t requests = 0, found = 0;
      for (const AccessCounts& access : counts.at(0).accesses)
        if (access.kind == AccessKind::Atomic) requests += access.requests, found += access.sectors;
      return fmt::format("{} {}", requests, found);
    };
    CHECK(sectors("64", "random") == "313 4075");
    CHECK(sectors("8", "random") == "313 2186");
    CHECK(sectors("64", "iota") == "313 1251");
    CHECK(sectors("16384", "iota") == "313 1251");
    CHECK(sectors("64", "zeros") == "313 10007");
  }
}

}  // namespace tilewright
