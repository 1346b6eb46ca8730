// Conditions on indices: what "in range" means for an access, and what holds for a whole vector at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "passes/affine.h"

namespace tilewright {

// The sides of a conjunction, in order.
std::vector<Expr> conjuncts(const Expr& condition);

// `0 <= index[d] < shape[d]` for every axis, without the sides that `ranges` proves.
std::vector<Expr> in_range(const std::vector<Expr>& index, const std::vector<Expr>& shape, const Ranges& ranges);

// The shape of what an access names: a tensor of the plan, or a buffer of the kernel. Nothing for other names.
std::optional<std::vector<Expr>> shape_of_access(const Plan& plan, const std::vector<Buffer>& buffers, const std::string& name);

// All buffers declared anywhere in a body.
std::vector<Buffer> buffers_in(const Block& body);

// `condition` with `name` = 0, if its value is then the same for name = 0 .. width-1 (it does not use the name, or it
// compares `e + name < limit` where e and limit are multiples of width); nothing otherwise.
std::optional<Expr> uniform_over(const Expr& condition, const std::string& name, std::int64_t width, const Divisors& divisors);

// Ranges of the dims of a plan (never negative) and of the variables that axes bind below `ranges`.
Ranges ranges_of_dims(const Plan& plan);
void add_axis(Ranges& ranges, const Axis& axis);

}  // namespace tilewright
