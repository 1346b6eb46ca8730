// The machine that executes PTX: warps of 32 lanes, each with its own program counter, over rows of registers; blocks with
// shared memory; one flat list of operations a kernel, with the functions that it calls in front of it.
//
// Undefined values. A register that was never set, a byte that was never written and a division by zero give a value that
// is marked as undefined, lane by lane, and the mark follows the value. It is reported where it decides something: a
// branch, an address, an element of a tensor. So code that reads too much and drops it is no fault.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/memory.h"
#include "runtime/ptx/module.h"

namespace tilewright::ptx {

constexpr int lane_count = 32;
using LaneMask = std::uint32_t;  // bit l: lane l
constexpr LaneMask every_lane = 0xffffffffu;

// Byte offset of a register's 32 lanes in a warp's file, a multiple of 64. A predicate is one LaneMask. Row 0 is never
// written and stands for operands that an operation does not have.
using Row = std::uint32_t;
constexpr std::uint32_t row_unit = 64;

struct Warp;

// What the scheduler does with an operation.
enum class Step : std::uint8_t {
  Plain,     // `run`, then the next one
  Branch,    // to `target` for the lanes of the guard
  Call,      // to `target`; `dst` holds where each lane returns to
  Return,    // to what row `a` holds
  Exit,
  Trap,
  WarpSync,  // `run` once all lanes that the mask in row `d` names have come; 0: none named, those that are here
  Barrier,   // of the block: see BarrierSite
};

struct AccessSite;
enum class AccessKind : std::uint8_t { Load, Store, Atomic, AsyncCopy };

struct Op {
  using Run = void (*)(const Op& op, Warp& warp, LaneMask lanes);
  Run run = nullptr;
  Row dst = 0, a = 0, b = 0, c = 0, d = 0;
  Row guard = 0;
  std::uint32_t target = 0;
  std::uint32_t instruction = 0;  // in KernelProgram::places
  std::int32_t number = 0;        // a small constant of the operation: a table of bits, a mode, a rounding
  Step step = Step::Plain;
  bool is_guard_negated = false;
  bool marks_itself = false;  // `run` sets the undefined lanes of what it writes
  bool flushes = false;       // .ftz
  bool saturates = false;     // .sat of a float
  AccessKind access_kind = AccessKind::Load;  // where there is an `access`
  std::uint8_t access_bytes = 0;              // of a lane, the whole vector
  const AccessSite* access = nullptr;         // of ld, st, atom, red, cp.async: for those who count
  const void* object = nullptr;
};

// Of ld, st, atom, red, cp.async.
struct AccessSite {
  Space space = Space::Generic;
  std::int64_t offset = 0;
  int bytes = 4;            // of one element
  std::vector<Row> rows;    // what is loaded into or stored from, an element each; 0: dropped
  Space source_space = Space::Global;  // cp.async
  std::int64_t source_offset = 0;
  std::uint32_t used_bytes = ~0u;  // of a load; the others are neither looked at nor have a value
};

struct BarrierSite {
  bool is_aligned = true;   // all lanes of a warp come together
  bool waits = true;        // false: bar.arrive
  bool has_count = false;   // else all threads of the block
  bool negates = false;     // the predicate of a reduction
  enum class Reduction : std::uint8_t { None, Count, All, Any } reduction = Reduction::None;
};

// Where an instruction stands.
struct InstructionPlace {
  std::string text;  // "ld.global.f32"
  int line = 0;      // of the PTX
  SourceLine source;
};

enum class SpecialRow : std::uint8_t {
  TidX, TidY, TidZ, NtidX, NtidY, NtidZ, CtaidX, CtaidY, CtaidZ, NctaidX, NctaidY, NctaidZ, Lane, WarpIndex, Warps, LanemaskEq,
  LanemaskLt, LanemaskLe, LanemaskGt, LanemaskGe, Zero, One, DynamicShared, TotalShared
};

struct SharedVariable {
  std::string name;
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  Type type = Type::B8;
};

// A kernel for one shape of launch.
struct KernelProgram {
  std::string name;
  std::vector<Op> code;
  std::uint32_t entry = 0;
  std::vector<std::byte> image;       // the first bytes of each warp's file: constants
  std::uint32_t file_bytes = 0;
  std::vector<std::pair<SpecialRow, Row>> specials;
  std::vector<Row> registers;         // undefined when a thread begins
  std::vector<SharedVariable> shared;  // in order; gaps between them belong to nobody
  std::int64_t dynamic_begin = 0;
  std::int64_t shared_bytes = 0;       // static ones and gaps; dynamic memory follows
  std::int64_t static_bytes = 0;       // as a card counts them
  std::int64_t local_bytes = 0;        // a thread
  std::vector<Variable> parameters;
  std::vector<std::size_t> parameter_offsets;
  std::size_t parameter_bytes = 0;
  std::vector<InstructionPlace> places;
  std::vector<std::string> files;
  std::vector<std::shared_ptr<const void>> objects;  // what operations point at
};

struct Launch {
  const KernelProgram* program = nullptr;
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  std::optional<std::uint64_t> only;  // the one block of the grid that runs; none: all
  int threads() const { return static_cast<int>(block[0] * block[1] * block[2]); }
};

class FaultLog;
class Counter;

// What all blocks of a launch share.
struct Core {
  const Launch* launch = nullptr;
  Memory* memory = nullptr;
  FaultLog* faults = nullptr;
  std::string* printed = nullptr;
  std::int64_t steps_left = 0;
  std::uint64_t clock = 0;
  Counter* counter = nullptr;  // null: nothing is counted
};

struct Block {
  Core* core = nullptr;
  std::array<unsigned, 3> position{};
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> written;  // a byte of `shared` each
  std::vector<Warp> warps;
  std::vector<std::byte> file;
  struct BarrierState {
    int arrived = 0;
    int wanted = 0;  // 0: all
    int count = 0;   // of the lanes with a true predicate
    bool all = true, any = false;
  };
  std::array<BarrierState, 16> barriers{};
  int live_threads = 0;
};

// Where an undefined value comes from.
struct Origin {
  const Op* op = nullptr;
  int lane = 0;
  std::uint64_t address = 0;  // of an access
  Space space = Space::Register;
  const Op* parts = nullptr;  // what put a defined part beside it into one register
};

struct PendingCopy {
  int lane = 0;
  std::uint64_t group = 0;
  const Op* op = nullptr;
  std::uint64_t to = 0, from = 0;
  int bytes = 0;       // of the destination
  int from_bytes = 0;  // the rest is zeros
};

struct Warp {
  Block* block = nullptr;
  Core* core = nullptr;
  int index = 0;
  std::byte* rows = nullptr;
  LaneMask all = 0;      // lanes that the launch has
  LaneMask alive = 0;    // those that have not ended
  LaneMask blocked = 0;  // those that wait at a WarpSync or Barrier
  LaneMask arrived = 0;  // those that the barrier has counted
  std::array<std::uint32_t, lane_count> pc{};
  std::array<int, lane_count> barrier{};  // of those that wait at one
  LaneMask served = 0;   // those that have had their turn, where diverged lanes take turns
  std::vector<LaneMask> undefined;        // by row / row_unit
  std::vector<std::uint32_t> origin;      // of the undefined lanes: an index into origins
  std::vector<Origin> origins{1};
  LaneMask carry = 0;                     // the condition code of add.cc and its kin
  std::vector<std::byte> local;           // lane by lane
  std::vector<std::uint8_t> local_written;
  std::vector<PendingCopy> copies;        // cp.async
  std::array<std::uint64_t, lane_count> copy_group{};

  template <class T>
  T* row(Row at) {
    return reinterpret_cast<T*>(rows + at);
  }
  LaneMask& predicate(Row at) { return *reinterpret_cast<LaneMask*>(rows + at); }
  LaneMask& undefined_of(Row at) { return undefined[at / row_unit]; }
  std::uint32_t& origin_of(Row at) { return origin[at / row_unit]; }
  // Marks lanes of a row, all others of `lanes` as defined.
  void mark(Row at, LaneMask lanes, LaneMask bad, std::uint32_t from) {
    LaneMask& mask = undefined_of(at);
    mask = (mask & ~lanes) | (bad & lanes);
    if ((bad & lanes) != 0) origin_of(at) = from;
  }
  std::uint32_t new_origin(Origin from) {
    if (origins.size() > 4096) return 1;  // enough for any message
    origins.push_back(from);
    return static_cast<std::uint32_t>(origins.size() - 1);
  }
};

// Calls f(lane) for each lane of the mask.
template <class F>
inline void for_lanes(LaneMask lanes, F&& f) {
  if (lanes == every_lane) {
#ifndef __clang__  // which does not know it
#pragma GCC ivdep
#endif
    for (int lane = 0; lane < lane_count; ++lane) f(lane);
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) f(__builtin_ctz(lanes));
}

// Results of an operation are undefined where one of its operands is.
inline void propagate(const Op& op, Warp& warp, LaneMask lanes) {
  const LaneMask a = warp.undefined_of(op.a), b = warp.undefined_of(op.b), c = warp.undefined_of(op.c), d = warp.undefined_of(op.d);
  const LaneMask bad = (a | b | c | d) & lanes;
  LaneMask& mask = warp.undefined_of(op.dst);
  mask = (mask & ~lanes) | bad;
  if (bad != 0) warp.origin_of(op.dst) = warp.origin_of((a & lanes) != 0 ? op.a : (b & lanes) != 0 ? op.b : (c & lanes) != 0 ? op.c : op.d);
}

}  // namespace tilewright::ptx
