// One Sm object a modelled SM; each runs on its own, or they take turns where blocks see each other's memory.
#include "runtime/sim/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "ir/diagnostic.h"
#include "runtime/sim/clusters.h"
#include "runtime/sim/copies.h"
#include "runtime/sim/counter.h"
#include "runtime/sim/race_report.h"

namespace tilewright {

namespace {

constexpr int spread_sms = 16;

struct StepLimit {
  std::atomic<std::int64_t> taken{0};
  std::int64_t most = 0;  // 0: none

  void take(std::int64_t steps) {
    const std::int64_t all = taken.fetch_add(steps, std::memory_order_relaxed) + steps;
    if (most > 0 && all > most) throw UserError({}, fmt::format("the simulator stopped after {} steps", most), "take smaller sizes, or allow more steps");
  }
};

// Blocks are resident in clusters; a kernel without clusters has one block in each.
class Sm {
 public:
  Sm(const KernelProgram& program, std::int64_t number, std::int64_t sms, std::int64_t room, std::uint64_t seed, StepLimit& limit, bool counts)
      : program_(program), next_cluster_(number), stride_(sms), limit_(limit) {
    core_.faults = &faults_;
    if (counts) counter_.emplace(program);
    core_.random = (seed * 0x9e3779b97f4a7c15ull) ^ (static_cast<std::uint64_t>(number + 1) * 0xbf58476d1ce4e5b9ull);
    if (core_.random == 0) core_.random = 1;
    order_ = order_of(seed);
    core_.landing = landing_of(seed);
    clusters_.resize(static_cast<std::size_t>(std::min(room, (program.clusters() - number + sms - 1) / sms)));
    for (auto& cluster : clusters_) {
      cluster = std::make_unique<SimCluster>();
      prepare(*cluster);
    }
    for (auto& cluster : clusters_) start(*cluster);
  }

  // Runs one warp for a while; false where all blocks are through.
  bool slice() {
    if (core_.ready.empty() && !land_one() && !resolve_deadlock()) return false;
    if (core_.ready.empty()) return true;
    const std::uint64_t random = core_.next_random();
    if (core_.landing == Landing::Random && (random >> 20 & 3) == 0) land_one();
    const std::size_t pick = choose(random >> 32);
    Warp& warp = *core_.ready[pick];
    const std::int64_t most = std::int64_t{8} << (random % 11);
    std::int64_t left = most;
    const WarpOp* next = warp.next;
    if (counter_)
      for (; left > 0 && warp.state == WarpState::Ready; --left) next = counted_step(*next, warp);
    else
      for (; left > 0 && warp.state == WarpState::Ready; --left) next = next->run(*next, warp);
    warp.next = next;
    limit_.take(most - left);
    if (warp.state == WarpState::Ready) return true;
    // A step may have woken others, who stand behind.
    core_.ready[pick] = core_.ready.back();
    core_.ready.pop_back();
    if (warp.state == WarpState::Done) finish(warp);
    else if (warp.waits == Waits::Barrier) arrive(warp);
    return !core_.ready.empty() || has_waiting();
  }

  const SimCore& core() const { return core_; }
  Counter& counter() { return *counter_; }
  const FaultLog& faults() const { return faults_; }

 private:
  const WarpOp* counted_step(const WarpOp& op, Warp& warp) {
    const LaneMask mask = warp.mask;
    counter_->before(op, warp);
    const WarpOp* next = op.run(op, warp);
    counter_->behind(op, warp, mask, next);
    return next;
  }

  // What stays the same for every cluster that runs in this place.
  void prepare(SimCluster& cluster) {
    cluster.blocks.resize(static_cast<std::size_t>(program_.cluster_size()));
    for (std::size_t rank = 0; rank < cluster.blocks.size(); ++rank) {
      SimBlock& block = cluster.blocks[rank];
      block.cluster = &cluster;
      block.rank = static_cast<int>(rank);
      prepare(block);
    }
    if (!program_.checks) return;
    const std::size_t warps = cluster.blocks.front().warps.size();
    cluster.clocks = std::make_shared<ClusterClocks>(program_, warps);
    for (std::size_t rank = 0; rank < cluster.blocks.size(); ++rank) {
      SimBlock& block = cluster.blocks[rank];
      block.shadow = std::make_shared<Shadow>(program_, *cluster.clocks, block);
      for (std::size_t n = 0; n < warps; ++n) block.warps[n].clock = &cluster.clocks->warp(rank * warps + n);
    }
  }

  void prepare(SimBlock& block) {
    const std::int64_t threads = program_.threads();
    const auto warps = static_cast<std::size_t>((threads + lane_count - 1) / lane_count);
    block.program = &program_;
    block.core = &core_;
    block.shared.resize(static_cast<std::size_t>(program_.shared_bytes));
    block.mbarriers.resize(static_cast<std::size_t>(program_.mbarriers));
    if (program_.has_async_copies) block.groups.resize(warps);
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
      *lanes<std::int64_t>(warp, program_.cells.cluster_rank) = block.rank;
    }
  }

  void start(SimCluster& cluster) {
    cluster.is_empty = next_cluster_ >= program_.clusters();
    if (cluster.is_empty) return;
    const std::int64_t number = next_cluster_;
    next_cluster_ += stride_;
    cluster.number = number;
    if (cluster.clocks) cluster.clocks->restart(largest_group(cluster));
    cluster.pending.clear();
    cluster.barrier_phase = 0;
    cluster.barrier_arrived = 0;
    cluster.live_warps = 0;
    cluster.done_blocks = 0;
    std::array<std::int64_t, 3> across{};
    for (std::size_t axis = 0; axis < 3; ++axis) across[axis] = program_.grid[axis] / program_.cluster[axis];
    const std::array<std::int64_t, 3> first = {number % across[0], number / across[0] % across[1], number / (across[0] * across[1])};
    for (SimBlock& block : cluster.blocks) {
      const std::int64_t rank = block.rank;
      const std::array<std::int64_t, 3> inside = {rank % program_.cluster[0], rank / program_.cluster[0] % program_.cluster[1],
                                                  rank / (program_.cluster[0] * program_.cluster[1])};
      for (std::size_t axis = 0; axis < 3; ++axis) block.position[axis] = first[axis] * program_.cluster[axis] + inside[axis];
      start(block);
    }
  }

  // Of any group or phase so far.
  static Time largest_group(const SimCluster& cluster) {
    Time largest = 0;
    for (const SimBlock& block : cluster.blocks) {
      for (const Mbarrier& object : block.mbarriers) largest = std::max(largest, object.phase + 1);
      for (const Warp& warp : block.warps) largest = std::max(largest, warp.wgmma_committed + 1);
      for (const LaneGroups& groups : block.groups)
        for (std::size_t lane = 0; lane < lane_count; ++lane) largest = std::max({largest, groups.bulk[lane] + 1, groups.elements[lane] + 1});
    }
    return largest;
  }

  void start(SimBlock& block) {
    std::fill(block.shared.begin(), block.shared.end(), std::byte{0xa5});
    std::fill(block.mbarriers.begin(), block.mbarriers.end(), Mbarrier{});
    for (LaneGroups& groups : block.groups) {
      groups.bulk.fill(0);
      groups.bulk_used.fill(0);
      groups.bulk_waited.fill(0);
      groups.elements.fill(0);
      groups.pending.clear();
    }
    block.arrived_threads.fill(0);
    block.done_warps = 0;
    block.free_registers = 0;
    block.cluster->live_warps += static_cast<int>(block.warps.size());
    for (Warp& warp : block.warps) {
      for (std::size_t axis = 0; axis < 3; ++axis) *lanes<std::int64_t>(warp, program_.cells.block[axis]) = block.position[axis];
      warp.mask = warp.all;
      warp.state = WarpState::Ready;
      warp.registers = static_cast<int>(registers_of_block / program_.threads() / 8 * 8);
      warp.has_arrived = false;
      warp.wgmma_issued = warp.wgmma_committed = warp.wgmma_known = 0;
      warp.accumulator_group.fill(0);
      warp.accumulators_touched = ~0u;
      warp.next = program_.code.data();
      core_.ready.push_back(&warp);
    }
  }

  void finish(Warp& warp) {
    SimBlock& block = *warp.block;
    SimCluster& cluster = *block.cluster;
    check_copies_at_end(warp);
    ++block.done_warps;
    if (ClusterClocks* clocks = cluster.clocks.get(); clocks != nullptr) {
      clocks->release(*warp.clock, warp.all, clocks->at_end(static_cast<std::size_t>(block.rank)));
      const std::optional<Stamp> visit = block.is_done() ? clocks->unknown_visit(static_cast<std::size_t>(block.rank)) : std::nullopt;
      if (visit) report_early_end(*clocks, warp, *visit);
    }
    leave_cluster(warp);
    if (block.is_done() && ++cluster.done_blocks == static_cast<int>(cluster.blocks.size())) start(cluster);
  }

  void arrive(Warp& warp) {
    SimBlock& block = *warp.block;
    const int wanted = warp.barrier_threads > 0 ? warp.barrier_threads : static_cast<int>(program_.threads());
    int& arrived = block.arrived_threads[static_cast<std::size_t>(warp.barrier)];
    int& agreed = block.barrier_threads[static_cast<std::size_t>(warp.barrier)];
    if (wanted % lane_count != 0 && warp.barrier_threads > 0)
      report_barrier(warp, fmt::format("for {} threads, which are no whole warps", wanted));
    else if (arrived > 0 && wanted != agreed)
      report_barrier(warp, fmt::format("for {} threads while others wait at it for {}", wanted, agreed));
    agreed = wanted;
    // A partial warp counts as whole for a named barrier, whose count is of whole warps.
    arrived += warp.barrier_threads > 0 ? lane_count : __builtin_popcount(warp.all);
    ClusterClocks* clocks = block.cluster->clocks.get();
    Time* handed_on = clocks != nullptr ? clocks->barrier(static_cast<std::size_t>(block.rank), static_cast<std::size_t>(warp.barrier)) : nullptr;
    if (clocks != nullptr) clocks->release(*warp.clock, warp.all, handed_on);
    if (arrived < wanted) return;
    arrived = 0;
    for (Warp& other : block.warps) {
      if (other.state != WarpState::Waiting || other.waits != Waits::Barrier || other.barrier != warp.barrier) continue;
      other.state = WarpState::Ready;
      core_.ready.push_back(&other);
      if (clocks != nullptr) clocks->acquire_all(*other.clock, handed_on);
    }
    if (clocks != nullptr) clocks->clear(handed_on);
  }

  void report_barrier(Warp& warp, const std::string& what) {
    faults_.add(warp, *warp.waits_at, FaultKind::Participation, 1, [&](int) {
      return fmt::format("{} of {} wait at barrier {} {}", threads_text(warp, warp.all), block_text(*warp.block), warp.barrier, what);
    });
  }

  bool has_waiting() const {
    return std::any_of(clusters_.begin(), clusters_.end(), [](const auto& cluster) { return !cluster->is_empty; });
  }

  // Which warp runs next: any, or mostly the first or the last of the list, so that one is far ahead or far behind.
  std::size_t choose(std::uint64_t random) const {
    const std::size_t count = core_.ready.size();
    const std::size_t any = random % count;
    if (order_ == Order::Any || (random >> 20 & 15) == 0) return any;
    const auto is_before = [](const Warp* a, const Warp* b) { return std::pair(a->block->rank, a->index) < std::pair(b->block->rank, b->index); };
    const auto found = order_ == Order::FirstAhead ? std::min_element(core_.ready.begin(), core_.ready.end(), is_before)
                                                   : std::max_element(core_.ready.begin(), core_.ready.end(), is_before);
    return static_cast<std::size_t>(found - core_.ready.begin());
  }

  bool land_one() {
    std::size_t copies = 0;
    for (const auto& cluster : clusters_) copies += cluster->is_empty ? 0 : cluster->pending.size();
    if (copies == 0) return false;
    std::size_t pick = static_cast<std::size_t>(core_.next_random() >> 32) % copies;
    for (const auto& cluster : clusters_) {
      if (cluster->is_empty) continue;
      if (pick < cluster->pending.size()) {
        land_copy(*cluster, pick);
        return true;
      }
      pick -= cluster->pending.size();
    }
    return false;
  }

  // Every warp waits for another: reported, and the blocks are given up. False where nothing is left to run.
  bool resolve_deadlock() {
    for (auto& cluster : clusters_) {
      if (cluster->is_empty) continue;
      for (const SimBlock& block : cluster->blocks)
        if (!block.is_done()) report_deadlock(faults_, block);
      start(*cluster);
    }
    return !core_.ready.empty();
  }

  enum class Order : std::uint8_t { Any, FirstAhead, LastAhead };
  // Seeds 1 and 2 are plain; each nine that follow hold every pair of an order of warps and a time of landing.
  static Order order_of(std::uint64_t seed) { return seed < 3 ? Order::Any : static_cast<Order>(seed % 3); }
  static Landing landing_of(std::uint64_t seed) { return seed < 3 ? Landing::Random : static_cast<Landing>(seed / 3 % 3); }

  const KernelProgram& program_;
  SimCore core_;
  FaultLog faults_;
  std::optional<Counter> counter_;
  std::vector<std::unique_ptr<SimCluster>> clusters_;
  std::int64_t next_cluster_;
  std::int64_t stride_;
  Order order_ = Order::Any;
  StepLimit& limit_;
};

void run_side_by_side(std::vector<std::unique_ptr<Sm>>& sms) {
  const std::size_t workers = std::min<std::size_t>(sms.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::exception_ptr> failures(workers);
  std::atomic<std::size_t> first{0};  // that no worker has taken
  const auto work = [&](std::size_t worker) {
    try {
      for (std::size_t n = first++; n < sms.size(); n = first++)
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

LaunchResult launch(const KernelProgram& program, const SimulatorOptions& options, std::uint64_t seed, std::int64_t steps_left, FaultLog& faults, std::vector<KernelCounts>* counts) {
  LaunchResult result;
  if (program.blocks() == 0) {
    if (counts != nullptr) counts->push_back(Counter(program).counts());
    return result;
  }
  if (program.shared_bytes > shared_bytes_of_block)
    throw UserError({}, fmt::format("kernel `{}` needs {} bytes of shared memory, and a block has {} at most", program.name, program.shared_bytes, shared_bytes_of_block));
  StepLimit limit;
  limit.most = steps_left;
  // The blocks of a cluster stand on several SMs, which run as one.
  const std::int64_t sm_room = resident_blocks(program.threads(), program.shared_bytes);
  const bool has_clusters = program.cluster_size() > 1;
  // Blocks that do not see each other's memory may run anywhere: on as many SMs as keep a machine's cores busy, one at a time on
  // each, which keeps what they touch in its caches. Their number does not depend on the machine: nor does a run.
  const bool spreads = program.is_independent && !has_clusters && options.sms > 1;
  const std::int64_t count = has_clusters ? 1 : std::min<std::int64_t>(spreads ? std::max(spread_sms, options.sms) : std::max(1, options.sms), program.blocks());
  const std::int64_t room = has_clusters ? std::max<std::int64_t>(1, options.sms * sm_room / program.cluster_size()) : spreads ? 1 : sm_room;
  std::vector<std::unique_ptr<Sm>> sms;
  for (std::int64_t n = 0; n < count; ++n) sms.push_back(std::make_unique<Sm>(program, n, count, room, seed, limit, counts != nullptr));
  if (program.is_independent) run_side_by_side(sms);
  else run_in_turns(sms, seed);
  for (const auto& sm : sms) {
    faults.merge(sm->faults());
    if (!sm->core().has_error || result.has_error) continue;
    result.has_error = true;
    result.error = {static_cast<int>(sm->core().error_site), sm->core().error_value};
  }
  result.steps = limit.taken.load();
  if (counts != nullptr) {
    for (std::size_t n = 1; n < sms.size(); ++n) sms[0]->counter().merge(sms[n]->counter());
    counts->push_back(sms[0]->counter().counts());
  }
  return result;
}

}  // namespace tilewright
