// What paid and what did not: sentences from the counts of neighbouring rungs, and the line to try next.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/library/ladder/ladder.h"

namespace tilewright {

namespace {

constexpr double noticed = 1.05;        // a smaller change of a count, or of a time without rounds, is not spoken of
constexpr double noticed_time = 1.01;   // of a time by rounds, where no round of one is as fast as one of the other

// "fell 8.0x (34.4 G to 4.3 G)"; how a part's amount went.
std::string change_text(const Part& before, const Part& now) {
  const double factor = before.amount / now.amount;
  const std::string way = factor >= 1 ? fmt::format("fell {:.2g}x", factor) : fmt::format("rose {:.2g}x", 1 / factor);
  return fmt::format("{} ({} to {} {})", way, number_text(before.amount), number_text(now.amount), now.unit);
}

// The time that stands for a row: measured, or the least where nothing was.
double time_of(const LadderRow& row, bool is_timed) { return is_timed ? (row.timing ? row.timing->median_ms : 0) : row.least_ms; }

std::string share_text(const Part& part, double ms, bool is_timed) {
  return is_timed && ms > 0 ? fmt::format("it took {:.0f} % of the time", 100 * part.least_ms / ms) : fmt::format("it needs {} of at least {}", milliseconds_text(part.least_ms), milliseconds_text(ms));
}

// How often the one time is the other, where that is no accident of the rounds; else 1.
double change_of(const LadderRow& before, const LadderRow& now, bool is_timed) {
  const double factor = time_of(before, is_timed) / time_of(now, is_timed);
  const bool has_rounds = is_timed && before.timing->round_ms.size() > 1 && now.timing->round_ms.size() > 1;
  const double least = has_rounds ? noticed_time : noticed;
  if (has_rounds && before.timing->lowest_ms <= now.timing->highest_ms && now.timing->lowest_ms <= before.timing->highest_ms) return 1;
  return factor > least || factor < 1 / least ? factor : 1;
}

std::string rounds_text(const Timing& timing) { return fmt::format("{} to {}", milliseconds_text(timing.lowest_ms), milliseconds_text(timing.highest_ms)); }

bool is_counted(const LadderRow& row) { return row.part("L1/shared") != nullptr; }

std::string verdict_of(const LadderRow& before, const LadderRow& now, bool is_timed) {
  // Least times of rows whose parts are not all counted say nothing of each other.
  if (!is_timed && (!is_counted(before) || !is_counted(now))) return "open      not all parts of both rungs are counted, so their least times cannot be compared";
  const double was = time_of(before, is_timed), is = time_of(now, is_timed);
  if (was <= 0 || is <= 0) return "";
  const char* what = is_timed ? "time" : "least time";
  std::string text;
  // Where a block could not be run, DRAM is only what is left; of tensor cores the operations are known all the same.
  const bool is_limit_known = is_counted(before) || before.busiest == "tensor";
  const Part* limit = is_limit_known ? before.part(before.busiest) : nullptr;
  const Part* limit_now = is_limit_known ? now.part(before.busiest) : nullptr;
  const bool limit_fell = limit != nullptr && limit_now != nullptr && limit->amount > noticed * limit_now->amount;
  const bool limit_is_gone = limit != nullptr && limit_now == nullptr && now.not_counted.empty();
  const double change = change_of(before, now, is_timed);
  if (change > 1) {
    text = fmt::format("paid      the {} fell {:.2f}x", what, was / is);
    if (limit_fell) text += fmt::format(": {}, the busiest part before, {}", limit->name, change_text(*limit, *limit_now));
    if (limit_fell && is_timed && change > 1.1 * limit->amount / limit_now->amount)
      text += fmt::format("; the rest is less waiting: it was at {:.0f} % of its rate, and is at {:.0f} %", 100 * limit->least_ms / was, 100 * limit_now->least_ms / is);
    if (!limit_fell && limit_is_gone) text += fmt::format(": {}, the busiest part before, is not used any more", limit->name);
    else if (!limit_fell && limit != nullptr && limit_now != nullptr) text += fmt::format(", though {}, the busiest part before, asks for as much: what was waited for is hidden better", limit->name);
    else if (!limit_fell && limit == nullptr) text += "; what the busiest part was is not counted";
    else if (!limit_fell) text += "; what the busiest part is asked for now is not counted";
  } else if (change < 1) {
    text = fmt::format("cost      the {} rose {:.2f}x", what, is / was);
    const Part* worst = now.part(now.busiest);
    const Part* old = before.part(now.busiest);
    if (worst != nullptr && old != nullptr && worst->amount > noticed * old->amount) text += fmt::format(": {} {}", worst->name, change_text(*old, *worst));
  } else {
    text = fmt::format("no change the {} is the same", what);
    if (is_timed && now.timing->round_ms.size() > 1) text += fmt::format(", as far as the rounds tell: {} before, {} now", rounds_text(*before.timing), rounds_text(*now.timing));
    else text += " within 5 %";
    if (limit_fell) text += fmt::format(", though {} {}", limit->name, change_text(*limit, *limit_now));
  }
  for (const Part& part : before.parts) {
    const Part* later = now.part(part.name);
    if (later == nullptr || part.name == before.busiest || part.amount < noticed * later->amount) continue;
    text += fmt::format("\n  not why   {} {}, and was not the limit: {}", part.name, change_text(part, *later), share_text(part, was, is_timed));
  }
  if (limit != nullptr && limit_now != nullptr && now.busiest != before.busiest) text += fmt::format("\n  now       {} is the busiest part, no longer {}", now.busiest, before.busiest);
  return text;
}

// What the schedule has so far, by its words.
struct Sofar {
  bool tiled = false, bound = false, staged = false, coarsened = false, vectors = false, pipelined = false, mma = false, tma = false, owns_neighbours = false, roles = false, epilogue = false, persist = false, warps = false;
  void add(const std::string& line) {
    const auto has = [&](const char* word) { return line.starts_with(word) || line.find(std::string(": ") + word) != std::string::npos; };
    tiled |= has("tile"), bound |= has("bind"), staged |= has("stage"), coarsened |= has("coarsen"), vectors |= has("vectorize"), pipelined |= has("pipeline");
    mma |= has("mma"), roles |= has("roles"), epilogue |= has("epilogue"), persist |= has("persist"), warps |= has("warps");
    owns_neighbours |= has("coarsen") && line.find(" by ") != std::string::npos && line.find("by 1") == std::string::npos;
    tma |= has("pipeline") && line.find("via tma") != std::string::npos;
  }
};

std::string next_of(const Ladder& ladder, const LadderRow& row, const Sofar& sofar, bool is_timed) {
  const double time = time_of(row, is_timed);
  const Part* limit = row.part(row.busiest);
  if (limit == nullptr || time <= 0) return "";
  if (!is_counted(row) && (!is_timed || limit->name != "tensor")) return "";  // the busiest part is not known
  const double share = is_timed ? limit->least_ms / time : 1;
  const std::string busy = is_timed ? fmt::format("{} is at {:.0f} % of its rate", limit->name, 100 * share) : fmt::format("{} sets the least time", limit->name);
  const auto wasteful = std::find_if(row.accesses.begin(), row.accesses.end(), [](const AccessRow& access) { return access.space == "global" && access.sectors >= 2 * access.sectors_needed && access.sectors >= 8 * access.requests; });
  const bool reuses = ladder.work_operations > 8 * ladder.compulsory_bytes;  // each byte serves several operations
  if (wasteful != row.accesses.end()) {
    const std::string waste = fmt::format("a request for `{}` touches {:.1f} sectors where {:.1f} would do", wasteful->tensor, wasteful->sectors / wasteful->requests, wasteful->sectors_needed / wasteful->requests);
    // One that is side by side now, and would not be with another index on thread.x.
    const auto spoilt = std::find_if(row.accesses.begin(), row.accesses.end(), [](const AccessRow& access) { return access.space == "global" && access.sectors < 1.2 * access.sectors_needed && access.sectors >= 4 * access.requests; });
    if (sofar.owns_neighbours && !sofar.vectors) return fmt::format("`vectorize 4`: {}; what a thread owns side by side can be one access", waste);
    if (spoilt != row.accesses.end() && !sofar.staged) return fmt::format("`stage {} in shared at …`: {}, and with another index on thread.x `{}` would", wasteful->tensor, waste, spoilt->tensor);
    if (!sofar.staged) return fmt::format("`bind` with another index on thread.x: {}", waste);
  }
  if (limit->name == "L1/shared") {
    if (!sofar.tiled) return fmt::format("`tile block …` and `bind …`: {}, and which threads are neighbours decides how many passes a request takes", busy);
    if (reuses && !sofar.staged) return fmt::format("`stage … in shared at k.block`: {}; a word that is fetched once can serve every thread of its row or column", busy);
    if (reuses && !sofar.coarsened && !sofar.mma) return fmt::format("`coarsen i 8 by 4, j 8 by 4`: {}, and each word read from shared memory serves one product; in registers it serves eight", busy);
    if (!sofar.vectors && !sofar.mma) return fmt::format("`vectorize 4`: {}; four words side by side are one request", busy);
    return fmt::format("a larger tile a thread (`coarsen`), or a layout with fewer passes (`stage … pad`, `transposed`): {}", busy);
  }
  if (limit->name == "DRAM" || limit->name == "L2") {
    if (share > 0.85 && is_timed) return fmt::format("nothing here: {}; only fewer bytes help (`fuse` with the kernel before, narrower types)", busy);
    if (!sofar.vectors) return fmt::format("`vectorize 4`: {}; more bytes have to be in flight at a time", busy);
    return fmt::format("`coarsen` or a pipeline, for more bytes in flight: {}", busy);
  }
  if (limit->name == "FP32" || limit->name == "issue") {
    if (share > 0.85 && is_timed) return fmt::format("nothing with these instructions: {}; tensor cores (`mma`) do more in one", busy);
    if (reuses && !sofar.pipelined) return fmt::format("`pipeline k.block depth 2 via registers`: {}, the rest of the time is spent waiting for tiles", busy);
    return fmt::format("`unroll k`, or another shape of tile: {}; addresses and loops take what is left of the issue slots", busy);
  }
  if (limit->name == "tensor") {
    if (!sofar.tma) return fmt::format("`pipeline k.block depth 4 via tma, in flight 1`: {}; they wait for tiles that threads carry", busy);
    if (!sofar.roles) return fmt::format("`roles producer 1 warpgroup …`: {}; a warpgroup that only asks for tiles lets the others multiply", busy);
    if (!sofar.epilogue) return fmt::format("`epilogue C via shared tma …`: {}; results leave in short stores", busy);
    if (!sofar.persist) return fmt::format("`persist order hilbert by gpc`: {}; between tiles the tensor cores stand still", busy);
    return fmt::format("other sizes of tile: {}", busy);
  }
  return fmt::format("fewer such operations: {}", busy);
}

}  // namespace

void add_verdicts(Ladder& ladder) {
  const bool is_timed = std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.kind == RowKind::Rung && row.timing; });
  const LadderRow* before = nullptr;
  for (LadderRow& row : ladder.rows) {
    if (row.kind != RowKind::Rung) continue;
    Sofar sofar;
    for (const std::string& line : row.lines) sofar.add(line);
    if (row.same_code) {
      row.verdict = "same code  nothing is different yet: the line sets what later lines need";
      continue;
    }
    if (before != nullptr) row.verdict = verdict_of(*before, row, is_timed);
    row.next = next_of(ladder, row, sofar, is_timed);
    before = &row;
  }
}

}  // namespace tilewright
