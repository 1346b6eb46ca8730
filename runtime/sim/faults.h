// What the simulator found: one entry a step and kind of fault, with the first offender and a count.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/sim/machine.h"

namespace tilewright {

enum class FaultKind : std::uint8_t { OutOfRange, Unwritten, Misaligned, Race, Unfenced, Accumulator, Divergent, Participation, Ended, Registers, Deadlock, BadStep };

class FaultLog {
 public:
  // `sentence` is asked for the text of the first lane only.
  void add(const Warp& warp, const WarpOp& op, FaultKind kind, LaneMask lanes, const std::function<std::string(int lane)>& sentence);
  // A fault of the kernel as a whole.
  void add(FaultKind kind, std::string sentence);
  // Takes over the faults of another SM: the text of the first stays, the counts add up.
  void merge(const FaultLog& other);
  // In the order of the program. `most`: how many, the rest is counted.
  std::vector<std::string> sentences(std::size_t most = 20) const;

 private:
  struct Key {
    const WarpOp* op;  // null: of the kernel
    FaultKind kind;
    std::size_t number;  // of the kernel's
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    std::string text;
    std::int64_t count = 0;
  };
  std::map<Key, Entry> entries_;
};

// ---- Pieces of sentences.
std::string thread_text(const Warp& warp, int lane);          // `thread (3, 0) of block (1, 2)`
std::string threads_text(const Warp& warp, LaneMask lanes);   // `threads (0, 0) to (15, 1)`, without the block
std::string block_text(const SimBlock& block);
std::string place_text(const KernelProgram& program, std::uint32_t statement);  // `line 7, IR line 21`, or the kernel without lines
std::string indices_text(const Warp& warp, const std::vector<Operand>& index, int lane);  // `[3, 17]`

// ---- Faults of accesses.
[[gnu::cold]] void report_outside(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask lanes, bool is_store);
[[gnu::cold]] void report_unwritten(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask lanes);
[[gnu::cold]] void report_outside(Warp& warp, const WarpOp& op, const RegisterSite& site, LaneMask lanes, bool is_store);
[[gnu::cold]] void report_unwritten(Warp& warp, const WarpOp& op, const RegisterSite& site, LaneMask lanes);
[[gnu::cold]] void report_misaligned(Warp& warp, const WarpOp& op, const VectorSite& site, LaneMask lanes, bool is_store);
// No warp of the block can go on: who waits for what.
void report_deadlock(FaultLog& faults, const SimBlock& block);
// An instruction that all lanes of a warp must reach together, reached by some.
[[gnu::cold]] void report_divergent(Warp& warp, const WarpOp& op);

}  // namespace tilewright
