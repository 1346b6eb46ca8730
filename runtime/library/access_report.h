// The access report: what each access of a call costs the memory system, counted in the simulator, in words, and the schedule
// line that cures it.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "runtime/library/session.h"
#include "runtime/sim/counts.h"

namespace tilewright {

struct AccessNote {
  AccessCounts counts;
  std::string text;      // as the program writes it, `B[k, j]`; as the thread stage does where no line of the program has it
  int line = 0;          // of the program; 0: not known
  std::string sentence;  // what is wrong; empty: nothing
  std::string cure;      // schedule lines in backticks, with which the call was counted again and is better; empty: none of those tried
};

struct KernelNote {
  KernelCounts counts;
  std::vector<AccessNote> accesses;   // that were executed at least once
  std::vector<std::string> sentences; // of the kernel as a whole
};

struct AccessRequest {
  const TensorFn* fn = nullptr;
  const Selection* selection = nullptr;  // its lines are what a cure changes; null for a plan that has none
  DimMap dims;
  std::string arch = "sm_90a";
  std::uint64_t seed = 1;
  std::vector<SourceFile> sources;       // of the program
};

// Runs the plan once in the simulator, without its checks. Throws what `execute` throws.
std::vector<KernelNote> access_report(const Plan& plan, const std::map<std::string, HostTensor>& inputs, const AccessRequest& request);

// As tables, a kernel each.
std::string text_of(const std::vector<KernelNote>& report);

}  // namespace tilewright
