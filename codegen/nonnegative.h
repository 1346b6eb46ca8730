// Which integer expressions cannot be negative: there the language's floor division is the machine's own.
#pragma once

#include <functional>
#include <string>

#include "ir/expr.h"

namespace tilewright {

// True where the expression's value is at least 0 whatever the names hold, given the names of which
// `is_nonnegative_name` is true (dims, thread and block indices, loops from 0). Index arithmetic does not overflow in
// its class.
bool is_nonnegative(const Expr& expr, const std::function<bool(const std::string&)>& is_nonnegative_name);

// Whether index arithmetic is made of what a tensor gives. It may be anything, so it wraps; all else stays in its class.
bool is_from_tensor(const Expr& expr);

}  // namespace tilewright
