// What tile operations mean, as nests of scalar statements: the one definition that whatever executes the tile stage in
// order goes by.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/plan.h"

namespace tilewright {

// What the place of the operation knows of its names.
struct NestNames {
  std::function<std::optional<TensorInfo>(const std::string&)> storage;  // dtype and extents of a tensor or buffer
  std::function<bool(const std::string&)> is_variable;                   // a loop, a `let`, a dim, a pipe's slot
  std::function<const Layout*(const std::string&)> layout;               // of a register buffer; null for none
};

// Loops over the operation's own axes: `each` where no element meets another, `serial` where they are combined in
// order. Sums of `mma` go over k in order; `scan` starts from the identity; `reduce` folds as the layout of its source says
// (fold_order.h), and in order from the identity where that has none.
Block reference_nest(const Copy& copy, const NestNames& names);
Block reference_nest(const Fill& fill, const NestNames& names);
Block reference_nest(const Mma& mma, const NestNames& names);
Block reference_nest(const Fold& fold, const NestNames& names);

}  // namespace tilewright
