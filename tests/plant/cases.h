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
  bool is_ready = false;
  Plan right_last;      // without a fault
  Plan right_finished;
};

// All cases, those of tests/plant first; with no fault switched on.
std::vector<PlantCase> plant_cases(const std::string& source_root);

struct CaseOutcome {
  bool changes_plan = false;  // the passes made something else than without a fault
  std::string found;          // `verifier: …`, `interpreter: …`, `wrong result, tile stage: …`, `sim: …`, `wrong result, sim: …`
  std::string refused;        // what a pass says of a plan that it takes without the fault
};

// Runs the case with the fault that is switched on; what makes the same plans is not run. Throws InternalError where a
// check finds something in the plans without a fault.
CaseOutcome run_case(PlantCase& test);

}  // namespace tilewright
