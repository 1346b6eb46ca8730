// pipeline: fetch the tiles of the next trips while this one computes.
//
//   pipeline k.block depth 4 via tma, in flight 1
//   before   shared As: bf16[i 128, k 64] (…)
//            serial k.block … { copy As[As.i, As.k] <- A[…]; copy Bs[…] <- B[…]; mma acc[i, j] += As[i, k] * … }
//   after    shared As: bf16[slot 4, i 128, k 64] (slot: 4 mem*8192; …)
//            pipe p: As, Bs slots 4 via tma in flight 1 scope block
//            serial k.block … { acquire p; copy As[p.in, As.i, As.k] <- A[…]; copy Bs[p.in, …] <- B[…]; commit p
//                               wait p; mma acc[i, j] += As[p.out, i, k] * …; release p }
//
// No code moves: the staged buffers gain a slot axis and the pipe its four verbs; what runs ahead follows from them.
// `via registers`: a thread loads the next tile into registers and stores it when the slot is free, in 2 slots.
// `via cp.async` (sm_80 and later): threads start copies past the registers. `via tma` (sm_90 and later): the copy
// engine fetches whole boxes. `in flight n`: a slot is released n trips after its use has started; `pipeline k.block in
// flight 1` says so of a pipeline that is there.
//
// Needs: tiles staged at the loop, room for all slots, depth > n; for cp.async and tma a fill of 0 and a tensor whose
// rows start where they need it, as facts of the schedule.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "passes/schedule/asynchronous_copy.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

struct PipelineLine {
  LineName at;
  LineNumber depth;  // 0: of a pipeline that is there
  LineName mechanism;
  LineNumber in_flight;
};

void refuse_too_many(const LineNumber& in_flight, std::int64_t depth) {
  if (in_flight.value < depth) return;
  throw UserError(in_flight.span,
                  fmt::format("{} trips in flight hold {} slots, and one is filled; depth {} is too little",
                              in_flight.value, in_flight.value + 1, depth),
                  fmt::format("`depth {}` or more", in_flight.value + 1));
}

PipelineLine read_pipeline_line(const ScheduleLine& line) {
  LineReader reader(line);
  PipelineLine result;
  result.at = reader.name("the name of a loop");
  if (reader.accept("in")) {
    reader.expect("flight");
    result.in_flight = reader.number("a number of trips", 0);
    reader.end();
    return result;
  }
  reader.expect("depth");
  result.depth = reader.number("a number of slots", 2);
  reader.expect("via");
  result.mechanism = reader.name("`registers`, `cp.async` or `tma`");
  if (reader.accept(",")) {
    reader.expect("in");
    reader.expect("flight");
    result.in_flight = reader.number("a number of trips", 0);
  }
  reader.end();
  const std::string& mechanism = result.mechanism.text;
  if (mechanism != "registers" && mechanism != "cp.async" && mechanism != "tma")
    throw UserError(result.mechanism.span, fmt::format("there is no pipeline via `{}`", mechanism),
                    "`via registers` works on every architecture, `via cp.async` from sm_80, `via tma` from sm_90");
  if (mechanism == "registers" && (result.depth.value != 2 || result.in_flight.value != 0))
    throw UserError(
        result.depth.span,
        fmt::format("depth {}: a pipeline via registers has 2 slots, one in use and one that is filled, and "
                    "no trip in flight",
                    result.depth.value));
  refuse_too_many(result.in_flight, result.depth.value);
  return result;
}

class Pipelining {
 public:
  Pipelining(Names& names, const PipelineLine& line) : line_(line), at_(line.at), pipe_(names.fresh("p")) {}

  // `asynchronous`: null for a pipeline via registers.
  Block apply(const Block& block, AsynchronousCopies* asynchronous) {
    find_buffers(block);
    if (buffers_.empty())
      throw UserError(at_.span, fmt::format("nothing is staged at `{}`; a pipeline carries staged tiles", at_.text),
                      fmt::format("`stage A in shared at {}` first", at_.text));
    refuse_other_uses(block);
    if (asynchronous) check_copies(block, *asynchronous);
    Block result = with_slots(block);
    auto behind = std::find_if(result.begin(), result.end(), [](const Stmt& stmt) {
      return !as<Buffer>(stmt) && !as<Role>(stmt) && !as<Pipe>(stmt);
    });
    Pipe pipe{pipe_, buffers_, depth(), line_.mechanism.text, static_cast<int>(line_.in_flight.value), PipeScope::Cta};
    Span span = behind == result.end() ? Span{} : (*behind)->span;
    result.insert(behind, make_stmt(std::move(pipe), span));
    return result;
  }

 private:
  bool is_the_loop(const Stmt& stmt) const {
    const Loop* loop = as<Loop>(stmt);
    return loop && loop->kind == LoopKind::Serial && loop->axes.back().name == at_.text;
  }

  int depth() const { return static_cast<int>(line_.depth.value); }

  void check_copies(const Block& block, AsynchronousCopies& asynchronous) const {
    std::map<std::string, Buffer> tiles;
    walk(block, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) tiles[buffer->name] = *buffer;
      if (is_the_loop(stmt))
        for (const Stmt& inner : as<Loop>(stmt)->body)
          if (const Copy* copy = as<Copy>(inner)) asynchronous.need(*copy, tiles.at(copy->target.buffer));
      return true;
    });
    asynchronous.refuse_missing_facts();
  }

  void find_buffers(const Block& block) {
    int loops = 0;
    walk(block, [&](const Stmt& stmt) {
      if (!is_the_loop(stmt)) return true;
      ++loops;
      for (const Stmt& inner : as<Loop>(stmt)->body) {
        if (as<Verb>(inner)) throw UserError(at_.span, fmt::format("`{}` is a pipeline already", at_.text));
        if (const Copy* copy = as<Copy>(inner)) buffers_.push_back(copy->target.buffer);
      }
      return true;
    });
    if (loops > 1)
      throw UserError(at_.span, fmt::format("{} loops are called `{}`; a pipeline belongs to one", loops, at_.text));
  }

  // The buffers belong to the pipe: nothing outside of its loop touches them.
  void refuse_other_uses(const Block& block) const {
    walk(block, [&](const Stmt& stmt) {
      if (is_the_loop(stmt)) return false;
      for (const std::string& buffer : buffers_)
        if (!as<Loop>(stmt) && !as<Buffer>(stmt) && mentions_buffer({stmt}, buffer))
          throw UserError(at_.span, fmt::format("`{}` is used outside of `{}`", buffer, at_.text));
      return true;
    });
  }

  bool is_piped(const std::string& buffer) const {
    return std::find(buffers_.begin(), buffers_.end(), buffer) != buffers_.end();
  }

  Access with_slot(const Access& access, const char* side) const {
    Access result = access;
    result.index.insert(result.index.begin(), var(pipe_ + side));
    return result;
  }

  Block with_slots(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) {
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && is_piped(buffer->name)) {
        Buffer node = *buffer;
        std::int64_t elements = tile_elements(*buffer->layout);
        node.axes.insert(node.axes.begin(), BufferAxis{"slot", depth()});
        node.layout->axes.insert(node.layout->axes.begin(),
                                 AxisLayout{"slot", {Factor{depth(), Place::Mem, elements}}});
        result.push_back(make_stmt(std::move(node), stmt->span));
      } else if (is_the_loop(stmt)) {
        result.push_back(map_bodies(stmt, [&](const Block& inner) { return with_verbs(inner); }));
      } else {
        result.push_back(map_bodies(stmt, [&](const Block& inner) { return with_slots(inner); }));
      }
    }
    return result;
  }

  // acquire, the copies, commit, wait, the rest, release
  Block with_verbs(const Block& body) const {
    Block copies;
    Block rest;
    for (const Stmt& stmt : body) {
      const Copy* copy = as<Copy>(stmt);
      if (!copy) {
        rest.push_back(stmt);
        continue;
      }
      Copy node = *copy;
      node.target = with_slot(node.target, ".in");
      copies.push_back(make_stmt(std::move(node), stmt->span));
    }
    rest = rewrite_expressions(rest, [&](const Expr& expr) {
      const Load* access = as<Load>(expr);
      if (!access || !is_piped(access->access.buffer)) return expr;
      return load(with_slot(access->access, ".out"), expr->dtype, expr->span);
    });
    rest = rewrite_statements(rest, [&](const Stmt& stmt) -> Block {
      const Mma* mma = as<Mma>(stmt);
      if (!mma) return {stmt};
      Mma node = *mma;
      for (Access* operand : {&node.a, &node.b})
        if (is_piped(operand->buffer)) *operand = with_slot(*operand, ".out");
      return {make_stmt(std::move(node), stmt->span)};
    });
    Span first = copies.front()->span;
    Span last = rest.empty() ? first : rest.back()->span;
    Block result;
    auto verb = [&](VerbKind kind, Span span) { result.push_back(make_stmt(Verb{kind, pipe_}, span)); };
    verb(VerbKind::Acquire, first);
    result.insert(result.end(), copies.begin(), copies.end());
    verb(VerbKind::Commit, copies.back()->span);
    verb(VerbKind::Wait, last);
    result.insert(result.end(), rest.begin(), rest.end());
    verb(VerbKind::Release, last);
    return result;
  }

  const PipelineLine& line_;
  const LineName& at_;
  std::string pipe_;
  std::vector<std::string> buffers_;
};

}  // namespace

namespace {

// The pipes whose verbs stand directly in a loop of this name.
std::set<std::string> pipes_at(const Block& body, const std::string& loop_name) {
  std::set<std::string> result;
  walk(body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    if (!loop || loop->axes.back().name != loop_name) return true;
    for (const Stmt& inner : loop->body) {
      const Labelled* labelled = as<Labelled>(inner);
      if (const Verb* verb = as<Verb>(labelled ? labelled->statement : inner)) result.insert(verb->pipe);
    }
    return true;
  });
  return result;
}

Kernel with_in_flight(const Kernel& kernel, const PipelineLine& line) {
  std::set<std::string> pipes = pipes_at(kernel.body, line.at.text);
  if (pipes.empty())
    throw UserError(line.at.span, fmt::format("`{}` is no pipeline", line.at.text),
                    fmt::format("`pipeline {} depth 4 via tma` first", line.at.text));
  Kernel result = kernel;
  result.body = rewrite_statements(kernel.body, [&](const Stmt& stmt) -> Block {
    const Pipe* pipe = as<Pipe>(stmt);
    if (!pipe || !pipes.count(pipe->name)) return {stmt};
    if (pipe->mechanism == "registers")
      throw UserError(line.in_flight.span, "a pipeline via registers has no trip in flight");
    refuse_too_many(line.in_flight, pipe->slots);
    Pipe node = *pipe;
    node.in_flight = static_cast<int>(line.in_flight.value);
    return {make_stmt(std::move(node), stmt->span)};
  });
  return result;
}

}  // namespace

Plan pipeline(const Plan& plan, const ScheduleLine& line, const Target& target) {
  PipelineLine read = read_pipeline_line(line);
  if (read.depth.value == 0)
    return map_kernels_with(plan, line, {read.at}, [&](const Kernel& kernel) { return with_in_flight(kernel, read); });
  std::optional<AsynchronousCopies> asynchronous;
  if (read.mechanism.text != "registers")
    asynchronous.emplace(plan, target, read.mechanism.text, read.mechanism.span,
                         "`via registers` works on every architecture");
  Names names(plan);
  return map_kernels_with(plan, line, {read.at}, [&](const Kernel& kernel) {
    Kernel result = kernel;
    result.body = map_block_body(kernel.body, [&](const Block& block) {
      return Pipelining(names, read).apply(block, asynchronous ? &*asynchronous : nullptr);
    });
    require_shared_fits(result.body, target, line.span, "make the tile or the depth smaller");
    return result;
  });
}

}  // namespace tilewright
