// Validity of tiled loops as predicates on the statements inside.
#pragma once

#include <string>

#include "ir/stmt.h"

namespace tilewright {

// Adds `condition`, which says that the iteration of `axis` exists, to what needs it in the body of the axis' loop:
// statements that use the axis or write what outlives an iteration; loops and branches that read memory by it are put
// under an `if`.
Block with_predicate(const Block& body, const std::string& axis, const Expr& condition);

}  // namespace tilewright
