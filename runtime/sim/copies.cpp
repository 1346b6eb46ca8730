// A box travels row by row in chunks of 16 bytes, which the map's swizzle permutes by their address. What lies outside the
// tensor is filled with 0 on the way in and left out on the way out; the bytes that a barrier object is told are always those of
// the whole box.
#include "runtime/sim/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/diagnostic.h"
#include "runtime/sim/boxes.h"
#include "runtime/sim/faults.h"
#include "runtime/sim/mbarriers.h"
#include "runtime/sim/rows.h"
#include "runtime/sim/shadow.h"

namespace tilewright {

namespace {

constexpr std::int64_t chunk_bytes = 16;

const InstrSite& site_of(const WarpOp& op) { return *static_cast<const InstrSite*>(op.object); }

void report(Warp& warp, const WarpOp& op, FaultKind kind, int lane, const std::string& what) {
  warp.block->core->faults->add(warp, op, kind, 1u << lane, [&](int) { return thread_text(warp, lane) + " " + what; });
}

// Calls f(byte in the tensor of the row's first element, first and end of the elements inside, byte in shared memory) for each row of the box.
template <class F>
void each_row(const MapInfo& map, const PendingCopy& copy, F&& f) {
  std::int64_t shared = copy.shared_byte;
  each_box_row(map, copy.coordinates, [&](std::int64_t byte, std::int64_t first, std::int64_t end) {
    f(byte, first, end, shared);
    shared += map.row_bytes();
  });
}

void land_load(const PendingCopy& copy, SimBlock& block) {
  const MapInfo& map = *copy.site->map;
  const std::int64_t bytes = bytes_of(map.tensor->dtype);
  std::array<std::byte, 256 * 8> row;
  each_row(map, copy, [&](std::int64_t source, std::int64_t first, std::int64_t end, std::int64_t shared) {
    std::memset(row.data(), 0, static_cast<std::size_t>(map.row_bytes()));
    if (end > first) std::memcpy(row.data() + first * bytes, map.tensor->base + source + first * bytes, static_cast<std::size_t>((end - first) * bytes));
    for (std::int64_t at = 0; at < map.row_bytes(); at += chunk_bytes) {
      const std::int64_t target = swizzled_byte(shared + at, map.xor_bytes);
      std::memcpy(block.shared.data() + target, row.data() + at, chunk_bytes);
    }
  });
}

void land_store(const PendingCopy& copy) {
  const MapInfo& map = *copy.site->map;
  SimBlock& block = *copy.warp->block;
  const std::int64_t bytes = bytes_of(map.tensor->dtype);
  std::array<std::byte, 256 * 8> row;
  each_row(map, copy, [&](std::int64_t target, std::int64_t first, std::int64_t end, std::int64_t shared) {
    for (std::int64_t at = 0; at < map.row_bytes(); at += chunk_bytes)
      std::memcpy(row.data() + at, block.shared.data() + swizzled_byte(shared + at, map.xor_bytes), chunk_bytes);
    if (end <= first) return;
    std::memcpy(map.tensor->base + target + first * bytes, row.data() + first * bytes, static_cast<std::size_t>((end - first) * bytes));
    if (!map.tensor->written.empty()) std::fill_n(map.tensor->written.begin() + target / bytes + first, end - first, std::uint8_t{1});
  });
}

// What the copy does to shared memory and to the tensor is noted when it starts: nothing that comes later is ordered behind it
// before someone has waited for it.
void note_load(const PendingCopy& copy, SimBlock& block) {
  if (!block.shadow) return;
  const MapInfo& map = *copy.site->map;
  const ClusterClocks& clocks = *block.cluster->clocks;
  const auto object = static_cast<Party>(block.rank * block.program->mbarriers + copy.barrier);
  const AsyncAccess access{copy.warp, copy.op, copy.lane, clocks.parties().objects + object, clocks.start() + 1 + block.mbarriers[static_cast<std::size_t>(copy.barrier)].phase};
  block.cluster->clocks->note_visit(static_cast<std::size_t>(block.rank), access.party, access.time, copy.op->statement);
  const std::int64_t bytes = bytes_of(map.tensor->dtype);
  each_row(map, copy, [&](std::int64_t source, std::int64_t first, std::int64_t end, std::int64_t shared) {
    for (std::int64_t at = 0; at < map.row_bytes(); at += chunk_bytes) block.shadow->write_chunk(access, swizzled_byte(shared + at, map.xor_bytes));
    for (std::int64_t n = first; n < end && map.tensor->marks; ++n) map.tensor->marks->access_async(access, *map.tensor, Use::Read, source / bytes + n);
  });
}

void note_store(const PendingCopy& copy) {
  const SimBlock& block = *copy.warp->block;
  if (!block.shadow) return;
  const MapInfo& map = *copy.site->map;
  const ClusterClocks& clocks = *block.cluster->clocks;
  const Party thread = copy.warp->clock->first_thread + static_cast<Party>(copy.lane);
  const AsyncAccess reads{copy.warp, copy.op, copy.lane, clocks.parties().bulk_reads + thread, clocks.start() + copy.group};
  const AsyncAccess writes{copy.warp, copy.op, copy.lane, clocks.parties().bulk_writes + thread, clocks.start() + copy.group};
  const std::int64_t bytes = bytes_of(map.tensor->dtype);
  std::int64_t unwritten = 0;
  each_row(map, copy, [&](std::int64_t target, std::int64_t first, std::int64_t end, std::int64_t shared) {
    for (std::int64_t at = 0; at < map.row_bytes(); at += chunk_bytes) {
      const bool is_inside = at < end * bytes && at + chunk_bytes > first * bytes;
      if (!block.shadow->read_chunk(reads, swizzled_byte(shared + at, map.xor_bytes)) && is_inside) ++unwritten;
    }
    for (std::int64_t n = first; n < end && map.tensor->marks; ++n) map.tensor->marks->access_async(writes, *map.tensor, Use::Write, target / bytes + n);
  });
  if (unwritten > 0)
    report(*copy.warp, *copy.op, FaultKind::Unwritten, copy.lane, fmt::format("copies {} pieces of 16 bytes of `{}` to which nothing has been written", unwritten, copy.site->memory.name));
}

// Whether the place lies in its buffer and is aligned for the engine.
bool is_good_place(Warp& warp, const WarpOp& op, const InstrSite& site, int lane, std::int64_t element) {
  const std::int64_t bytes = bytes_of(site.memory.dtype);
  const std::int64_t first = site.memory.offset + element * bytes;
  if (element < 0 || element * bytes + site.map->bytes() > site.memory.elements * bytes) {
    report(warp, op, FaultKind::OutOfRange, lane,
           fmt::format("copies a box of {} bytes at `{}{}`, which leaves `{}` of {} bytes", site.map->bytes(), site.memory.name, indices_text(warp, site.memory.index, lane), site.memory.name,
                       site.memory.elements * bytes));
    return false;
  }
  if (first % 128 != 0) {
    report(warp, op, FaultKind::Misaligned, lane,
           fmt::format("copies a box at `{}{}`, byte {} of shared memory, and the copy engine needs a multiple of 128", site.memory.name, indices_text(warp, site.memory.index, lane), first));
    return false;
  }
  return true;
}

void start_copy(Warp& warp, PendingCopy copy) {
  SimCluster& cluster = *warp.block->cluster;
  cluster.pending.push_back(copy);
  if (warp.block->core->landing == Landing::Early) land_copy(cluster, cluster.pending.size() - 1);
}

PendingCopy new_copy(Warp& warp, const WarpOp& op, int lane, std::int64_t element, std::size_t first_coordinate) {
  const InstrSite& site = site_of(op);
  PendingCopy copy;
  copy.site = &site;
  copy.op = &op;
  copy.warp = &warp;
  copy.lane = lane;
  copy.shared_byte = site.memory.offset + element * bytes_of(site.memory.dtype);
  for (int axis = 0; axis < site.map->rank; ++axis)
    copy.coordinates[static_cast<std::size_t>(axis)] = read_lane(warp, site.operands[first_coordinate + static_cast<std::size_t>(axis)], lane).i;
  return copy;
}

bool has_map(Warp& warp, const WarpOp& op, int lane) {
  const MapInfo& map = *site_of(op).map;
  if (map.tensor->elements > 0) return true;
  report(warp, op, FaultKind::OutOfRange, lane, fmt::format("uses the map `{}` of the empty tensor `{}`", map.name, map.tensor->name));
  return false;
}

// Operands: coordinates, and the blocks of a multicast.
const WarpOp* run_box_load(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  each_lane(warp.mask, [&](int lane) {
    const std::int64_t element = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    if (!has_map(warp, op, lane) || !is_good_place(warp, op, site, lane, element)) return;
    PendingCopy copy = new_copy(warp, op, lane, element, 0);
    SimCluster& cluster = *warp.block->cluster;
    copy.blocks = 1u << warp.block->rank;
    if (op.code == 1) {
      copy.blocks = static_cast<std::uint32_t>(read_lane(warp, site.operands.back(), lane).i);
      if (copy.blocks == 0 || (copy.blocks >> cluster.blocks.size()) != 0)
        return report(warp, op, FaultKind::OutOfRange, lane, fmt::format("names blocks {:#x} of a cluster of {}", copy.blocks, cluster.blocks.size()));
    }
    for (SimBlock& block : cluster.blocks) {
      if ((copy.blocks >> block.rank & 1) == 0) continue;
      if (block.is_done()) return report(warp, op, FaultKind::Ended, lane, fmt::format("copies into {}, which has ended", block_text(block)));
      if (find_mbarrier(warp, op, site.barrier, lane, block, true) == nullptr) return;
    }
    copy.barrier = site.barrier.first + read_lane(warp, site.barrier.element, lane).i;
    for (SimBlock& block : cluster.blocks)
      if ((copy.blocks >> block.rank & 1) != 0) note_load(copy, block);
    start_copy(warp, copy);
  });
  return following(op);
}

const WarpOp* run_box_store(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  each_lane(warp.mask, [&](int lane) {
    const std::int64_t element = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    if (!has_map(warp, op, lane) || !is_good_place(warp, op, site, lane, element)) return;
    PendingCopy copy = new_copy(warp, op, lane, element, 0);
    copy.is_store = true;
    const auto n = static_cast<std::size_t>(lane);
    copy.group = groups.bulk_used[n] = groups.bulk[n] + 1;
    groups.bulk_op[n] = &op;
    note_store(copy);
    start_copy(warp, copy);
  });
  return following(op);
}

const WarpOp* run_bulk_commit(const WarpOp& op, Warp& warp) {
  LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  each_lane(warp.mask, [&](int lane) { ++groups.bulk[static_cast<std::size_t>(lane)]; });
  return following(op);
}

// Groups that may stay open: op.jump. The others land at the latest now.
const WarpOp* run_bulk_wait(const WarpOp& op, Warp& warp) {
  SimCluster& cluster = *warp.block->cluster;
  LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  each_lane(warp.mask, [&](int lane) {
    const auto at = static_cast<std::size_t>(lane);
    const std::int64_t last = static_cast<std::int64_t>(groups.bulk[at]) - op.jump;
    if (last <= 0) return;
    groups.bulk_waited[at] = std::max(groups.bulk_waited[at], static_cast<std::uint32_t>(last));
    if (warp.clock != nullptr) {
      const Time time = warp.block->cluster->clocks->start() + static_cast<Time>(last);
      warp.clock->bulk_reads[at] = std::max(warp.clock->bulk_reads[at], time);
      if (op.code == 0) warp.clock->bulk_writes[at] = std::max(warp.clock->bulk_writes[at], time);
    }
    for (std::size_t n = 0; n < cluster.pending.size();) {
      const PendingCopy& copy = cluster.pending[n];
      if (copy.is_store && copy.warp == &warp && copy.lane == lane && copy.group <= last) land_copy(cluster, n);
      else ++n;
    }
  });
  return following(op);
}

// ---- cp.async.
void land_elements(Warp& warp, const PendingElements& copy, LaneMask which) {
  SimBlock& block = *warp.block;
  each_lane(which, [&](int lane) {
    const auto n = static_cast<std::size_t>(lane);
    const auto read = static_cast<std::size_t>(copy.read[n]);
    if (read != 0) std::memcpy(block.shared.data() + copy.shared_byte[n], copy.source[n], read);
    std::memset(block.shared.data() + copy.shared_byte[n] + read, 0, static_cast<std::size_t>(copy.bytes) - read);
  });
}

// op.a: the element in shared memory, op.b: in global memory, op.jump: bytes. The site's operand, where it has one: how
// many of them are read; the rest is 0.
const WarpOp* run_element_copy(const WarpOp& op, Warp& warp) {
  const InstrSite& site = site_of(op);
  LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  const std::int64_t shared_bytes = bytes_of(site.memory.dtype);
  const std::int64_t source_bytes = bytes_of(site.source.dtype);
  const std::int64_t width = op.jump;
  LaneMask outside[2] = {0, 0};
  PendingElements copy;
  copy.op = &op;
  copy.bytes = op.jump;
  each_lane(warp.mask, [&](int lane) {
    const auto n = static_cast<std::size_t>(lane);
    const std::int64_t to = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i;
    const std::int64_t from = read_lane(warp, op.b, Dtype::Index, (op.uniform & 2) != 0, lane).i;
    if (to < 0 || to * shared_bytes + width > site.memory.elements * shared_bytes) {
      outside[0] |= 1u << lane;
      return;
    }
    const std::int64_t read = site.operands.empty() ? width : read_lane(warp, site.operands[0], lane).i;
    if (read < 0 || read > width)
      return report(warp, op, FaultKind::Misaligned, lane, fmt::format("reads {} bytes of a copy of {}", read, width));
    if (read > 0 && (from < 0 || from * source_bytes + read > site.source.elements * source_bytes)) {
      outside[1] |= 1u << lane;
      return;
    }
    copy.shared_byte[n] = site.memory.offset + to * shared_bytes;
    copy.read[n] = static_cast<int>(read);
    copy.source[n] = read > 0 ? site.source.base + from * source_bytes : nullptr;
    if (copy.shared_byte[n] % width != 0 || from * source_bytes % width != 0)
      return report(warp, op, FaultKind::Misaligned, lane, fmt::format("copies {} bytes from byte {} of `{}` to byte {} of shared memory, which are no multiples of that", width, from * source_bytes, site.source.name, copy.shared_byte[n]));
    copy.group[n] = groups.elements[n] + 1;
    copy.mask |= 1u << lane;
    if (warp.clock == nullptr) return;
    const ClusterClocks& clocks = *warp.block->cluster->clocks;
    warp.block->shadow->write_as(warp, op, lane, clocks.parties().elements + warp.clock->first_thread + static_cast<Party>(lane), clocks.start() + copy.group[n], copy.shared_byte[n], width);
    if (site.source.marks != nullptr)
      for (std::int64_t element = from; element < from + read / source_bytes; ++element) site.source.marks->access(warp, op, site.source, Use::Read, 1u << lane, &element, 0);
  });
  if (outside[0] != 0) report_outside(warp, op, site.memory, outside[0], true);
  if (outside[1] != 0) report_outside(warp, op, site.source, outside[1], false);
  const Landing landing = warp.block->core->landing;
  const bool is_early = landing == Landing::Early || (landing == Landing::Random && (warp.block->core->next_random() & 1) != 0);
  if (is_early) land_elements(warp, copy, copy.mask);
  else groups.pending.push_back(copy);
  return following(op);
}

const WarpOp* run_element_commit(const WarpOp& op, Warp& warp) {
  LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  each_lane(warp.mask, [&](int lane) { ++groups.elements[static_cast<std::size_t>(lane)]; });
  return following(op);
}

const WarpOp* run_element_wait(const WarpOp& op, Warp& warp) {
  LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  for (PendingElements& copy : groups.pending) {
    LaneMask landed = 0;
    each_lane(copy.mask & warp.mask, [&](int lane) {
      const auto n = static_cast<std::size_t>(lane);
      if (static_cast<std::int64_t>(copy.group[n]) <= static_cast<std::int64_t>(groups.elements[n]) - op.jump) landed |= 1u << lane;
    });
    land_elements(warp, copy, landed);
    copy.mask &= ~landed;
  }
  std::erase_if(groups.pending, [](const PendingElements& copy) { return copy.mask == 0; });
  if (warp.clock != nullptr)
    each_lane(warp.mask, [&](int lane) {
      const auto n = static_cast<std::size_t>(lane);
      const std::int64_t last = static_cast<std::int64_t>(groups.elements[n]) - op.jump;
      if (last > 0) warp.clock->elements[n] = std::max(warp.clock->elements[n], warp.block->cluster->clocks->start() + static_cast<Time>(last));
    });
  return following(op);
}

std::int32_t constant_operand(KernelCompiler& compiler, const Instr& instr, std::size_t operand) {
  const std::optional<std::int64_t> value = integer_value(instr.operands.at(operand));
  if (!value || *value < 0 || *value > 64) compiler.refuse(fmt::format("`{}` takes a small constant as operand {}", instr.op, operand + 1));
  return static_cast<std::int32_t>(*value);
}

// Where the rank of the instruction's name and of its map differ the text is wrong.
const MapInfo& map_of(KernelCompiler& compiler, const Instr& instr, std::size_t operand) {
  const MapInfo& map = compiler.tensor_map(instr.operands.at(operand));
  if (instr.op.find(fmt::format(".{}d", map.rank)) == std::string::npos) compiler.refuse(fmt::format("`{}` of the map `{}`, which has {} axes", instr.op, map.name, map.rank));
  return map;
}

void check_dtype(KernelCompiler& compiler, const Instr& instr, const InstrSite& site) {
  if (site.memory.dtype != site.map->tensor->dtype)
    compiler.refuse(fmt::format("`{}` between `{}` of {} and `{}` of {}", instr.op, site.memory.name, info(site.memory.dtype).name, site.map->tensor->name, info(site.map->tensor->dtype).name));
  if (!site.memory.is_shared) compiler.refuse(fmt::format("`{}` of `{}`, which is not shared", instr.op, site.memory.name));
}

void count_box(KernelCompiler& compiler, AccessKind kind, const Access& place) {
  const InstrSite& site = compiler.program().instr_sites.back();
  compiler.count_access(kind, place, site.memory, static_cast<int>(site.map->bytes() / bytes_of(site.memory.dtype)), site.map);
}

}  // namespace

void land_copy(SimCluster& cluster, std::size_t index) {
  const PendingCopy copy = cluster.pending[index];
  cluster.pending.erase(cluster.pending.begin() + static_cast<std::ptrdiff_t>(index));
  if (copy.is_store) return land_store(copy);
  for (SimBlock& block : cluster.blocks) {
    if ((copy.blocks >> block.rank & 1) == 0) continue;
    land_load(copy, block);
    complete_bytes(block, static_cast<std::size_t>(copy.barrier), copy.site->map->bytes());
  }
}

void check_copies_at_end(Warp& warp) {
  if (warp.block->groups.empty()) return;
  const LaneGroups& groups = warp.block->groups[static_cast<std::size_t>(warp.index)];
  each_lane(warp.all, [&](int lane) {
    const auto n = static_cast<std::size_t>(lane);
    if (groups.bulk_used[n] <= groups.bulk_waited[n]) return;
    const WarpOp& op = *groups.bulk_op[n];
    report(warp, op, FaultKind::Ended, lane, fmt::format("ends while its copy of `{}` may still read shared memory; `bulk.wait_group.read` has not waited for it", site_of(op).memory.name));
  });
}

void compile_box_load(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  Operand element;
  const bool is_multicast = instr.op.ends_with("multicast");
  site.memory = compiler.memory_site(place_of(instr, 0), element);
  site.map = &map_of(compiler, instr, 1);
  check_dtype(compiler, instr, site);
  const std::size_t barrier = instr.operands.size() - (is_multicast ? 2 : 1);
  site.barrier = compiler.barrier_site(place_of(instr, barrier));
  std::vector<Expr> rest(instr.operands.begin() + 2, instr.operands.begin() + static_cast<std::ptrdiff_t>(barrier));
  if (is_multicast) rest.push_back(instr.operands.back());
  site.operands = operands_of(compiler, rest);
  if (site.operands.size() != static_cast<std::size_t>(site.map->rank) + (is_multicast ? 1 : 0)) compiler.refuse(fmt::format("`{}` takes {} coordinates", instr.op, site.map->rank));
  WarpOp& op = compiler.emit(run_box_load);
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  op.a = element.cell;
  op.uniform = element.is_uniform ? 1 : 0;
  op.code = is_multicast ? 1 : 0;
  count_box(compiler, AccessKind::BoxLoad, place_of(instr, 0));
}

void compile_box_store(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  Operand element;
  site.map = &map_of(compiler, instr, 0);
  site.memory = compiler.memory_site(place_of(instr, instr.operands.size() - 1), element);
  check_dtype(compiler, instr, site);
  site.operands = operands_of(compiler, {instr.operands.begin() + 1, instr.operands.end() - 1});
  if (site.operands.size() != static_cast<std::size_t>(site.map->rank)) compiler.refuse(fmt::format("`{}` takes {} coordinates", instr.op, site.map->rank));
  WarpOp& op = compiler.emit(run_box_store);
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  op.a = element.cell;
  op.uniform = element.is_uniform ? 1 : 0;
  count_box(compiler, AccessKind::BoxStore, place_of(instr, instr.operands.size() - 1));
}

void compile_bulk_commit(KernelCompiler& compiler, const Instr&) {
  compiler.emit(run_bulk_commit);
}

void compile_bulk_wait(KernelCompiler& compiler, const Instr& instr) {
  WarpOp& op = compiler.emit(run_bulk_wait);
  op.jump = constant_operand(compiler, instr, 0);
  op.code = instr.op.ends_with("read") ? 1 : 0;
}

void compile_element_copy(KernelCompiler& compiler, const Instr& instr) {
  InstrSite site;
  Operand to;
  Operand from;
  site.memory = compiler.memory_site(place_of(instr, 0), to);
  site.source = compiler.memory_site(place_of(instr, 1), from);
  if (!site.memory.is_shared || site.source.is_shared) compiler.refuse("`cp.async` copies from global to shared memory");
  const std::int32_t bytes = constant_operand(compiler, instr, 2);
  if (bytes != 4 && bytes != 8 && bytes != 16) compiler.refuse(fmt::format("`cp.async` of {} bytes; 4, 8 and 16 are possible", bytes));
  if (instr.operands.size() > 3) site.operands = operands_of(compiler, {instr.operands[3]});
  WarpOp& op = compiler.emit(run_element_copy);
  op.object = &compiler.program().instr_sites.emplace_back(std::move(site));
  op.a = to.cell;
  op.b = from.cell;
  op.uniform = static_cast<std::uint8_t>((to.is_uniform ? 1 : 0) | (from.is_uniform ? 2 : 0));
  op.jump = bytes;
  const MemorySite& source_site = compiler.program().instr_sites.back().source;
  compiler.count_access(AccessKind::ElementCopy, place_of(instr, 1), source_site, std::max(1, bytes / bytes_of(source_site.dtype)));
}

void compile_element_commit(KernelCompiler& compiler, const Instr&) {
  compiler.emit(run_element_commit);
}

void compile_element_wait(KernelCompiler& compiler, const Instr& instr) {
  compiler.emit(run_element_wait).jump = constant_operand(compiler, instr, 0);
}

}  // namespace tilewright
