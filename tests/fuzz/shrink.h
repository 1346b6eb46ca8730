// Makes a failing case small: program, schedule, shapes and data together.
#pragma once

#include <functional>

#include "tests/fuzz/fuzz.h"

namespace tilewright::fuzz {

// True where a case still fails in the same way.
using StillFails = std::function<bool(const Case&)>;

// Tries smaller cases one by one, from the largest steps to the smallest, as long as one fails and no more than
// `most_tries` were tried. What it gives fails: `drawn` itself, if nothing smaller does.
Case shrink(const Case& drawn, const StillFails& still_fails, int most_tries = 3000);

}  // namespace tilewright::fuzz
