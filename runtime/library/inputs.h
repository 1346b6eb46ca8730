// Inputs of a call from short texts: `X=file.npy`, `X=random`, `X=iota`; sizes from files, `--set` or small defaults.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/library/session.h"

namespace tilewright {

// Random data: normal for floats, all values of 8-bit types, -100 .. 100 for wider integers, fair bools. One seed gives
// the same data everywhere.
HostTensor random_tensor(Dtype dtype, std::vector<std::int64_t> shape, std::uint64_t seed);

struct InputRequest {
  std::vector<std::string> inputs;  // NAME=FILE|zeros|ones|iota|random
  std::map<std::string, std::string> values;  // `--set` NAME=VALUE: dims and scalars
  std::uint64_t seed = 1;
  std::int64_t default_size = 64;
};

// The dims that files and values give, defaults for the others.
DimMap dims_of_request(const TensorFn& fn, const InputRequest& request);
// All inputs (and inout tensors) of the fn.
std::map<std::string, HostTensor> make_inputs(const TensorFn& fn, const DimMap& dims, const InputRequest& request);

// A tensor of an .npy, .pgm or .ppm file.
HostTensor read_tensor_file(const std::string& path, Dtype wanted, const std::string& name);
void write_tensor_file(const std::string& path, const HostTensor& tensor);

}  // namespace tilewright
