// Draws a program: a fn of a few statements over all constructs that the frontend accepts.
#pragma once

#include "tests/fuzz/program.h"
#include "tests/fuzz/random.h"

namespace tilewright::fuzz {

// Mostly well typed; what is not, the frontend refuses with a reason. `has_products`: the first statement is a sum of
// products, which is what most schedule lines are for.
FuzzProgram draw_program(Random& random, bool has_products);

}  // namespace tilewright::fuzz
