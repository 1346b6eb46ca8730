// Whether a run's results are right: against the oracle, within the bound of the definition.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "runtime/oracle.h"
#include "runtime/tensor.h"

namespace tilewright {

struct Verdict {
  double worst_ratio = 0;          // largest error / bound over all outputs; above 1 is wrong
  std::int64_t compared = 0;
  std::int64_t wrong = 0;
  std::string text;                // one line where it is right; else what is wrong, in words
  bool is_right() const { return wrong == 0; }
};

// What the outputs of a call should be. Of an output that takes more than `most_operations` a random sample and elements
// near the edges (the last rows and columns).
struct Reference {
  OracleResult oracle;
  bool is_sample = false;
};
Reference reference_of(const TensorFn& fn, const std::map<std::string, HostTensor>& inputs, const std::map<std::string, std::int64_t>& dims, bool worst_case = false,
                       std::int64_t most_operations = 2'000'000'000);

// Compares the outputs in `results`; the tile sizes of the plan help to say where they are wrong.
Verdict judge(const Reference& reference, const Plan& plan, const Arguments& results);

// The constant tile sizes of a plan by axis name of the target, for the description of a wrong box.
std::vector<std::int64_t> tile_sizes_of(const Plan& plan);

}  // namespace tilewright
