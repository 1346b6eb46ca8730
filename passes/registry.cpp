// The compiler, top to bottom: lowering, the schedule lines, the finishing passes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/spelling.h"
#include "passes/finish/passes.h"
#include "passes/pass.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

using enum NumericClass;

constexpr std::array schedule_list = {
    SchedulePass{"inline", "inline t", "a producer disappears into the kernels that read it, or its reader behind its reduction", Exact, inline_tensor},
    SchedulePass{"fuse", "fuse m, e into Y at r", "several kernels share one loop over a common axis", Exact, fuse},
    SchedulePass{"tile", "tile block i 16, j 16, k 16", "splits loops into blocks of a constant size", Exact, tile},
    SchedulePass{"bind", "bind i thread.y, j thread.x", "block tiles go to the grid, their elements to threads", Exact, bind},
    SchedulePass{"warps", "warps 8", "block tiles go to the grid, their elements to 32 threads a warp", Exact, warps},
    SchedulePass{"coarsen", "coarsen i 8 by 4, j 8 by 4", "a thread does the work of several", Exact, coarsen},
    SchedulePass{"split", "split d 256 thread.x by 4", "threads or blocks share a reduced index, each with a partial result", Reassociates, split},
    SchedulePass{"stage", "stage A, B in shared at k.block", "the part of a tensor that a block reads is kept in shared memory", Exact, stage},
    SchedulePass{"vectorize", "vectorize 4", "neighbouring elements of a thread move in one access", Exact, vectorize},
    SchedulePass{"mma", "mma wgmma over i", "a sum of products over a staged tile goes to the tensor cores", Reassociates, mma},
    SchedulePass{"pipeline", "pipeline k.block depth 4 via tma, in flight 1", "the next tiles are fetched while this one is used", Exact, pipeline},
    SchedulePass{"roles", "roles producer 1 warpgroup registers 40, consumer 2 warpgroups registers 232", "some warps fetch, the others compute", Exact, roles},
    SchedulePass{"cluster", "cluster i.block 2 multicast B", "neighbouring blocks fetch a shared operand once", Exact, cluster},
    SchedulePass{"epilogue", "epilogue C via shared tma, tile j 64 buffers 2", "results leave in slices by way of shared memory", Exact, epilogue},
    SchedulePass{"persist", "persist order hilbert", "resident blocks take one tile after the other", Exact, persist},
    SchedulePass{"overlap", "overlap C", "the results of a tile leave while the next is multiplied", Exact, overlap},
    SchedulePass{"unroll", "unroll k 4", "a loop of constant extent is written out", Exact, unroll},
    SchedulePass{"peel", "peel k.block", "whole tiles lose their bounds checks, the last one keeps them", Exact, peel},
    SchedulePass{"contract", "contract off", "a fused multiply-add becomes a product and a sum", ChangesPrecision, contract},
    SchedulePass{"math", "math fast", "functions become the hardware's approximations", ChangesPrecision, math},
};

// From here on nothing is free: threads are chosen, then conditions written out, then tiles become addresses.
constexpr std::array finishing_list = {
    FinishingPass{"bind_default", "binds and deals what is left", Exact, bind_default},
    FinishingPass{"guard", "rules and predicates become selects and ifs", Exact, guard},
    FinishingPass{"split_roles", "one body a role; without roles, the copies of a pipe run ahead", Exact, split_roles},
    FinishingPass{"expand", "deals, layouts and verbs become thread indices, addresses and instructions", Exact, expand},
    FinishingPass{"place_shared", "shared buffers get their offsets", Exact, place_shared},
    // Behind place_shared, for barriers are decided by buffer and never by address.
    FinishingPass{"synchronise", "barriers between conflicting accesses of shared buffers", Exact, synchronise},
    FinishingPass{"fence", "generic writes are ordered before what the tensor cores and the copy engine read", Exact, fence},
    FinishingPass{"simplify", "index arithmetic and checks that cannot fail disappear", Exact, simplify},
};

void check(const Plan& before, const Plan& after, std::string_view pass) {
  std::vector<std::string> faults = verify(after);
  if (faults.empty()) return;
  internal_error(fmt::format("after pass `{}`: {}\n--- before\n{}\n--- after\n{}", pass, faults.front(), print(before), print(after)));
}

}  // namespace

std::span<const SchedulePass> schedule_passes() { return schedule_list; }
std::span<const FinishingPass> finishing_passes() { return finishing_list; }

Plan apply_line(const Plan& plan, const ScheduleLine& line, const Target& target) {
  for (const SchedulePass& pass : schedule_list)
    if (pass.word == line.word) {
      Plan result = pass.run(plan, line, target);
      check(plan, result, pass.word);
      return result;
    }
  std::vector<std::string> words;
  for (const SchedulePass& pass : schedule_list) words.emplace_back(pass.word);
  const std::string meant = nearest(line.word, words);
  std::string help = "`help schedules` lists the lines";
  for (const SchedulePass& pass : schedule_list)
    if (pass.word == meant) help = fmt::format("did you mean `{}`?", pass.syntax);
  throw UserError(line.span, fmt::format("unknown schedule line `{}`", line.word), help);
}

Plan finish(const Plan& plan, const Target& target, std::vector<std::pair<std::string, Plan>>* after) {
  Plan result = plan;
  for (const FinishingPass& pass : finishing_list) {
    Plan next = pass.run(result, target);
    check(result, next, pass.name);
    result = std::move(next);
    if (after) after->emplace_back(std::string(pass.name), result);
  }
  return result;
}

}  // namespace tilewright
