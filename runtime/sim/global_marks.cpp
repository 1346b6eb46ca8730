// Who wrote and read an element of a tensor last. Marks are one word, so that host threads that run several SMs can share them.
#include <fmt/format.h>

#include "runtime/sim/race_report.h"
#include "runtime/sim/shadow.h"

namespace tilewright {

namespace {

constexpr int cluster_shift = 40;
constexpr int party_shift = 24;
constexpr std::uint64_t cluster_mask = (1u << 23) - 1;
constexpr std::uint64_t party_mask = 0xffff;
constexpr std::uint64_t time_mask = (1u << party_shift) - 1;
constexpr std::uint64_t atomic_bit = std::uint64_t{1} << 63;

std::uint64_t cluster_of(std::uint64_t stamp) { return stamp >> cluster_shift & cluster_mask; }
Party party_of(std::uint64_t stamp) { return static_cast<Party>(stamp >> party_shift & party_mask); }

std::uint64_t load(const std::uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
template <class T>
void store(T& word, T value) { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }

}  // namespace

// Where the access goes to memory by the copy engine, `access.party` is not the lane itself.
void GlobalMarks::one(const AsyncAccess& access, Use kind, bool is_async, std::size_t element, const GlobalPlace& place) {
  SimCluster& cluster = *access.warp->block->cluster;
  const ClusterClocks& clocks = *cluster.clocks;
  const WarpClock& clock = *access.warp->clock;
  const auto own_cluster = static_cast<std::uint64_t>(cluster.number + 1) & cluster_mask;
  const std::uint64_t own = own_cluster << cluster_shift | static_cast<std::uint64_t>(access.party) << party_shift | ((access.time - clocks.start()) & time_mask);
  const auto is_known = [&](std::uint64_t stamp) {
    return cluster_of(stamp) == own_cluster && clocks.knows(clock, access.lane, party_of(stamp), clocks.start() + static_cast<Time>(stamp & time_mask));
  };
  const auto report = [&](const Mark& mark, std::uint64_t stamp, Use past, bool is_unfenced) {
    const bool is_here = cluster_of(stamp) == own_cluster;
    report_race(clocks, {access.warp, access.op, access.lane, kind, place.text(), party_of(stamp), is_here ? clocks.start() + static_cast<Time>(stamp & time_mask) : 0,
                         __atomic_load_n(&mark.statement, __ATOMIC_RELAXED), past, is_async, is_unfenced, is_here ? -1 : static_cast<std::int64_t>(cluster_of(stamp)) - 1});
  };
  Mark& write = writes_[element];
  const std::uint64_t written = load(write.stamp);
  const bool was_atomic = (written & atomic_bit) != 0;
  if (written != 0 && !(was_atomic && kind == Use::Update)) {
    if (!is_known(written)) report(write, written, was_atomic ? Use::Update : Use::Write, false);
    else if (is_async && kind == Use::Read && !clocks.knows_fenced(clock, access.lane, party_of(written), clocks.start() + static_cast<Time>(written & time_mask)))
      report(write, written, Use::Write, true);
  }
  Mark& oldest = reads_[element * 2];
  Mark& newest = reads_[element * 2 + 1];
  if (kind == Use::Read) {
    const std::uint64_t old = load(oldest.stamp);
    Mark& target = old == 0 || is_known(old) ? oldest : newest;
    store(target.stamp, own);
    store(target.statement, access.op->statement);
    return;
  }
  for (Mark* read : {&oldest, &newest}) {
    const std::uint64_t stamp = load(read->stamp);
    if (stamp != 0 && !is_known(stamp)) report(*read, stamp, Use::Read, false);
    store(read->stamp, std::uint64_t{0});
  }
  store(write.stamp, kind == Use::Update ? own | atomic_bit : own);
  store(write.statement, access.op->statement);
}

void GlobalMarks::access(Warp& warp, const WarpOp& op, const MemorySite& site, Use kind, LaneMask lanes, const std::int64_t* index, int step, int width) {
  each_lane(lanes, [&](int lane) {
    const std::int64_t element = index[lane * step];
    if (element < 0 || element > site.elements - width) return;
    for (int n = 0; n < width; ++n)
      one({&warp, &op, lane, warp.clock->first_thread + static_cast<Party>(lane), warp.clock->time}, kind, false, static_cast<std::size_t>(element + n), {site.name, element + n});
  });
}

void GlobalMarks::access_async(const AsyncAccess& access, const GlobalTensor& tensor, Use kind, std::int64_t element) {
  one(access, kind, true, static_cast<std::size_t>(element), {tensor.name, element});
}

}  // namespace tilewright
