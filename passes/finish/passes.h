// The finishing passes, in the order in which they run.
#pragma once

#include "passes/pass.h"

namespace tilewright {

Plan bind_default(const Plan& plan, const Target& target);
Plan guard(const Plan& plan, const Target& target);
Plan split_roles(const Plan& plan, const Target& target);
Plan expand(const Plan& plan, const Target& target);
Plan place_shared(const Plan& plan, const Target& target);
Plan synchronise(const Plan& plan, const Target& target);
Plan fence(const Plan& plan, const Target& target);
Plan simplify(const Plan& plan, const Target& target);

}  // namespace tilewright
