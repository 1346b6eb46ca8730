// guard: rules and predicates become selects and ifs.
//
//   before   each i, j { reg acc; acc = 0.0; serial k in K { acc = … where i < M, j < N }; C[i, j] = acc where i < M, j < N }
//   after    each i, j { if i < M and j < N { reg acc; acc = 0.0; serial k in K { acc = … }; C[i, j] = acc } }
//
// An `if` stands as far out as its terms allow, but never around a tile operation or a verb. A checked access reports to
// the error word first. Leaves alone: the rules of a `copy`, which expand reads. In a vector loop a condition that holds
// for the whole vector is taken out of it; where one does not, the loop becomes `unroll`.
#include <algorithm>

#include "ir/operators.h"
#include "passes/finish/conditions.h"
#include "passes/finish/passes.h"

namespace tilewright {

namespace {

Stmt if_all(const std::vector<Expr>& conditions, Block body, Span span) {
  return make_stmt(If{all_of(conditions), std::move(body), {}}, span);
}

class Guard {
 public:
  Guard(const Plan& plan, const Kernel& kernel) : plan_(plan), buffers_(buffers_in(kernel.body)), divisors_(divisors_of(plan.facts)) {}

  Block body(const Block& statements, const Ranges& ranges, bool in_thread) {
    Block out;
    Ranges inner = ranges;
    for (const Stmt& stmt : statements) {
      statement(stmt, inner, in_thread, out);
      if (const Let* let = as<Let>(stmt); let && let->value->dtype == Dtype::Index) inner[let->name] = range_of_let(*let, inner);
    }
    return in_thread ? merge(std::move(out)) : out;
  }

 private:
  static Interval range_of_let(const Let& let, const Ranges& ranges) {
    Interval range = interval_of(let.value, ranges);
    if (let.lo && !range.lo) range.lo = interval_of(let.lo, ranges).lo;
    return range;
  }

  void statement(const Stmt& stmt, const Ranges& ranges, bool in_thread, Block& out) {
    if (const Loop* loop = as<Loop>(stmt)) {
      Loop node = *loop;
      Ranges inner = ranges;
      for (Axis& axis : node.axes) {
        for (Expr* bound : {&axis.lo, &axis.hi, &axis.step})
          if (*bound) *bound = value(*bound, inner, {}, stmt->span, out);
        add_axis(inner, axis);
      }
      bool each = loop->kind == LoopKind::Each;
      node.body = body(loop->body, inner, in_thread || each);
      if (each) node.body = gather(std::move(node.body));
      out.push_back(make_stmt(std::move(node), stmt->span));
      return;
    }
    if (const If* branch = as<If>(stmt)) {
      Expr condition = value(branch->condition, ranges, {}, stmt->span, out);
      out.push_back(make_stmt(If{condition, body(branch->then_body, ranges, in_thread), body(branch->else_body, ranges, in_thread)}, stmt->span));
      return;
    }
    if (const Store* store = as<Store>(stmt)) {
      guarded_store(*store, ranges, stmt->span, out);
      return;
    }
    if (as<Copy>(stmt)) {
      out.push_back(stmt);
      return;
    }
    if (const Labelled* labelled = as<Labelled>(stmt)) {
      Block inner;
      statement(labelled->statement, ranges, in_thread, inner);
      for (Stmt& made : inner) out.push_back(make_stmt(Labelled{labelled->role, made}, stmt->span));
      return;
    }
    out.push_back(map_expressions(stmt, [&](const Expr& expr) { return value(expr, ranges, {}, stmt->span, out); }));
  }

  void guarded_store(const Store& store, const Ranges& ranges, Span span, Block& out) {
    std::vector<Expr> conditions;
    for (const Expr& condition : store.where)
      for (const Expr& part : conjuncts(simplify_expr(condition, ranges))) conditions.push_back(value(part, ranges, std::vector<Expr>(conditions), span, out));
    Block inside;
    Store node = store;
    node.where.clear();
    for (Expr& index : node.target.index) index = value(index, ranges, {}, span, inside);
    node.value = value(store.value, ranges, {}, span, inside);
    node.target.rule = Rule{};
    if (store.target.rule.kind == Rule::Kind::Skip || store.target.rule.kind == Rule::Kind::Check) {
      auto shape = shape_of_access(plan_, buffers_, store.target.buffer);
      std::vector<Expr> inside_target = in_range(node.target.index, shape.value_or(std::vector<Expr>{}), ranges);
      if (store.target.rule.kind == Rule::Kind::Check)
        report_each(store.target.rule.check_id, node.target.index, shape.value_or(std::vector<Expr>{}), ranges, {}, span, inside);
      Stmt bare = make_stmt(std::move(node), span);
      inside.push_back(inside_target.empty() ? bare : if_all(inside_target, {bare}, span));
    } else {
      inside.push_back(make_stmt(std::move(node), span));
    }
    if (conditions.empty()) out.insert(out.end(), inside.begin(), inside.end());
    else out.push_back(if_all(conditions, std::move(inside), span));
  }

  // An expression without rules. What must be reported is appended to `out`, under the conditions of the branches
  // (`path`) in which the access stands.
  Expr value(const Expr& expr, const Ranges& ranges, const std::vector<Expr>& path, Span span, Block& out) {
    if (const Select* node = as<Select>(expr)) {
      Expr condition = value(node->condition, ranges, path, span, out);
      std::vector<Expr> if_true = path;
      if_true.push_back(condition);
      std::vector<Expr> if_false = path;
      if_false.push_back(unary(UnaryOp::Not, condition));
      Expr first = value(node->if_true, ranges, if_true, span, out);
      return select(condition, first, value(node->if_false, ranges, if_false, span, out), expr->span);
    }
    if (const Binary* node = as<Binary>(expr); node && info(node->op).is_logical) {
      Expr first = value(node->lhs, ranges, path, span, out);
      std::vector<Expr> undecided = path;
      undecided.push_back(node->op == BinaryOp::And ? first : unary(UnaryOp::Not, first));
      return binary(node->op, first, value(node->rhs, ranges, undecided, span, out), expr->span);
    }
    Expr plain = map_children(expr, [&](const Expr& child) { return value(child, ranges, path, span, out); });
    if (const Call* node = as<Call>(plain); node && node->function == "within") {
      Expr bound = cast(Dtype::Index, node->arguments[0]);
      std::vector<Expr> inside = {binary(BinaryOp::Le, integer(0), bound), binary(BinaryOp::Le, bound, node->arguments[1])};
      report(static_cast<int>(integer_value(node->arguments[2]).value_or(0)), bound, inside, path, span, out);
      return binary(BinaryOp::Min, binary(BinaryOp::Max, bound, integer(0)), node->arguments[1]);
    }
    const Load* access = as<Load>(plain);
    if (!access || access->access.rule.kind == Rule::Kind::None) return plain;
    return without_rule(access->access, plain, ranges, path, span, out);
  }

  Expr without_rule(const Access& access, const Expr& expr, const Ranges& ranges, const std::vector<Expr>& path, Span span, Block& out) {
    auto shape = shape_of_access(plan_, buffers_, access.buffer);
    Access bare = access;
    bare.rule = Rule{};
    for (Expr& index : bare.index) index = cast(Dtype::Index, index);
    auto bare_load = [&] { return load(bare, expr->dtype, expr->span); };
    std::vector<Expr> inside = in_range(bare.index, shape.value_or(std::vector<Expr>{}), ranges);
    switch (access.rule.kind) {
      case Rule::Kind::None: return bare_load();
      case Rule::Kind::Fill: {
        if (inside.empty()) return bare_load();
        return select(all_of(inside), bare_load(), access.rule.fill, expr->span);
      }
      case Rule::Kind::Check: {
        if (inside.empty()) return bare_load();
        report_each(access.rule.check_id, bare.index, shape.value_or(std::vector<Expr>{}), ranges, path, span, out);
        return select(all_of(inside), bare_load(), constant(0, expr->dtype), expr->span);
      }
      case Rule::Kind::Clamp:
        for (std::size_t d = 0; d < bare.index.size(); ++d)
          bare.index[d] = simplify_expr(binary(BinaryOp::Max, integer(0), binary(BinaryOp::Min, bare.index[d], (*shape)[d] - integer(1))), ranges);
        return bare_load();
      case Rule::Kind::Wrap:
        for (std::size_t d = 0; d < bare.index.size(); ++d)
          bare.index[d] = simplify_expr(binary(BinaryOp::Mod, bare.index[d], (*shape)[d]), ranges);
        return bare_load();
      case Rule::Kind::Mirror:  // 0 1 2 1 0 1 …: the edge is not repeated
        for (std::size_t d = 0; d < bare.index.size(); ++d) {
          Expr last = (*shape)[d] - integer(1);
          Expr period = binary(BinaryOp::Max, last * 2, integer(1));
          Expr phase = binary(BinaryOp::Mod, bare.index[d], period);
          bare.index[d] = binary(BinaryOp::Min, phase, period - phase);
          bare.index[d] = binary(BinaryOp::Min, bare.index[d], last);
        }
        return bare_load();
      case Rule::Kind::Skip: internal_error("a load with `skip` reached the finishing passes");
    }
    internal_error("a rule without a case");
  }

  // Reports each index that is out of range, also one that never is inside.
  void report_each(int site, const std::vector<Expr>& index, const std::vector<Expr>& shape, const Ranges& ranges, const std::vector<Expr>& path, Span span, Block& out) {
    for (std::size_t d = 0; d < index.size() && d < shape.size(); ++d) report(site, index[d], in_range({index[d]}, {shape[d]}, ranges), path, span, out);
  }

  void report(int site, const Expr& position, const std::vector<Expr>& inside, const std::vector<Expr>& path, Span span, Block& out) {
    if (inside.empty()) return;
    std::vector<Expr> all = path;
    all.push_back(unary(UnaryOp::Not, all_of(inside)));
    out.push_back(if_all(all, {make_stmt(Instr{"error.report", {integer(site), position}}, span)}, span));
  }

  // ---- Moving ifs outwards, inside one thread's program.
  static bool is_movable(const Expr& condition) {
    bool pure = true;
    walk(condition, [&](const Expr& node) {
      pure &= as<Load>(node) == nullptr;
      return pure;
    });
    return pure;
  }

  // A loop around a lone `if`: what does not depend on the loop goes in front of it.
  Stmt hoist(const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    if (!loop || (loop->kind != LoopKind::Serial && loop->kind != LoopKind::Unroll && loop->kind != LoopKind::Vector)) return stmt;
    bool vector = loop->kind == LoopKind::Vector;
    if (loop->body.size() != 1) return vector && has_if(loop->body) ? as_unroll(*loop, stmt->span) : stmt;
    const If* branch = as<If>(loop->body[0]);
    if (!branch || !branch->else_body.empty()) return stmt;
    std::vector<Expr> outer, inner;
    for (const Expr& condition : conjuncts(branch->condition)) {
      Expr moved = condition;
      if (vector)
        if (auto uniform = uniform_over(condition, loop->axes[0].name, integer_value(loop->axes[0].hi).value_or(1), divisors_)) moved = *uniform;
      bool depends = !is_movable(moved);
      for (const Axis& axis : loop->axes) depends |= uses_var(moved, axis.name);
      (depends ? inner : outer).push_back(moved);
    }
    Loop node = *loop;
    if (vector && !inner.empty()) node.kind = LoopKind::Unroll;
    node.body = inner.empty() ? branch->then_body : Block{if_all(inner, branch->then_body, loop->body[0]->span)};
    Stmt again = make_stmt(std::move(node), stmt->span);
    return outer.empty() ? again : if_all(outer, {again}, stmt->span);
  }

  static bool has_if(const Block& body) {
    return std::any_of(body.begin(), body.end(), [](const Stmt& stmt) { return as<If>(stmt) != nullptr; });
  }

  static Stmt as_unroll(const Loop& loop, Span span) {
    Loop node = loop;
    node.kind = LoopKind::Unroll;
    return make_stmt(std::move(node), span);
  }

  // Neighbouring ifs share what they have in common.
  Block merge(Block statements) {
    Block out;
    for (Stmt& raw : statements) {
      Stmt stmt = hoist(raw);
      const If* next = as<If>(stmt);
      const If* last = out.empty() ? nullptr : as<If>(out.back());
      if (!next || !last || !next->else_body.empty() || !last->else_body.empty()) {
        out.push_back(std::move(stmt));
        continue;
      }
      std::vector<Expr> first = conjuncts(last->condition);
      std::vector<Expr> second = conjuncts(next->condition);
      std::vector<Expr> common;
      for (const Expr& condition : first)
        if (is_movable(condition) && std::find(second.begin(), second.end(), condition) != second.end()) common.push_back(condition);
      if (common.empty()) {
        out.push_back(std::move(stmt));
        continue;
      }
      auto rest_of = [&](const std::vector<Expr>& all) {
        std::vector<Expr> rest;
        for (const Expr& condition : all)
          if (std::find(common.begin(), common.end(), condition) == common.end()) rest.push_back(condition);
        return rest;
      };
      Block joined;
      auto add = [&](const std::vector<Expr>& rest, const Block& inner, Span span) {
        if (rest.empty()) joined.insert(joined.end(), inner.begin(), inner.end());
        else joined.push_back(if_all(rest, inner, span));
      };
      add(rest_of(first), last->then_body, out.back()->span);
      add(rest_of(second), next->then_body, stmt->span);
      Span span = out.back()->span;
      out.back() = if_all(common, merge(std::move(joined)), span);
    }
    return out;
  }

  // Where a body ends in an `if` and only makes private values before it, these move inside.
  static Block gather(Block statements) {
    if (statements.size() < 2) return statements;
    const If* last = as<If>(statements.back());
    if (!last || !last->else_body.empty()) return statements;
    std::vector<std::string> own;
    for (std::size_t n = 0; n + 1 < statements.size(); ++n) {
      if (const Buffer* buffer = as<Buffer>(statements[n])) {
        own.push_back(buffer->name);
      } else if (const Store* store = as<Store>(statements[n])) {
        if (std::find(own.begin(), own.end(), store->target.buffer) == own.end()) return statements;
      } else if (!is_private_fill(statements[n], own)) {
        return statements;
      }
    }
    for (const Expr& condition : conjuncts(last->condition))
      if (!is_movable(condition)) return statements;
    Block inside(statements.begin(), statements.end() - 1);
    inside.insert(inside.end(), last->then_body.begin(), last->then_body.end());
    return {make_stmt(If{last->condition, std::move(inside), {}}, statements.back()->span)};
  }

  static bool is_private_fill(const Stmt& stmt, const std::vector<std::string>& own) {
    const Loop* loop = as<Loop>(stmt);
    if (!loop || loop->kind != LoopKind::Unroll) return false;
    return std::all_of(loop->body.begin(), loop->body.end(), [&](const Stmt& inner) {
      const Store* store = as<Store>(inner);
      return store ? std::find(own.begin(), own.end(), store->target.buffer) != own.end() : is_private_fill(inner, own);
    });
  }

  const Plan& plan_;
  std::vector<Buffer> buffers_;
  Divisors divisors_;
};

}  // namespace

Plan guard(const Plan& plan, const Target&) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage == Stage::Thread) return kernel;
    Kernel result = kernel;
    result.body = Guard(plan, kernel).body(kernel.body, ranges_of_dims(plan), false);
    return result;
  });
}

}  // namespace tilewright
