// The machine that the simulator models: warps of 32 lanes with a file of cells, blocks with shared memory, and the flat
// instruction list of a kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/plan.h"
#include "ir/scalar.h"
#include "runtime/sim/counts.h"

namespace tilewright {

constexpr int lane_count = 32;
using LaneMask = std::uint32_t;  // bit l: lane l
constexpr LaneMask every_lane = 0xffffffffu;

// Byte offset in a warp's file of cells. A cell holds one value a lane, or one for the warp where the value is uniform:
// f32 and narrower floats as float, f64 as double, integers sign- or zero-extended to 64 bits. A bool is always one
// LaneMask, all ones or none where it is uniform.
using Cell = std::uint32_t;

struct Operand {
  Cell cell = 0;
  Dtype dtype = Dtype::Index;
  bool is_uniform = false;
};

struct Warp;

// One step of a warp. `run` gives the step to go on with. Uniform operands are flagged by bit: 1 a, 2 b, 4 c, 8 dst.
struct WarpOp {
  using Run = const WarpOp* (*)(const WarpOp& op, Warp& warp);
  Run run = nullptr;
  Cell dst = 0;
  Cell a = 0;
  Cell b = 0;
  Cell c = 0;
  std::int32_t jump = 0;  // distance to the target in steps
  std::uint32_t statement = 0;
  std::uint8_t uniform = 0;
  std::uint8_t code = 0;  // an operator, a width
  Dtype dtype = Dtype::Index;
  Dtype from = Dtype::Index;  // of a conversion
  const void* object = nullptr;
};

enum class WarpState : std::uint8_t { Ready, Waiting, Done };
// What a waiting warp waits for. All but Barrier repeat their step when woken.
enum class Waits : std::uint8_t { Barrier, Mbarrier, Warpgroup, Cluster, Registers };

struct SimBlock;
struct SimCluster;
struct WarpClock;
class ClusterClocks;
class Shadow;
class GlobalMarks;
using Time = std::uint32_t;  // of runtime/sim/clocks.h

struct Warp {
  std::byte* cells = nullptr;
  LaneMask mask = 0;  // lanes that execute; never empty but inside a step
  LaneMask all = 0;   // lanes that exist
  WarpState state = WarpState::Ready;
  Waits waits = Waits::Barrier;
  const WarpOp* next = nullptr;
  const WarpOp* waits_at = nullptr;  // Waiting: the step
  SimBlock* block = nullptr;
  WarpClock* clock = nullptr;  // null: races are not looked for
  int index = 0;           // in the block
  int barrier = 0;         // Barrier: which
  int barrier_threads = 0; // Barrier: how many it is for
  int registers = 0;       // a thread has
  bool has_arrived = false;  // at the cluster's barrier, and has not waited for it
  std::uint32_t cluster_phase = 0;      // of the cluster's barrier that it arrived at
  std::uint32_t wgmma_issued = 0;       // since the launch, as the next two
  std::uint32_t wgmma_committed = 0;    // groups
  std::uint32_t wgmma_known = 0;        // groups whose end it has waited for
  std::array<std::uint32_t, 8> accumulator_group{};  // the last group that writes each accumulator
  std::uint32_t accumulators_touched = 0;            // bit a: registers of accumulator a were used since wgmma.fence
};

class FaultLog;
struct KernelProgram;
struct InstrSite;

constexpr int barrier_count = 16;
constexpr int warps_of_warpgroup = 4;

// When copies of the copy engine and cp.async land: at any time up to where someone waits for them.
enum class Landing : std::uint8_t { Random, Early, Late };

// What the steps of one SM share.
struct SimCore {
  FaultLog* faults = nullptr;
  std::vector<Warp*> ready;
  Landing landing = Landing::Random;
  bool has_error = false;
  std::int64_t error_site = 0;
  std::int64_t error_value = 0;
  std::uint64_t random = 1;  // state of next_random

  std::uint64_t next_random() {  // Marsaglia's xorshift64*
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return random * 0x2545f4914f6cdd1dull;
  }
};

// A barrier object in shared memory.
struct Mbarrier {
  bool is_initialised = false;
  std::int64_t expected = 0;  // arrivals a phase
  std::int64_t pending = 0;   // arrivals that this phase still lacks
  std::int64_t bytes = 0;     // that this phase still lacks; below 0 where they came before they were announced
  std::uint32_t phase = 0;    // phases completed
  std::uint32_t initialised_by = 0;  // party and time
  Time initialised_at = 0;
  std::uint32_t initialised_in = 0;  // statement
};

// A copy that was started and has not landed: a box by the copy engine.
struct PendingCopy {
  const InstrSite* site = nullptr;
  const WarpOp* op = nullptr;
  Warp* warp = nullptr;
  int lane = 0;
  bool is_store = false;
  std::array<std::int64_t, 5> coordinates{};
  std::int64_t shared_byte = 0;
  std::int64_t barrier = 0;   // load: the object, in each block that takes part
  std::uint32_t blocks = 1;   // load: bit r for the block of rank r
  std::uint32_t group = 0;    // store: the group of its thread
};

// One warp's cp.async.
struct PendingElements {
  const WarpOp* op = nullptr;
  LaneMask mask = 0;
  int bytes = 0;
  std::array<int, lane_count> read{};  // of these bytes; the rest is 0
  std::array<std::int64_t, lane_count> shared_byte{};
  std::array<const std::byte*, lane_count> source{};
  std::array<std::uint32_t, lane_count> group{};
};

// Groups of asynchronous copies of the lanes of one warp.
struct LaneGroups {
  std::array<std::uint32_t, lane_count> bulk{};  // closed groups of stores by the copy engine
  std::array<std::uint32_t, lane_count> bulk_used{};    // the last group that holds one
  std::array<std::uint32_t, lane_count> bulk_waited{};  // the last group waited for
  std::array<const WarpOp*, lane_count> bulk_op{};      // the last one
  std::array<std::uint32_t, lane_count> elements{};  // closed groups of cp.async
  std::vector<PendingElements> pending;  // cp.async
};

// A resident block.
struct SimBlock {
  const KernelProgram* program = nullptr;
  SimCore* core = nullptr;
  SimCluster* cluster = nullptr;
  int rank = 0;  // in the cluster
  std::array<std::int64_t, 3> position{};  // x, y, z
  std::vector<Mbarrier> mbarriers;
  std::vector<LaneGroups> groups;  // one a warp, where the program has asynchronous copies
  std::int64_t free_registers = 0;  // for setmaxnreg.inc
  std::vector<std::byte> shared;
  std::shared_ptr<Shadow> shadow;  // of `shared`; null where it is not checked
  std::vector<Warp> warps;
  std::vector<std::byte> cells;
  std::array<int, barrier_count> arrived_threads{};
  std::array<int, barrier_count> barrier_threads{};  // for how many those who wait have come
  int done_warps = 0;

  bool is_done() const { return done_warps == static_cast<int>(warps.size()); }
};

// Blocks that are resident together; a kernel without clusters has one block in each.
struct SimCluster {
  std::vector<SimBlock> blocks;
  std::shared_ptr<ClusterClocks> clocks;  // null where races are not looked for
  std::int64_t number = 0;
  std::vector<PendingCopy> pending;
  std::uint32_t barrier_phase = 0;  // of the cluster's barrier: times completed
  int barrier_arrived = 0;          // warps
  int live_warps = 0;
  int done_blocks = 0;
  bool is_empty = true;
};

// A tensor in global memory.
struct GlobalTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  std::byte* base = nullptr;
  std::vector<std::uint8_t> written;  // one an element; empty: all have a value, or it is not checked
  std::shared_ptr<GlobalMarks> marks;  // null where races are not looked for, or the kernel does not write it
};

// A place in memory that a statement names.
struct MemorySite {
  std::string name;
  std::string text;  // as the IR writes it
  Dtype dtype = Dtype::F32;
  std::int64_t elements = 0;
  bool is_shared = false;
  std::int64_t offset = 0;          // of a shared buffer, in bytes
  std::byte* base = nullptr;        // of a tensor
  std::uint8_t* written = nullptr;  // of a tensor, null where it is not checked
  GlobalMarks* marks = nullptr;     // of a tensor, null where races are not looked for
  std::vector<Operand> index;       // as written, for messages
};

// A register buffer; one row of lanes an element.
struct RegisterSite {
  std::string name;
  std::string text;
  Dtype dtype = Dtype::F32;
  Cell first = 0;
  std::uint32_t row_bytes = 0;
  std::int64_t elements = 1;
  Cell written = 0;  // a LaneMask an element
  bool is_checked = false;
  int accumulator = 0;  // number of an array that wgmma works on; 0: none
  std::vector<Operand> index;
};

// load.vN and store.vN: op.a is the memory's index, op.b the (uniform) index of the first register.
struct VectorSite {
  MemorySite memory;
  RegisterSite registers;
  int width = 1;
};

// A barrier object that a statement names.
struct BarrierSite {
  std::string name;
  std::string text;
  std::int64_t first = 0;  // number of the buffer's first object in the block
  std::int64_t elements = 0;
  Operand element;
  std::vector<Operand> index;
};

// A tensor map of the copy engine; axis 0 is the contiguous one.
struct MapInfo {
  std::string name;
  GlobalTensor* tensor = nullptr;
  int rank = 0;
  std::array<std::int64_t, 5> extent{1, 1, 1, 1, 1};
  std::array<std::int64_t, 5> box{1, 1, 1, 1, 1};
  int xor_bytes = 0;

  std::int64_t row_bytes() const { return box[0] * bytes_of(tensor->dtype); }
  std::int64_t bytes() const { return row_bytes() * box[1] * box[2] * box[3] * box[4]; }
};

// What an instruction with many operands works on; each row uses its part.
struct InstrSite {
  std::vector<Operand> operands;
  MemorySite memory;
  MemorySite source;  // cp.async
  BarrierSite barrier;
  std::vector<RegisterSite> registers;
  const MapInfo* map = nullptr;
  int n = 0;          // of wgmma
  Dtype dtype = Dtype::BF16;
  bool transposes_a = false;
  bool transposes_b = false;
};

// A loop around a statement, whose trips are kept for reports.
struct LoopName {
  std::string name;
  std::size_t number = 0;
};

struct StatementInfo {
  Span span;
  int ir_line = 0;   // in the printed plan; 0: not asked for
  std::string text;  // of an instruction: its name
  std::vector<LoopName> loops;
};

// ---- What the counters have to know of the steps.
struct CountedAccess {
  std::size_t step = 0;
  AccessKind kind = AccessKind::Load;
  const MemorySite* memory = nullptr;  // of a box: its side in shared memory
  const MapInfo* map = nullptr;        // of a box
  int width = 1;                       // elements a thread
  Span span;
};

struct CountedBranch {
  std::size_t step = 0;
  std::string text;
};

// The step is the one that stands for an operation; the others of it count as nothing.
struct CountedInstruction {
  std::size_t step = 0;
  std::string kind;
};

struct SharedBufferInfo {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> extents;
};

// A buffer of barrier objects.
struct ObjectBuffer {
  std::string name;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Where the cells of the thread's own names are.
struct ThreadCells {
  std::array<Cell, 3> thread{};
  Cell linear_thread = 0;
  Cell lane = 0;
  Cell warp = 0;
  std::array<Cell, 3> block{};
  Cell cluster_rank = 0;  // uniform, as `warp`
};

// A kernel compiled for one call: dims and addresses are constants in it.
struct KernelProgram {
  std::string name;
  std::vector<WarpOp> code;        // the last step ends the warp
  std::vector<std::byte> image;    // the first bytes of each warp's cells: constants
  std::uint32_t cell_bytes = 0;
  ThreadCells cells;
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  int block_rank = 1;
  int grid_rank = 1;
  std::int64_t shared_bytes = 0;
  std::int64_t mbarriers = 0;
  bool has_async_copies = false;
  // What the race check has to follow, and the unit of its marks: 1 << granule_shift bytes.
  bool has_element_copies = false;
  bool has_bulk_groups = false;
  bool has_wgmma = false;
  bool has_async_proxy = false;
  int granule_shift = 3;
  std::vector<SharedBufferInfo> shared_buffers;
  std::vector<ObjectBuffer> object_buffers;
  bool checks = true;
  bool is_independent = true;  // no block sees what another wrote
  std::vector<StatementInfo> statements;
  std::vector<CountedAccess> accesses;
  std::vector<CountedBranch> branches;
  std::vector<CountedInstruction> instructions;
  std::deque<MemorySite> memory_sites;
  std::deque<RegisterSite> register_sites;
  std::deque<VectorSite> vector_sites;
  std::deque<InstrSite> instr_sites;
  std::deque<MapInfo> maps;

  std::int64_t threads() const { return block[0] * block[1] * block[2]; }
  std::int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  std::int64_t cluster_size() const { return cluster[0] * cluster[1] * cluster[2]; }
  std::int64_t clusters() const { return blocks() / cluster_size(); }
};

// ---- Lanes of cells.
template <class T>
T* lanes(const Warp& warp, Cell cell) {
  return reinterpret_cast<T*>(warp.cells + cell);
}
inline LaneMask& mask_at(const Warp& warp, Cell cell) { return *lanes<LaneMask>(warp, cell); }

inline bool is_float_cell(Dtype dtype) { return is_float(dtype) && dtype != Dtype::F64; }

inline std::uint32_t bytes_of_cell(Dtype dtype, bool is_uniform) {
  if (dtype == Dtype::Bool || is_uniform) return 8;
  return is_float_cell(dtype) ? 4 * lane_count : 8 * lane_count;
}

template <class F>
void each_lane(LaneMask mask, F&& f) {
  if (mask == every_lane) {
    for (int lane = 0; lane < lane_count; ++lane) f(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
  }
}

// One lane through Scalar: the general way, for dtypes and operations that are not hot.
inline Scalar read_lane(const Warp& warp, Cell cell, Dtype dtype, bool is_uniform, int lane) {
  const int at = is_uniform ? 0 : lane;
  if (dtype == Dtype::Bool) return integer_scalar(mask_at(warp, cell) >> lane & 1);
  if (dtype == Dtype::F64) return real_scalar(lanes<double>(warp, cell)[at]);
  if (is_float(dtype)) return real_scalar(static_cast<double>(lanes<float>(warp, cell)[at]));
  return integer_scalar(lanes<std::int64_t>(warp, cell)[at]);
}
inline Scalar read_lane(const Warp& warp, const Operand& operand, int lane) {
  return read_lane(warp, operand.cell, operand.dtype, operand.is_uniform, lane);
}
inline void write_lane(const Warp& warp, Cell cell, Dtype dtype, int lane, Scalar value) {
  if (dtype == Dtype::Bool) {
    LaneMask& mask = mask_at(warp, cell);
    mask = value.i != 0 ? mask | 1u << lane : mask & ~(1u << lane);
  } else if (dtype == Dtype::F64) {
    lanes<double>(warp, cell)[lane] = value.f;
  } else if (is_float(dtype)) {
    lanes<float>(warp, cell)[lane] = static_cast<float>(value.f);
  } else {
    lanes<std::int64_t>(warp, cell)[lane] = value.i;
  }
}
// A value for all lanes.
inline void write_uniform(const Warp& warp, Cell cell, Dtype dtype, Scalar value) {
  if (dtype == Dtype::Bool) mask_at(warp, cell) = value.i != 0 ? every_lane : 0;
  else write_lane(warp, cell, dtype, 0, value);
}

inline const WarpOp* following(const WarpOp& op) { return &op + 1; }

// The warp does not run until it is woken, and then repeats the step.
inline const WarpOp* wait_at(const WarpOp& op, Warp& warp, Waits waits) {
  warp.state = WarpState::Waiting;
  warp.waits = waits;
  warp.waits_at = &op;
  return &op;
}
inline void wake(SimBlock& block, Waits waits) {
  for (Warp& warp : block.warps) {
    if (warp.state != WarpState::Waiting || warp.waits != waits) continue;
    warp.state = WarpState::Ready;
    block.core->ready.push_back(&warp);
  }
}

}  // namespace tilewright
