// `run --verify` on a pass that is really wrong.
#pragma once

#include <filesystem>
#include <string>

#include "tests/plant/fault_list.h"

namespace tilewright {

struct Reproduction {
  std::string in;     // the example and its schedule; empty: no example shows the fault
  std::string where;  // the pass and the sizes that the failure names; a later pass where the fault has no meaning at the tile stage
  std::string wrong;  // why the reproducer does not show the fault
};

// Switches the fault on, verifies schedules of the examples, shortest first, until one fails, and runs the two commands that
// the failure gives: the plan in front of the pass and the one behind it must differ in a result, or the latter be reported.
Reproduction reproduce(const PlantedFault& fault, const std::string& source_root, const std::filesystem::path& folder);

}  // namespace tilewright
