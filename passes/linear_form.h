// Index expressions as sums of multiples: to compare two that are written differently, and to take a tile's part out.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace tilewright {

// constant + the sum of coefficient * atom. An atom is a variable, or what is not linear (`i / 2`, `N*i`, a load).
struct LinearForm {
  struct Term {
    Expr atom;
    std::int64_t coefficient = 0;
  };
  std::vector<Term> terms;  // in order of first appearance, without zeros
  std::int64_t constant = 0;
};

LinearForm linear_form(const Expr& expr);
LinearForm minus(const LinearForm& a, const LinearForm& b);
// a - b where that is a constant.
std::optional<std::int64_t> constant_difference(const LinearForm& a, const LinearForm& b);
bool is_same_index(const Expr& a, const Expr& b);

}  // namespace tilewright
