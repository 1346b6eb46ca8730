// All interleavings of the synchronisation events of two warps, and of the copies that they start.
//
// A warp's events are those of its first lane in a run of the kernel's text for given dims: waits for barrier objects and arrivals at
// them, barriers, copies by the copy engine, reads of slots of shared memory (those of wgmma last until its group is waited for). A copy
// lands at any time after it was started, in order with the others of its warp. An object's phase completes by the arrivals of the two
// warps alone, so that whoever else arrives is taken to have done so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

struct SyncEvent {
  enum class Kind : std::uint8_t { Wait, Arrive, Barrier, Copy, Read, StartRead, EndReads } kind;
  std::string place;        // `p.full[2]`, `As[2]`; of a barrier its number
  std::string object;       // Copy: where it is told
  std::int64_t value = 0;   // Wait: parity; Arrive: copies that it announces; EndReads: groups that stay open
  friend bool operator==(const SyncEvent&, const SyncEvent&) = default;
};

// Of warp `warp` of block 0; reads by wgmma are those of a warpgroup's first warp. Throws std::runtime_error where the text depends on what only data tell.
std::vector<SyncEvent> events_of(const Kernel& kernel, const std::map<std::string, std::int64_t>& dims, std::int64_t warp);

struct Interleavings {
  std::string fault;      // of some interleaving: a deadlock, a slot read while a copy of it is under way; empty: none
  std::size_t states = 0;
  // Number of a read, counted by warp: the copies that it may have seen (issuing warp, number).
  std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> seen;
};

// `arrivals`: how many of the two arrive at an object for each of its phases; of an object that is not in it no wait lasts.
Interleavings all_interleavings(const std::vector<SyncEvent>& first, const std::vector<SyncEvent>& second, const std::map<std::string, int>& arrivals);
std::map<std::string, int> arrivals_of(const std::vector<SyncEvent>& first, const std::vector<SyncEvent>& second);

// Two kernels under all interleavings of any two warps, at these dims. Same: neither has a fault, and each read sees one copy, the
// same in both. Differs: the second has a fault, or a read sees another copy. Unknown: the first is not clean, or starts no copies.
enum class Compared : std::uint8_t { Same, Differs, Unknown };
Compared compare_interleavings(const Kernel& kernel, const Kernel& changed, const std::vector<std::map<std::string, std::int64_t>>& dims);

}  // namespace tilewright
