// What the PTX machine found: one entry an instruction and kind of fault, with the first offender and a count.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/ptx/machine.h"

namespace tilewright::ptx {

enum class FaultKind : std::uint8_t { OutOfRange, NotWritable, Misaligned, Undefined, Divergent, Deadlock, Trap };

class FaultLog {
 public:
  // `sentence` is asked for the text of the first offender only.
  void add(const Warp& warp, const Op& op, FaultKind kind, LaneMask lanes, const std::function<std::string(int lane)>& sentence);
  std::vector<std::string> sentences(std::size_t most = 20) const;
  bool is_empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string text;
    std::int64_t count = 0;
  };
  std::map<std::pair<std::uint32_t, FaultKind>, Entry> entries_;  // by the instruction's number
};

// Thrown after a fault that ends the launch; the log has it.
struct Stopped {};

// ---- Pieces of sentences.
std::string place_text(const KernelProgram& program, const Op& op);  // `hand.cu line 33`, or `kernel k, line 57 of its PTX`
std::string thread_text(const Warp& warp, int lane);                 // `thread (3, 0) of block (1, 2)`
std::string threads_text(const Warp& warp, LaneMask lanes);          // `threads (0, 0) to (15, 1)`, without the block
std::string block_text(const Block& block);
std::string origin_text(const Warp& warp, Row row);  // `the value that line 12 read from …`

// ---- Faults of accesses.
[[gnu::cold]] void report_outside(Warp& warp, const Op& op, Space space, std::uint64_t address, int bytes, int lane, bool is_store);
[[gnu::cold]] void report_not_writable(Warp& warp, const Op& op, const Region& region, int lane);
[[gnu::cold]] void report_misaligned(Warp& warp, const Op& op, Space space, std::uint64_t address, int bytes, int lane, bool is_store);
// An undefined value decides something: `what` is "the address of this access", "which way thread … goes".
[[gnu::cold]] void report_undefined(Warp& warp, const Op& op, Row row, LaneMask lanes, const std::string& what);

}  // namespace tilewright::ptx
