// `each` and `fill` in the program of each thread: owner computes.
//
//   before   each i in 16, j in 16 on (i: 16 thread.y; j: 16 thread.x) { acc[i, j] = As[i, 0]; … }      fill acc <- 0.0
//   after    let i = thread.y; let j = thread.x; acc = As[i*16]; …                                      acc = 0.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expander.h"

namespace tilewright {

namespace {

// Whether the loop walks all of a register buffer.
bool has_axes(const Buffer& buffer, const Loop& loop) {
  if (buffer.axes.size() != loop.axes.size()) return false;
  for (const Axis& axis : loop.axes) {
    auto own = std::find_if(buffer.axes.begin(), buffer.axes.end(), [&](const BufferAxis& a) { return a.name == axis.name; });
    if (own == buffer.axes.end() || integer_value(axis.hi) != own->extent) return false;
  }
  return true;
}

}  // namespace

// The deal of an `each`: stated, or that of the register buffer it touches; a register digit is a step.
Layout Expander::deal_of(const Loop& loop, bool& follows) {
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
  std::vector<Buffer> candidates;  // those that the loop walks wholly come first
  for (bool whole : {true, false})
    for (const Buffer& buffer : context_.buffers)
      if (buffer.space == Space::Register && buffer.layout && touched.count(buffer.name) && has_axes(buffer, loop) == whole) candidates.push_back(buffer);
  for (const Buffer& buffer : candidates) {
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

void Expander::each(const Loop& loop, Span span, Block& out) {
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
Stmt Expander::written_out(const Stmt& stmt) const {
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
Block Expander::walk_steps(const std::vector<Axis>& steps, LoopKind kind, Block body, Span span) {
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

void Expander::fill_buffer(const Fill& fill, const Stmt& stmt, Block& out) {
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

}  // namespace tilewright
