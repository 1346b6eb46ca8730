// Whether a mutant that nothing kills means the same as its plan: only by a check that a program makes.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/tensor.h"
#include "tests/mutation/mutants.h"

namespace tilewright {

// What the kernels were run on.
struct MutationRun {
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, HostTensor> inputs;
  Arguments right;  // what the plan gives
  bool has_error = false;  // a checked access reported an offender
};
MutationRun run_of(const Plan& plan, const std::map<std::string, std::int64_t>& dims);

// A report, or other bytes than `right`, under one of the first `orders` seeds.
bool is_killed(const Plan& plan, const MutationRun& run, std::uint64_t orders);

// Runs at every size along each axis up to what `runs` have, the other axes as in the first and the last of them; made when first
// asked for. A kernel that was written by hand may be right at some sizes only, and those are taken.
class RunsOfSizes {
 public:
  RunsOfSizes(const Plan& plan, const std::vector<MutationRun>& runs, bool is_hand_written) : plan_(plan), runs_(runs), is_hand_written_(is_hand_written) {}
  const std::vector<MutationRun>& all();

 private:
  const Plan& plan_;
  const std::vector<MutationRun>& runs_;
  std::vector<MutationRun> made_;
  bool is_hand_written_;
  std::once_flag once_;
};

// What is said of a mutant that nothing has killed so far.
struct MutantVerdict {
  bool is_killed = false;  // at another size, by NaN where it takes what the plan does not, or under another interleaving of two warps
  std::string same;        // the first check that shows it to mean the same; empty: none does
};
MutantVerdict verdict_of(const Plan& plan, const Mutant& mutant, RunsOfSizes& sizes);

}  // namespace tilewright
