// Counts while a kernel runs. The steps themselves do not know of it: the scheduler shows it each one before and behind.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sim/machine.h"

namespace tilewright {

// ---- What one request costs; for tests too. `first` and `end`: the bytes of a thread.
struct ByteRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
};
struct SectorCount {
  std::int64_t sectors = 0;
  std::int64_t needed = 0;
};
// Sorts the ranges.
SectorCount sectors_of(std::vector<ByteRange>& ranges);
// Of atomics: updates of one element go one after the other, and in each pass over different elements its sectors count.
std::int64_t sectors_of_updates(std::vector<ByteRange> rest);
// Passes of one group of threads that goes over the banks together.
std::int64_t wavefronts_of(std::vector<std::int64_t>& words);

class Counter {
 public:
  explicit Counter(const KernelProgram& program);
  // The step that this warp takes next.
  void before(const WarpOp& op, const Warp& warp);
  // The step taken, and the lanes that were active in front of it.
  void behind(const WarpOp& op, const Warp& warp, LaneMask mask, const WarpOp* next);
  // Takes over what another SM counted.
  void merge(const Counter& other);
  KernelCounts counts() const;

 private:
  struct Step {
    std::int64_t warps = 0;
    std::int64_t threads = 0;
    std::int64_t divergent = 0;
    std::int32_t access = -1;  // its number
  };
  struct Stride {
    enum class State : std::uint8_t { Unknown, Same, Differs } state = State::Unknown;
    std::int64_t elements = 0;
    void see(std::int64_t distance);
    void merge(const Stride& other);
  };
  struct Tally {
    std::int64_t requests = 0, threads = 0, sectors = 0, needed_sectors = 0, wavefronts = 0, ideal_wavefronts = 0, most_on_one = 0;
    Stride stride;
    std::size_t tensor = 0;  // of global memory
  };
  struct Tensor {
    std::string name;
    std::int64_t element_bytes = 0;
    std::int64_t thread_bytes = 0, sector_bytes = 0;
    std::vector<std::uint8_t> touched;  // an element: 1 read, 2 written
  };

  void access(const WarpOp& op, const Warp& warp, const CountedAccess& access, Tally& tally);
  void box(const WarpOp& op, const Warp& warp, const CountedAccess& access, Tally& tally);
  std::size_t tensor_number(const std::string& name, Dtype dtype, std::int64_t elements);

  const KernelProgram& program_;
  std::vector<Step> steps_;  // as the code
  std::vector<Tally> tallies_;
  std::vector<Tensor> tensors_;
  std::vector<ByteRange> ranges_;  // of one request
  std::vector<std::int64_t> words_;
};

}  // namespace tilewright
