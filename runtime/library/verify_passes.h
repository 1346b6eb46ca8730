// The compiler checked by running what it makes: the plan in front of every pass and behind it, on small shapes.
#pragma once

#include <string>
#include <vector>

#include "runtime/library/rungs.h"
#include "runtime/library/session.h"

namespace tilewright {

struct VerifyOptions {
  std::string folder = ".";           // where a reproducer is written
  double most_operations = 4e6;       // shapes with more, by the product of the dims, are left out
  bool finishes_every_rung = false;   // else only the last rung goes through the finishing passes
};

struct VerifyResult {
  int passes = 0;  // that were compared
  int runs = 0;
};

// Shapes that hit the edges of a plan's tiles and pipes: each dim in turn two tiles and a part of one (or a trip more than a
// pipe has slots), the others small; all of them at once where that is cheap; and all as small as the facts allow.
std::vector<DimMap> edge_shapes(const TensorFn& fn, const Plan& plan, double most_operations);

// Lowering, each line, each finishing pass. Tile-stage plans run in the interpreter, thread-stage ones in the simulator under several
// orders; what has no barriers yet is not run by itself. A pass that says `exact` must not change a bit, another stays within the bound of the
// definition. Throws InternalError that names the pass and the shape and shows the plan before and after, of a fn, a schedule and
// a shape made as small as the difference allows (runtime/library/shrink_failure.h); both are also written to files that
// `run` takes.
VerifyResult verify_passes(const TensorFn& fn, const std::vector<Rung>& rungs, const Target& target, const VerifyOptions& options = {});

}  // namespace tilewright
