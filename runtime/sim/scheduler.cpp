// One Sm object a modelled SM; each runs on its own, or they take turns where blocks see each other's memory.
#include "runtime/sim/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

struct StepLimit {
  std::atomic<std::int64_t> taken{0};
  std::int64_t most = 0;  // 0: none

  void take(std::int64_t steps) {
    const std::int64_t all = taken.fetch_add(steps, std::memory_order_relaxed) + steps;
    if (most > 0 && all > most) throw UserError({}, fmt::format("the simulator stopped after {} steps", most), "take smaller sizes, or allow more steps");
  }
};

class Sm {
 public:
  Sm(const KernelProgram& program, std::int64_t number, std::int64_t sms, std::int64_t room, std::uint64_t seed, StepLimit& limit)
      : program_(program), next_block_(number), stride_(sms), limit_(limit) {
    core_.faults = &faults_;
    core_.random = (seed * 0x9e3779b97f4a7c15ull) ^ (static_cast<std::uint64_t>(number + 1) * 0xbf58476d1ce4e5b9ull);
    if (core_.random == 0) core_.random = 1;
    blocks_.resize(static_cast<std::size_t>(std::min(room, (program.blocks() - number + sms - 1) / sms)));
    for (auto& block : blocks_) {
      block = std::make_unique<SimBlock>();
      prepare(*block);
    }
    for (auto& block : blocks_) start(*block);
  }

  // Runs one warp for a while; false where all blocks are through.
  bool slice() {
    if (ready_.empty() && !resolve_deadlock()) return false;
    const std::uint64_t random = core_.next_random();
    const auto pick = static_cast<std::size_t>((random >> 32) % ready_.size());
    Warp& warp = *ready_[pick];
    const std::int64_t most = std::int64_t{8} << (random % 11);
    std::int64_t left = most;
    const WarpOp* next = warp.next;
    while (left > 0 && warp.state == WarpState::Ready) {
      next = next->run(*next, warp);
      --left;
    }
    warp.next = next;
    limit_.take(most - left);
    if (warp.state == WarpState::Ready) return true;
    ready_[pick] = ready_.back();
    ready_.pop_back();
    if (warp.state == WarpState::Done) finish(warp);
    else arrive(warp);
    return !ready_.empty() || has_waiting();
  }

  const SimCore& core() const { return core_; }
  const FaultLog& faults() const { return faults_; }

 private:
  // What stays the same for every block that runs in this place.
  void prepare(SimBlock& block) {
    const std::int64_t threads = program_.threads();
    const auto warps = static_cast<std::size_t>((threads + lane_count - 1) / lane_count);
    block.program = &program_;
    block.core = &core_;
    block.shared.resize(static_cast<std::size_t>(program_.shared_bytes));
    if (program_.checks) block.written.resize(block.shared.size());
    block.warps.resize(warps);
    // Aligned for vector instructions.
    block.cells.resize(program_.cell_bytes * warps + 64);
    const auto start = reinterpret_cast<std::uintptr_t>(block.cells.data());
    std::byte* cells = block.cells.data() + ((start + 63) / 64 * 64 - start);
    for (std::size_t n = 0; n < warps; ++n) {
      Warp& warp = block.warps[n];
      warp.cells = cells + n * program_.cell_bytes;
      warp.block = &block;
      warp.index = static_cast<int>(n);
      const std::int64_t lanes_left = threads - static_cast<std::int64_t>(n) * lane_count;
      warp.all = lanes_left >= lane_count ? every_lane : (1u << lanes_left) - 1;
      std::memcpy(warp.cells, program_.image.data(), program_.image.size());
      for (int lane = 0; lane < lane_count; ++lane) {
        const std::int64_t linear = static_cast<std::int64_t>(n) * lane_count + lane;
        const std::int64_t position[3] = {linear % program_.block[0], linear / program_.block[0] % program_.block[1],
                                          linear / (program_.block[0] * program_.block[1])};
        for (std::size_t axis = 0; axis < 3; ++axis) lanes<std::int64_t>(warp, program_.cells.thread[axis])[lane] = position[axis];
        lanes<std::int64_t>(warp, program_.cells.linear_thread)[lane] = linear;
        lanes<std::int64_t>(warp, program_.cells.lane)[lane] = lane;
      }
      *lanes<std::int64_t>(warp, program_.cells.warp) = static_cast<std::int64_t>(n);
    }
  }

  void start(SimBlock& block) {
    if (next_block_ >= program_.blocks()) {
      block.done_warps = -1;  // empty
      return;
    }
    const std::int64_t number = next_block_;
    next_block_ += stride_;
    block.position = {number % program_.grid[0], number / program_.grid[0] % program_.grid[1], number / (program_.grid[0] * program_.grid[1])};
    std::fill(block.shared.begin(), block.shared.end(), std::byte{0xa5});
    std::fill(block.written.begin(), block.written.end(), std::uint8_t{0});
    block.arrived_threads.fill(0);
    block.done_warps = 0;
    for (Warp& warp : block.warps) {
      for (std::size_t axis = 0; axis < 3; ++axis) *lanes<std::int64_t>(warp, program_.cells.block[axis]) = block.position[axis];
      warp.mask = warp.all;
      warp.state = WarpState::Ready;
      warp.next = program_.code.data();
      ready_.push_back(&warp);
    }
  }

  void finish(Warp& warp) {
    SimBlock& block = *warp.block;
    if (++block.done_warps == static_cast<int>(block.warps.size())) start(block);
  }

  void arrive(Warp& warp) {
    SimBlock& block = *warp.block;
    const int wanted = warp.barrier_threads > 0 ? warp.barrier_threads : static_cast<int>(program_.threads());
    int& arrived = block.arrived_threads[static_cast<std::size_t>(warp.barrier)];
    // A partial warp counts as whole for a named barrier, whose count is of whole warps.
    arrived += warp.barrier_threads > 0 ? lane_count : __builtin_popcount(warp.all);
    if (arrived < wanted) return;
    arrived = 0;
    for (Warp& other : block.warps) {
      if (other.state != WarpState::Waiting || other.barrier != warp.barrier) continue;
      other.state = WarpState::Ready;
      ready_.push_back(&other);
    }
  }

  bool has_waiting() const {
    return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& block) { return block->done_warps >= 0; });
  }

  // Every warp waits for another: reported, and the blocks are given up. False where nothing is left to run.
  bool resolve_deadlock() {
    for (auto& block : blocks_) {
      if (block->done_warps < 0) continue;
      report_deadlock(*block);
      start(*block);
    }
    return !ready_.empty();
  }

  void report_deadlock(SimBlock& block) {
    const Warp* first = nullptr;
    std::string others;
    int waiting = 0;
    for (const Warp& warp : block.warps) {
      if (warp.state == WarpState::Waiting && first == nullptr) first = &warp;
      waiting += warp.state == WarpState::Waiting ? 1 : 0;
    }
    if (first == nullptr) internal_error("a block without a warp that runs or waits");
    const WarpOp& at = first->next[-1];
    for (const Warp& warp : block.warps) {
      const bool is_done = warp.state == WarpState::Done;
      const WarpOp& its = warp.next[is_done ? 0 : -1];
      if (!others.empty() || (!is_done && &its == &at)) continue;
      others = is_done ? fmt::format("{} ended without it", threads_text(warp, warp.all))
                       : fmt::format("{} wait at `{}` of {}", threads_text(warp, warp.all), program_.statements[its.statement].text, place_text(program_, its.statement));
    }
    if (others.empty()) others = "no other thread comes by";
    faults_.add(*first, at, FaultKind::Deadlock, 1, [&](int) {
      return fmt::format("deadlock: {} of {} wait at `{}` for ever ({} of {} warps); {}", threads_text(*first, first->all), block_text(block),
                         program_.statements[at.statement].text, waiting, block.warps.size(), others);
    });
  }

  const KernelProgram& program_;
  SimCore core_;
  FaultLog faults_;
  std::vector<std::unique_ptr<SimBlock>> blocks_;
  std::vector<Warp*> ready_;
  std::int64_t next_block_;
  std::int64_t stride_;
  StepLimit& limit_;
};

void run_side_by_side(std::vector<std::unique_ptr<Sm>>& sms) {
  const std::size_t workers = std::min<std::size_t>(sms.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::exception_ptr> failures(workers);
  const auto work = [&](std::size_t worker) {
    try {
      for (std::size_t n = worker; n < sms.size(); n += workers)
        while (sms[n]->slice()) {
        }
    } catch (...) {
      failures[worker] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
  work(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

void run_in_turns(std::vector<std::unique_ptr<Sm>>& sms, std::uint64_t seed) {
  SimCore order;
  order.random = seed * 0x94d049bb133111ebull | 1;
  std::vector<Sm*> running;
  for (const auto& sm : sms) running.push_back(sm.get());
  while (!running.empty()) {
    const auto pick = static_cast<std::size_t>(order.next_random() >> 32) % running.size();
    if (running[pick]->slice()) continue;
    running[pick] = running.back();
    running.pop_back();
  }
}

}  // namespace

std::int64_t resident_blocks(std::int64_t threads, std::int64_t shared_bytes) {
  const std::int64_t whole_warps = (threads + lane_count - 1) / lane_count * lane_count;
  return std::max<std::int64_t>(1, std::min({blocks_of_sm, threads_of_sm / whole_warps, shared_bytes_of_sm / (shared_bytes + 1024)}));
}

LaunchResult launch(const KernelProgram& program, const SimulatorOptions& options, std::uint64_t seed, std::int64_t steps_left, FaultLog& faults) {
  LaunchResult result;
  if (program.blocks() == 0) return result;
  if (program.shared_bytes > shared_bytes_of_block)
    throw UserError({}, fmt::format("kernel `{}` needs {} bytes of shared memory, and a block has {} at most", program.name, program.shared_bytes, shared_bytes_of_block));
  StepLimit limit;
  limit.most = steps_left;
  const std::int64_t count = std::min<std::int64_t>(std::max(1, options.sms), program.blocks());
  std::vector<std::unique_ptr<Sm>> sms;
  for (std::int64_t n = 0; n < count; ++n)
    sms.push_back(std::make_unique<Sm>(program, n, count, resident_blocks(program.threads(), program.shared_bytes), seed, limit));
  if (program.is_independent) run_side_by_side(sms);
  else run_in_turns(sms, seed);
  for (const auto& sm : sms) {
    faults.merge(sm->faults());
    if (!sm->core().has_error || result.has_error) continue;
    result.has_error = true;
    result.error = {static_cast<int>(sm->core().error_site), sm->core().error_value};
  }
  result.steps = limit.taken.load();
  return result;
}

}  // namespace tilewright
