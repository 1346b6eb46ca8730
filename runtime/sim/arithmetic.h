// Which step computes what: operators, conversions and functions on lanes.
#pragma once

#include "runtime/sim/machine.h"

namespace tilewright {

// dst = a op b; both of `dtype` (shifts: the count is any integer).
WarpOp::Run run_of_binary(BinaryOp op, Dtype dtype, bool a_uniform, bool b_uniform);
WarpOp::Run run_of_unary(UnaryOp op, Dtype dtype);
// dst of op.dtype = a of op.from.
WarpOp::Run run_of_cast(Dtype to, Dtype from);
// Whether a value of `from` stands in its cell as the same value of `to` does.
bool is_same_cell(Dtype to, Dtype from);
// dst = function(a, b, c) of op.dtype; op.object holds the ScalarFunction where the step needs one.
WarpOp::Run run_of_function(std::string_view name, Dtype dtype);
// dst = a where the mask c holds, else b.
WarpOp::Run run_of_blend(Dtype dtype);
// dst = a in the active lanes. A uniform dst takes a uniform value.
WarpOp::Run run_of_move(Dtype dtype);

// Steps keep the function of the scalar table by its address.
const void* object_of(ScalarFunction function);

}  // namespace tilewright
