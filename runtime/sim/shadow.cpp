// A race is a pair of accesses of one place, one of them a write, of which neither knows the other. Each access is compared with
// the marks of those before it in the simulator's order and then leaves its own; a mark that the newer access knows is dropped, for
// what does not know the newer one does not matter, and what knows it knows the older one too.
#include "runtime/sim/shadow.h"

#include <algorithm>

#include "runtime/sim/race_report.h"

namespace tilewright {

namespace {

constexpr std::int64_t chunk_bytes = 16;

std::size_t chunk_count(const KernelProgram& program) { return program.has_async_proxy ? static_cast<std::size_t>(program.shared_bytes / chunk_bytes + 1) : 0; }

}  // namespace

Shadow::Shadow(const KernelProgram& program, ClusterClocks& clocks, const SimBlock& block)
    : program_(program), clocks_(clocks), block_(block), shift_(program.granule_shift), granules_(static_cast<std::size_t>((program.shared_bytes >> shift_) + 1)), row_((granules_ + 3) / 4 * 4 + 4),
      warps_(block.warps.size()), has_chunks_(program.has_async_proxy), writes_(granules_), reads_(row_ * warps_), chunks_(chunk_count(program)) {}

// ---- Threads.
bool Shadow::has_unknown_lane(const WarpClock& clock, int lane, std::size_t warp, const ReadMark& mark) const {
  if (mark.time <= clock.least[static_cast<std::size_t>(block_.rank) * warps_ + warp] && lane >= 0) return false;
  const Party first = clocks_.warp(static_cast<std::size_t>(block_.rank) * warps_ + warp).first_thread;
  for (LaneMask rest = mark.lanes; rest != 0; rest &= rest - 1)
    if (!clocks_.knows(clock, lane, first + static_cast<Party>(__builtin_ctz(rest)), mark.time)) return true;
  return false;
}

void Shadow::renew(const WarpClock& clock, ReadMark& mark, LaneMask lanes) {
  ReadMark others = mark;
  others.lanes &= ~lanes;
  const std::size_t warp = (clock.first_thread / lane_count) % warps_;
  if (mark.time > clocks_.start() && others.lanes != 0 && has_unknown_lane(clock, __builtin_ctz(lanes), warp, others)) {
    mark.lanes |= lanes;
    return;
  }
  mark = {clock.time, lanes, mark.statement, false, false};
}

bool Shadow::read_granule(Warp& warp, const WarpOp& op, LaneMask lanes, std::size_t granule) {
  const WarpClock& clock = *warp.clock;
  const WriteMark& write = writes_[granule];
  const auto check = [&](Party party, Time time, std::uint32_t statement) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      if (!clocks_.knows(clock, lane, party, time)) [[unlikely]] return race(warp, op, lane, Use::Read, granule, party, time, statement, Use::Write);
    }
  };
  bool is_written = write.time > clocks_.start();
  if (is_written) check(write.party, write.time, write.statement);
  if (write.has_atomics) [[unlikely]]
    for (std::size_t other = 0; other < warps_; ++other) {
      const ReadMark& update = mark(other, granule);
      if (!update.is_atomic || update.time <= clocks_.start()) continue;
      for (LaneMask rest = update.lanes; rest != 0; rest &= rest - 1) {
        const Party party = clocks_.warp(static_cast<std::size_t>(block_.rank) * warps_ + other).first_thread + static_cast<Party>(__builtin_ctz(rest));
        const int lane = __builtin_ctz(lanes);
        if (!clocks_.knows(clock, lane, party, update.time)) return race(warp, op, lane, Use::Read, granule, party, update.time, update.statement, Use::Update), true;
      }
    }
  if (has_chunks_) {
    ChunkMark& chunk = chunk_of(granule);
    if (chunk.write.time > clocks_.start()) {
      is_written = true;
      check(chunk.write.party, chunk.write.time, chunk.write.statement);
    }
    chunk.has_generic_reads = true;
  }
  ReadMark& own = mark(static_cast<std::size_t>(warp.index), granule);
  if (own.time == clock.time) own.lanes |= lanes;
  else renew(clock, own, lanes);
  own.is_plain = true;
  own.statement = op.statement;
  return is_written;
}

void Shadow::check_readers(Warp& warp, const WarpOp& op, int lane, std::size_t granule, bool is_atomic) {
  const WarpClock& clock = *warp.clock;
  const Time* least = clock.least.data() + static_cast<std::size_t>(block_.rank) * warps_;
  const ReadMark* reads = &mark(0, granule);
  for (std::size_t other = 0; other < warps_; ++other, reads += row_) {
    const ReadMark& read = *reads;
    if (read.time <= least[other] || (is_atomic && !read.is_plain)) continue;
    ReadMark others = read;
    if (other == static_cast<std::size_t>(warp.index)) others.lanes &= ~(1u << lane);
    if (others.lanes == 0 || !has_unknown_lane(clock, lane, other, others)) continue;
    const Party first = clocks_.warp(static_cast<std::size_t>(block_.rank) * warps_ + other).first_thread;
    for (LaneMask rest = others.lanes; rest != 0; rest &= rest - 1) {
      const Party party = first + static_cast<Party>(__builtin_ctz(rest));
      if (!clocks_.knows(clock, lane, party, read.time))
        return race(warp, op, lane, is_atomic ? Use::Update : Use::Write, granule, party, read.time, read.statement, read.is_plain ? Use::Read : Use::Update);
    }
  }
}

void Shadow::write_granule(Warp& warp, const WarpOp& op, int lane, std::size_t granule, bool is_atomic, Party party, Time time) {
  const WarpClock& clock = *warp.clock;
  WriteMark& write = writes_[granule];
  const Use use = is_atomic ? Use::Update : Use::Write;
  if (write.time > clocks_.start() && !clocks_.knows(clock, lane, write.party, write.time)) [[unlikely]]
    race(warp, op, lane, use, granule, write.party, write.time, write.statement, Use::Write);
  check_readers(warp, op, lane, granule, is_atomic);
  if (has_chunks_) {
    ChunkMark& chunk = chunk_of(granule);
    if (chunk.write.time > clocks_.start() && !clocks_.knows(clock, lane, chunk.write.party, chunk.write.time)) [[unlikely]]
      race(warp, op, lane, use, granule, chunk.write.party, chunk.write.time, chunk.write.statement, Use::Write);
    for (const Stamp& read : chunk.reads)
      if (read.time > clocks_.start() && !clocks_.knows(clock, lane, read.party, read.time)) [[unlikely]]
        race(warp, op, lane, use, granule, read.party, read.time, read.statement, Use::Read);
    chunk.has_generic_writes = true;
  }
  if (!is_atomic) {
    write = {time, static_cast<std::uint16_t>(party), false, op.statement};
    return;
  }
  if (write.time <= clocks_.start()) write = {time, static_cast<std::uint16_t>(party), true, op.statement};
  write.has_atomics = true;
  ReadMark& own = mark(static_cast<std::size_t>(warp.index), granule);
  if (own.time == clock.time) own.lanes |= 1u << lane;
  else renew(clock, own, 1u << lane);
  own.is_atomic = true;
  own.statement = op.statement;
}

bool Shadow::read(Warp& warp, const WarpOp& op, LaneMask lanes, std::int64_t byte, std::int64_t bytes) {
  bool is_written = true;
  for (std::int64_t granule = byte >> shift_; granule < (byte + bytes) >> shift_; ++granule) is_written &= read_granule(warp, op, lanes, static_cast<std::size_t>(granule));
  return is_written;
}

void Shadow::write(Warp& warp, const WarpOp& op, int lane, std::int64_t byte, std::int64_t bytes, bool is_atomic) {
  const Party party = warp.clock->first_thread + static_cast<Party>(lane);
  for (std::int64_t granule = byte >> shift_; granule < (byte + bytes) >> shift_; ++granule)
    write_granule(warp, op, lane, static_cast<std::size_t>(granule), is_atomic, party, warp.clock->time);
}

void Shadow::write_as(Warp& warp, const WarpOp& op, int lane, Party party, Time time, std::int64_t byte, std::int64_t bytes) {
  for (std::int64_t granule = byte >> shift_; granule < (byte + bytes) >> shift_; ++granule) write_granule(warp, op, lane, static_cast<std::size_t>(granule), false, party, time);
}

// The common case: what is read is known, and the warp has read it at this time, or knows all who read it before.
LaneMask Shadow::read_elements(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask lanes, const std::int64_t* index) {
  const WarpClock& clock = *warp.clock;
  const Time* known = clock.base.data();
  const std::int64_t first = site.offset >> shift_;
  WriteMark* writes = writes_.at(static_cast<std::size_t>(first));
  ReadMark* own = &mark(static_cast<std::size_t>(warp.index), static_cast<std::size_t>(first));
  const Time start = clocks_.start();
  const Time time = clock.time;
  const Time least = clock.least[(clock.first_thread / lane_count)];
  const std::uint32_t statement = op.statement;
  LaneMask unwritten = 0;
  each_lane(lanes, [&](int lane) {
    const std::int64_t element = index[lane];
    if (static_cast<std::uint64_t>(element) >= static_cast<std::uint64_t>(site.elements)) [[unlikely]] return;
    const WriteMark& write = writes[element];
    ReadMark& read = own[element];
    const bool is_known = write.time > start && known[write.party] >= write.time && !write.has_atomics;
    if (is_known && read.time == time && read.is_plain) [[likely]] read.lanes |= 1u << lane;
    else if (is_known && read.time <= least) read = {time, 1u << lane, statement, true, false};
    else unwritten |= static_cast<LaneMask>(!read_granule(warp, op, 1u << lane, static_cast<std::size_t>(first + element))) << lane;
  });
  return unwritten;
}

LaneMask Shadow::access(Warp& warp, const WarpOp& op, const MemorySite& site, Use kind, LaneMask lanes, const std::int64_t* index, int step, int width) {
  const std::int64_t bytes = bytes_of(site.dtype);
  LaneMask unwritten = 0;
  if (step == 0 && kind == Use::Read) {
    if (index[0] >= 0 && index[0] <= site.elements - width && !read(warp, op, lanes, site.offset + index[0] * bytes, width * bytes)) unwritten = lanes;
    return unwritten;
  }
  if (kind == Use::Read && width == 1 && bytes == 1 << shift_ && !has_chunks_) return read_elements(warp, op, site, lanes, index);
  each_lane(lanes, [&](int lane) {
    const std::int64_t element = index[lane * step];
    if (element < 0 || element > site.elements - width) return;
    const std::int64_t byte = site.offset + element * bytes;
    if (kind == Use::Read) unwritten |= static_cast<LaneMask>(!read(warp, op, 1u << lane, byte, width * bytes)) << lane;
    else write(warp, op, lane, byte, width * bytes, kind == Use::Update);
  });
  return unwritten;
}

// ---- The async proxy.
bool Shadow::read_chunk(const AsyncAccess& access, std::int64_t byte) {
  const WarpClock& clock = *access.warp->clock;
  ChunkMark& chunk = chunks_[static_cast<std::size_t>(byte / chunk_bytes)];
  const bool is_copied = chunk.write.time > clocks_.start();
  if (is_copied && !clocks_.knows(clock, access.lane, chunk.write.party, chunk.write.time))
    race_of_chunk(access, Use::Read, byte, chunk.write.party, chunk.write.time, chunk.write.statement, Use::Write, false);
  bool is_written = true;
  const auto first = static_cast<std::size_t>(byte >> shift_);
  for (std::size_t granule = first; granule < first + static_cast<std::size_t>(chunk_bytes >> shift_); ++granule) {
    if (!chunk.has_generic_writes) {
      is_written = is_copied;
      break;
    }
    const WriteMark& write = writes_[granule];
    if (write.time <= clocks_.start()) {
      is_written &= is_copied;
      continue;
    }
    if (!clocks_.knows_fenced(clock, access.lane, write.party, write.time)) {
      race_of_chunk(access, Use::Read, byte, write.party, write.time, write.statement, Use::Write, clocks_.knows(clock, access.lane, write.party, write.time));
      break;
    }
  }
  Stamp* place = nullptr;
  for (Stamp& read : chunk.reads) {
    if (read.party == access.party && read.time > clocks_.start()) {
      place = &read;
      break;
    }
    if (place == nullptr && (read.time <= clocks_.start() || clocks_.knows(clock, access.lane, read.party, read.time))) place = &read;
  }
  if (place != nullptr) *place = {access.time, static_cast<std::uint16_t>(access.party), access.op->statement};
  return is_written;
}

void Shadow::write_chunk(const AsyncAccess& access, std::int64_t byte) {
  const WarpClock& clock = *access.warp->clock;
  ChunkMark& chunk = chunks_[static_cast<std::size_t>(byte / chunk_bytes)];
  const auto check = [&](const Stamp& stamp, Use past) {
    if (stamp.time > clocks_.start() && !clocks_.knows(clock, access.lane, stamp.party, stamp.time))
      race_of_chunk(access, Use::Write, byte, stamp.party, stamp.time, stamp.statement, past, false);
  };
  check(chunk.write, Use::Write);
  for (Stamp& read : chunk.reads) {
    check(read, Use::Read);
    read = {};
  }
  const auto first = static_cast<std::size_t>(byte >> shift_);
  const std::size_t end = first + static_cast<std::size_t>(chunk_bytes >> shift_);
  const auto check_fenced = [&](Party party, Time time, std::uint32_t statement, Use past) {
    if (time <= clocks_.start() || clocks_.knows_fenced(clock, access.lane, party, time)) return true;
    race_of_chunk(access, Use::Write, byte, party, time, statement, past, clocks_.knows(clock, access.lane, party, time));
    return false;
  };
  if (chunk.has_generic_writes)
    for (std::size_t granule = first; granule < end; ++granule) {
      check_fenced(writes_[granule].party, writes_[granule].time, writes_[granule].statement, Use::Write);
      writes_[granule] = {};
    }
  if (chunk.has_generic_reads || chunk.has_generic_writes)
    for (std::size_t warp = 0; warp < warps_; ++warp)
      for (std::size_t granule = first; granule < end; ++granule) {
        ReadMark& read = mark(warp, granule);
        const Party party = clocks_.warp(static_cast<std::size_t>(block_.rank) * warps_ + warp).first_thread;
        for (LaneMask rest = read.time > clocks_.start() ? read.lanes : 0; rest != 0; rest &= rest - 1)
          if (!check_fenced(party + static_cast<Party>(__builtin_ctz(rest)), read.time, read.statement, Use::Read)) break;
        read = {};
      }
  chunk.has_generic_writes = chunk.has_generic_reads = false;
  chunk.write = {access.time, static_cast<std::uint16_t>(access.party), access.op->statement};
}

// ---- Reports.
void Shadow::race(Warp& warp, const WarpOp& op, int lane, Use kind, std::size_t granule, Party party, Time time, std::uint32_t statement, Use past) {
  report_race(clocks_, {&warp, &op, lane, kind, place_in_shared(program_, static_cast<std::int64_t>(granule << shift_)), party, time, statement, past, false, false});
}

void Shadow::race_of_chunk(const AsyncAccess& access, Use kind, std::int64_t byte, Party party, Time time, std::uint32_t statement, Use past, bool is_unfenced) {
  report_race(clocks_, {access.warp, access.op, access.lane, kind, place_in_shared(program_, byte), party, time, statement, past, true, is_unfenced});
}

}  // namespace tilewright
