// The state of the tile interpreter and what it checks: initialisation, who wrote what, slots of pipes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "runtime/execute.h"
#include "runtime/memory.h"

namespace tilewright {

// Iterations of parallel loops are numbered as they start, across all loops, so whatever happens inside an iteration has
// a number from its own to that of the next iteration of the same loop. `stamp` is that of the innermost iteration,
// doubled, plus 1 for an atomic access.
using Stamp = std::uint64_t;

struct CheckedMemory : Memory {
  std::vector<std::byte> storage;        // of buffers and temporaries; tensors lie in the arguments
  std::vector<std::uint8_t> is_written;  // empty: defined from the start
  std::vector<Stamp> writers;            // empty: not watched
  std::vector<Stamp> readers;            // two different readers an element
  bool is_global = false;
};

using CheckedSite = Site<CheckedMemory>;

// A parallel axis that runs.
struct Level {
  Stamp base = 0;     // number of its first iteration
  Stamp current = 0;  // number of the iteration that runs
};

struct LoopState {
  std::vector<std::int64_t> order;  // Shuffled: the positions
  std::int64_t count = 0;
  std::int64_t position = 0;
  bool is_ordered = false;
};

enum class SlotState : std::uint8_t { Free, Filling, Full, InUse };

struct PipeState {
  std::string name;
  std::vector<SlotState> slots;
  std::int64_t acquired = 0, waited = 0, released = 0;  // counts
  Slot in = 0, out = 0;                                 // the slots of `p.in` and `p.out`
  std::vector<CheckedMemory*> buffers;
  bool is_declared = false;
};

struct ChainState {
  Dtype dtype = Dtype::F32;
  CombineOp op = CombineOp::Add;
  Scalar start, total, before;
  Stamp published_in = 0;
};

// Roles that each have a body of their own: they take turns, and one goes on until a verb of it would have to wait.
struct RoleGroup {
  struct Body {
    std::int32_t start = 0;     // distance from the instruction that begins the group
    const Ins* next = nullptr;  // where it goes on; null behind its end
  };
  std::vector<Body> bodies;
  std::size_t current = 0;
  std::size_t waiting = 0;  // turns since a verb last succeeded
  RoleGroup* outer = nullptr;

  // The next body that has not ended, behind the current one; null where there is none.
  const Ins* next_body();
  // The current body has to wait at `verb`: where to go on instead; null where all wait.
  const Ins* give_way(const Ins* verb);
};

struct InterpreterMachine : Machine {
  const InterpreterOptions* options = nullptr;
  RunReport* report = nullptr;
  std::string kernel;
  std::vector<Level> levels;
  RoleGroup* roles = nullptr;  // that run
  Stamp counter = 0;
  std::vector<std::unique_ptr<LoopState>> loops;
  std::int64_t steps = 0;
  std::mt19937_64 random;
  std::set<std::pair<const void*, int>> reported;

  Stamp current() const { return levels.empty() ? 0 : levels.back().current; }

  // True where the iteration of `stamp` is parallel to the one that runs.
  bool is_parallel(Stamp stamp) const {
    const Stamp number = stamp >> 1;
    if (levels.empty() || number >= levels.back().current) return false;
    for (const Level& level : levels) {
      if (number < level.base) return false;
      if (number < level.current) return true;
    }
    return false;
  }

  // One sentence, once for each `where` and kind.
  void fault(const void* where, int kind, const std::string& text);
  void offend(int check_id, std::int64_t value) {
    if (!report->error) report->error = ErrorHit{check_id, value};
  }
  void count_step() {
    if (++steps == options->most_steps) stop_too_long();
  }

  void check_read(const void* where, CheckedMemory& memory, std::int64_t element);
  void check_write(const void* where, CheckedMemory& memory, std::int64_t element, bool is_atomic);

 private:
  [[noreturn]] void stop_too_long() const;
};

// `A[3, 4]`
std::string element_name(const Memory& memory, std::int64_t element);

}  // namespace tilewright
