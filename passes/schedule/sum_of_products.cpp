// Recognising sums of products.
#include "passes/schedule/sum_of_products.h"

namespace tilewright {

std::optional<SumLeaf> sum_leaf(const Stmt& stmt) {
  const Loop* each = as<Loop>(stmt);
  if (!each || each->kind != LoopKind::Each || each->body.size() != 1) return std::nullopt;
  const Loop* sum = as<Loop>(each->body[0]);
  if (!sum || sum->kind != LoopKind::Serial || sum->body.size() != 1) return std::nullopt;
  const Store* store = as<Store>(sum->body[0]);
  if (!store || store->atomic) return std::nullopt;
  return SumLeaf{each, sum, store};
}

std::optional<Factors> factors_of(const Expr& value, const Access& target) {
  auto is_old = [&](const Expr& expr) {
    const Load* old = as<Load>(expr);
    return old && old->access.buffer == target.buffer && old->access.index == target.index;
  };
  if (const Call* call = as<Call>(value))
    if ((call->function == "fma" || call->function == "fma.kept") && is_old(call->arguments[2]))
      return Factors{call->arguments[0], call->arguments[1]};
  const Binary* sum = as<Binary>(value);
  if (!sum || sum->op != BinaryOp::Add || !(is_old(sum->lhs) || is_old(sum->rhs))) return std::nullopt;
  const Binary* product = as<Binary>(is_old(sum->lhs) ? sum->rhs : sum->lhs);
  if (!product || product->op != BinaryOp::Mul) return std::nullopt;
  return Factors{product->lhs, product->rhs};
}

namespace {

// The indices of an operand without the slot of its pipe.
std::vector<Expr> tile_index(const Access& access) {
  std::vector<Expr> index = access.index;
  if (!index.empty())
    if (const Var* slot = as<Var>(index[0]); slot && slot->name.ends_with(".out")) index.erase(index.begin());
  return index;
}

}  // namespace

bool is_indexed_by(const Access& access, const std::string& x, const std::string& y) {
  std::vector<Expr> index = tile_index(access);
  if (index.size() != 2) return false;
  return (index[0] == var(x) && index[1] == var(y)) || (index[0] == var(y) && index[1] == var(x));
}

}  // namespace tilewright
