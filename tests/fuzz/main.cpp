// tilewright_fuzz: draws programs and schedules, runs each by everything that can run it, compares, and shrinks what differs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/library/session.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/isolate.h"
#include "tests/fuzz/shrink.h"

namespace tilewright::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 0;
  std::int64_t count = 0;
  std::uint64_t seed = 1;
  std::int64_t only = -1;
  int jobs = 1;
  std::string device = "sim";
  std::string json;
  std::string folder = ".";
  std::vector<std::string> replay;
  bool is_listing = false;
  std::string tests;
  std::vector<RefusalCase> refusals;
};

constexpr std::int64_t programs_of_a_process = 200;
constexpr double seconds_without_progress = 120;
constexpr int shrunk_of_a_kind = 2;

struct Found {
  std::int64_t number = 0;
  std::string kind;
  std::string text;
  std::string file;  // the small case
};

Devices devices_of(const Options& options) {
  Devices devices;
  devices.ptx = options.device != "cuda";
  devices.cuda = options.device == "cuda";
  return devices;
}

// A case that crashes or hangs is checked in a process of its own.
std::optional<Finding> check_isolated(const Case& drawn, const Devices& devices) {
  const Isolated end = run_isolated(
      [&](Telling& parent) {
        Tally tally;
        if (const auto finding = check_case(drawn, devices, tally)) parent.tell(finding->kind + "\n" + finding->text);
      },
      20);
  if (end.end == Isolated::End::Crashed) return Finding{"crash", end.signal > 0 ? strsignal(end.signal) : "the process ended early"};
  if (end.end == Isolated::End::TimedOut) return Finding{"hang", "no end within 20 s"};
  if (end.text.empty()) return std::nullopt;
  const std::size_t end_of_kind = end.text.find('\n');
  return Finding{end.text.substr(0, end_of_kind), end.text.substr(end_of_kind + 1)};
}

// Each smaller case is checked in a process of its own: it may crash where its parent did not.
std::string shrunk_text(const FailedCase& failed) {
  const bool is_crash = failed.finding.kind == "crash" || failed.finding.kind == "hang";
  const Devices devices = is_crash ? Devices{} : devices_for(failed.finding.kind);
  const StillFails still_fails = [&](const Case& candidate) {
    const auto finding = check_isolated(candidate, devices);
    return finding && finding->kind == failed.finding.kind;
  };
  if (!still_fails(failed.drawn)) return to_text(failed.drawn);
  return to_text(shrink(failed.drawn, still_fails, failed.finding.kind == "hang" ? 20 : is_crash ? 400 : devices.cuda ? 100 : 2000));
}

std::string save(const Options& options, const Found& found, const std::string& text) {
  const std::string path = (std::filesystem::path(options.folder) / fmt::format("fuzz-{}-{}.tw", options.seed, found.number)).string();
  std::ofstream file(path);
  std::istringstream lines(found.text.substr(0, 2000));
  file << "// " << found.kind << "\n";
  int most = 8;  // the rest is plans
  for (std::string line; most-- > 0 && std::getline(lines, line);) file << "//   " << line << "\n";
  file << "// drawn: --seed " << options.seed << " --only " << found.number << "; again: scripts/fuzz --replay " << path << "\n" << text;
  return file ? path : "";
}

// The work of one process: programs first … last - 1. Tells the tally and the findings, a line of JSON each.
void work(const Options& options, std::int64_t first, std::int64_t last, Clock::time_point end, Telling& parent) {
  const auto tell = [&](const nlohmann::json& json) { parent.tell(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); };
  for (std::int64_t number = first; number < last && Clock::now() < end; ++number) {
    parent.reach(number);
    if (options.is_listing) std::cerr << number << "\n";
    if (options.is_listing && options.only >= 0) {
      Tally unused;
      std::cerr << to_text(draw_case(options.seed, static_cast<std::uint64_t>(number), unused, nullptr));
    }
    Tally tally;
    tally.count("program", "drawn");
    const auto failed = draw_and_check(options.seed, static_cast<std::uint64_t>(number), devices_of(options), tally);
    std::optional<Finding> refusal;
    if (!options.refusals.empty()) refusal = draw_and_check_refusal(options.seed, static_cast<std::uint64_t>(number), options.refusals, tally);
    tell({{"tally", tally.to_json()}});
    if (refusal) tell({{"finding", {number, refusal->kind, refusal->text.substr(0, 4000)}}});
    if (!failed) continue;
    tell({{"finding", {number, failed->finding.kind, failed->finding.text.substr(0, 4000)}}});
  }
}

class Fuzzer {
 public:
  explicit Fuzzer(const Options& options) : options_(options), start_(Clock::now()) {
    tally_.expect_everything();
    expect_refusals(options.refusals, tally_);
    end_ = options.seconds > 0 ? start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds)) : start_ + std::chrono::hours(1000);
    next_ = options.only >= 0 ? options.only : 0;
    last_ = options.only >= 0 ? options.only + 1 : options.count > 0 ? options.count : std::numeric_limits<std::int64_t>::max();
  }

  int run() {
    std::vector<std::thread> threads;
    for (int job = 1; job < options_.jobs; ++job) threads.emplace_back([this] { serve(); });
    serve();
    for (std::thread& thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const std::int64_t drawn = tally_.total("program", "drawn");
    std::cout << tally_.table(50) << fmt::format("seed {}: {} programs drawn, {} accepted, {} findings, {:.1f} s\n", options_.seed, drawn, tally_.total("program", "accepted"), found_.size(), seconds);
    if (!options_.json.empty()) {
      nlohmann::json out = {{"seed", options_.seed}, {"programs", drawn}, {"findings", found_.size()}, {"seconds", seconds}, {"tally", nlohmann::json::parse(tally_.to_json())}};
      replace_file(options_.json, out.dump(2), "\n");
    }
    if (drawn == 0) std::cerr << "error: nothing was drawn\n";
    return found_.empty() && drawn > 0 ? 0 : 1;
  }

 private:
  void serve() {
    for (;;) {
      const std::int64_t first = next_.fetch_add(programs_of_a_process);
      if (first >= last_ || Clock::now() >= end_) return;
      const std::int64_t last = std::min(last_, first + programs_of_a_process);
      for (std::int64_t from = first; from < last;) from = run_process(from, last);
    }
  }

  // Gives the number to go on with.
  std::int64_t run_process(std::int64_t first, std::int64_t last) {
    const Isolated end = run_isolated([&](Telling& parent) { work(options_, first, last, end_, parent); }, seconds_without_progress);
    const std::lock_guard lock(mutex_);
    std::istringstream lines(end.text);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json told = nlohmann::json::parse(line, nullptr, false);
      if (told.contains("tally")) tally_.add(Tally::from_json(told["tally"].get<std::string>()));
      if (told.contains("finding")) add(Found{told["finding"][0], told["finding"][1], told["finding"][2], ""});
    }
    if (end.end == Isolated::End::Done) return last;
    add(Found{end.reached, end.end == Isolated::End::Crashed ? "crash" : "hang", end.signal > 0 ? strsignal(end.signal) : "", ""});
    return end.reached + 1;
  }

  // Drawing may be what crashes, so that it has a process of its own too.
  std::string shrink_isolated(const Found& found, bool is_shrunk) {
    const Isolated end = run_isolated(
        [&](Telling& parent) {
          Tally tally;
          std::optional<Finding> finding;
          const FailedCase failed{draw_case(options_.seed, static_cast<std::uint64_t>(found.number), tally, &finding), Finding{found.kind, ""}};
          parent.tell(save(options_, found, is_shrunk ? shrunk_text(failed) : to_text(failed.drawn)));
        },
        600);
    return end.end == Isolated::End::Done ? end.text : "";
  }

  void add(Found found) {
    if (found.kind != kind_of_changed_case) found.file = shrink_isolated(found, shrunk_[found.kind]++ < shrunk_of_a_kind);
    tally_.count("finding", found.kind);
    found_.push_back(found);
    std::cout << fmt::format("---- {}: --seed {} --only {}\n", found.kind, options_.seed, found.number);
    if (found.file.empty()) std::cout << found.text << "\n";
    else std::cout << std::ifstream(found.file).rdbuf();
    std::cout << std::flush;
  }

  const Options& options_;
  Clock::time_point start_, end_;
  std::atomic<std::int64_t> next_{0};
  std::int64_t last_ = 0;
  std::mutex mutex_;
  Tally tally_;
  std::vector<Found> found_;
  std::map<std::string, int> shrunk_;
};

int replay(const Options& options) {
  int failed = 0;
  for (const std::string& path : options.replay) {
    Tally tally;
    Devices devices = devices_of(options);
    std::string refusal;
    const auto finding = check_text(read_whole_file(path), devices, tally, &refusal);
    if (finding) ++failed;
    std::cout << fmt::format("{}: {}\n", path, finding ? finding->kind + ": " + finding->text : refusal.empty() ? "no difference" : "refused: " + refusal);
  }
  return failed == 0 ? 0 : 1;
}

int run_main(int argc, char** argv) {
  Options options;
  CLI::App app{"Draws programs with schedules, runs each by the oracle, the tile interpreter, cpu, sim and the PTX machine (or a GPU), and compares bit for bit."};
  app.add_option("--seconds", options.seconds, "stop drawing after this time");
  app.add_option("--count", options.count, "stop after this many programs");
  app.add_option("--seed", options.seed, "of the run; the same seed draws the same programs");
  app.add_option("--only", options.only, "program of this number alone");
  app.add_option("--jobs", options.jobs, "processes at a time")->check(CLI::Range(1, 256));
  app.add_option("--device", options.device, "cuda: both generators on a GPU instead of the PTX machine")->check(CLI::IsMember({"sim", "cuda"}));
  app.add_option("--json", options.json, "write the coverage to this file");
  app.add_option("--folder", options.folder, "where small failing cases are written");
  app.add_option("--replay", options.replay, "check these files of cases instead of drawing");
  app.add_option("--tests", options.tests, "draw the failing cases below this folder too, each refusal of the tests")->check(CLI::ExistingDirectory);
  app.add_flag("--list", options.is_listing, "say which program is drawn; with --only, its text");
  CLI11_PARSE(app, argc, argv);
  if (!options.tests.empty()) options.refusals = read_refusal_cases(options.tests);
  // CUDA does not outlive a fork: only children may open it.
  if (options.device == "cuda" && run_isolated([](Telling&) { choose_device("cuda"); }, 60).end != Isolated::End::Done) return 3;
  if (!options.replay.empty()) return replay(options);
  if (options.seconds <= 0 && options.count <= 0 && options.only < 0) options.seconds = 60;
  return Fuzzer(options).run();
}

}  // namespace

}  // namespace tilewright::fuzz

int main(int argc, char** argv) {
  try {
    return tilewright::fuzz::run_main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}
