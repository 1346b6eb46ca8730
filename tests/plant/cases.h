// What the faults are looked for with: golden cases of the passes and schedules of the examples, on small shapes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/tensor.h"
#include "tests/passes/plan_runs.h"

namespace tilewright {

using Outputs = std::map<std::string, HostTensor>;

// A schedule of a plan, and what the plan gives before it.
struct PlantCase {
  std::string name;
  std::vector<std::string> words;      // of its lines
  std::function<Plan()> last;          // applies the lines; a fault may be met here
  bool finishes = true;
  Target target;
  bool is_approximate = false;         // `math fast` is among the lines
  Agreement agreement = Agreement::AnyData;
  Plan first;
  std::vector<std::pair<Sizes, Outputs>> expected;  // of `first` in the tile interpreter
};

// All cases that pass without a fault, cheap ones first; with no fault switched on. Throws InternalError where one fails.
std::vector<PlantCase> plant_cases(const std::string& source_root);

// Which check finds a fault in this case (`verifier: …`, `interpreter: …`, `wrong result, tile stage: …`, `sim: …`,
// `wrong result, sim: …`); empty where none does.
std::string found_by(const PlantCase& test);

}  // namespace tilewright
