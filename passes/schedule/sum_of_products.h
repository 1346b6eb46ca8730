// Sums of products over a tile, as `stage` leaves them: what a matrix instruction can do.
#pragma once

#include <optional>
#include <string>

#include "ir/stmt.h"

namespace tilewright {

// each … { serial … { store } }
struct SumLeaf {
  const Loop* each;
  const Loop* sum;
  const Store* store;
};
std::optional<SumLeaf> sum_leaf(const Stmt& stmt);

// a and b of `old + a*b`, contracted or not, where `old` is the element of `target`.
struct Factors {
  Expr a;
  Expr b;
};
std::optional<Factors> factors_of(const Expr& value, const Access& target);

// Whether an operand is indexed by these two alone, in any order, behind the slot of its pipe.
bool is_indexed_by(const Access& access, const std::string& x, const std::string& y);

}  // namespace tilewright
