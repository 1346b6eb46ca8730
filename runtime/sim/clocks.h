// Vector clocks: which accesses a thread knows to lie before it.
//
// A *party* is what has a time of its own: each thread of the cluster; a thread's groups of cp.async and of stores by the
// copy engine (as reads of shared memory, as writes of global memory); the wgmma groups of a warpgroup; the phases of a barrier
// object. An access carries a stamp: its party and the party's time. It lies before another access where the other's thread
// knows that time of the party. Knowledge is handed on by barriers and barrier objects; groups and phases are known to who waited
// for them. Times of a place in the machine only grow, so that marks of the cluster before count as known.
//
// Knowledge has three planes: of accesses; of those that a proxy fence has ordered for the async proxy (copy engine, tensor
// cores); of barrier objects that were initialised in front of `fence.mbarrier_init`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sim/machine.h"

namespace tilewright {

using Party = std::uint32_t;

struct Stamp {
  Time time = 0;
  std::uint16_t party = 0;
  std::uint32_t statement = 0;
};

enum class Plane : std::uint8_t { Accesses, AsyncProxy, Objects };
constexpr int plane_count = 3;

// Where the parties of a cluster stand in a vector.
struct PartyMap {
  std::uint32_t threads = 0;  // whole warps
  std::uint32_t elements = 0, bulk_reads = 0, bulk_writes = 0, warpgroups = 0, objects = 0;  // first of each
  std::uint32_t count = 0;
};

// Values of the loops around a statement when a time began.
constexpr std::size_t most_loops = 8;
struct Moment {
  Time time = 0;
  std::array<std::int64_t, most_loops> loops{};
};

struct WarpClock {
  Time time = 0;
  Party first_thread = 0;
  std::vector<Time> base;   // what all lanes know, plane by plane
  std::vector<Time> least;  // accesses: for each warp, what is known of all its lanes
  LaneMask apart = 0;       // lanes that know more
  std::array<std::unique_ptr<Time[]>, lane_count> own;  // what those know
  // What each lane knows of its own parties, and which of its accesses it has fenced.
  std::array<Time, lane_count> fenced{}, elements_fenced{}, objects_fenced{}, elements{}, bulk_reads{}, bulk_writes{};
  std::array<std::int64_t, most_loops> loops{};
  std::array<Moment, 64> history{};

  const Time* of(int lane) const { return (apart >> lane & 1) != 0 ? own[static_cast<std::size_t>(lane)].get() : base.data(); }
};

class ClusterClocks {
 public:
  ClusterClocks(const KernelProgram& program, std::size_t warps_of_block);
  // A new cluster takes the place; `groups` is the largest number of a group or phase of the one before.
  void restart(Time groups);

  const PartyMap& parties() const { return parties_; }
  Time start() const { return start_; }
  WarpClock& warp(std::size_t number) { return warps_[number]; }
  const WarpClock& warp(std::size_t number) const { return warps_[number]; }
  std::size_t warp_count() const { return warps_.size(); }

  // ---- Steps that order.
  // What the lanes know, their own accesses so far included, is added to `to`; a new time of the warp begins.
  void release(WarpClock& clock, LaneMask lanes, Time* to);
  // Only barrier objects, for arrivals that order no memory.
  void release_objects(WarpClock& clock, LaneMask lanes, Time* to);
  void acquire(WarpClock& clock, LaneMask lanes, LaneMask all, const Time* from);
  // At a barrier where all lanes arrived: what is handed on holds what each of them knew.
  void acquire_all(WarpClock& clock, const Time* from);
  void join_lanes(WarpClock& clock, LaneMask all);  // barrier.warp
  void fence_proxy(WarpClock& clock, LaneMask lanes, LaneMask all);
  void fence_objects(WarpClock& clock, LaneMask lanes);
  // The lanes know a time of a party that all share.
  void learn(WarpClock& clock, LaneMask lanes, LaneMask all, Party party, Time time);
  void advance(WarpClock& clock);

  // ---- Knowledge at barriers and objects.
  Time* barrier(std::size_t rank, std::size_t number) { return knowledge(barriers_, rank * barrier_count + number); }
  Time* cluster_barrier(std::size_t parity) { return knowledge(cluster_barriers_, parity); }
  Time* pending(std::size_t object) { return knowledge(pending_, object); }
  Time* done(std::size_t object) { return knowledge(done_, object); }
  void join(Time* to, const Time* from) const;
  // ---- The end of a block: what others did to its shared memory must be known to its last threads.
  Time* at_end(std::size_t rank) { return knowledge(ends_, rank); }
  void note_visit(std::size_t rank, Party party, Time time, std::uint32_t statement);
  // The first visit that the block's threads did not know when they ended.
  std::optional<Stamp> unknown_visit(std::size_t rank) const;
  void clear(Time* knowledge) const;

  // ---- Questions. `lane` -1: any lane of the warp.
  bool knows(const WarpClock& clock, int lane, Party party, Time time) const {
    if (lane >= 0 && clock.of(lane)[party] >= time) [[likely]] return true;
    return knows_slowly(clock, lane, party, time);
  }
  // Ordered for the async proxy.
  bool knows_fenced(const WarpClock& clock, int lane, Party party, Time time) const;
  bool knows_object(const WarpClock& clock, int lane, Party party, Time time, bool for_async_proxy) const;

 private:
  bool knows_slowly(const WarpClock& clock, int lane, Party party, Time time) const;
  Time* knowledge(std::vector<Time>& of, std::size_t number) const { return of.data() + number * size_; }
  std::size_t plane(Plane plane) const { return static_cast<std::size_t>(plane) * parties_.count; }
  Time* open(WarpClock& clock, int lane);  // the lane's own knowledge, made where it has none
  void add_lane(const WarpClock& clock, int lane, Time* to) const;
  void update_least(WarpClock& clock) const;

  PartyMap parties_;
  std::size_t planes_ = 1;
  std::size_t size_ = 0;  // of knowledge: planes * parties
  Time start_ = 0;
  std::vector<WarpClock> warps_;
  std::vector<Time> barriers_, cluster_barriers_, pending_, done_, ends_;
  std::vector<Stamp> visits_;  // block by block, by party
};

}  // namespace tilewright
