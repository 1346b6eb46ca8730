// The sentence of a race.
#pragma once

#include <string>

#include "runtime/sim/shadow.h"

namespace tilewright {

struct Race {
  Warp* warp;  // of the access that comes now
  const WarpOp* op;
  int lane;    // -1: the warp
  Use kind;
  std::string place;
  Party party;  // of the access before
  Time time;
  std::uint32_t statement;
  Use past;
  bool is_async = false;       // the access that comes now is the copy engine's or a tensor core's
  bool is_unfenced = false;    // it is ordered, but not for the async proxy
  std::int64_t cluster = -1;   // of the access before, where it is another
  bool is_same_trip = false;   // both accesses are in the same trip of the loops around them, as far as is known
};

void report_race(const ClusterClocks& clocks, const Race& race);
// A block ends, and `visit` to its shared memory may come later.
void report_early_end(const ClusterClocks& clocks, Warp& last, const Stamp& visit);
// `As[3, 128]` for a byte of shared memory.
std::string place_in_shared(const KernelProgram& program, std::int64_t byte);

}  // namespace tilewright
