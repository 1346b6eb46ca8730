// Predicates that staged tiles make superfluous.
//
// A predicate on a free index is dropped from what writes registers once all its reads are staged: its element is never
// stored, for every store to memory keeps the predicate. A predicate on a reduced index is dropped where the statement,
// with every operand that this index subscripts at its fill, leaves its accumulator as it is: 0 is right for a sum of
// products, wrong for `max` or `exp`. Where the tensor goes on behind the range of the index, the copy takes the
// predicate.
#pragma once

#include "ir/plan.h"

namespace tilewright {

// On what one block of a kernel runs.
Block drop_absorbed_predicates(const Block& block_body, const Plan& plan);

}  // namespace tilewright
