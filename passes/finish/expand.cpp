// expand: from the tile stage to the thread stage. Deals, layouts and verbs become thread indices and flat addresses.
//
//   before   kernel C threads (16, 16) { grid i.block in ceildiv(M, 16), … { shared As: f32[i 16, k 16]; … each i in 16, j in 16 on (…) { … } } }
//   after    kernel C thread grid (ceildiv(N, 16), ceildiv(M, 16)) block (16, 16) … { let i.block = block.y; let i = thread.y; … As[i*16 + k] … }
//
// Needs: bind_default and guard before it. Barriers for plain shared buffers come later (synchronise); a pipe brings its own.
#include "passes/finish/expander.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"

namespace tilewright {

namespace {

Interval range_of_let(const Let& let, const Ranges& ranges) {
  Interval range = interval_of(let.value, ranges);
  if (let.lo && !range.lo) range.lo = interval_of(let.lo, ranges).lo;
  if (let.hi && !range.hi)
    if (auto hi = interval_of(let.hi, ranges).hi) range.hi = *hi - 1;
  return range;
}

}  // namespace

ExpandContext::ExpandContext(const Plan& source, const Kernel& kernel, BlockShape shape)
    : plan(source), block(shape), buffers(buffers_in(kernel.body)), flattener(source, buffers_in(kernel.body)),
      divisors(divisors_of(source.facts)), ranges(ranges_of_dims(source)) {
  for (const Dim& dim : source.dims) taken.insert(dim.name);
  for (const Param& param : source.params) taken.insert(param.name);
  for (const Temp& temp : source.temps) taken.insert(temp.name);
  for (const Buffer& buffer : buffers) taken.insert(buffer.name);
  ranges["thread.x"] = Interval{0, block.x - 1};
  ranges["thread.y"] = Interval{0, block.y - 1};
  ranges["thread.z"] = Interval{0, block.z - 1};
  for (const char* name : {"block.x", "block.y", "block.z"}) ranges[name] = Interval{0, std::nullopt};
}

std::string ExpandContext::fresh(const std::string& base) {
  std::string name = base;
  for (int n = 2; taken.count(name); ++n) name = fmt::format("{}.{}", base, n);
  taken.insert(name);
  return name;
}

bool ExpandContext::is_register(const std::string& name) const {
  if (const Buffer* buffer = flattener.find(name)) return buffer->space == Space::Register;
  return !find_tensor(plan, name);  // arrays that expansion made itself
}

std::int64_t ExpandContext::alignment_of(const std::string& name) const {
  if (flattener.find(name)) return 16;
  if (auto tensor = find_tensor(plan, name)) {
    for (const Temp& temp : plan.temps)
      if (temp.name == name) return 256;
    return base_alignment(plan, tensor->dtype);
  }
  return 1;
}

Expander::Expander(const Plan& plan, const Kernel& kernel, BlockShape block, const Target& target)
    : kernel_(kernel), target_(target), context_(plan, kernel, block), whole_(block) {}

bool counts_up(const Loop& loop) {
  return loop.kind == LoopKind::Serial && loop.axes.size() == 1 && (!loop.axes[0].lo || is_integer_constant(loop.axes[0].lo, 0)) &&
         (!loop.axes[0].step || is_integer_constant(loop.axes[0].step, 1));
}

Kernel Expander::run() {
  find_packed();
  Kernel result;
  result.name = kernel_.name;
  result.stage = Stage::Thread;
  result.launch.block = {context_.block.x};
  if (context_.block.y > 1 || context_.block.z > 1) result.launch.block.push_back(context_.block.y);
  if (context_.block.z > 1) result.launch.block.push_back(context_.block.z);
  result.launch.grid = {integer(1)};
  Block body;
  Block outside_grid;
  for (const Stmt& stmt : kernel_.body) {
    if (as<Role>(stmt)) continue;
    const Loop* grid = as<Loop>(stmt);
    if (!grid || grid->kind != LoopKind::Grid) {
      outside_grid.push_back(stmt);
      continue;
    }
    whole_block(std::exchange(outside_grid, {}), body);
    const Block& inner = bind_cluster(*grid, stmt);
    result.launch.grid = bind_grid(*grid, stmt->span);
    whole_block(inner, body);
  }
  whole_block(outside_grid, body);
  body = without_unused_registers(with_cursors(std::move(body)));
  body = name_linear_thread(std::move(body));
  for (const auto& [name, value, span] : lets_) result.body.push_back(make_stmt(Let{name, value, {}, {}}, span));
  result.body.insert(result.body.end(), body.begin(), body.end());
  result.launch.arguments = arguments(result);
  result.launch.min_blocks = sets_registers_ ? 1 : blocks_that_fit();
  result.launch.maps = maps_;
  if (cluster_ > 1) result.launch.cluster = {cluster_};
  if (uses_hopper_) result.launch.arch = target_.arch;
  return result;
}


// The linear index of the thread gets a name where a block of several dimensions uses it.
Block Expander::name_linear_thread(Block body) {
  Expr linear = linear_thread(context_.block);
  if (as<Var>(linear)) return body;
  std::string name = context_.fresh("t");
  bool used = false;
  body = rewrite_expressions(body, [&](const Expr& expr) {
    if (!(expr == linear)) return expr;
    used = true;
    return var(name);
  });
  if (used) lets_.insert(lets_.begin(), HeadLet{name, linear, {}});
  return body;
}

// Two blocks an SM where the register buffers and 40 more registers a thread leave room for them: without the hint the
// assembler takes more registers and one block waits alone at its barriers. Measured on an H200, 4096^3 f32: 3.54 ms
// with one block of 157 registers, 3.12 ms with two of 128.
//
// All the threads an SM can hold (2,048, so 32 registers each) where a thread keeps single values only and the tiles leave
// room: such a kernel waits for memory, and threads are what hides it. Measured there on "ch5 tiled": 16.9 ms with 32
// registers, 17.7 ms with the 37 that the assembler took of LLVM's text without the hint.
int Expander::blocks_that_fit() const {
  std::int64_t registers = 40;
  std::int64_t shared_bytes = 0;
  for (const Buffer& buffer : context_.buffers) {
    Buffer flat = context_.flattener.flat(buffer);
    if (buffer.space == Space::Shared) {
      std::int64_t bytes = bytes_of(buffer.dtype);
      for (const BufferAxis& axis : flat.axes) bytes *= axis.extent;
      shared_bytes += bytes;
    }
    if (buffer.space == Space::Register && !flat.axes.empty()) registers += flat.axes[0].extent * std::max(1, bytes_of(buffer.dtype) / 4);
  }
  const std::int64_t full = 2048 / context_.block.total();
  if (registers == 40 && shared_bytes > 0 && full >= 2 && full <= 8 && full * (shared_bytes + 1024) <= 228 * 1024) return static_cast<int>(full);
  bool large = context_.block.total() >= 128 && registers > 64;
  return large && 2 * context_.block.total() * registers <= 65536 ? 2 : 0;
}

// A cluster loop inside the grid loop: its blocks are neighbours in x. Gives what a block does.
const Block& Expander::bind_cluster(const Loop& grid, const Stmt& stmt) {
  const Loop* inner = grid.body.size() == 1 ? as<Loop>(grid.body[0]) : nullptr;
  if (!inner || inner->kind != LoopKind::Cluster) return grid.body;
  needs_hopper(stmt, "`cluster`");
  auto size = inner->axes.size() == 1 ? integer_value(inner->axes[0].hi) : std::nullopt;
  if (!size || *size < 1 || *size > 16) refuse(stmt, "a cluster loop of several axes, or of no constant extent up to 16");
  cluster_ = *size;
  const std::string& name = inner->axes[0].name;
  lets_.push_back(HeadLet{name, cluster_ > 1 ? var("cluster.rank") : integer(0), stmt->span});
  context_.taken.insert(name);
  context_.ranges[name] = Interval{0, cluster_ - 1};
  return inner->body;
}

// Registers that nothing mentions, as where values are computed in the place of their use, are not declared.
Block Expander::without_unused_registers(const Block& body) const {
  std::set<std::string> used;
  auto note = [&](const Access& access) { used.insert(access.buffer); };
  walk_expressions(body, [&](const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      if (const Load* access = as<Load>(node)) note(access->access);
      return true;
    });
  });
  walk(body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) note(store->target);
    return true;
  });
  return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
    const Buffer* buffer = as<Buffer>(stmt);
    bool is_unused = buffer && buffer->space == Space::Register && definitions_.count(buffer->name) && !used.count(buffer->name);
    return is_unused ? Block{} : Block{stmt};
  });
}

// The cursors of pipes are registers.
Block Expander::with_cursors(Block body) const {
  if (cursors_.empty()) return body;
  return rewrite_expressions(body, [&](const Expr& expr) {
    const Var* name = as<Var>(expr);
    return name && cursors_.count(name->name) ? load(Access{name->name, {}, {}, expr->span}, Dtype::I32, expr->span) : expr;
  });
}

// The last axis is block.x; the one before block.y; all others share block.z.
std::vector<Expr> Expander::bind_grid(const Loop& grid, Span span) {
  std::vector<Expr> extents;
  std::vector<Expr> sizes;
  for (const Axis& axis : grid.axes) {
    Expr lo = axis.lo ? axis.lo : integer(0);
    Expr extent = axis.hi - lo;
    sizes.push_back(axis.step ? ceildiv(extent, axis.step) : extent);
  }
  std::size_t rank = grid.axes.size();
  Expr rest = var("block.z");
  for (std::size_t n = rank; n-- > 0;) {
    const Axis& axis = grid.axes[n];
    std::size_t from_end = rank - 1 - n;
    Expr position;
    if (from_end == 0) position = binary(BinaryOp::Div, var("block.x"), integer(cluster_));
    else if (from_end == 1) position = var("block.y");
    else if (n == 0) position = rest;
    else {
      position = binary(BinaryOp::Mod, rest, sizes[n]);
      rest = binary(BinaryOp::Div, rest, sizes[n]);
    }
    if (from_end < 2) extents.push_back(sizes[n]);
    else if (from_end == 2) extents.push_back(sizes[n]);
    else extents[2] = extents[2] * sizes[n];
    if (from_end == 0 && cluster_ > 1) extents[0] = integer(cluster_) * extents[0];
    Expr value = axis.step ? position * axis.step : position;
    if (axis.lo) value = axis.lo + value;
    lets_.insert(lets_.begin(), HeadLet{axis.name, value, span});
    context_.taken.insert(axis.name);
    context_.ranges[axis.name] = Interval{0, std::nullopt};
  }
  return extents;
}

void Expander::refuse(const Stmt& stmt, const std::string& what) {
  throw UserError(stmt->span, fmt::format("{} cannot be finished: there is no generic expansion for it", what),
                  "the tile stage runs on the cpu device and in the tile interpreter");
}

void Expander::needs_hopper(const Stmt& stmt, const std::string& what) {
  uses_hopper_ = true;
  if (target_.arch != "sm_90a") throw UserError(stmt->span, fmt::format("{} needs sm_90a, and the plan is finished for {}", what, target_.arch));
}

// What a block does, with the cursors of its own pipes in front and what it leaves open closed behind.
void Expander::whole_block(const Block& statements, Block& out) {
  bool has_roles = std::any_of(statements.begin(), statements.end(), [](const Stmt& stmt) { return as<Labelled>(stmt) != nullptr; });
  std::size_t at = 0;
  auto is_declaration = [](const Stmt& stmt) { return as<Buffer>(stmt) || as<Pipe>(stmt) || as<Let>(stmt); };
  Block declarations, work;
  for (; at < statements.size() && is_declaration(statements[at]); ++at) declarations.push_back(statements[at]);
  work.assign(statements.begin() + static_cast<std::ptrdiff_t>(at), statements.end());
  block_level(declarations, out);
  if (work.empty()) return;
  start_pipes(work[0]->span, out);
  if (!has_roles) declare_cursors(work, out);
  block_level(work, out);
  if (!has_roles) finish_pipes(work, out);
}

// Whether a release behind the mma waits for it, and what stands between leaves its accumulators alone.
bool Expander::release_waits_for(const Mma& mma, const Block& statements, std::size_t next) {
  for (; next < statements.size(); ++next) {
    const Verb* verb = as<Verb>(statements[next]);
    if (verb) return verb->kind == VerbKind::Release;
    if (as<Mma>(statements[next]) || touches({statements[next]}, mma.target.buffer)) return false;
  }
  return false;
}

// Statements of a block or a role, in the program of each thread.
void Expander::block_level(const Block& statements, Block& out) {
  for (std::size_t at = 0; at < statements.size(); ++at) {
    const Mma* mma = as<Mma>(statements[at]);
    at = statement(statements, at, out);
    if (mma && !release_waits_for(*mma, statements, at + 1)) wait_for_mma(0, statements[at]->span, out);
  }
}

std::size_t Expander::statement(const Block& statements, std::size_t at, Block& out) {
  if (as<Labelled>(statements[at])) return roles(statements, at, out);
  if (as<Verb>(statements[at])) return verb(statements, at, out);
  if (define_for_copy(statements, at)) return at;
  simple_statement(statements, at, out);
  return at;
}

std::size_t Expander::verb(const Block& statements, std::size_t at, Block& out) {
  const Stmt& stmt = statements[at];
  const Verb& verb = *as<Verb>(stmt);
  const PipeState* state = find_pipe(verb.pipe);
  if (!state) internal_error("a verb of an unknown pipe");
  const std::string& mechanism = state->pipe.mechanism;
  if (mechanism == "registers") refuse(stmt, "a verb outside the loop of its pipe");
  if (mechanism == "tma.store") return store_verb(*state, verb.kind, stmt->span, out), at;
  switch (verb.kind) {
    case VerbKind::Acquire: return mechanism == "tma" ? fill_by_engine(*state, statements, at, out) : fill_by_cp_async(*state, statements, at, out);
    case VerbKind::Commit: internal_error("a commit without its acquire in the same body");
    case VerbKind::Wait:
      if (mechanism == "tma") wait_until_full(*state, stmt->span, out);
      else wait_for_cp_async(*state, stmt->span, out);
      return at;
    case VerbKind::Release:
      if (mechanism == "tma") {
        release(*state, stmt->span, out);
      } else {
        wait_for_mma(0, stmt->span, out);
        advance(*state, ".out", stmt->span, out);
      }
      return at;
  }
  return at;
}

void Expander::branch(const If& branch, const Stmt& stmt, Block& out) {
  Block then_body, else_body;
  block_level(branch.then_body, then_body);
  block_level(branch.else_body, else_body);
  // A group of copies is closed in each trip, also where it is empty, so that groups can be counted.
  Block behind;
  const Instr* last = then_body.empty() ? nullptr : as<Instr>(then_body.back());
  if (last && last->op == "cp.async.commit") {
    behind.push_back(then_body.back());
    then_body.pop_back();
  }
  out.push_back(make_stmt(If{context_.flattener.flat(branch.condition), std::move(then_body), std::move(else_body)}, stmt->span));
  out.insert(out.end(), behind.begin(), behind.end());
}

void Expander::copy(const Copy& copy, const Stmt& stmt, Block& out) {
  for (const PipeState& state : pipes_)
    if (state.pipe.mechanism == "tma.store" && state.pipe.buffers[0] == copy.source.buffer) return store_by_engine(state, copy, stmt);
  if (copy_from_registers(copy, stmt, out)) return;
  Block made = expand_whole_copy(copy, stmt->span, context_);
  out.insert(out.end(), made.begin(), made.end());
}

void Expander::simple_statement(const Block& statements, std::size_t at, Block& out) {
  const Stmt& stmt = statements[at];
  match(
      stmt, [&](const Loop& loop) { block_loop(loop, stmt, out); }, [&](const If& node) { branch(node, stmt, out); },
      [&](const Buffer& buffer) {
        if (buffer.space == Space::Register && !buffer.axes.empty() && !buffer.layout)
          internal_error(fmt::format("register buffer `{}` of a block has no layout", buffer.name));
        if (packed_declaration(buffer, stmt->span, out)) return;
        out.push_back(make_stmt(context_.flattener.flat(buffer), stmt->span));
      },
      [&](const Let& let) {
        out.push_back(make_stmt(Let{let.name, context_.flattener.flat(let.value), let.lo, let.hi}, stmt->span));
        context_.ranges[let.name] = range_of_let(let, context_.ranges);
      },
      [&](const Store& store) {
        Stmt flat = context_.flattener.flat(Block{stmt})[0];
        bool own = context_.is_register(store.target.buffer);
        bool alone = context_.block.total() == 1;
        if (own || alone) out.push_back(flat);
        else out.push_back(make_stmt(If{binary(BinaryOp::Eq, linear_thread(context_.block), integer(0)), {flat}, {}}, stmt->span));
      },
      [&](const Copy& node) { copy(node, stmt, out); },
      [&](const Fill&) { absorb_fill(statements, at, out); }, [&](const Mma& node) { mma(node, stmt, out); },
      [&](const Fold& fold) { fold.is_scan ? refuse(stmt, "`scan`") : reduce(fold, stmt, out); }, [&](const Pipe& pipe) { declare_pipe(pipe, stmt); },
      [&](const Verb&) { internal_error("a verb is expanded with the statements behind it"); },
      [&](const Role&) { internal_error("a role is declared inside a loop"); },
      [&](const Labelled&) { internal_error("a role's statement is expanded with the others of its block"); },
      [&](const Chain&) { refuse(stmt, "`chain`"); }, [&](const Publish&) { refuse(stmt, "`publish`"); },
      [&](const Lookback&) { refuse(stmt, "`lookback`"); },
      [&](const Instr& instr) {
        Instr flat{instr.op, {}};
        for (const Expr& operand : instr.operands) flat.operands.push_back(context_.flattener.flat(operand));
        out.push_back(make_stmt(std::move(flat), stmt->span));
      });
}

void Expander::block_loop(const Loop& loop, const Stmt& stmt, Block& out) {
  switch (loop.kind) {
    case LoopKind::Each:
      if (!packed_each(loop, stmt->span, out)) each(loop, stmt->span, out);
      return;
    case LoopKind::Serial: case LoopKind::Unroll: serial_loop(loop, stmt, out); return;
    case LoopKind::Parallel: case LoopKind::Grid: case LoopKind::Cluster: case LoopKind::Ordered: case LoopKind::Vector:
      refuse(stmt, "a loop of this kind inside a block");
  }
}

void Expander::serial_loop(const Loop& loop, const Stmt& stmt, Block& out) {
  std::vector<const PipeState*> waited;  // whose wait stands in this loop
  for (const Stmt& inner : loop.body)
    if (const Verb* verb = as<Verb>(inner); verb && verb->kind == VerbKind::Wait) waited.push_back(find_pipe(verb->pipe));
  for (const PipeState* state : waited)
    if (state && state->pipe.mechanism == "registers") return pipelined_through_registers(loop, stmt, out);
  Ranges outer = context_.ranges;
  Loop node = loop;
  for (Axis& axis : node.axes) {
    for (Expr* bound : {&axis.lo, &axis.hi, &axis.step})
      if (*bound) *bound = context_.flattener.flat(*bound);
    add_axis(context_.ranges, axis);
  }
  Block body = loop.body;
  for (const Stmt& inner : loop.body) {
    const Verb* verb = as<Verb>(inner);
    const PipeState* state = verb && verb->kind == VerbKind::Acquire ? find_pipe(verb->pipe) : nullptr;
    if (!state || !state->is_unrolled) continue;
    Expr slot = binary(BinaryOp::Mod, var(loop.axes[0].name), integer(state->pipe.slots));
    body = substitute(body, {{state->pipe.name + ".in", slot}, {state->pipe.name + ".out", slot}});
  }
  node.body.clear();
  const Loop* outer_late = std::exchange(late_loop_, counts_up(loop) ? &loop : nullptr);
  bool outer_in_loop = std::exchange(in_loop_, true);
  bool is_counted = loop.kind == LoopKind::Unroll && !outer_in_loop && loop.axes.size() == 1 && is_integer_constant(loop.axes[0].lo ? loop.axes[0].lo : integer(0), 0) && !loop.axes[0].step;
  std::int64_t outer_trips = std::exchange(unrolled_trips_, is_counted ? integer_value(loop.axes[0].hi).value_or(0) : 0);
  block_level(body, node.body);
  unrolled_trips_ = outer_trips;
  in_loop_ = outer_in_loop;
  late_loop_ = outer_late;
  context_.ranges = std::move(outer);
  out.push_back(make_stmt(std::move(node), stmt->span));
  for (const PipeState* state : waited) {
    if (!state) continue;
    // The next loop over the pipe finds its last slots free.
    if (state->pipe.mechanism == "cp.async" && in_loop_) out.push_back(make_stmt(Instr{"barrier.block", {}}, stmt->span));
    if (state->pipe.mechanism != "tma" || !state->mma_reads || !counts_up(loop)) continue;
    // The next tile fills the slots again, and other blocks of a cluster wait for them before they end.
    if (in_loop_ || state->has_multicast) {
      release_rest(*state, loop.axes[0], stmt->span, out);
      continue;
    }
    // Without a trip the accumulators are filled: a wait behind that, or one that not every trip comes to, would
    // serialise the products (C7515 of LLVM's code, C7518 of NVRTC's).
    Block multiplied{out.back()};
    wait_for_mma(0, stmt->span, multiplied);
    if (multiplied.size() > 1) out.back() = when(binary(BinaryOp::Gt, context_.flattener.flat(loop.axes[0].hi), integer(0)), std::move(multiplied), stmt->span);
  }
}

// A name for a thread's coordinate at the top of the kernel; equal ones share it.
std::string Expander::head_let(const std::string& name, const Expr& value, Span span) {
  for (const HeadLet& let : lets_)
    if (let.value == value && (let.name == name || let.name.rfind(name + ".", 0) == 0)) return let.name;
  bool taken = std::any_of(lets_.begin(), lets_.end(), [&](const HeadLet& let) { return let.name == name; });
  std::string given = taken ? context_.fresh(name) : name;
  lets_.push_back(HeadLet{given, value, span});
  context_.taken.insert(given);
  context_.ranges[given] = interval_of(value, context_.ranges);
  return given;
}

// ---- arguments: tensors and scalars in the plan's order, then the dims, as far as the body names them.
std::vector<std::string> Expander::arguments(const Kernel& kernel) {
  std::set<std::string> used;
  auto note = [&](const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      if (const Load* access = as<Load>(node)) used.insert(access->access.buffer);
      if (const Var* variable = as<Var>(node)) used.insert(variable->name);
      return true;
    });
  };
  walk_expressions(kernel.body, note);
  walk(kernel.body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) used.insert(store->target.buffer);
    return true;
  });
  std::vector<std::string> result;
  auto take = [&](const std::string& name) {
    if (used.count(name)) result.push_back(name);
  };
  for (const Param& param : context_.plan.params) take(param.name);
  for (const Temp& temp : context_.plan.temps) take(temp.name);
  for (const Step& step : context_.plan.steps)
    if (const Table* table = std::get_if<Table>(&step)) take(table->name);
  for (const Dim& dim : context_.plan.dims) take(dim.name);
  return result;
}

Plan expand(const Plan& plan, const Target& target) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage == Stage::Thread) return kernel;
    BlockShape block = stated_block_shape(kernel).value_or(BlockShape{});
    if (block.total() > target.most_threads)
      throw UserError({}, fmt::format("kernel `{}` needs {} threads a block, {} has at most {}", kernel.name, block.total(), target.arch, target.most_threads));
    return Expander(plan, kernel, block, target).run();
  });
}

}  // namespace tilewright
