// Draws schedules: lines that make sense one after the other, with the odd one out of order, misplaced or misspelt.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/tally.h"

namespace tilewright::fuzz {

// Conditions of a call for the schedule, as text: `K % 4 == 0`, `aligned 16`.
std::vector<std::string> draw_facts(Random& random, const std::vector<std::string>& dims, bool for_tensor_cores);

struct DrawnSchedule {
  std::vector<std::string> lines;  // those that the passes took
  std::string tried;               // the last line that was tried, where an exception left draw_schedule
};

// Tries lines on `plan`; what a pass refuses is counted and left out. Gives the plan behind the last one. Other exceptions
// pass through, with the line in `drawn.tried`.
Plan draw_schedule(Random& random, const Plan& plan, bool for_tensor_cores, Tally& tally, DrawnSchedule& drawn);

}  // namespace tilewright::fuzz
