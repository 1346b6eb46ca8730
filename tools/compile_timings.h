// How long it takes from the text of a program to machine code on the GPU, step by step.
#pragma once

#include "tools/options.h"

namespace tilewright {

// Milliseconds.
struct CompileTimings {
  double parse = 0;     // text to tensor IR
  double schedule = 0;  // tensor IR to the plan behind the last line
  double finish = 0;    // to the thread stage
  double generate = 0;  // to CUDA C or PTX
  double compile = 0;   // to machine code
  double load = 0;      // into the GPU's context
  bool is_from_cache = false;
  double total() const { return parse + schedule + finish + generate + compile + load; }
};

// `first` is taken in a process that has compiled nothing yet, `again` after that and one other kernel.
struct TimedCompilations {
  double context = 0;  // making the GPU's context
  CompileTimings first;
  CompileTimings again;
};

// Needs a GPU. To be called before anything else has been compiled.
TimedCompilations time_compilations(const Options& options, const std::string& program_text);
std::string text_of(const TimedCompilations& timings);

}  // namespace tilewright
