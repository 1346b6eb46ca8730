// Mutants of a plan at thread stage: one thing changed in each.
#pragma once

#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// Sync: a barrier, fence, wait, arrival, commit, count, phase or slot. Predicate: a condition or the bound of a loop. Fill: a value
// that stands for what is not there. Layout: one side of a layout, the writer's or the reader's.
enum class MutationKind : std::uint8_t { Sync, Predicate, Fill, Layout };
std::string_view name_of(MutationKind kind);

struct Mutant {
  MutationKind kind;
  std::string text;     // what was done, and to which statement
  Plan plan;
  std::size_t step = 0;       // of the plan
  std::size_t position = 0;   // of the statement changed, in the kernel's body, parents first; of a tensor map: its number
  Stmt before;                // it; empty for a tensor map
  Block after;                // what stands instead
  Block poisoned;             // the same, with poison for every value that the plan does not compute; empty: it has none
};

std::vector<Mutant> mutants_of(const Plan& plan);

// The plan with other statements in the place of one, which is counted as Mutant::position says.
Plan with_statement(const Plan& plan, std::size_t step, std::size_t position, const Block& instead);

}  // namespace tilewright
