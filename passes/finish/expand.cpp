// expand: from the tile stage to the thread stage. Deals, layouts and verbs become thread indices and flat addresses.
//
//   before   kernel C threads (16, 16) { grid i.block in ceildiv(M, 16), … { shared As: f32[i 16, k 16]; … each i in 16, j in 16 on (…) { … } } }
//   after    kernel C thread grid (ceildiv(N, 16), ceildiv(M, 16)) block (16, 16) … { let i.block = block.y; let i = thread.y; … As[i*16 + k] … }
//
// Needs: bind_default and guard before it. Barriers for plain shared buffers come later (synchronise); a pipe brings its own.
#include "passes/finish/expand.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"

namespace tilewright {

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

namespace {

class Expander {
 public:
  Expander(const Plan& plan, const Kernel& kernel, BlockShape block) : kernel_(kernel), context_(plan, kernel, block) {}

  Kernel run() {
    Kernel result;
    result.name = kernel_.name;
    result.stage = Stage::Thread;
    result.launch.block = {context_.block.x};
    if (context_.block.y > 1 || context_.block.z > 1) result.launch.block.push_back(context_.block.y);
    if (context_.block.z > 1) result.launch.block.push_back(context_.block.z);
    result.launch.grid = {integer(1)};
    Block body;
    for (const Stmt& stmt : kernel_.body) {
      const Loop* grid = as<Loop>(stmt);
      if (grid && grid->kind == LoopKind::Grid) {
        result.launch.grid = bind_grid(*grid, stmt->span);
        block_level(grid->body, body);
      } else {
        block_level({stmt}, body);
      }
    }
    body = name_linear_thread(std::move(body));
    for (const auto& [name, value, span] : lets_) result.body.push_back(make_stmt(Let{name, value, {}, {}}, span));
    result.body.insert(result.body.end(), body.begin(), body.end());
    result.launch.arguments = arguments(result);
    result.launch.min_blocks = blocks_that_fit();
    return result;
  }

 private:
  struct HeadLet {
    std::string name;
    Expr value;
    Span span;
  };

  // The linear index of the thread gets a name where a block of several dimensions uses it.
  Block name_linear_thread(Block body) {
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
  int blocks_that_fit() const {
    std::int64_t registers = 40;
    for (const Buffer& buffer : context_.buffers) {
      Buffer flat = context_.flattener.flat(buffer);
      if (buffer.space == Space::Register && !flat.axes.empty()) registers += flat.axes[0].extent * std::max(1, bytes_of(buffer.dtype) / 4);
    }
    bool large = context_.block.total() >= 128 && registers > 64;
    return large && 2 * context_.block.total() * registers <= 65536 ? 2 : 0;
  }

  // The last axis is block.x; the one before block.y; all others share block.z.
  std::vector<Expr> bind_grid(const Loop& grid, Span span) {
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
      if (from_end == 0) position = var("block.x");
      else if (from_end == 1) position = var("block.y");
      else if (n == 0) position = rest;
      else {
        position = binary(BinaryOp::Mod, rest, sizes[n]);
        rest = binary(BinaryOp::Div, rest, sizes[n]);
      }
      if (from_end < 2) extents.push_back(sizes[n]);
      else if (from_end == 2) extents.push_back(sizes[n]);
      else extents[2] = extents[2] * sizes[n];
      Expr value = axis.step ? position * axis.step : position;
      if (axis.lo) value = axis.lo + value;
      lets_.insert(lets_.begin(), HeadLet{axis.name, value, span});
      context_.taken.insert(axis.name);
      context_.ranges[axis.name] = Interval{0, std::nullopt};
    }
    return extents;
  }

  [[noreturn]] static void refuse(const Stmt& stmt, const std::string& what) {
    throw UserError(stmt->span, fmt::format("{} cannot be finished: there is no generic expansion for it", what),
                    "the tile stage runs on the cpu device and in the tile interpreter");
  }

  // Statements of the whole block, in the program of each thread.
  void block_level(const Block& statements, Block& out) {
    for (const Stmt& stmt : statements) {
      match(
          stmt, [&](const Loop& loop) { block_loop(loop, stmt, out); },
          [&](const If& branch) {
            Block then_body, else_body;
            block_level(branch.then_body, then_body);
            block_level(branch.else_body, else_body);
            out.push_back(make_stmt(If{context_.flattener.flat(branch.condition), std::move(then_body), std::move(else_body)}, stmt->span));
          },
          [&](const Buffer& buffer) {
            if (buffer.space == Space::Register && !buffer.axes.empty() && !buffer.layout)
              internal_error(fmt::format("register buffer `{}` of a block has no layout", buffer.name));
            out.push_back(make_stmt(context_.flattener.flat(buffer), stmt->span));
          },
          [&](const Let& let) {
            out.push_back(make_stmt(Let{let.name, context_.flattener.flat(let.value), let.lo, let.hi}, stmt->span));
            context_.ranges[let.name] = interval_of(let.value, context_.ranges);
          },
          [&](const Store& store) {
            Stmt flat = context_.flattener.flat(Block{stmt})[0];
            bool own = context_.is_register(store.target.buffer);
            bool alone = context_.block.total() == 1;
            if (own || alone) out.push_back(flat);
            else out.push_back(make_stmt(If{binary(BinaryOp::Eq, linear_thread(context_.block), integer(0)), {flat}, {}}, stmt->span));
          },
          [&](const Copy& copy) {
            Block made = expand_whole_copy(copy, stmt->span, context_);
            out.insert(out.end(), made.begin(), made.end());
          },
          [&](const Fill& fill) { fill_buffer(fill, stmt, out); }, [&](const Mma&) { refuse(stmt, "`mma`"); },
          [&](const Fold& fold) { refuse(stmt, fold.is_scan ? "`scan`" : "`reduce`"); },
          [&](const Pipe& pipe) {
            if (pipe.mechanism != "registers") refuse(stmt, fmt::format("a pipe via {}", pipe.mechanism));
            pipes_.push_back(pipe);
          },
          [&](const Verb&) { refuse(stmt, "a verb outside the loop of its pipe"); }, [&](const Role&) { refuse(stmt, "`role`"); },
          [&](const Labelled&) { refuse(stmt, "a role's statement"); }, [&](const Chain&) { refuse(stmt, "`chain`"); },
          [&](const Publish&) { refuse(stmt, "`publish`"); }, [&](const Lookback&) { refuse(stmt, "`lookback`"); },
          [&](const Instr& instr) {
            Instr flat{instr.op, {}};
            for (const Expr& operand : instr.operands) flat.operands.push_back(context_.flattener.flat(operand));
            out.push_back(make_stmt(std::move(flat), stmt->span));
          });
    }
  }

  void block_loop(const Loop& loop, const Stmt& stmt, Block& out) {
    switch (loop.kind) {
      case LoopKind::Each: each(loop, stmt->span, out); return;
      case LoopKind::Serial: case LoopKind::Unroll: {
        bool has_verbs = std::any_of(loop.body.begin(), loop.body.end(), [](const Stmt& inner) { return as<Verb>(inner) != nullptr; });
        if (has_verbs) {
          pipelined(loop, stmt, out);
          return;
        }
        Ranges outer = context_.ranges;
        Loop node = loop;
        for (Axis& axis : node.axes) {
          add_axis(context_.ranges, axis);
          for (Expr* bound : {&axis.lo, &axis.hi, &axis.step})
            if (*bound) *bound = context_.flattener.flat(*bound);
        }
        node.body.clear();
        block_level(loop.body, node.body);
        context_.ranges = std::move(outer);
        out.push_back(make_stmt(std::move(node), stmt->span));
        return;
      }
      case LoopKind::Parallel: case LoopKind::Grid: case LoopKind::Cluster: case LoopKind::Ordered: case LoopKind::Vector:
        refuse(stmt, "a loop of this kind inside a block");
    }
  }

  // ---- each
  // The deal of an `each`: stated, or that of the register buffer it touches; a register digit is a step.
  Layout deal_of(const Loop& loop, bool& follows) {
    follows = false;
    std::set<std::string> touched;
    auto note = [&](const std::string& name) { touched.insert(name); };
    walk_expressions(loop.body, [&](const Expr& expr) {
      walk(expr, [&](const Expr& node) {
        if (const Load* access = as<Load>(node)) note(access->access.buffer);
        return true;
      });
    });
    walk(loop.body, [&](const Stmt& stmt) {
      if (const Store* store = as<Store>(stmt)) note(store->target.buffer);
      return true;
    });
    for (const Buffer& buffer : context_.buffers) {
      if (buffer.space != Space::Register || !buffer.layout || !touched.count(buffer.name)) continue;
      Layout deal;
      for (const Axis& axis : loop.axes)
        for (const AxisLayout& own : buffer.layout->axes)
          if (own.axis == axis.name) {
            AxisLayout dealt = own;
            for (Factor& factor : dealt.factors)
              if (factor.place == Place::Reg) factor = Factor{factor.extent, Place::Step, 1};
            deal.axes.push_back(std::move(dealt));
          }
      if (deal.axes.size() != loop.axes.size())
        internal_error(fmt::format("an `each` over other axes than register buffer `{}`", buffer.name));
      follows = true;
      return deal;
    }
    if (loop.deal) return *loop.deal;
    std::vector<std::pair<std::string, std::int64_t>> axes;
    for (const Axis& axis : loop.axes) axes.emplace_back(axis.name, integer_value(axis.hi).value_or(0));
    return default_deal(axes, context_.block);
  }

  void each(const Loop& loop, Span span, Block& out) {
    bool follows = false;
    Layout deal = deal_of(loop, follows);
    std::vector<Expr> conditions = participation(deal, context_.block);
    std::vector<std::pair<std::string, Expr>> replacements;
    std::vector<Axis> steps;
    Ranges outer = context_.ranges;
    std::int64_t step_count = 1;
    for (std::size_t n = 0; n < loop.axes.size(); ++n) {
      auto found = std::find_if(deal.axes.begin(), deal.axes.end(), [&](const AxisLayout& a) { return a.axis == loop.axes[n].name; });
      if (found == deal.axes.end()) internal_error(fmt::format("a deal without axis `{}`", loop.axes[n].name));
      const AxisLayout& axis = *found;
      std::int64_t product = 1;
      std::vector<WalkedFactor> walked;
      for (std::size_t k = 0; k < axis.factors.size(); ++k) {
        product *= axis.factors[k].extent;
        if (is_thread_place(axis.factors[k].place)) continue;
        if (axis.factors[k].extent == 1) {
          walked.push_back({k, integer(0)});
          continue;
        }
        std::string name = context_.fresh(axis.axis + ".step");
        walked.push_back({k, var(name)});
        steps.push_back(Axis{name, integer(0), integer(axis.factors[k].extent), {}, span});
        step_count *= axis.factors[k].extent;
        add_axis(context_.ranges, steps.back());
      }
      Expr value = coordinate(axis, context_.block, walked);
      bool steps_in_it = std::any_of(walked.begin(), walked.end(), [](const WalkedFactor& own) { return !integer_value(own.digit); });
      if (steps_in_it || integer_value(value)) replacements.emplace_back(axis.axis, value);
      else if (std::string name = head_let(axis.axis, value, span); name != axis.axis) replacements.emplace_back(axis.axis, var(name));
      std::int64_t extent = integer_value(loop.axes[n].hi).value_or(product);
      if (extent < product) conditions.push_back(less(value, integer(extent)));
    }
    Block body = expand_vectors(context_.flattener.flat(substitute(loop.body, replacements)), context_);
    context_.ranges = std::move(outer);
    std::vector<Expr> inner_conditions, outer_conditions;
    for (const Expr& condition : conditions) {
      bool inner = std::any_of(steps.begin(), steps.end(), [&](const Axis& step) { return uses_var(condition, step.name); });
      (inner ? inner_conditions : outer_conditions).push_back(condition);
    }
    for (Stmt& stmt : body) stmt = written_out(stmt);
    if (Expr condition = all_of(inner_conditions)) body = {make_stmt(If{condition, std::move(body), {}}, span)};
    LoopKind kind = follows || step_count <= 16 ? LoopKind::Unroll : LoopKind::Serial;
    if (!steps.empty()) body = walk_steps(steps, kind, std::move(body), span);
    if (Expr condition = all_of(outer_conditions)) body = {make_stmt(If{condition, std::move(body), {}}, span)};
    out.insert(out.end(), body.begin(), body.end());
  }

  // A short loop over a tile in shared memory is written out: its reads then have constant offsets.
  Stmt written_out(const Stmt& stmt) const {
    const Loop* loop = as<Loop>(stmt);
    if (!loop || loop->kind != LoopKind::Serial || loop->axes.size() != 1) return stmt;
    constexpr std::int64_t most_trips = 32;
    constexpr double most_statements = 600;
    const Axis& axis = loop->axes[0];
    auto trips = integer_value(axis.hi);
    if (!trips || *trips > most_trips || (axis.lo && !is_integer_constant(axis.lo, 0)) || axis.step) return stmt;
    bool reads_shared = false;
    bool has_data_loop = false;
    double statements = 0;
    std::function<void(const Block&, double)> count = [&](const Block& body, double times) {
      for (const Stmt& inner : body) {
        const Loop* nested = as<Loop>(inner);
        double product = times;
        for (std::size_t n = 0; nested && n < nested->axes.size(); ++n) {
          auto extent = integer_value(nested->axes[n].hi);
          has_data_loop |= !extent;
          product *= static_cast<double>(extent.value_or(1));
        }
        if (nested) count(nested->body, product);
        else if (const If* branch = as<If>(inner)) count(branch->then_body, times), count(branch->else_body, times);
        else statements += times;
      }
    };
    count(loop->body, static_cast<double>(*trips));
    walk_expressions(loop->body, [&](const Expr& expr) {
      for (const Buffer& buffer : context_.buffers) reads_shared |= buffer.space == Space::Shared && uses_buffer(expr, buffer.name);
    });
    if (!reads_shared || has_data_loop || statements > most_statements) return stmt;
    Loop node = *loop;
    node.kind = LoopKind::Unroll;
    return make_stmt(std::move(node), stmt->span);
  }

  // Elements of one thread are walked innermost, inside serial loops whose bounds they share.
  Block walk_steps(const std::vector<Axis>& steps, LoopKind kind, Block body, Span span) {
    if (body.size() == 1) {
      const Loop* serial = as<Loop>(body[0]);
      if (serial && serial->kind == LoopKind::Serial) {
        bool shared_bounds = true;
        for (const Axis& axis : serial->axes)
          for (const Expr& bound : {axis.lo, axis.hi, axis.step})
            for (const Axis& step : steps) shared_bounds &= !bound || !uses_var(bound, step.name);
        if (shared_bounds) {
          Loop node = *serial;
          node.body = walk_steps(steps, kind, serial->body, span);
          return {make_stmt(std::move(node), body[0]->span)};
        }
      }
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
      body = {make_stmt(Loop{kind, {*step}, std::nullopt, std::move(body)}, span)};
    return body;
  }

  // A name for a thread's coordinate at the top of the kernel; equal ones share it.
  std::string head_let(const std::string& name, const Expr& value, Span span) {
    for (const HeadLet& let : lets_)
      if (let.value == value && (let.name == name || let.name.rfind(name + ".", 0) == 0)) return let.name;
    bool taken = std::any_of(lets_.begin(), lets_.end(), [&](const HeadLet& let) { return let.name == name; });
    std::string given = taken ? context_.fresh(name) : name;
    lets_.push_back(HeadLet{given, value, span});
    context_.taken.insert(given);
    context_.ranges[given] = interval_of(value, context_.ranges);
    return given;
  }

  // ---- fill
  void fill_buffer(const Fill& fill, const Stmt& stmt, Block& out) {
    const Buffer* buffer = context_.flattener.find(fill.buffer);
    if (!buffer) internal_error(fmt::format("a fill of `{}`, which is no buffer", fill.buffer));
    Buffer flat = context_.flattener.flat(*buffer);
    if (flat.axes.empty()) {
      out.push_back(make_stmt(Store{Access{fill.buffer, {}, {}, stmt->span}, fill.value, {}, std::nullopt}, stmt->span));
      return;
    }
    std::int64_t elements = 1;
    for (const BufferAxis& axis : flat.axes) elements *= axis.extent;
    std::string name = context_.fresh(fill.buffer + ".r");
    bool own = buffer->space == Space::Register;
    std::int64_t threads = own ? 1 : context_.block.total();
    Expr element = own ? var(name) : var(name) * threads + linear_thread(context_.block);
    Access target{fill.buffer, {element}, {}, stmt->span};
    if (flat.axes.size() == 2) {
      std::int64_t slot = flat.axes[1].extent;
      target.index = {binary(BinaryOp::Div, element, integer(slot)), binary(BinaryOp::Mod, element, integer(slot))};
    }
    Block body = {make_stmt(Store{target, fill.value, {}, std::nullopt}, stmt->span)};
    if (elements % threads != 0) body = {make_stmt(If{less(element, integer(elements)), std::move(body), {}}, stmt->span)};
    Axis axis{name, integer(0), integer((elements + threads - 1) / threads), {}, stmt->span};
    out.push_back(make_stmt(Loop{LoopKind::Unroll, {axis}, std::nullopt, std::move(body)}, stmt->span));
  }

  // ---- pipelines via registers: the copies of the next trip are loaded before this trip's work and stored behind it.
  //
  //   serial k.block in T { acquire p; copies; commit p; wait p; work; release p }    becomes
  //   if T > 0 { copies of trip 0 into slot 0 }; barrier
  //   serial k.block in T { if k.block + 1 < T { loads of the next }; work on slot k.block % 2; if k.block + 1 < T { stores of the next }; barrier }
  void pipelined(const Loop& loop, const Stmt& stmt, Block& out) {
    if (loop.axes.size() != 1) internal_error("a pipelined loop has several axes");
    const Axis& axis = loop.axes[0];
    Block copies, work;
    const Pipe* pipe = nullptr;
    bool filling = false;
    for (const Stmt& inner : loop.body) {
      if (const Verb* verb = as<Verb>(inner)) {
        for (const Pipe& known : pipes_)
          if (known.name == verb->pipe) pipe = &known;
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

  void copy_statement(const Stmt& stmt, Block& out) {
    const Copy* copy = as<Copy>(stmt);
    if (!copy) refuse(stmt, "a statement that is no copy between acquire and commit");
    Block made = expand_whole_copy(*copy, stmt->span, context_);
    out.insert(out.end(), made.begin(), made.end());
  }

  // ---- arguments: tensors and scalars in the plan's order, then the dims, as far as the body names them.
  std::vector<std::string> arguments(const Kernel& kernel) {
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

  const Kernel& kernel_;
  ExpandContext context_;
  std::vector<HeadLet> lets_;
  std::vector<Pipe> pipes_;
};

}  // namespace

Plan expand(const Plan& plan, const Target& target) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage == Stage::Thread) return kernel;
    BlockShape block = stated_block_shape(kernel).value_or(BlockShape{});
    if (block.total() > target.most_threads)
      throw UserError({}, fmt::format("kernel `{}` needs {} threads a block, {} has at most {}", kernel.name, block.total(), target.arch, target.most_threads));
    return Expander(plan, kernel, block).run();
  });
}

}  // namespace tilewright
