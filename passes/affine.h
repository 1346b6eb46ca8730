// A small interval and divisibility engine for index expressions: for global bounds, predicates and vector widths only;
// facts about tiles are counted by enumeration instead (ir/layout.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// Inclusive bounds; a side without a value is unbounded.
struct Interval {
  std::optional<std::int64_t> lo;
  std::optional<std::int64_t> hi;
  friend bool operator==(const Interval&, const Interval&) = default;
};

using Ranges = std::map<std::string, Interval>;

// The interval of an integer expression, given those of its variables (unknown ones are unbounded).
Interval interval_of(const Expr& expr, const Ranges& ranges);

// Whether a boolean expression is always true or always false; nothing where the ranges do not tell.
std::optional<bool> decide(const Expr& condition, const Ranges& ranges);

// Known divisors of dims, from facts such as `N % 4 == 0`.
using Divisors = std::map<std::string, std::int64_t>;
Divisors divisors_of(const std::vector<Fact>& facts);

// The largest number known to divide the expression whatever its variables are; 0 stands for the constant 0.
std::int64_t known_divisor(const Expr& expr, const Divisors& divisors);

// expr = coefficient * name + rest with an integer coefficient and `rest` free of `name`; nothing where it is not so.
struct LinearIn {
  std::int64_t coefficient = 0;
  Expr rest;
};
std::optional<LinearIn> linear_in(const Expr& expr, const std::string& name);

// Rewrites an index or boolean expression with interval facts: decided comparisons, (a*n + b) / n, (a*n + b) % n, …
Expr simplify_expr(const Expr& expr, const Ranges& ranges);

}  // namespace tilewright
