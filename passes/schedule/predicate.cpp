// Predicates on the statements of a tiled loop.
#include "passes/schedule/predicate.h"

#include <algorithm>
#include <map>
#include <set>

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

  Block apply(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) result.push_back(apply(stmt));
    return result;
  }

 private:
  // Whether a value is there only where the predicate holds: it reads by the index, or what was written under the predicate.
  bool needs_predicate(const Expr& expr) const {
    if (!expr) return false;
    if (depends(expr) && reads_memory(expr, own_)) return true;
    return std::any_of(partial_.begin(), partial_.end(), [&](const std::string& buffer) { return uses_buffer(expr, buffer); });
  }

  // Whether the index, or a value made of it, is in there.
  bool depends(const Expr& expr) const {
    return expr && (uses_var(expr, axis_) || std::any_of(made_of_it_.begin(), made_of_it_.end(), [&](const std::string& name) { return uses_var(expr, name); }));
  }

  void note_partial(const std::string& buffer) {
    if (own_.count(buffer) > 0 && written_.count(buffer) == 0) partial_.insert(buffer);
  }

  Stmt guarded(const Stmt& stmt) {
    walk({stmt}, [&](const Stmt& inner) {
      if (const Store* store = as<Store>(inner)) note_partial(store->target.buffer);
      return true;
    });
    return make_stmt(If{condition_, {stmt}, {}}, stmt->span);
  }

  Stmt apply_store(const Store& store, const Stmt& stmt) {
    bool outlives = own_.count(store.target.buffer) == 0;
    bool reads_partial = needs_predicate(store.value) || std::any_of(store.where.begin(), store.where.end(), [&](const Expr& condition) { return needs_predicate(condition); });
    if (!outlives && !reads_partial && !mentions_var({stmt}, axis_)) {
      if (store.where.empty() && depth_ == declared_.at(store.target.buffer)) written_.insert(store.target.buffer);
      return stmt;
    }
    note_partial(store.target.buffer);
    Store node = store;
    // In front of the conditions that it bounds the reads of.
    auto place = std::find_if(node.where.begin(), node.where.end(), [&](const Expr& condition) { return needs_predicate(condition); });
    node.where.insert(place, condition_);
    return make_stmt(std::move(node), stmt->span);
  }

  Stmt apply_inside(const Stmt& stmt) {
    ++depth_;
    Stmt result = map_bodies(stmt, [&](const Block& inner) { return apply(inner); });
    --depth_;
    return result;
  }

  Stmt apply(const Stmt& stmt) {
    if (const Buffer* buffer = as<Buffer>(stmt)) declared_[buffer->name] = depth_;
    if (const Store* store = as<Store>(stmt)) return apply_store(*store, stmt);
    if (const Loop* loop = as<Loop>(stmt)) {
      // A loop as far as the index goes: what it reads is there only where the index is.
      for (const Axis& axis : loop->axes)
        for (const Expr* bound : {&axis.lo, &axis.hi, &axis.step})
          if (needs_predicate(*bound) || (depends(*bound) && reads_memory_in(loop->body))) return guarded(stmt);
      return apply_inside(stmt);
    }
    if (const If* branch = as<If>(stmt)) return needs_predicate(branch->condition) ? guarded(stmt) : apply_inside(stmt);
    if (const Let* let = as<Let>(stmt); let && needs_predicate(let->value)) {
      Let node = *let;
      node.value = select(condition_, node.value, constant(0, node.value->dtype), node.value->span);
      return make_stmt(std::move(node), stmt->span);
    }
    if (const Let* let = as<Let>(stmt); let && depends(let->value)) made_of_it_.insert(let->name);
    return stmt;
  }

  bool reads_memory_in(const Block& body) const {
    bool found = false;
    walk_expressions(body, [&](const Expr& expr) { found = found || reads_memory(expr, own_); });
    return found;
  }

  std::string axis_;
  Expr condition_;
  std::set<std::string> made_of_it_;  // `let`s
  std::set<std::string> own_;      // declared inside: what is in them ends with the iteration
  std::set<std::string> written_;  // of those, what has a value in every iteration
  std::set<std::string> partial_;  // of those, what has none where the predicate does not hold
  std::map<std::string, int> declared_;  // at which depth of loops and branches: deeper, a write may not happen
  int depth_ = 0;
};

}  // namespace

Block with_predicate(const Block& body, const std::string& axis, const Expr& condition) {
  return Predicate(axis, condition, body).apply(body);
}

}  // namespace tilewright
