// Both accesses with their threads, lines and trips, and what would order them.
#include "runtime/sim/race_report.h"

#include <fmt/format.h>

#include "runtime/sim/faults.h"

namespace tilewright {

namespace {

const char* verb(Use use) {
  switch (use) {
    case Use::Read: return "read";
    case Use::Write: return "write";
    case Use::Update: return "update";
    case Use::Use: return "use";
    case Use::Initialise: return "initialise";
  }
  return "";
}

// `(line 21, k.block = 1)`; loops null: not known.
std::string where_text(const KernelProgram& program, std::uint32_t statement, const std::array<std::int64_t, most_loops>* loops) {
  std::string text = "(" + place_text(program, statement);
  if (loops != nullptr)
    for (const LoopName& loop : program.statements[statement].loops) text += fmt::format(", {} = {}", loop.name, (*loops)[loop.number]);
  return text + ")";
}

struct PastText {
  std::string who;
  std::string remedy;
};

// What would order two threads.
std::string what_orders_threads(const Race& race, Party party) {
  if (race.cluster >= 0) return "only the end of the launch would";
  const bool both_write = race.kind == Use::Write && race.past == Use::Write;
  if (both_write && race.op->statement == race.statement && race.is_same_trip) return "only one of them may write it";
  const SimBlock& block = *race.warp->block;
  const std::size_t warps = block.warps.size();
  const std::size_t warp = party / lane_count;
  if (warp / warps != static_cast<std::size_t>(block.rank)) return "the cluster's barrier would";
  return !race.is_async && warp % warps == static_cast<std::size_t>(race.warp->index) ? "`barrier.warp` would" : "a barrier would";
}

PastText past_text(const ClusterClocks& clocks, const Race& race) {
  const SimBlock& block = *race.warp->block;
  const KernelProgram& program = *block.program;
  const PartyMap& parties = clocks.parties();
  const auto thread = [&](Party number) {
    const std::size_t warps = block.warps.size();
    const std::size_t warp = number / lane_count;
    const SimBlock& its = block.cluster->blocks[warp / warps];
    if (race.cluster >= 0) return fmt::format("thread {} of another block", number % (warps * lane_count));
    const std::string text = thread_text(its.warps[warp % warps], static_cast<int>(number % lane_count));
    const std::size_t of = text.find(" of block");
    return &its == &block ? text.substr(0, of) : text;
  };
  const Party party = race.party;
  if (party < parties.threads) return {thread(party), what_orders_threads(race, party)};
  if (party < parties.bulk_reads) return {fmt::format("the copy by `cp.async` of {}", thread(party - parties.elements)), "`cp.async.wait` and a barrier would"};
  if (party < parties.bulk_writes) return {fmt::format("the copy engine for {}", thread(party - parties.bulk_reads)), "`bulk.wait_group.read` by that thread and a barrier would"};
  if (party < parties.warpgroups) return {fmt::format("the copy engine for {}", thread(party - parties.bulk_writes)), "`bulk.wait_group` by that thread and a barrier would"};
  if (party < parties.objects) {
    const auto groups = static_cast<Party>(block.warps.size() / warps_of_warpgroup);
    return {fmt::format("wgmma of warpgroup {}", (party - parties.warpgroups) % groups), "`wgmma.wait` and a barrier or arrival would"};
  }
  const std::int64_t object = (party - parties.objects) % std::max<std::int64_t>(1, program.mbarriers);
  for (const ObjectBuffer& buffer : program.object_buffers)
    if (object >= buffer.first && object < buffer.first + buffer.count)
      return {"the copy engine", fmt::format("a wait for `{}[{}]` would", buffer.name, object - buffer.first)};
  return {"the copy engine", ""};
}

}  // namespace

void report_race(const ClusterClocks& clocks, const Race& race) {
  Warp& warp = *race.warp;
  const KernelProgram& program = *warp.block->program;
  const int lane = race.lane >= 0 ? race.lane : __builtin_ctz(warp.mask);
  warp.block->core->faults->add(warp, *race.op, race.is_unfenced ? FaultKind::Unfenced : FaultKind::Race, 1u << lane, [&](int) {
    std::string who = thread_text(warp, lane);
    if (race.is_async) who = race.lane < 0 ? fmt::format("wgmma of {} of {}", threads_text(warp, warp.all), block_text(*warp.block)) : "the copy engine for " + who;
    const std::array<std::int64_t, most_loops>* past_loops = nullptr;
    if (race.party < clocks.parties().threads && race.cluster < 0) {
      const WarpClock& its = clocks.warp(race.party / lane_count);
      const Moment& moment = its.history[race.time % its.history.size()];
      if (moment.time == race.time) past_loops = &moment.loops;
    }
    Race known = race;
    known.is_same_trip = past_loops == nullptr || *past_loops == warp.clock->loops;
    const PastText past = past_text(clocks, known);
    std::string end = "nothing orders them";
    if (race.is_unfenced) end = fmt::format("`{}` is missing between them, in front of the barrier or arrival", race.kind == Use::Use ? "fence.mbarrier_init" : "fence.proxy.async.shared");
    else if (!past.remedy.empty()) end += ": " + past.remedy;
    return fmt::format("race on `{}`: {} {}s it {} while {} may still {} it {}; {}", race.place, who, verb(race.kind), where_text(program, race.op->statement, &warp.clock->loops), past.who,
                       verb(race.past), where_text(program, race.statement, past_loops), end);
  });
}

void report_early_end(const ClusterClocks& clocks, Warp& last, const Stamp& visit) {
  const KernelProgram& program = *last.block->program;
  last.block->core->faults->add(last, *last.next, FaultKind::Race, 1u, [&](int) {
    const Race race{&last, last.next, 0, Use::Read, {}, visit.party, visit.time, visit.statement, Use::Write};
    return fmt::format("{} ends while {} may still come to its shared memory ({}); nothing orders them", block_text(*last.block), past_text(clocks, race).who,
                       place_text(program, visit.statement));
  });
}

std::string place_in_shared(const KernelProgram& program, std::int64_t byte) {
  for (const SharedBufferInfo& buffer : program.shared_buffers) {
    if (byte < buffer.offset || byte >= buffer.offset + buffer.bytes) continue;
    std::int64_t rest = (byte - buffer.offset) / bytes_of(buffer.dtype);
    std::string text;
    for (std::size_t axis = buffer.extents.size(); axis-- > 0; rest /= buffer.extents[axis]) text = fmt::format("{}{}", rest % buffer.extents[axis], text.empty() ? "" : ", " + text);
    return fmt::format("{}[{}]", buffer.name, text);
  }
  return fmt::format("byte {} of shared memory", byte);
}

}  // namespace tilewright
