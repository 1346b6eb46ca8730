// What the class of a call (CallClass) depends on besides the sizes: its integer scalars.
#pragma once

#include "runtime/library/session.h"

namespace tilewright {

struct InputRequest;

// The dims, and the integer scalars beside them: for class_of and rungs_of, which then compute indices that large scalars
// make in 64 bits. Scalars that are not named there count as small.
DimMap class_values(const TensorFn& fn, const DimMap& dims, const std::map<std::string, HostTensor>& inputs);
// The same with the scalars that a request gives.
DimMap class_values(const TensorFn& fn, const DimMap& dims, const InputRequest& request);

}  // namespace tilewright
