// Predicates on the statements of a tiled loop.
#include "passes/schedule/predicate.h"

#include "passes/loops.h"

namespace tilewright {

namespace {

class Predicate {
 public:
  Predicate(std::string axis, Expr condition, const Block& body)
      : axis_(std::move(axis)), condition_(std::move(condition)) {
    walk(body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) own_.insert(buffer->name);
      return true;
    });
  }

  Block apply(const Block& body) const {
    Block result;
    for (const Stmt& stmt : body) result.push_back(apply(stmt));
    return result;
  }

 private:
  bool reads_by_axis(const Expr& expr) const { return expr && uses_var(expr, axis_) && reads_memory(expr, own_); }

  Stmt guarded(const Stmt& stmt) const { return make_stmt(If{condition_, {stmt}, {}}, stmt->span); }

  Stmt apply(const Stmt& stmt) const {
    if (const Store* store = as<Store>(stmt)) {
      bool outlives = own_.count(store->target.buffer) == 0;
      if (!outlives && !mentions_var({stmt}, axis_)) return stmt;
      Store node = *store;
      node.where.push_back(condition_);
      return make_stmt(std::move(node), stmt->span);
    }
    if (const Loop* loop = as<Loop>(stmt)) {
      for (const Axis& axis : loop->axes)
        if (reads_by_axis(axis.lo) || reads_by_axis(axis.hi) || reads_by_axis(axis.step)) return guarded(stmt);
      return map_bodies(stmt, [&](const Block& inner) { return apply(inner); });
    }
    if (const If* branch = as<If>(stmt)) {
      if (reads_by_axis(branch->condition)) return guarded(stmt);
      return map_bodies(stmt, [&](const Block& inner) { return apply(inner); });
    }
    if (const Let* let = as<Let>(stmt); let && reads_by_axis(let->value)) {
      Let node = *let;
      node.value = select(condition_, node.value, constant(0, node.value->dtype), node.value->span);
      return make_stmt(std::move(node), stmt->span);
    }
    return stmt;
  }

  std::string axis_;
  Expr condition_;
  std::set<std::string> own_;  // declared inside: what is in them ends with the iteration
};

}  // namespace

Block with_predicate(const Block& body, const std::string& axis, const Expr& condition) {
  return Predicate(axis, condition, body).apply(body);
}

}  // namespace tilewright
