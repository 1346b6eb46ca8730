// The recursion over statements.
#include "ir/stmt.h"

#include "ir/diagnostic.h"

namespace tilewright {

bool operator==(const Stmt& a, const Stmt& b) {
  if (a.node_ == b.node_) return true;
  if (!a.node_ || !b.node_) return false;
  return *a.node_ == *b.node_;
}

Stmt make_stmt(StmtVariant value, Span span) {
  return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(value), span}));
}

namespace {

using ExprFunction = std::function<Expr(const Expr&)>;

Expr map_if_present(const Expr& expr, const ExprFunction& f) { return expr ? f(expr) : expr; }

std::vector<Expr> map_each(std::vector<Expr> list, const ExprFunction& f) {
  for (Expr& item : list) item = f(item);
  return list;
}

}  // namespace

Stmt map_expressions(const Stmt& stmt, const ExprFunction& f) {
  auto again = [&](auto node) { return make_stmt(std::move(node), stmt->span); };
  return match(
      stmt,
      [&](const Loop& old) {
        Loop node = old;
        for (Axis& axis : node.axes) {
          axis.lo = map_if_present(axis.lo, f);
          axis.hi = map_if_present(axis.hi, f);
          axis.step = map_if_present(axis.step, f);
        }
        return again(std::move(node));
      },
      [&](const If& node) { return again(If{f(node.condition), node.then_body, node.else_body}); },
      [&](const Buffer&) { return stmt; },
      [&](const Let& node) { return again(Let{node.name, f(node.value), map_if_present(node.lo, f), map_if_present(node.hi, f)}); },
      [&](const Store& node) { return again(Store{map_access(node.target, f), f(node.value), map_each(node.where, f), node.atomic}); },
      [&](const Copy& node) {
        return again(Copy{map_access(node.target, f), map_access(node.source, f), node.multicast, map_each(node.where, f), node.deal});
      },
      [&](const Fill& node) { return again(Fill{node.buffer, f(node.value)}); },
      [&](const Mma& node) { return again(Mma{map_access(node.target, f), map_access(node.a, f), map_access(node.b, f), node.instruction}); },
      [&](const Fold& node) { return again(Fold{node.is_scan, map_access(node.target, f), node.op, map_access(node.source, f), node.total}); },
      [&](const Pipe&) { return stmt; }, [&](const Verb&) { return stmt; }, [&](const Role&) { return stmt; },
      [&](const Labelled&) { return stmt; },
      [&](const Chain& node) { return again(Chain{node.name, node.dtype, node.op, f(node.start)}); },
      [&](const Publish& node) { return again(Publish{node.chain, f(node.value)}); },
      [&](const Lookback& node) { return again(Lookback{map_access(node.target, f), node.chain}); },
      [&](const Instr& node) { return again(Instr{node.op, map_each(node.operands, f)}); });
}

Stmt map_bodies(const Stmt& stmt, const std::function<Block(const Block&)>& f) {
  if (const Loop* old = as<Loop>(stmt)) {
    Loop node = *old;
    node.body = f(old->body);
    return make_stmt(std::move(node), stmt->span);
  }
  if (const If* old = as<If>(stmt)) return make_stmt(If{old->condition, f(old->then_body), f(old->else_body)}, stmt->span);
  if (const Labelled* old = as<Labelled>(stmt)) {
    Block inner = f({old->statement});
    if (inner.size() == 1) return make_stmt(Labelled{old->role, inner[0]}, stmt->span);
    internal_error("a labelled statement became several");
  }
  return stmt;
}

Block rewrite_expressions(const Block& body, const ExprFunction& f) {
  ExprFunction deep = [&](const Expr& expr) { return rewrite(expr, f); };
  Block result;
  result.reserve(body.size());
  for (const Stmt& stmt : body)
    result.push_back(map_bodies(map_expressions(stmt, deep), [&](const Block& inner) { return rewrite_expressions(inner, f); }));
  return result;
}

Block rewrite_statements(const Block& body, const std::function<Block(const Stmt&)>& f) {
  Block result;
  for (const Stmt& stmt : body) {
    if (const Labelled* labelled = as<Labelled>(stmt)) {  // every statement that comes of it keeps the label
      for (Stmt& inner : rewrite_statements({labelled->statement}, f))
        result.push_back(make_stmt(Labelled{labelled->role, std::move(inner)}, stmt->span));
      continue;
    }
    for (Stmt& made : f(map_bodies(stmt, [&](const Block& inner) { return rewrite_statements(inner, f); }))) result.push_back(std::move(made));
  }
  return result;
}

void walk(const Block& body, const std::function<bool(const Stmt&)>& f) {
  for (const Stmt& stmt : body) {
    if (!f(stmt)) continue;
    if (const Loop* loop = as<Loop>(stmt)) walk(loop->body, f);
    if (const If* branch = as<If>(stmt)) walk(branch->then_body, f), walk(branch->else_body, f);
    if (const Labelled* labelled = as<Labelled>(stmt)) walk({labelled->statement}, f);
  }
}

void walk_expressions(const Block& body, const std::function<void(const Expr&)>& f) {
  walk(body, [&](const Stmt& stmt) {
    map_expressions(stmt, [&](const Expr& expr) {
      f(expr);
      return expr;
    });
    return true;
  });
}

Block substitute(const Block& body, const std::vector<std::pair<std::string, Expr>>& replacements) {
  Block result;
  for (const Stmt& stmt : body)
    result.push_back(map_bodies(map_expressions(stmt, [&](const Expr& expr) { return substitute(expr, replacements); }),
                                [&](const Block& inner) { return substitute(inner, replacements); }));
  return result;
}

Block rename_buffer(const Block& body, const std::string& from, const std::string& to) {
  auto renamed = [&](const std::string& name) { return name == from ? to : name; };
  auto in_expr = [&](const Expr& expr) {
    const Load* access = as<Load>(expr);
    if (!access || access->access.buffer != from) return expr;
    Access again = access->access;
    again.buffer = to;
    return load(std::move(again), expr->dtype, expr->span);
  };
  return rewrite_statements(rewrite_expressions(body, in_expr), [&](const Stmt& stmt) -> Block {
    auto again = [&](auto node) { return Block{make_stmt(std::move(node), stmt->span)}; };
    if (const Buffer* old = as<Buffer>(stmt); old && old->name == from) {
      Buffer node = *old;
      node.name = to;
      return again(std::move(node));
    }
    if (const Store* old = as<Store>(stmt)) {
      Store node = *old;
      node.target.buffer = renamed(node.target.buffer);
      return again(std::move(node));
    }
    if (const Copy* old = as<Copy>(stmt)) {
      Copy node = *old;
      node.target.buffer = renamed(node.target.buffer);
      node.source.buffer = renamed(node.source.buffer);
      return again(std::move(node));
    }
    if (const Fill* old = as<Fill>(stmt)) return again(Fill{renamed(old->buffer), old->value});
    if (const Mma* old = as<Mma>(stmt)) {
      Mma node = *old;
      for (Access* access : {&node.target, &node.a, &node.b}) access->buffer = renamed(access->buffer);
      return again(std::move(node));
    }
    if (const Fold* old = as<Fold>(stmt)) {
      Fold node = *old;
      node.target.buffer = renamed(node.target.buffer);
      node.source.buffer = renamed(node.source.buffer);
      node.total = renamed(node.total);
      return again(std::move(node));
    }
    if (const Pipe* old = as<Pipe>(stmt)) {
      Pipe node = *old;
      for (std::string& name : node.buffers) name = renamed(name);
      return again(std::move(node));
    }
    if (const Lookback* old = as<Lookback>(stmt)) {
      Lookback node = *old;
      node.target.buffer = renamed(node.target.buffer);
      return again(std::move(node));
    }
    return {stmt};
  });
}

}  // namespace tilewright
