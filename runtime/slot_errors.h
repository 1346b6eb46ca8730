// The instructions that carry a bound of the error beside each value.
#pragma once

#include "runtime/slot_program.h"

namespace tilewright {

// The error of a value of which one operation was rounded, by `unit`. An infinite or NaN value is compared by class and has
// none, unless an operand's is unknown. Among denormals a rounding has an absolute size; where f32 may overflow, the kernel has
// an infinity and the error is unknown (infinite).
double error_of_rounded(double value, double error, double unit);
// The error of a sum whose terms have errors of `error` in all and finite terms of `magnitude`, rounded `relative` to that.
// Where a part of the sum may overflow, the kernel may have an infinity, or NaN behind it.
double error_of_sum(double value, double error, double magnitude, double relative);

Ins::Run run_of_binary_with_error(BinaryOp op, Dtype dtype);
Ins::Run run_of_function_with_error(std::string_view function, std::size_t arity);
const Ins* run_copy_with_error(const Ins& ins, Machine& machine);
const Ins* run_copy_error(const Ins& ins, Machine& machine);
const Ins* run_convert_with_error(const Ins& ins, Machine& machine);
// A condition is sure where its error is 0.
const Ins* run_jump_if_surely_false(const Ins& ins, Machine& machine);
const Ins* run_jump_if_surely_true(const Ins& ins, Machine& machine);
const Ins* run_and_with_error(const Ins& ins, Machine& machine);
const Ins* run_or_with_error(const Ins& ins, Machine& machine);
// dst = if a then b else c, over both where a is uncertain.
const Ins* run_merge(const Ins& ins, Machine& machine);

}  // namespace tilewright
