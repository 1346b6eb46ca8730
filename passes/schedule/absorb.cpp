// Dropping predicates behind staged tiles.
#include "passes/schedule/absorb.h"

#include <algorithm>
#include <map>

#include "ir/operators.h"
#include "ir/scalar.h"
#include "passes/linear_form.h"
#include "passes/loops.h"

namespace tilewright {

namespace {

bool is_zero(const std::optional<Scalar>& value, Dtype dtype) {
  return value && (is_float(dtype) ? value->f == 0 : value->i == 0);
}

// Whether `value`, an update of `old`, is `old` again.
bool leaves_unchanged(const Expr& value, const Expr& old) {
  if (value == old) return true;
  if (const Call* call = as<Call>(value); call && (call->function == "fma" || call->function == "fma.kept")) {
    auto a = constant_scalar(call->arguments[0]);
    auto b = constant_scalar(call->arguments[1]);
    return call->arguments[2] == old && a && b && is_zero(apply(BinaryOp::Mul, value->dtype, *a, *b), value->dtype);
  }
  const Binary* node = as<Binary>(value);
  if (!node) return false;
  auto term = constant_scalar(node->lhs == old ? node->rhs : node->lhs);
  bool has_old = node->lhs == old || (node->rhs == old && info(node->op).commutative);
  if (!has_old || !term) return false;
  for (CombineOp op : {CombineOp::Add, CombineOp::Mul, CombineOp::Max, CombineOp::Min, CombineOp::And, CombineOp::Or})
    if (binary_of(op, value->dtype) == node->op) {
      if (op == CombineOp::Add) return is_zero(term, value->dtype);
      Scalar identity = identity_scalar(op, value->dtype);
      return is_float(value->dtype) ? term->f == identity.f : term->i == identity.i;
    }
  return false;
}

class Dropping {
 public:
  Dropping(const Block& block_body, const Plan& plan) : plan_(plan) {
    walk(block_body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt))
        (buffer->space == Space::Register ? registers_ : shared_).insert(buffer->name);
      return true;
    });
    walk(block_body, [&](const Stmt& stmt) {
      if (const Copy* copy = as<Copy>(stmt); copy && shared_.count(copy->target.buffer))
        copies_[copy->target.buffer] = *copy;
      if (const Store* store = as<Store>(stmt); store && !registers_.count(store->target.buffer))
        stores_.push_back(*store);
      return true;
    });
    note_writes(block_body, {});
  }

  Block apply(const Block& body, std::set<std::string> reduced) {
    Block result;
    for (const Stmt& stmt : body) {
      if (const Store* store = as<Store>(stmt);
          store && registers_.count(store->target.buffer) && !store->where.empty()) {
        result.push_back(make_stmt(without_predicates(*store, reduced), stmt->span));
        continue;
      }
      std::set<std::string> inner = reduced;
      if (const Loop* loop = as<Loop>(stmt))
        for (const Axis& axis : loop->axes)
          if (loop->kind == LoopKind::Serial ||
              ((loop->kind == LoopKind::Unroll || loop->kind == LoopKind::Vector) && !is_part(axis.name)))
            inner.insert(axis.name);
      result.push_back(map_bodies(stmt, [&](const Block& nested) { return apply(nested, inner); }));
    }
    return result;
  }

  Block with_copy_predicates(const Block& body) const {
    return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
      const Copy* copy = as<Copy>(stmt);
      auto found = copy ? added_.find(copy->target.buffer) : added_.end();
      if (found == added_.end()) return {stmt};
      Copy node = *copy;
      for (const Expr& condition : found->second)
        if (std::find(node.where.begin(), node.where.end(), condition) == node.where.end())
          node.where.push_back(condition);
      return {make_stmt(std::move(node), stmt->span)};
    });
  }

 private:
  Store without_predicates(const Store& store, const std::set<std::string>& reduced) {
    Store node = store;
    node.where.clear();
    for (std::size_t n = 0; n < store.where.size(); ++n) {
      std::set<std::string> names = variables_of(store.where[n]);
      bool is_reduced =
          std::any_of(names.begin(), names.end(), [&](const std::string& name) { return reduced.count(name) > 0; });
      bool superfluous =
          is_reduced ? is_absorbed(store, store.where[n], names, reduced) : is_never_stored(store, n, names);
      if (!superfluous) node.where.push_back(store.where[n]);
    }
    return node;
  }

  // The conditions around each write of a register buffer.
  void note_writes(const Block& body, const std::vector<Expr>& around) {
    for (const Stmt& stmt : body) {
      if (const If* branch = as<If>(stmt)) {
        std::vector<Expr> inside = around;
        inside.push_back(branch->condition);
        note_writes(branch->then_body, inside);
        note_writes(branch->else_body, around);
        continue;
      }
      if (const Store* store = as<Store>(stmt)) {
        std::vector<Expr> own = around;
        own.insert(own.end(), store->where.begin(), store->where.end());
        writes_[store->target.buffer].push_back(std::move(own));
      }
      if (const Fill* fill = as<Fill>(stmt)) writes_[fill->buffer].push_back(around);
      map_bodies(stmt, [&](const Block& nested) {
        note_writes(nested, around);
        return nested;
      });
    }
  }

  // Whether the value reads a register that is written only where `condition` holds.
  bool reads_what_depends_on(const Expr& condition, const Expr& value) const {
    bool found = false;
    walk(value, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      auto writes = access ? writes_.find(access->access.buffer) : writes_.end();
      if (writes != writes_.end())
        found |= std::all_of(writes->second.begin(), writes->second.end(), [&](const std::vector<Expr>& around) {
          return std::any_of(around.begin(), around.end(), [&](const Expr& own) { return is_same_condition(own, condition); });
        });
      return !found;
    });
    return found;
  }

  // Whether a load that is not staged uses one of these variables.
  bool reads_tensor_by(const Expr& expr, const std::set<std::string>& names) const {
    bool found = false;
    walk(expr, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      if (!access || registers_.count(access->access.buffer) || shared_.count(access->access.buffer)) return !found;
      for (const Expr& index : access->access.index)
        for (const std::string& name : variables_of(index)) found |= names.count(name) > 0;
      return !found;
    });
    return found;
  }

  bool is_never_stored(const Store& store, std::size_t n, const std::set<std::string>& names) const {
    if (names.empty() || reads_tensor_by(store.value, names) || reads_what_depends_on(store.where[n], store.value)) return false;
    for (std::size_t other = 0; other < store.where.size(); ++other)
      if (other != n && reads_tensor_by(store.where[other], names)) return false;
    return std::all_of(stores_.begin(), stores_.end(), [&](const Store& memory) {
      return std::any_of(memory.where.begin(), memory.where.end(),
                         [&](const Expr& condition) { return is_same_condition(condition, store.where[n]); });
    });
  }

  static bool is_same_condition(const Expr& a, const Expr& b) {
    if (a == b) return true;
    const Binary* x = as<Binary>(a);
    const Binary* y = as<Binary>(b);
    return x && y && x->op == y->op && is_same_index(x->lhs, y->lhs) && is_same_index(x->rhs, y->rhs);
  }

  // `element < limit` on a reduced index.
  bool is_absorbed(const Store& store, const Expr& condition, const std::set<std::string>& names,
                   const std::set<std::string>& reduced) {
    const Binary* bound = as<Binary>(condition);
    if (!bound || bound->op != BinaryOp::Lt || store.atomic) return false;
    std::set<std::string> own;
    for (const std::string& name : names)
      if (reduced.count(name)) own.insert(name);
    if (reads_tensor_by(store.value, own)) return false;
    std::vector<std::pair<std::string, Expr>> needed;  // predicates that copies would have to take
    Expr at_fill = rewrite(store.value, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      auto found = access ? copies_.find(access->access.buffer) : copies_.end();
      if (found == copies_.end()) return node;
      return is_at_fill(found->second, access->access, *bound, needed) ? fill_of(found->second, node->dtype) : node;
    });
    Expr old = load(store.target, store.value->dtype);
    if (!leaves_unchanged(at_fill, old)) return false;
    for (const auto& [buffer, predicate] : needed) added_[buffer].push_back(predicate);
    return true;
  }

  static Expr fill_of(const Copy& copy, Dtype dtype) {
    return copy.source.rule.kind == Rule::Kind::Fill ? copy.source.rule.fill : constant(0, dtype);
  }

  // Whether the element that `access` reads of a staged tile is the copy's fill wherever `bound` does not hold; notes
  // the predicate that the copy needs for that where the tensor's own end does not see to it.
  bool is_at_fill(const Copy& copy, const Access& access, const Binary& bound,
                  std::vector<std::pair<std::string, Expr>>& needed) const {
    auto tensor = find_tensor(plan_, copy.source.buffer);
    if (!tensor || copy.source.rule.kind != Rule::Kind::Fill || !as<Const>(copy.source.rule.fill)) return false;
    std::vector<std::pair<std::string, Expr>> places;
    for (std::size_t n = 0; n < copy.target.index.size(); ++n)
      if (const Var* name = as<Var>(copy.target.index[n])) places.emplace_back(name->name, access.index[n]);
    for (std::size_t d = 0; d < copy.source.index.size(); ++d) {
      if (!is_same_index(substitute(copy.source.index[d], places), bound.lhs)) continue;
      Expr predicate = less(copy.source.index[d], bound.rhs);
      bool ends_there = is_same_index(tensor->shape[d], bound.rhs) ||
                        std::find(copy.where.begin(), copy.where.end(), predicate) != copy.where.end();
      if (!ends_there) needed.emplace_back(copy.target.buffer, predicate);
      return true;
    }
    return false;
  }

  const Plan& plan_;
  std::set<std::string> registers_;
  std::set<std::string> shared_;
  std::map<std::string, Copy> copies_;
  std::vector<Store> stores_;  // to memory
  std::map<std::string, std::vector<std::vector<Expr>>> writes_;
  std::map<std::string, std::vector<Expr>> added_;
};

}  // namespace

Block drop_absorbed_predicates(const Block& block_body, const Plan& plan) {
  Dropping dropping(block_body, plan);
  return dropping.with_copy_predicates(dropping.apply(block_body, {}));
}

}  // namespace tilewright
