// Timing on the GPU: several candidates for one job in one process, in interleaved rounds, on sets of tensors that
// rotate so that repeats do not live in L2; medians of events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda_device.h"

namespace tilewright {

// Something that does the job once on one of the rotated sets.
class Candidate {
 public:
  explicit Candidate(std::string name) : name_(std::move(name)) {}
  virtual ~Candidate() = default;
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  const std::string& name() const { return name_; }
  virtual void run(std::size_t set, const Stream& stream) const = 0;

 private:
  std::string name_;
};

// Copies of a call's tensors, so many that together they are several times the GPU's L2 (two at least, as memory
// allows).
class RotatedTensors {
 public:
  RotatedTensors(const Plan& plan, const Arguments& arguments, const Stream& stream, bool once = false);
  std::size_t count() const { return sets_.size(); }
  const DeviceTensors& operator[](std::size_t set) const { return sets_.at(set); }

 private:
  std::vector<DeviceTensors> sets_;
};

// A compiled plan as a candidate.
class PlanCandidate : public Candidate {
 public:
  PlanCandidate(std::string name, const CompiledPlan& compiled, const Arguments& arguments,
                const RotatedTensors& tensors, const Stream& stream)
      : Candidate(std::move(name)), loaded_(compiled, arguments, stream), tensors_(&tensors) {}
  void run(std::size_t set, const Stream& stream) const override { loaded_.run((*tensors_)[set], stream); }
  const LoadedPlan& loaded() const { return loaded_; }

 private:
  LoadedPlan loaded_;
  const RotatedTensors* tensors_;
};

struct TimingOptions {
  int rounds = 5;
  double round_ms = 60;    // about how long a candidate runs in one round
  double settle_ms = 300;  // all candidates in turn before the first round: clocks and power settle
  double lead_in_ms = 0;   // a candidate's own launches before those that count, in each round
  double pause_ms = 0;     // idle before each burst; 0: no bursts
  bool once = false;     // one launch each, for profilers and sanitizers: no warm-up, no repeats
};

struct Timing {
  std::string name;
  double median_ms = 0;  // the median of the rounds' medians
  double lowest_ms = 0;  // of the rounds' medians: the spread between equal measurements
  double highest_ms = 0;
  int launches = 0;       // timed
  std::vector<double> round_ms;  // the median of each round
  std::vector<int> round_mhz;    // the SM clock in each round, where NVML tells
  double burst_ms = 0;           // the mean of 8 launches on a GPU that was idle, its median over the rounds; 0: not taken
  bool is_single = false;        // it took more than ten seconds, and was run once
  double share = 1;              // of the work that was run; the times are scaled to the whole
  bool by_graph = false;  // short jobs are replayed as a graph each, so that gaps between launches do not count
};

// Warms up, then times every candidate in each round, in turn.
std::vector<Timing> time_candidates(const std::vector<const Candidate*>& candidates, std::size_t sets,
                                    const Stream& stream, const TimingOptions& options = {});

// The middle value (of an even number, the mean of the two in the middle); 0 for none.
double median_of(std::vector<double> values);

}  // namespace tilewright
