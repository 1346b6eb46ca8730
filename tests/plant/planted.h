// Which of the faults of faults.txt is switched on: one at a time, or none.
#pragma once

#include <string>
#include <string_view>

namespace tilewright {

void plant(std::string name);             // empty: none
bool planted(std::string_view name);      // stands in the generated copies of the passes
bool was_reached();                       // whether the code of the fault that is switched on has run

}  // namespace tilewright
