// Pipes via cp.async: groups of copies, counted, and one barrier a trip.
//
//   before   if k.block + 3 < T { acquire p; copy As[p.in, …] <- A[…]; commit p }      wait p      (4 slots)
//   after    if k.block + 3 < T { cp.async.fill(As[p.in, …], A[…], 16, if … then 16 else 0); p.in = (p.in + 1) % 4 }
//            cp.async.commit()                                                         cp.async.wait(2); barrier.block()
//
// A group is closed in every trip, so that their number tells which are done. The barrier behind the wait shows each
// thread's copies to all, and that the slot of the trip before is free. Needs: run_ahead before it; no roles.
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/expander.h"

namespace tilewright {

std::size_t Expander::fill_by_cp_async(const PipeState& state, const Block& statements, std::size_t at, Block& out) {
  Span span = statements[at]->span;
  if (context_.block.total() != whole_.total()) refuse(statements[at], "a pipe via cp.async between roles");
  std::size_t n = at + 1;
  for (; n < statements.size() && !as<Verb>(statements[n]); ++n) {
    const Copy* copy = as<Copy>(statements[n]);
    if (!copy) refuse(statements[n], "between `acquire` and `commit` of a pipe via cp.async, a statement that is no copy");
    Block made = expand_async_copy(*copy, statements[n]->span, context_);
    out.insert(out.end(), made.begin(), made.end());
  }
  advance(state, ".in", span, out);
  out.push_back(make_stmt(Instr{"cp.async.commit", {}}, span));
  return n;
}

void Expander::wait_for_cp_async(const PipeState& state, Span span, Block& out) {
  int ahead = state.pipe.slots - std::max(1, state.pipe.in_flight);
  out.push_back(make_stmt(Instr{"cp.async.wait", {integer(ahead - 1)}}, span));
  out.push_back(make_stmt(Instr{"barrier.block", {}}, span));
}

}  // namespace tilewright
