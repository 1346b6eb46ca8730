// Tensors in files of NumPy's format (.npy, versions 1 to 3).
#pragma once

#include <string>

#include "runtime/tensor.h"

namespace tilewright {

// Reads a file as a tensor of `wanted`, in row-major order whatever the file's order. NumPy has no bf16, e4m3 and e5m2: a
// file of u16 (or V2, as ml_dtypes writes it) counts as the bits of bf16, one of u8 (or V1) as those of the fp8 types.
// Throws UserError: no such file, no .npy file, a truncated one or one that lies about its shape, another dtype (with the
// line that converts it). `name` is the parameter's, for the messages.
HostTensor read_npy(const std::string& path, Dtype wanted, const std::string& name);
// The same in the file's own dtype.
HostTensor read_npy(const std::string& path);

enum class NpyOrder : std::uint8_t { RowMajor, ColumnMajor };

// Replaces the file only when all of it was written. Throws UserError.
void write_npy(const std::string& path, const HostTensor& tensor, NpyOrder order = NpyOrder::RowMajor);

}  // namespace tilewright
