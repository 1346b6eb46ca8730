// pipeline: fetch the tiles of the next trips while this one computes.
//
//   pipeline k.block depth 2 via registers
//   before   shared As: f32[i 128, k 16] (…)
//            serial k.block … { copy As[As.i, As.k] <- A[…]; copy Bs[…] <- B[…]; each … { … As[i, k] … } }
//   after    shared As: f32[slot 2, i 128, k 16] (slot: 2 mem*2048; …)
//            pipe p: As, Bs slots 2 via registers scope block
//            serial k.block … { acquire p; copy As[p.in, As.i, As.k] <- A[…]; copy Bs[p.in, …] <- B[…]; commit p
//                               wait p; each … { … As[p.out, i, k] … }; release p }
//
// No code moves: the staged buffers gain a slot axis and the pipe its four verbs; what runs ahead follows from them.
//
// Needs: tiles staged at the loop, and room for all slots. `via registers` has two slots: a thread loads the next tile
// into registers and stores it when the slot is free.
#include <fmt/format.h>

#include <algorithm>

#include "passes/schedule/passes.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

constexpr std::string_view syntax = "pipeline k.block depth 2 via registers";

class Pipelining {
 public:
  Pipelining(Names& names, LineName at, int depth) : at_(std::move(at)), depth_(depth), pipe_(names.fresh("p")) {}

  Block apply(const Block& block) {
    find_buffers(block);
    if (buffers_.empty())
      throw UserError(at_.span, fmt::format("nothing is staged at `{}`; a pipeline carries staged tiles", at_.text),
                      fmt::format("`stage A in shared at {}` first", at_.text));
    refuse_other_uses(block);
    Block result = with_slots(block);
    auto behind = std::find_if(result.begin(), result.end(), [](const Stmt& stmt) {
      return !as<Buffer>(stmt) && !as<Role>(stmt) && !as<Pipe>(stmt);
    });
    Pipe pipe{pipe_, buffers_, depth_, "registers", 0, PipeScope::Cta};
    Span span = behind == result.end() ? Span{} : (*behind)->span;
    result.insert(behind, make_stmt(std::move(pipe), span));
    return result;
  }

 private:
  bool is_the_loop(const Stmt& stmt) const {
    const Loop* loop = as<Loop>(stmt);
    return loop && loop->kind == LoopKind::Serial && loop->axes.back().name == at_.text;
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
        node.axes.insert(node.axes.begin(), BufferAxis{"slot", depth_});
        node.layout->axes.insert(node.layout->axes.begin(), AxisLayout{"slot", {Factor{depth_, Place::Mem, elements}}});
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

  LineName at_;
  int depth_;
  std::string pipe_;
  std::vector<std::string> buffers_;
};

}  // namespace

Plan pipeline(const Plan& plan, const ScheduleLine& line, const Target& target) {
  LineReader reader(line, syntax);
  LineName at = reader.name("the name of a loop");
  reader.expect("depth");
  LineNumber depth = reader.number("a number of slots", 2);
  reader.expect("via");
  LineName mechanism = reader.name("`registers`");
  reader.end();
  if (mechanism.text != "registers")
    throw UserError(mechanism.span, fmt::format("there is no pipeline via `{}`", mechanism.text),
                    "`via registers` works on every architecture");
  if (depth.value != 2)
    throw UserError(
        depth.span,
        fmt::format("depth {}: a pipeline via registers has 2 slots, one in use and one that is filled", depth.value));
  Names names(plan);
  return map_kernels_with(plan, line, {at}, [&](const Kernel& kernel) {
    Kernel result = kernel;
    result.body = map_block_body(kernel.body, [&](const Block& block) {
      return Pipelining(names, at, static_cast<int>(depth.value)).apply(block);
    });
    require_shared_fits(result.body, target, line.span, "make the tile smaller");
    return result;
  });
}

}  // namespace tilewright
