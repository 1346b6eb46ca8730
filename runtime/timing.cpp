// Interleaved timing; see timing.h.
#include "runtime/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "runtime/nvml.h"

namespace tilewright {

namespace {

constexpr double warm_up_ms = 40;       // clocks rise under load
constexpr double graph_below_ms = 0.1;  // launches of that length are measured with their gaps otherwise
constexpr int most_launches = 200;      // of one candidate in one round
constexpr int fewest_launches = 3;
constexpr double slow_ms = 400;         // one launch of that length is its own lead-in
constexpr std::size_t most_sets = 64;
constexpr int burst_launches = 8;
constexpr double single_above_ms = 10'000;  // what takes longer is run once

// How the job is started: launch by launch, or as one recorded graph for each set.
class Runner {
 public:
  Runner(const Candidate& candidate, std::size_t sets, const Stream& stream)
      : candidate_(&candidate), sets_(sets), stream_(&stream) {}

  void start(std::size_t index) const {
    const std::size_t set = index % sets_;
    if (graphs_.empty())
      candidate_->run(set, *stream_);
    else
      graphs_[set].launch(*stream_);
  }
  void record_graphs() {
    for (std::size_t set = 0; set < sets_; ++set) {
      Graph::begin(*stream_);
      candidate_->run(set, *stream_);
      graphs_.push_back(Graph::finish(*stream_));
    }
  }
  bool by_graph() const { return !graphs_.empty(); }

  // Milliseconds a launch of `count` in a row.
  double time_together(std::size_t first, int count) const {
    const Event begin, end;
    begin.record(*stream_);
    for (std::size_t index = 0; index < static_cast<std::size_t>(count); ++index) start(first + index);
    end.record(*stream_);
    stream_->synchronise();
    return end.milliseconds_since(begin) / count;
  }

  // Milliseconds of each of `count` launches, the first on set `first`, with the SM clock while they run.
  std::vector<double> time(std::size_t first, int count, std::optional<int>* clock = nullptr) const {
    std::vector<std::pair<Event, Event>> events(static_cast<std::size_t>(count));
    for (std::size_t index = 0; index < events.size(); ++index) {
      events[index].first.record(*stream_);
      start(first + index);
      events[index].second.record(*stream_);
    }
    if (clock != nullptr) *clock = sm_clock_mhz();
    stream_->synchronise();
    std::vector<double> times;
    for (const auto& [begin, end] : events) times.push_back(end.milliseconds_since(begin));
    return times;
  }

 private:
  const Candidate* candidate_;
  std::size_t sets_;
  const Stream* stream_;
  std::vector<Graph> graphs_;
};

// Runs until the clocks are up, and gives an estimate of one launch.
double warm_up(Runner& runner) {
  runner.time(0, 1);  // the first launch pays for loading
  double estimate = std::max(runner.time(1, 1)[0], 1e-3);
  double spent = 0;
  while (spent < warm_up_ms) {
    const int count = std::clamp(static_cast<int>(10 / estimate), 1, most_launches);
    const std::vector<double> times = runner.time(0, count);
    for (const double time : times) spent += std::max(time, 1e-3);
    estimate = std::max(median_of(times), 1e-3);
  }
  return estimate;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

RotatedTensors::RotatedTensors(const Plan& plan, const Arguments& arguments, const Stream& stream, bool once) {
  sets_.emplace_back(plan, arguments, stream);
  if (once) return;
  const std::size_t bytes = std::max<std::size_t>(sets_[0].total_bytes(), 1);
  const auto wanted_bytes = static_cast<std::size_t>(use_gpu().l2_bytes) * 3;
  const std::size_t wanted = std::clamp<std::size_t>(wanted_bytes / bytes + 2, 2, most_sets);
  while (sets_.size() < wanted && free_device_memory() / 4 > bytes) sets_.push_back(sets_[0].copy(stream));
}

std::vector<Timing> time_candidates(const std::vector<const Candidate*>& candidates, std::size_t sets,
                                    const Stream& stream, const TimingOptions& options) {
  std::vector<Timing> timings;
  std::vector<Runner> runners;
  std::vector<int> launches;
  for (const Candidate* candidate : candidates) {
    Runner runner(*candidate, sets, stream);
    Timing timing;
    timing.name = candidate->name();
    if (options.once) {
      timing.median_ms = timing.lowest_ms = timing.highest_ms = runner.time(0, 1)[0];
      timing.launches = 1;
      timings.push_back(timing);
      continue;
    }
    if (const double once = runner.time(0, 1)[0]; once > single_above_ms) {
      timing.median_ms = timing.lowest_ms = timing.highest_ms = once;
      timing.launches = 1;
      timing.is_single = true;
    }
    double estimate = timing.is_single ? timing.median_ms : warm_up(runner);
    if (estimate < graph_below_ms) {
      runner.record_graphs();
      estimate = warm_up(runner);
    }
    timing.by_graph = runner.by_graph();
    launches.push_back(std::clamp(static_cast<int>(options.round_ms / estimate), estimate > slow_ms ? 1 : fewest_launches, most_launches));
    timings.push_back(timing);
    runners.push_back(std::move(runner));
  }
  if (options.once) return timings;

  std::vector<std::size_t> repeated;  // all but those that ran once
  for (std::size_t index = 0; index < candidates.size(); ++index)
    if (!timings[index].is_single) repeated.push_back(index);
  if (repeated.empty()) return timings;
  for (double spent = 0; spent < options.settle_ms;)
    for (const std::size_t index : repeated)
      spent += std::max(runners[index].time_together(0, launches[index]), 1e-3) * launches[index];
  std::vector<std::vector<double>> medians(candidates.size());
  for (int round = 0; round < options.rounds; ++round)
    for (std::size_t turn = 0; turn < repeated.size(); ++turn) {
      // There and back, so that nobody always follows the same neighbour: what that one draws sets the clock at first.
      const std::size_t index = repeated[round % 2 == 0 ? turn : repeated.size() - 1 - turn];
      double led = 0;  // launches that are not counted, until the clock is this candidate's own
      do led += std::max(runners[index].time_together(static_cast<std::size_t>(round), launches[index]), 1e-3) * launches[index];
      while (led < options.lead_in_ms);
      std::optional<int> clock;
      medians[index].push_back(median_of(runners[index].time(static_cast<std::size_t>(round) + 1, launches[index], &clock)));
      timings[index].launches += launches[index];
      if (clock) timings[index].round_mhz.push_back(*clock);
    }
  std::vector<std::vector<double>> bursts(candidates.size());
  for (int round = 0; round < options.rounds && options.pause_ms > 0; ++round)
    for (const std::size_t index : repeated) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.pause_ms));
      bursts[index].push_back(runners[index].time_together(static_cast<std::size_t>(round), burst_launches));
    }
  for (const std::size_t index : repeated) {
    timings[index].median_ms = median_of(medians[index]);
    timings[index].round_ms = medians[index];
    timings[index].burst_ms = median_of(bursts[index]);
    timings[index].lowest_ms = *std::min_element(medians[index].begin(), medians[index].end());
    timings[index].highest_ms = *std::max_element(medians[index].begin(), medians[index].end());
  }
  return timings;
}

}  // namespace tilewright
