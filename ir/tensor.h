// Tensor IR: typed statements in index notation with explicit ranges. The frontend makes it, lowering consumes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// One definition, `target[index] = value` for all points of `axes` where every condition of `where` holds. Each axis is
// a free index of the statement (its name is a Var in index, value and where). Values are typed: every implicit
// conversion of the language stands here as a Cast; `value` has the target's dtype. With `combine`, an update:
// target[index] op= value, in index order, on a target that starts at the identity (unless it is InOut).
// Loads carry their Rule; Skip stands only inside a Reduce, whose `where` already holds its condition (the load itself
// then has no rule). A plain `=` has Vars as indices, each axis once, and covers the whole target.
struct TensorStmt {
  std::string target;
  std::vector<Axis> axes;
  std::vector<Expr> index;
  Rule rule;  // of the target: None, Skip or Check
  std::vector<Expr> where;
  Expr value;
  std::optional<CombineOp> combine;
  Span span;
  friend bool operator==(const TensorStmt&, const TensorStmt&) = default;
};

// A `let` tensor; its shape is the extents of its index ranges.
struct TensorFn {
  std::string name;
  std::vector<std::string> dims;  // in order of first appearance in the signature
  std::vector<Param> params;
  std::vector<Temp> lets;
  std::vector<ErrorSite> errors;  // accesses with Rule::Check, numbered
  std::vector<TensorStmt> statements;
  Span span;
  friend bool operator==(const TensorFn&, const TensorFn&) = default;
};

std::string print(const TensorFn& fn);
std::string print(const TensorStmt& stmt);  // one line without its end
std::vector<std::string> verify(const TensorFn& fn);

}  // namespace tilewright
