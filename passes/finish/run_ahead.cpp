// Without roles: the copies of a pipe run ahead of the work in the program of the one that does both.
//
//   before   serial k.block in T { acquire p; copies; commit p; wait p; work; release p }       4 slots, in flight 1, via tma
//   after    unroll k.block.ahead in 3 { if k.block.ahead < T { acquire p; copies of k.block.ahead; commit p } }
//            serial k.block in T { wait p; work; release p; if k.block + 3 < T { acquire p; copies of k.block + 3; commit p } }
//
// Via tma the copies run slots - `in flight` trips ahead. Via cp.async it is one fewer than the slots (or as many fewer as
// are in flight), and the copies stand in front of the work: the barrier behind the wait tells that the slot of the
// trip before is free. The verbs stay in order, so that the result still runs in the tile interpreter.
#include "passes/finish/run_ahead.h"

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/expand.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

class Staggering {
 public:
  Block body(const Block& statements) {
    Block result;
    for (const Stmt& stmt : statements) {
      if (const Pipe* pipe = as<Pipe>(stmt)) pipes_.push_back(*pipe);
      const Loop* loop = as<Loop>(stmt);
      const Pipe* pipe = loop ? pipe_of(*loop) : nullptr;
      if (pipe) split(*loop, *pipe, stmt->span, result);
      else result.push_back(map_bodies(stmt, [&](const Block& inner) { return body(inner); }));
    }
    return result;
  }

 private:
  // The pipe that the loop begins to fill, if its copies can run ahead.
  const Pipe* pipe_of(const Loop& loop) const {
    const Verb* first = loop.body.empty() ? nullptr : as<Verb>(loop.body[0]);
    if (!first || first->kind != VerbKind::Acquire) return nullptr;
    for (const Pipe& pipe : pipes_)
      if (pipe.name == first->pipe) return pipe.mechanism == "tma" || pipe.mechanism == "cp.async" ? &pipe : nullptr;
    return nullptr;
  }

  static void split(const Loop& loop, const Pipe& pipe, Span span, Block& out) {
    auto is_commit = [&](const Stmt& stmt) {
      const Verb* verb = as<Verb>(stmt);
      return verb && verb->kind == VerbKind::Commit && verb->pipe == pipe.name;
    };
    auto commit = std::find_if(loop.body.begin(), loop.body.end(), is_commit);
    const Axis& axis = loop.axes[0];
    if (commit == loop.body.end() || !counts_up(loop)) throw UserError(span, "the loop of a pipe does not count from 0 by 1, or does not commit what it acquired");
    Block copies(loop.body.begin(), commit + 1);
    Block work(commit + 1, loop.body.end());
    bool by_barrier = pipe.mechanism == "cp.async";
    int ahead = pipe.slots - (by_barrier ? std::max(1, pipe.in_flight) : pipe.in_flight);
    if (ahead < 1) throw UserError(span, "a pipe of one slot has no room for copies that run ahead", "give it more slots");

    auto copies_of = [&](const Expr& trip) {
      return make_stmt(If{less(trip, axis.hi), replace(copies, {{axis.name, trip}}), {}}, span);
    };
    std::string name = axis.name + ".ahead";
    out.push_back(make_stmt(Loop{LoopKind::Unroll, {counted(name, ahead, span)}, std::nullopt, {copies_of(var(name))}}, span));
    Loop steady = loop;
    steady.body = std::move(work);
    Stmt refill = copies_of(var(axis.name) + ahead);
    auto wait = std::find_if(steady.body.begin(), steady.body.end(), [](const Stmt& stmt) {
      const Verb* verb = as<Verb>(stmt);
      return verb && verb->kind == VerbKind::Wait;
    });
    if (by_barrier && wait == steady.body.end()) throw UserError(span, "the loop of a pipe does not wait for what it fills");
    steady.body.insert(by_barrier ? wait + 1 : steady.body.end(), refill);
    out.push_back(make_stmt(std::move(steady), span));
  }

  std::vector<Pipe> pipes_;
};

}  // namespace

Block run_ahead(const Block& body) { return Staggering().body(body); }

}  // namespace tilewright
