// Mutants of right kernels, each killed by a report or a wrong result under some order, or shown to mean the same by a check of
// equivalence.h. The kernels: a program for each schedule word (tests/mutation/*.tw) at each element size, the right neighbours of
// the planted faults, and the last rung of the Hopper ladder. A survivor that no check explains fails.
//
// A program's first lines say the element sizes it has (`// sizes 2 4`; $T, $O and $I are then the types of operands, results and
// indices, $V the elements of a vector) and the dims of each run (`// run M = 20, N = 33`).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "frontend/program.h"
#include "runtime/files.h"
#include "runtime/library/session.h"
#include "tests/locations.h"
#include "tests/mutation/equivalence.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

struct MutatedKernel {
  std::string name;
  Plan plan;
  std::vector<MutationRun> runs;
  bool is_hand_written = false;
};

std::vector<std::map<std::string, std::int64_t>> dims_of_runs(const std::string& text) {
  std::vector<std::map<std::string, std::int64_t>> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("//");)
    if (line.starts_with("// run ")) result.push_back(dims_of_text(line));
  return result;
}

MutatedKernel kernel_of_plan(const std::string& name, const Plan& plan, const std::string& text, bool is_hand_written) {
  MutatedKernel kernel{name, plan, {}, is_hand_written};
  for (const auto& dims : dims_of_runs(text)) kernel.runs.push_back(run_of(plan, dims));
  REQUIRE_MESSAGE(!kernel.runs.empty(), name);
  return kernel;
}

// tests/mutation/WORD.tw at each of its sizes.
std::vector<MutatedKernel> kernels_of_programs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests/mutation"))
    if (entry.path().extension() == ".tw") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const std::map<int, std::vector<std::string>> types = {{1, {"u8", "i32", "u8"}}, {2, {"bf16", "bf16", "u16"}}, {4, {"f32", "f32", "i32"}}, {8, {"f64", "f64", "i64"}}};
  std::vector<MutatedKernel> kernels;
  for (const auto& file : files) {
    const std::string text = read_whole_file(file);
    REQUIRE(text.starts_with("// sizes "));
    std::istringstream sizes(text.substr(9, text.find('\n') - 9));
    for (int size = 0; sizes >> size;) {
      const std::vector<std::string>& names = types.at(size);
      const std::string own = with(with(with(with(text, "$T", names[0]), "$O", names[1]), "$I", names[2]), "$V", std::to_string(std::min(4, 16 / size)));
      const std::string name = fmt::format("{}.{}", file.stem().string(), names[0]);
      CAPTURE(name);
      const Program program = parse_program(own, name);
      const TensorFn& fn = choose_fn(program);
      const auto dims = dims_of_runs(own).front();
      const Selection selection = select_schedule(program, fn, dims, {});
      kernels.push_back(kernel_of_plan(name, thread_stage(rungs_of(fn, selection, dims, "sm_90a").back().plan, target_for("sm_90a")), own, false));
    }
  }
  return kernels;
}

std::vector<MutatedKernel> kernels_of_planted_faults() {
  std::vector<MutatedKernel> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests/sim/faults")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".ir" || !name.starts_with("right_") || name == "right_hopper") continue;
    const std::string text = read_whole_file(entry.path());
    kernels.push_back(kernel_of_plan(name.substr(6), plan_of(text), text, true));
  }
  return kernels;
}

struct Score {
  std::size_t all = 0;
  std::size_t killed = 0;
  std::map<std::string, std::size_t> equivalent;  // by the check
  std::vector<std::string> survivors;
};

// Every `stride`-th mutant, on all cores.
Score score_of(const MutatedKernel& kernel, std::uint64_t orders, std::size_t stride, std::size_t offset) {
  std::vector<Mutant> mutants;
  std::size_t number = offset;
  for (Mutant& mutant : mutants_of(kernel.plan))
    if (number++ % stride == 0) mutants.push_back(std::move(mutant));
  Score score;
  score.all = mutants.size();
  RunsOfSizes sizes(kernel.plan, kernel.runs, kernel.is_hand_written);
  std::mutex lock;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t n = next++; n < mutants.size(); n = next++) {
      const Mutant& mutant = mutants[n];
      bool killed = false;
      MutantVerdict verdict;
      std::string failure;
      try {
        killed = std::any_of(kernel.runs.begin(), kernel.runs.end(), [&](const MutationRun& run) { return is_killed(mutant.plan, run, orders); });
        if (!killed) verdict = verdict_of(kernel.plan, mutant, sizes);
      } catch (const std::exception& error) {
        failure = fmt::format(" ({})", error.what());
      }
      const std::lock_guard<std::mutex> guard(lock);
      if (killed || verdict.is_killed) ++score.killed;
      else if (!verdict.same.empty()) ++score.equivalent[verdict.same];
      else score.survivors.push_back(fmt::format("{} [{}] {}{}", kernel.name, name_of(mutant.kind), mutant.text, failure));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned n = 1; n < std::max(1u, std::thread::hardware_concurrency()); ++n) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return score;
}

void check_scores(const std::vector<MutatedKernel>& kernels, std::uint64_t orders, std::size_t stride) {
  std::ofstream table;
  if (const char* path = std::getenv("TILEWRIGHT_MUTATION_TABLE")) table.open(path, std::ios::app);
  std::size_t all = 0, killed = 0, equivalent = 0, offset = 0;
  for (const MutatedKernel& kernel : kernels) {
    const Score score = score_of(kernel, orders, stride, offset++);
    std::string reasons;
    std::size_t same = 0;
    for (const auto& [reason, count] : score.equivalent) {
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", count, reason);
      same += count;
    }
    if (table.is_open()) table << fmt::format("| {} | {} | {} | {} | {} |\n", kernel.name, score.all, score.killed, score.all - score.killed, reasons) << std::flush;
    for (const std::string& survivor : score.survivors) CHECK_MESSAGE(false, "survives: " << survivor);
    all += score.all;
    killed += score.killed;
    equivalent += same;
  }
  MESSAGE(fmt::format("{} mutants of {} kernels: {} killed, {} mean the same", all, kernels.size(), killed, equivalent));
  CHECK(all > 0);
}

// No report on a right kernel, whatever the order.
void check_silence(const std::vector<MutatedKernel>& kernels, std::uint64_t seeds) {
  for (const MutatedKernel& kernel : kernels)
    for (const MutationRun& run : kernel.runs) CHECK_MESSAGE(!is_killed(kernel.plan, run, seeds), kernel.name);
}

// With all lines of the schedule. The runs: copies that turn the ring of slots, so that slices leave in the trips of the next tile; fewer
// trips than slices; no trip at all.
std::vector<MutatedKernel> last_hopper_rung() {
  const std::string file = (source_root() / "examples/ch16_hopper_matmul/matmul.tw").string();
  const Program program = parse_program(read_whole_file(file), file);
  const TensorFn& fn = choose_fn(program);
  SelectionRequest request;
  request.schedule = "hopper, short sums";
  const std::string runs = "// run M = 136, N = 264, K = 320\n// run M = 136, N = 264, K = 72\n// run M = 40, N = 264, K = 0\n";
  const auto dims = dims_of_runs(runs).front();
  const std::vector<Rung> rungs = rungs_of(fn, select_schedule(program, fn, dims, request), dims, "sm_90a");
  REQUIRE(rungs.back().line == "overlap C");
  return {kernel_of_plan("hopper", thread_stage(rungs.back().plan, target_for("sm_90a")), runs, false)};
}

}  // namespace

TEST_SUITE("mutation") {
  TEST_CASE("mutation: small kernels") { check_scores(kernels_of_planted_faults(), 4, 1); }
  TEST_CASE("mutation: a sample of the kernels of all schedule words") {
    const std::vector<MutatedKernel> kernels = kernels_of_programs();
    check_silence(kernels, 2);
    check_scores(kernels, 4, 29);
  }
}

TEST_SUITE("mutation full") {
  TEST_CASE("mutation: no report on a right kernel over 50 seeds") {
    check_silence(kernels_of_programs(), 50);
    check_silence(kernels_of_planted_faults(), 50);
    check_silence(last_hopper_rung(), 50);
  }
  TEST_CASE("mutation: the kernels of all schedule words") { check_scores(kernels_of_programs(), 6, 1); }
  TEST_CASE("mutation: the last Hopper rung") { check_scores(last_hopper_rung(), 6, 1); }
}

}  // namespace tilewright
