// The page that `report` writes: one file that needs nothing else, from the same data as --json.
#pragma once

#include <string>

#include "runtime/library/ladder/record.h"

namespace tilewright {

// `record` (may be null): what was asked and expected, shown above the ladder.
std::string page_of(const Ladder& ladder, const Record* record);

// A file of tools/report, as the build has put it into the program: "page.html", "page.css", "page.js".
std::string_view report_asset(std::string_view name);

}  // namespace tilewright
