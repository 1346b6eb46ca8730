// What a block asks of the machine, counted while it runs: instructions of warps, and for each instruction that touches
// memory the sectors, lines and passes of its requests. Nothing is estimated: addresses are those of the lanes.
//
// A pass is one turn of the pipe that L1 and shared memory share. A request of a warp takes as many as the largest of:
//   global   the lines of 128 bytes that its lanes touch
//   shared   the words that one bank has to give, one at a time (32 banks of 4 bytes; lanes that want one word share it)
//   both     the registers that it fills or empties, for 128 bytes go to or from the lanes in a turn; half of them where
//            lanes n and n^1, or n and n^2, want the same (NVIDIA's forum, "Unexpected shared memory bank conflict")
// Loads of neighbouring words of shared memory count as the one wide load that ptxas makes of them where it can.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

// Of one instruction, over all warps that executed it.
struct AccessCounts {
  Space space = Space::Global;
  bool is_store = false;
  bool is_atomic = false;
  int bytes = 0;                      // a lane's, vector included
  std::int64_t requests = 0;          // executions by a warp
  std::int64_t lanes = 0;
  std::int64_t sectors = 0;           // of 32 bytes, global: touched by each request; atomics on one address go in passes, each with its own
  std::int64_t sectors_needed = 0;    // that hold the bytes asked for, packed
  std::int64_t passes = 0;
  std::int64_t passes_needed = 0;     // with the same words side by side, no two of them in one bank
  std::string region;                 // the tensor of its first access, global
};

struct Counts {
  std::int64_t warp_instructions = 0;         // of the PTX
  std::int64_t lane_instructions = 0;
  std::map<std::string, std::int64_t> by_text;  // executions by warps, `fma.rn.f32` and its kin
  std::map<std::uint32_t, AccessCounts> accesses;  // by the instruction's number in KernelProgram::places
  std::int64_t sectors_loaded = 0;   // distinct ones of global memory: what comes from L2 where L1 keeps all of it
  std::int64_t sectors_stored = 0;   // by each store and atomic: L1 keeps no store back
};

// Passes of one request; `addresses` of the lanes in the mask, `bytes` each.
int passes_of(const std::uint64_t* addresses, LaneMask lanes, int bytes, bool is_shared);

// What ptxas may make of loads of shared memory, an entry for each operation: n above 1 for the first of n words that one
// load fetches, 0 for the others of them, 1 for what stays alone.
std::vector<std::uint8_t> merged_loads(const KernelProgram& program);

// Counts one launch of one block.
class Counter {
 public:
  explicit Counter(const KernelProgram& program) : program_(&program), executions_(program.code.size()), lanes_(program.code.size()), merged_(merged_loads(program)) {}
  // An operation is about to be executed by these lanes.
  void note(Warp& warp, const Op& op, std::uint32_t pc, LaneMask lanes) {
    ++executions_[pc];
    lanes_[pc] += __builtin_popcount(lanes);
    if (op.access != nullptr && lanes != 0 && merged_[pc] > 0) note_access(warp, op, lanes, merged_[pc]);
  }
  Counts result();

 private:
  void note_access(Warp& warp, const Op& op, LaneMask lanes, int words);
  void note_request(Warp& warp, const Op& op, const std::uint64_t* addresses, LaneMask lanes, Space space, int bytes, bool is_store, bool is_atomic);
  void forget_repeats();

  const KernelProgram* program_;
  std::vector<std::int64_t> executions_;
  std::vector<std::int64_t> lanes_;
  std::vector<std::uint8_t> merged_;
  Counts counts_;
  std::vector<std::uint64_t> loaded_;  // sectors, some of them more than once
  std::size_t next_cleaning_ = 1u << 20;
};

}  // namespace tilewright::ptx
