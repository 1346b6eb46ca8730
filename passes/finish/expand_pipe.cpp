// Pipes via tma, and their verbs: two barrier objects a slot, a cursor of slot and phase on each side.
//
//   before   acquire p; copy As[p.in, …] <- A[…]; commit p             wait p; mma …; release p            (in flight 1)
//   after    mbarrier.wait(p.empty[p.in], p.in.phase ^ 1)              mbarrier.wait(p.full[p.out], p.out.phase)
//            mbarrier.arrive.expect_tx(p.full[p.in], 49152)            wgmma…; wgmma.commit(); wgmma.wait(1, acc)
//            tma.load.2d(As[p.in, 0], mA, …, p.full[p.in])             if k.block > 0 and t == 0 { mbarrier.arrive(p.empty[(p.out + 3) % 4]) }
//            p.in.phase = …; p.in = (p.in + 1) % 4                     p.out.phase = …; p.out = (p.out + 1) % 4
//
// One thread fills. `full` counts its arrival and completes by the bytes of the copies; `empty` counts one arrival a
// warpgroup where only wgmma reads the slots, else one a warp, of every block of the cluster where a copy is multicast.
// Cursors count on over loops and tiles. A release that comes late is made good behind the loop, if someone may still wait for it. The
// first slots of copies that run ahead are free without a wait.
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"

namespace tilewright {

namespace {

Expr i32(std::int64_t value) { return integer(value, Dtype::I32); }
Expr read(const std::string& name) { return load(Access{name, {}, {}, {}}, Dtype::I32); }
Stmt assign(const std::string& name, Expr value, Span span) { return make_stmt(Store{Access{name, {}, {}, span}, std::move(value), {}, std::nullopt}, span); }
Expr barrier_object(const std::string& array, const Expr& slot) { return load(Access{array, {slot}, {}, {}}, Dtype::Mbarrier); }
bool is_of(const Pipe& pipe, const std::string& buffer) { return std::find(pipe.buffers.begin(), pipe.buffers.end(), buffer) != pipe.buffers.end(); }

}  // namespace

const Expander::PipeState* Expander::find_pipe(const std::string& name) const {
  for (const PipeState& state : pipes_)
    if (state.pipe.name == name) return &state;
  return nullptr;
}

// What the kernel's text says of a pipe: who reads its slots, what fills them.
void Expander::declare_pipe(const Pipe& pipe, const Stmt& stmt) {
  if (in_loop_) internal_error(fmt::format("pipe `{}` is declared in a loop", pipe.name));
  PipeState state;
  state.pipe = pipe;
  state.mma_reads = true;
  bool by_engine = pipe.mechanism == "tma";
  if (by_engine || pipe.mechanism == "tma.store") needs_hopper(stmt, fmt::format("a pipe via {}", pipe.mechanism));
  std::int64_t reader_threads = whole_.total();
  auto look = [&](const Stmt& inner, std::int64_t threads) {
    if (const Verb* verb = as<Verb>(inner); verb && verb->pipe == pipe.name && verb->kind == VerbKind::Wait) reader_threads = threads;
    if (const Copy* copy = as<Copy>(inner)) {
      state.mma_reads &= !is_of(pipe, copy->source.buffer);
      if (is_of(pipe, copy->target.buffer)) state.has_multicast |= !copy->multicast.empty();
    }
    if (const Mma* mma = as<Mma>(inner)) {  // mma.sync reads by its warps' own loads
      const bool is_own = !mma->instruction.starts_with("wgmma");
      for (const Access* operand : {&mma->a, &mma->b}) state.mma_reads &= !(is_own && is_of(pipe, operand->buffer));
      return;
    }
    map_expressions(inner, [&](const Expr& expr) {
      for (const std::string& buffer : pipe.buffers) state.mma_reads &= !uses_buffer(expr, buffer);
      return expr;
    });
  };
  walk(kernel_.body, [&](const Stmt& inner) {
    const Labelled* labelled = as<Labelled>(inner);
    if (!labelled) return look(inner, whole_.total()), true;
    walk({labelled->statement}, [&](const Stmt& own) { return look(own, role_shape(labelled->role).total()), true; });
    return false;
  });
  for (const std::string& name : pipe.buffers) {
    Buffer flat = context_.flattener.flat(*context_.flattener.find(name));
    state.bytes += flat.axes.back().extent * bytes_of(flat.dtype);
  }
  state.arrivals = (state.mma_reads ? reader_threads / 128 : (reader_threads + 31) / 32) * (state.has_multicast ? cluster_ : 1);
  if (by_engine) {
    state.full = context_.fresh(pipe.name + ".full");
    state.empty = context_.fresh(pipe.name + ".empty");
    starts_pipes_ = true;
  }
  if (pipe.mechanism == "tma.store") {
    state.parts = parts_of_store(pipe);
    state.is_unrolled = is_unrolled(pipe);
  }
  pipes_.push_back(std::move(state));
}

// Barrier objects of all pipes, in front of the first statement that does something.
void Expander::start_pipes(Span span, Block& out) {
  if (!starts_pipes_) return;
  starts_pipes_ = false;
  Block init;
  for (const PipeState& state : pipes_) {
    if (state.full.empty()) continue;
    for (const std::string& name : {state.full, state.empty})
      out.push_back(make_stmt(Buffer{Space::Shared, name, Dtype::Mbarrier, {BufferAxis{"", state.pipe.slots}}, std::nullopt, std::nullopt}, span));
    std::string slot = context_.fresh("s");
    Block body = {instruction("mbarrier.init", {barrier_object(state.full, var(slot)), integer(1)}, span),
                  instruction("mbarrier.init", {barrier_object(state.empty, var(slot)), integer(state.arrivals)}, span)};
    init.push_back(make_stmt(Loop{LoopKind::Unroll, {Axis{slot, integer(0), integer(state.pipe.slots), {}, span}}, std::nullopt, std::move(body)}, span));
  }
  init.push_back(instruction("fence.mbarrier_init", {}, span));
  out.push_back(when(binary(BinaryOp::Eq, linear_thread(whole_), integer(0)), std::move(init), span));
  if (cluster_ > 1) {
    out.push_back(instruction("cluster.arrive.relaxed", {}, span));
    out.push_back(instruction("cluster.wait", {}, span));
  } else {
    out.push_back(instruction("barrier.block", {}, span));
  }
}

// The cursors that a body's verbs move, at its beginning.
void Expander::declare_cursors(const Block& body, Block& out) {
  for (const PipeState& state : pipes_) {
    if (state.pipe.mechanism == "registers" || state.is_unrolled) continue;
    for (const char* side : {".in", ".out"}) {
      VerbKind kind = std::string(side) == ".in" ? VerbKind::Acquire : VerbKind::Wait;
      bool used = false;
      Span span;
      walk(body, [&](const Stmt& stmt) {
        const Verb* verb = as<Verb>(stmt);
        if (verb && verb->pipe == state.pipe.name && verb->kind == kind) used = true, span = stmt->span;
        return !used;
      });
      if (!used) continue;
      std::vector<std::string> names = {state.pipe.name + side};
      if (!state.full.empty()) names.push_back(state.pipe.name + side + ".phase");
      for (const std::string& name : names) out.push_back(make_stmt(Buffer{Space::Register, name, Dtype::I32, {}, std::nullopt, std::nullopt}, span));
      for (const std::string& name : names) out.push_back(assign(name, i32(0), span));
      cursors_.insert(state.pipe.name + side);
    }
  }
}

void Expander::advance(const PipeState& state, const std::string& side, Span span, Block& out) {
  std::string cursor = state.pipe.name + side;
  if (!cursors_.count(cursor)) return;
  Expr last = binary(BinaryOp::Eq, read(cursor), i32(state.pipe.slots - 1));
  std::string phase = cursor + ".phase";
  if (!state.full.empty()) out.push_back(assign(phase, select(last, binary(BinaryOp::BitXor, read(phase), i32(1)), read(phase)), span));
  out.push_back(assign(cursor, binary(BinaryOp::Mod, read(cursor) + i32(1), i32(state.pipe.slots)), span));
}

bool Expander::has_fresh_slots(const PipeState& state) const {
  return unrolled_trips_ > 0 && unrolled_trips_ <= state.pipe.slots && acquired_.count(state.pipe.name) == 0;
}

void Expander::wait_until_empty(const PipeState& state, Span span, Block& out) {
  std::string cursor = state.pipe.name + ".in";
  out.push_back(instruction("mbarrier.wait", {barrier_object(state.empty, read(cursor)), binary(BinaryOp::BitXor, read(cursor + ".phase"), i32(1))}, span));
}

void Expander::wait_until_full(const PipeState& state, Span span, Block& out) {
  std::string cursor = state.pipe.name + ".out";
  out.push_back(instruction("mbarrier.wait", {barrier_object(state.full, read(cursor)), read(cursor + ".phase")}, span));
}

// acquire … commit of a pipe via tma: gives the position of the commit.
std::size_t Expander::fill_by_engine(const PipeState& state, const Block& statements, std::size_t at, Block& out) {
  Span span = statements[at]->span;
  Block body;
  if (!has_fresh_slots(state)) wait_until_empty(state, span, body);
  acquired_.insert(state.pipe.name);
  body.push_back(instruction("mbarrier.arrive.expect_tx", {barrier_object(state.full, read(state.pipe.name + ".in")), integer(state.bytes)}, span));
  std::size_t n = at + 1;
  for (; n < statements.size() && !as<Verb>(statements[n]); ++n) {
    const Copy* copy = as<Copy>(statements[n]);
    if (!copy || !is_of(state.pipe, copy->target.buffer)) refuse(statements[n], "between `acquire` and `commit` of a pipe via tma, a statement that does not fill it");
    load_by_engine(*copy, statements[n], barrier_object(state.full, read(state.pipe.name + ".in")), body);
  }
  if (is_single_thread_) out.insert(out.end(), body.begin(), body.end());
  else out.push_back(when(binary(BinaryOp::Eq, linear_thread(context_.block), integer(0)), std::move(body), span));
  advance(state, ".in", span, out);
  return n;
}

Expr Expander::thread_of_warpgroup(Span span) {
  return var(head_let("t", binary(BinaryOp::Mod, var("thread.x"), integer(128)), span));
}

// The slot that was waited for `trips` trips ago is free again; `condition` (may be empty) says whether there was one.
void Expander::arrive_empty(const PipeState& state, int trips, const Expr& condition, Span span, Block& out) {
  Expr slot = read(state.pipe.name + ".out");
  if (trips > 0) slot = binary(BinaryOp::Mod, slot + i32(state.pipe.slots - trips), i32(state.pipe.slots));
  Expr object = barrier_object(state.empty, slot);
  Expr who = state.mma_reads ? thread_of_warpgroup(span) : var("lane");
  Block body;
  if (state.has_multicast) body = {when(both(condition, less(who, integer(cluster_))), {instruction("mbarrier.arrive.cluster", {object, who}, span)}, span)};
  else body = {when(both(condition, binary(BinaryOp::Eq, who, integer(0))), {instruction("mbarrier.arrive", {object}, span)}, span)};
  out.insert(out.end(), body.begin(), body.end());
}

void Expander::release(const PipeState& state, Span span, Block& out) {
  if (!state.mma_reads) {
    wait_for_mma(0, span, out);
    // What was read is ordered before the engine's next write of the slot.
    out.push_back(instruction("fence.proxy.async.shared", {}, span));
    out.push_back(instruction("barrier.warp", {}, span));
    arrive_empty(state, 0, {}, span, out);
  } else {
    int late = late_loop_ && late_loop_->axes.size() == 1 ? state.pipe.in_flight : 0;
    wait_for_mma(late, span, out);
    Expr was_there = late > 0 ? binary(BinaryOp::Gt, var(late_loop_->axes[0].name), integer(late - 1)) : Expr{};
    arrive_empty(state, late, was_there, span, out);
  }
  advance(state, ".out", span, out);
}

// Behind a loop whose releases came late.
void Expander::release_rest(const PipeState& state, const Axis& axis, Span span, Block& out) {
  wait_for_mma(0, span, out);
  for (int trips = state.pipe.in_flight; trips > 0; --trips)
    arrive_empty(state, trips, binary(BinaryOp::Gt, context_.flattener.flat(axis.hi), integer(trips - 1)), span, out);
}

void Expander::finish_pipes(const Block& body, Block& out) {
  for (const PipeState& state : pipes_) {
    bool fills = false;
    walk(body, [&](const Stmt& stmt) {
      const Verb* verb = as<Verb>(stmt);
      fills |= verb && verb->pipe == state.pipe.name && verb->kind == VerbKind::Acquire;
      return !fills;
    });
    if (!fills || body.empty()) continue;
    Span span = body.back()->span;
    if (state.pipe.mechanism == "tma.store") out.push_back(when(is_storer(state, span), {instruction("bulk.wait_group.read", {integer(0)}, span)}, span));
    if (!state.full.empty() && state.has_multicast) {
      Block waits;
      drain(state, span, waits);
      if (is_single_thread_) out.insert(out.end(), waits.begin(), waits.end());
      else out.push_back(when(binary(BinaryOp::Eq, linear_thread(context_.block), integer(0)), std::move(waits), span));
    }
  }
}

// Blocks of a cluster arrive at each other's objects: none may leave before the last of these arrivals.
void Expander::drain(const PipeState& state, Span span, Block& out) {
  std::string slot = context_.fresh("s");
  Block body;
  wait_until_empty(state, span, body);
  advance(state, ".in", span, body);
  out.push_back(make_stmt(Loop{LoopKind::Serial, {Axis{slot, integer(0), integer(state.pipe.slots), {}, span}}, std::nullopt, std::move(body)}, span));
}

}  // namespace tilewright
