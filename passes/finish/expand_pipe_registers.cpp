// Pipes via registers: the copies of the next trip are loaded before this trip's work and stored behind it.
//
//   before   serial k.block in T { acquire p; copies; commit p; wait p; work; release p }
//   after    if T > 0 { copies of trip 0 into slot 0 }; barrier
//            serial k.block in T { if k.block + 1 < T { loads of the next }; work on slot k.block % 2; if k.block + 1 < T { stores of the next }; barrier }
#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"

namespace tilewright {

void Expander::pipelined_through_registers(const Loop& loop, const Stmt& stmt, Block& out) {
  if (loop.axes.size() != 1) internal_error("a pipelined loop has several axes");
  const Axis& axis = loop.axes[0];
  Block copies, work;
  const Pipe* pipe = nullptr;
  bool filling = false;
  for (const Stmt& inner : loop.body) {
    if (const Verb* verb = as<Verb>(inner)) {
      if (const PipeState* known = find_pipe(verb->pipe)) pipe = &known->pipe;
      filling = verb->kind == VerbKind::Acquire || (filling && verb->kind != VerbKind::Commit);
      continue;
    }
    (filling ? copies : work).push_back(inner);
  }
  if (!pipe) internal_error("a verb of an unknown pipe");
  if (pipe->slots != 2) refuse(stmt, fmt::format("a pipe via registers with {} slots (two are needed)", pipe->slots));
  Expr first = integer(0);
  Expr trip = var(axis.name);
  if ((axis.lo && !is_integer_constant(axis.lo, 0)) || (axis.step && !is_integer_constant(axis.step, 1))) internal_error("a pipelined loop does not count from 0 by 1");
  auto in_slot = [&](const Block& body, const char* which, const Expr& slot, const Expr& at) {
    return substitute(body, {{pipe->name + which, slot}, {axis.name, at}});
  };
  Expr next = trip + 1;
  Expr next_slot = binary(BinaryOp::Mod, next, integer(2));
  Expr this_slot = binary(BinaryOp::Mod, trip, integer(2));
  Stmt barrier = make_stmt(Instr{"barrier.block", {}}, stmt->span);

  // The first trip.
  Block prologue;
  for (const Stmt& copy : in_slot(copies, ".in", integer(0), first)) copy_statement(copy, prologue);
  out.push_back(make_stmt(If{less(first, axis.hi), std::move(prologue), {}}, stmt->span));
  out.push_back(barrier);

  // The steady loop.
  Ranges outer = context_.ranges;
  add_axis(context_.ranges, axis);
  Loop node = loop;
  node.body.clear();
  Block loads, stores;
  for (const Stmt& inner : in_slot(copies, ".in", next_slot, next)) {
    const Copy* copy = as<Copy>(inner);
    if (!copy) refuse(inner, "a statement that is no copy between acquire and commit");
    CopyParts parts = expand_copy(*copy, inner->span, context_);
    node.body.insert(node.body.end(), parts.declarations.begin(), parts.declarations.end());
    loads.insert(loads.end(), parts.loads.begin(), parts.loads.end());
    stores.insert(stores.end(), parts.stores.begin(), parts.stores.end());
  }
  Expr more = less(next, axis.hi);
  node.body.push_back(make_stmt(If{more, std::move(loads), {}}, stmt->span));
  block_level(in_slot(work, ".out", this_slot, trip), node.body);
  node.body.push_back(make_stmt(If{more, std::move(stores), {}}, stmt->span));
  node.body.push_back(barrier);
  context_.ranges = std::move(outer);
  out.push_back(make_stmt(std::move(node), stmt->span));
}

void Expander::copy_statement(const Stmt& stmt, Block& out) {
  const Copy* copy = as<Copy>(stmt);
  if (!copy) refuse(stmt, "a statement that is no copy between acquire and commit");
  Block made = expand_whole_copy(*copy, stmt->span, context_);
  out.insert(out.end(), made.begin(), made.end());
}

}  // namespace tilewright
