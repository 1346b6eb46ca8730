// The instructions that carry a bound of the error beside each value.
#pragma once

#include "runtime/slot_program.h"

namespace tilewright {

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
