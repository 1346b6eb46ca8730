// What a simulated launch did, counted exactly: every block and edge tile included, whatever the order.
//
// A *request* is one warp executing one access with at least one thread. The definitions are those of the counters of sm_90:
//
//   requests, sectors   l1tex__t_requests / l1tex__t_sectors_pipe_lsu_mem_global_op_{ld, st, atom or red, ldgsts}.sum
//                       of atomics, threads that meet on one element go in passes, each with sectors of its own, as these counters have it
//   wavefronts          l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld, st}.sum; above the ideal: bank conflicts
//   threads of a kind   smsp__sass_thread_inst_executed_op_{fadd, fmul, ffma, …}_pred_on.sum, for float arithmetic
//
// They count what the IR executes: where an assembler merges, hoists or drops an access, its count is lower.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/span.h"

namespace tilewright {

// ElementCopy: cp.async, its side in global memory. BoxLoad, BoxStore: the copy engine, a request a box.
enum class AccessKind : std::uint8_t { Load, Store, Atomic, ElementCopy, BoxLoad, BoxStore };
std::string_view name_of(AccessKind kind);

// One place in the kernel that reads or writes memory.
struct AccessCounts {
  AccessKind kind = AccessKind::Load;
  bool is_shared = false;
  std::string buffer;
  std::string text;     // as the thread stage writes it
  Span span;            // of the access in the source that the plan was made from; may be unknown
  Span statement;       // around it
  int ir_line = 0;      // in the text that print() gives for the plan
  int bytes = 0;        // that one thread moves at a time; of a box: all of it
  int width = 1;        // elements, likewise
  std::int64_t requests = 0;
  std::int64_t threads = 0;           // over all requests
  // Global memory. Sectors of 32 bytes that the requests touch, each counted once a request, and the fewest that would hold
  // as many different bytes.
  std::int64_t sectors = 0;
  std::int64_t needed_sectors = 0;
  // Shared memory: passes over its 32 banks of 4 bytes, and how many there would be without conflicts. Threads go in groups of
  // 128 bytes: 32 of up to 4 bytes, 16 of 8, 8 of 16. A group takes as many passes as a bank has different words to give.
  std::int64_t wavefronts = 0;
  std::int64_t ideal_wavefronts = 0;
  std::int64_t most_on_one = 0;  // atomics: the largest number of a request's threads on one element, summed over requests
  // Elements between the threads of a pair (lanes 2n and 2n + 1), where it is the same for all.
  std::optional<std::int64_t> lane_stride;
};

// An `if`, or a loop whose trips differ between threads: warps that came by, and those that went both ways.
struct BranchCounts {
  Span span;
  int ir_line = 0;
  std::string text;
  std::int64_t executed = 0;
  std::int64_t divergent = 0;
};

// `f32 fma`, `integer add`, `convert`, `barrier.block`, …
struct InstructionCounts {
  std::string kind;
  std::int64_t warps = 0;    // that executed one
  std::int64_t threads = 0;  // that did
};

// Traffic of a tensor between the SMs' L1 and what lies behind, in both directions, beside what a perfect cache would move:
// each element that was read or written, once each.
struct TensorCounts {
  std::string name;
  std::int64_t thread_bytes = 0;      // that threads asked for, also where several asked for one
  std::int64_t sector_bytes = 0;      // of the sectors requested
  std::int64_t compulsory_bytes = 0;
};

struct KernelCounts {
  std::string kernel;
  std::vector<AccessCounts> accesses;  // in the order of the program
  std::vector<BranchCounts> branches;
  std::vector<InstructionCounts> instructions;  // by kind, in alphabetical order
  std::vector<TensorCounts> tensors;

  std::int64_t warp_instructions() const;
  std::int64_t thread_instructions() const;
};

}  // namespace tilewright
