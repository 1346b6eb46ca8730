// Knowledge is a vector of times a plane; most lanes of a warp share theirs.
#include "runtime/sim/clocks.h"

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

ClusterClocks::ClusterClocks(const KernelProgram& program, std::size_t warps_of_block) {
  const auto blocks = static_cast<std::uint32_t>(program.cluster_size());
  const auto threads = static_cast<std::uint32_t>(warps_of_block) * lane_count * blocks;
  parties_.threads = threads;
  parties_.elements = threads;
  parties_.bulk_reads = parties_.elements + (program.has_element_copies ? threads : 0);
  parties_.bulk_writes = parties_.bulk_reads + (program.has_bulk_groups ? threads : 0);
  parties_.warpgroups = parties_.bulk_writes + (program.has_bulk_groups ? threads : 0);
  parties_.objects = parties_.warpgroups + (program.has_wgmma ? threads / (lane_count * warps_of_warpgroup) : 0);
  parties_.count = parties_.objects + static_cast<std::uint32_t>(program.mbarriers) * blocks;
  if (parties_.count > 65535) throw UserError({}, "unsupported: the simulator's race check of a cluster with so many threads and barrier objects", "run it without checks");
  parties_.count = (parties_.count + 7) / 8 * 8;
  planes_ = program.has_async_proxy || program.mbarriers > 0 ? plane_count : 1;
  size_ = planes_ * parties_.count;
  warps_.resize(warps_of_block * blocks);
  for (std::size_t n = 0; n < warps_.size(); ++n) {
    warps_[n].first_thread = static_cast<Party>(n) * lane_count;
    warps_[n].base.resize(size_);
    warps_[n].least.resize(warps_.size());
  }
  barriers_.resize(size_ * barrier_count * blocks);
  cluster_barriers_.resize(size_ * 2);
  pending_.resize(size_ * static_cast<std::size_t>(program.mbarriers) * blocks);
  done_.resize(pending_.size());
  ends_.resize(size_ * blocks);
  visits_.resize(static_cast<std::size_t>(parties_.count) * blocks);
}

void ClusterClocks::restart(Time groups) {
  Time latest = start_ + groups + 1;
  for (const WarpClock& clock : warps_) latest = std::max(latest, clock.time);
  start_ = latest;
  for (WarpClock& clock : warps_) {
    clock.time = start_ + 1;
    std::fill(clock.base.begin(), clock.base.end(), start_);
    std::fill(clock.least.begin(), clock.least.end(), start_);
    clock.apart = 0;
    for (auto* known : {&clock.fenced, &clock.elements_fenced, &clock.objects_fenced, &clock.elements, &clock.bulk_reads, &clock.bulk_writes}) known->fill(start_);
    clock.history[clock.time % clock.history.size()] = {clock.time, clock.loops};
  }
  for (std::vector<Time>* of : {&barriers_, &cluster_barriers_, &pending_, &done_, &ends_}) std::fill(of->begin(), of->end(), 0);
  std::fill(visits_.begin(), visits_.end(), Stamp{});
}

void ClusterClocks::advance(WarpClock& clock) {
  ++clock.time;
  clock.history[clock.time % clock.history.size()] = {clock.time, clock.loops};
}

void ClusterClocks::join(Time* to, const Time* from) const {
  for (std::size_t n = 0; n < size_; ++n) to[n] = std::max(to[n], from[n]);
}

void ClusterClocks::clear(Time* knowledge) const { std::fill_n(knowledge, size_, Time{0}); }

void ClusterClocks::note_visit(std::size_t rank, Party party, Time time, std::uint32_t statement) {
  visits_[rank * parties_.count + party] = {time, static_cast<std::uint16_t>(party), statement};
}

std::optional<Stamp> ClusterClocks::unknown_visit(std::size_t rank) const {
  for (std::size_t party = 0; party < parties_.count; ++party) {
    const Stamp& visit = visits_[rank * parties_.count + party];
    if (visit.time > ends_[rank * size_ + party]) return visit;
  }
  return std::nullopt;
}

void ClusterClocks::update_least(WarpClock& clock) const {
  for (std::size_t warp = 0; warp < clock.least.size(); ++warp) {
    const Time* known = clock.base.data() + warp * lane_count;
    Time least = known[0];
    for (int lane = 1; lane < lane_count; ++lane) least = std::min(least, known[lane]);
    clock.least[warp] = least;
  }
}

Time* ClusterClocks::open(WarpClock& clock, int lane) {
  std::unique_ptr<Time[]>& own = clock.own[static_cast<std::size_t>(lane)];
  if (!own) own = std::make_unique<Time[]>(size_);
  if ((clock.apart >> lane & 1) == 0) std::copy(clock.base.begin(), clock.base.end(), own.get());
  clock.apart |= 1u << lane;
  return own.get();
}

// What a lane knows of itself.
void ClusterClocks::add_lane(const WarpClock& clock, int lane, Time* to) const {
  const auto n = static_cast<std::size_t>(lane);
  const Party thread = clock.first_thread + static_cast<Party>(lane);
  const auto add = [&](std::size_t at, Time time) { to[at] = std::max(to[at], time); };
  add(thread, clock.time);
  if (parties_.bulk_reads > parties_.elements) add(parties_.elements + thread, clock.elements[n]);
  if (parties_.bulk_writes > parties_.bulk_reads) {
    add(parties_.bulk_reads + thread, clock.bulk_reads[n]);
    add(parties_.bulk_writes + thread, clock.bulk_writes[n]);
  }
  if (planes_ == 1) return;
  add(plane(Plane::AsyncProxy) + thread, clock.fenced[n]);
  if (parties_.bulk_reads > parties_.elements) add(plane(Plane::AsyncProxy) + parties_.elements + thread, clock.elements_fenced[n]);
  add(plane(Plane::Objects) + thread, clock.objects_fenced[n]);
}

void ClusterClocks::release(WarpClock& clock, LaneMask lanes, Time* to) {
  if ((lanes & ~clock.apart) != 0) join(to, clock.base.data());
  each_lane(lanes & clock.apart, [&](int lane) { join(to, clock.own[static_cast<std::size_t>(lane)].get()); });
  each_lane(lanes, [&](int lane) { add_lane(clock, lane, to); });
  advance(clock);
}

void ClusterClocks::release_objects(WarpClock& clock, LaneMask lanes, Time* to) {
  if (planes_ == 1) return;
  const std::size_t first = plane(Plane::Objects);
  each_lane(lanes, [&](int lane) {
    const Time* known = clock.of(lane);
    for (std::size_t n = first; n < first + parties_.count; ++n) to[n] = std::max(to[n], known[n]);
    Time& own = to[first + clock.first_thread + static_cast<Party>(lane)];
    own = std::max(own, clock.objects_fenced[static_cast<std::size_t>(lane)]);
  });
}

void ClusterClocks::acquire(WarpClock& clock, LaneMask lanes, LaneMask all, const Time* from) {
  if (lanes == all) {
    join(clock.base.data(), from);
    update_least(clock);
    each_lane(clock.apart, [&](int lane) { join(clock.own[static_cast<std::size_t>(lane)].get(), from); });
  } else {
    each_lane(lanes, [&](int lane) { join(open(clock, lane), from); });
  }
}

void ClusterClocks::acquire_all(WarpClock& clock, const Time* from) {
  join(clock.base.data(), from);
  clock.apart = 0;
  update_least(clock);
}

void ClusterClocks::join_lanes(WarpClock& clock, LaneMask all) {
  each_lane(clock.apart, [&](int lane) { join(clock.base.data(), clock.own[static_cast<std::size_t>(lane)].get()); });
  clock.apart = 0;
  each_lane(all, [&](int lane) { add_lane(clock, lane, clock.base.data()); });
  update_least(clock);
  advance(clock);
}

void ClusterClocks::fence_proxy(WarpClock& clock, LaneMask lanes, LaneMask all) {
  if (planes_ == 1) return;
  const std::size_t async = plane(Plane::AsyncProxy);
  const auto raise = [&](Time* known) {
    for (std::size_t n = 0; n < parties_.count; ++n) known[async + n] = std::max(known[async + n], known[n]);
  };
  if (lanes == all && clock.apart == 0) {
    raise(clock.base.data());
  } else {
    each_lane(lanes, [&](int lane) { raise(open(clock, lane)); });
  }
  each_lane(lanes, [&](int lane) {
    const auto n = static_cast<std::size_t>(lane);
    clock.fenced[n] = clock.time;
    clock.elements_fenced[n] = clock.elements[n];
  });
  advance(clock);
}

void ClusterClocks::fence_objects(WarpClock& clock, LaneMask lanes) {
  each_lane(lanes, [&](int lane) { clock.objects_fenced[static_cast<std::size_t>(lane)] = clock.time; });
  advance(clock);
}

void ClusterClocks::learn(WarpClock& clock, LaneMask lanes, LaneMask all, Party party, Time time) {
  const auto add = [&](Time* known) { known[party] = std::max(known[party], time); };
  if (lanes == all) {
    add(clock.base.data());
    each_lane(clock.apart, [&](int lane) { add(clock.own[static_cast<std::size_t>(lane)].get()); });
  } else {
    each_lane(lanes, [&](int lane) { add(open(clock, lane)); });
  }
}

bool ClusterClocks::knows_slowly(const WarpClock& clock, int lane, Party party, Time time) const {
  if (lane < 0) {
    if (clock.base[party] >= time) return true;
    for (int one = 0; one < lane_count; ++one)
      if (knows(clock, one, party, time)) return true;
    return false;
  }
  const auto n = static_cast<std::size_t>(lane);
  const Party thread = clock.first_thread + static_cast<Party>(lane);
  if (party < parties_.threads) return party == thread;
  if (party < parties_.bulk_reads) return party == parties_.elements + thread && clock.elements[n] >= time;
  if (party < parties_.bulk_writes) return party == parties_.bulk_reads + thread && clock.bulk_reads[n] >= time;
  if (party < parties_.warpgroups) return party == parties_.bulk_writes + thread && clock.bulk_writes[n] >= time;
  return false;
}

bool ClusterClocks::knows_fenced(const WarpClock& clock, int lane, Party party, Time time) const {
  if (lane < 0) {
    for (int one = 0; one < lane_count; ++one)
      if (knows_fenced(clock, one, party, time)) return true;
    return false;
  }
  if (clock.of(lane)[plane(Plane::AsyncProxy) + party] >= time) return true;
  const auto n = static_cast<std::size_t>(lane);
  const Party thread = clock.first_thread + static_cast<Party>(lane);
  if (party == thread) return clock.fenced[n] >= time;
  return party >= parties_.elements && party < parties_.bulk_reads && party == parties_.elements + thread && clock.elements_fenced[n] >= time;
}

bool ClusterClocks::knows_object(const WarpClock& clock, int lane, Party party, Time time, bool for_async_proxy) const {
  if (clock.of(lane)[plane(Plane::Objects) + party] >= time) return true;
  if (party == clock.first_thread + static_cast<Party>(lane) && clock.objects_fenced[static_cast<std::size_t>(lane)] >= time) return true;
  return for_async_proxy ? knows_fenced(clock, lane, party, time) : knows(clock, lane, party, time);
}

}  // namespace tilewright
