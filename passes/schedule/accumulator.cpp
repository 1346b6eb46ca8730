// Recognising `acc = identity; serial … { acc = acc op … }`.
#include "passes/schedule/accumulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "ir/scalar.h"

namespace tilewright {

namespace {

bool reads_exactly(const Expr& expr, const Access& target) {
  const Load* found = as<Load>(expr);
  return found && found->access.buffer == target.buffer && found->access.index == target.index;
}

// The operator of `target = target op …`, where nothing else in the value reads the target's buffer.
std::optional<CombineOp> operator_of(const Store& store) {
  const Access& target = store.target;
  if (const Call* call = as<Call>(store.value); call && (call->function == "fma" || call->function == "fma.kept"))
    return reads_exactly(call->arguments[2], target) ? std::optional(CombineOp::Add) : std::nullopt;
  const Binary* node = as<Binary>(store.value);
  if (!node) return std::nullopt;
  if (!reads_exactly(node->lhs, target) && !(info(node->op).commutative && reads_exactly(node->rhs, target))) return std::nullopt;
  for (CombineOp op : {CombineOp::Add, CombineOp::Mul, CombineOp::Max, CombineOp::Min, CombineOp::And, CombineOp::Or})
    if (binary_of(op, store.value->dtype) == node->op) return op;
  return std::nullopt;
}

int count_loads(const Block& body, const std::string& buffer) {
  int count = 0;
  walk_expressions(body, [&](const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      count += access && access->access.buffer == buffer;
      return true;
    });
  });
  return count;
}

class Recognition {
 public:
  Recognition(const Block& body, std::size_t nest, const LineName& loop) : body_(body), nest_(nest), loop_(loop) {}

  Accumulator run() {
    find_declarations();
    find_updates();
    result_.buffer = outer_.at(name_);
    find_start();
    return result_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UserError(loop_.span, fmt::format("`{}` cannot be shared: {}", loop_.text, why),
                    "`split` takes a reduction of one accumulator by one operator: sum, prod, max, min, any, all, count, mean");
  }

  void find_declarations() {
    for (std::size_t n = 0; n < nest_; ++n)
      if (const Buffer* buffer = as<Buffer>(body_[n]); buffer && buffer->space == Space::Register) outer_.emplace(buffer->name, *buffer);
  }

  void find_updates() {
    std::set<std::string> own;
    int stores = 0;
    walk({body_[nest_]}, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) own.insert(buffer->name);
      const Store* store = as<Store>(stmt);
      if (!store || own.count(store->target.buffer)) return true;
      const std::string& target = store->target.buffer;
      if (!outer_.count(target)) refuse(fmt::format("each step writes `{}`", target));
      if (!name_.empty() && name_ != target) refuse(fmt::format("`{}` and `{}` are kept in step", name_, target));
      auto op = operator_of(*store);
      if (!op || (stores > 0 && *op != result_.op)) refuse(fmt::format("`{}` is not combined by one operator alone", target));
      name_ = target;
      result_.op = *op;
      ++stores;
      return true;
    });
    if (stores == 0) refuse("nothing is reduced over it");
    if (updates_inside() != stores) refuse(fmt::format("what is reduced over it is part of a term of `{}`", name_));
    if (count_loads({body_[nest_]}, name_) != stores) refuse(fmt::format("its steps read `{}` before it is complete", name_));
  }

  // How many statements in the loop itself update the accumulator.
  int updates_inside() const {
    int found = 0;
    walk({body_[nest_]}, [&](const Stmt& stmt) {
      const Loop* inner = as<Loop>(stmt);
      if (!inner || std::none_of(inner->axes.begin(), inner->axes.end(), [&](const Axis& axis) { return axis.name == loop_.text; })) return true;
      walk(inner->body, [&](const Stmt& update) {
        const Store* store = as<Store>(update);
        found += store && store->target.buffer == name_;
        return true;
      });
      return false;
    });
    return found;
  }

  void find_start() {
    const Expr identity = identity_of(result_.op, result_.buffer.dtype);
    for (std::size_t n = nest_; n-- > 0;) {
      const Store* store = as<Store>(body_[n]);
      const Fill* fill = as<Fill>(body_[n]);
      const bool is_start = (store && store->target.buffer == name_) || (fill && fill->buffer == name_);
      if (is_start) {
        const Expr& value = store ? store->value : fill->value;
        if (!(value == identity) || (store && !store->where.empty())) refuse(fmt::format("`{}` starts as `{}`, which is not the identity of its operator", name_, print(value)));
        result_.start = n;
        return;
      }
      if (mentions_buffer({body_[n]}, name_)) break;
    }
    refuse(fmt::format("`{}` has no start beside it", name_));
  }

  const Block& body_;
  std::size_t nest_;
  const LineName& loop_;
  std::map<std::string, Buffer> outer_;
  std::string name_;
  Accumulator result_;
};

}  // namespace

Accumulator accumulator_of(const Block& body, std::size_t nest, const LineName& loop) { return Recognition(body, nest, loop).run(); }

}  // namespace tilewright
