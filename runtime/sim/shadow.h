// What was last written and read where, and by whom: shared memory of a block, and tensors that a kernel writes.
#pragma once

#include <cstdlib>
#include <memory>

#include "runtime/sim/clocks.h"

namespace tilewright {

// Zeroed at no cost: pages that no one touches take no memory.
template <class T>
class ZeroArray {
 public:
  explicit ZeroArray(std::size_t count) : data_(static_cast<T*>(std::calloc(count > 0 ? count : 1, sizeof(T)))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  T& operator[](std::size_t n) { return data_.get()[n]; }
  T* at(std::size_t n) { return data_.get() + n; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T[], Free> data_;
};

// Use, Initialise: of a barrier object.
enum class Use : std::uint8_t { Read, Write, Update, Use, Initialise };

// Reads and atomics of one warp. Lanes that were at other times are kept where the newer ones do not know them; then the time
// is the oldest.
struct ReadMark {
  Time time;
  LaneMask lanes;
  std::uint32_t statement;
  bool is_plain;
  bool is_atomic;
};

struct WriteMark {
  Time time;
  std::uint16_t party;
  bool has_atomics;  // behind it
  std::uint32_t statement;
};

// 16 bytes, the unit of the copy engine and the tensor cores.
struct ChunkMark {
  Stamp write;
  std::array<Stamp, 4> reads;
  bool has_generic_writes;
  bool has_generic_reads;
};

// An access by the copy engine or a tensor core: whose knowledge counts (lane -1: any of the warp), and its stamp.
struct AsyncAccess {
  Warp* warp;
  const WarpOp* op;
  int lane;
  Party party;
  Time time;
};

class Shadow {
 public:
  Shadow(const KernelProgram& program, ClusterClocks& clocks, const SimBlock& block);

  // The lanes access an element each; those outside are left out. Gives the lanes that read what nothing has written.
  LaneMask access(Warp& warp, const WarpOp& op, const MemorySite& site, Use kind, LaneMask lanes, const std::int64_t* index, int step, int width = 1);
  // One lane, or several that do the same. False where nothing has been written.
  bool read(Warp& warp, const WarpOp& op, LaneMask lanes, std::int64_t byte, std::int64_t bytes);
  void write(Warp& warp, const WarpOp& op, int lane, std::int64_t byte, std::int64_t bytes, bool is_atomic = false);
  // cp.async: a write by a party of the lane.
  void write_as(Warp& warp, const WarpOp& op, int lane, Party party, Time time, std::int64_t byte, std::int64_t bytes);

  // One chunk. Gives false where a part of it has not been written.
  bool read_chunk(const AsyncAccess& access, std::int64_t byte);
  void write_chunk(const AsyncAccess& access, std::int64_t byte);

 private:
  LaneMask read_elements(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask lanes, const std::int64_t* index);
  bool read_granule(Warp& warp, const WarpOp& op, LaneMask lanes, std::size_t granule);
  void write_granule(Warp& warp, const WarpOp& op, int lane, std::size_t granule, bool is_atomic, Party party, Time time);
  void check_readers(Warp& warp, const WarpOp& op, int lane, std::size_t granule, bool is_atomic);
  [[gnu::cold]] void renew(const WarpClock& clock, ReadMark& mark, LaneMask lanes);
  bool has_unknown_lane(const WarpClock& clock, int lane, std::size_t warp, const ReadMark& mark) const;
  [[gnu::cold]] void race(Warp& warp, const WarpOp& op, int lane, Use kind, std::size_t granule, Party party, Time time, std::uint32_t statement, Use past);
  [[gnu::cold]] void race_of_chunk(const AsyncAccess& access, Use kind, std::int64_t byte, Party party, Time time, std::uint32_t statement, Use past, bool is_unfenced);
  ChunkMark& chunk_of(std::size_t granule) { return chunks_[granule >> (4 - shift_)]; }
  ReadMark& mark(std::size_t warp, std::size_t granule) { return reads_[warp * row_ + granule]; }

  const KernelProgram& program_;
  ClusterClocks& clocks_;
  const SimBlock& block_;
  int shift_;  // a granule has 1 << shift bytes
  std::size_t granules_;
  std::size_t row_;  // of reads_: a little longer, so that the marks of one granule do not meet in the cache
  std::size_t warps_;
  bool has_chunks_;
  ZeroArray<WriteMark> writes_;
  ZeroArray<ReadMark> reads_;  // warp by warp
  ZeroArray<ChunkMark> chunks_;
};

struct GlobalPlace {
  const std::string& name;
  std::int64_t element;
  std::string text() const { return name + "[" + std::to_string(element) + "]"; }
};

// A tensor in global memory that the kernel writes. Blocks of different clusters never know each other.
class GlobalMarks {
 public:
  explicit GlobalMarks(std::int64_t elements) : writes_(static_cast<std::size_t>(elements)), reads_(static_cast<std::size_t>(elements) * 2) {}

  void access(Warp& warp, const WarpOp& op, const MemorySite& site, Use kind, LaneMask lanes, const std::int64_t* index, int step, int width = 1);
  // By the copy engine.
  void access_async(const AsyncAccess& access, const GlobalTensor& tensor, Use kind, std::int64_t element);

 private:
  // Bit 63: atomic; from 40 the cluster + 1, from 24 the party, then the time since the cluster's start.
  struct Mark {
    std::uint64_t stamp;
    std::uint32_t statement;
  };
  void one(const AsyncAccess& access, Use kind, bool is_async, std::size_t element, const GlobalPlace& place);

  ZeroArray<Mark> writes_;
  ZeroArray<Mark> reads_;  // two an element: the oldest that is not known to the others, the newest
};

}  // namespace tilewright
