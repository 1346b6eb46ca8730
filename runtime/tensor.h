// Tensors in host memory and the arguments of a call, shared by every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace tilewright {

// Contiguous, row-major. A scalar has an empty shape and one element. `data` holds elements·bytes_of(dtype) bytes.
struct HostTensor {
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  std::int64_t elements() const;
};

// Allocates zeroed memory. Throws UserError where the size overflows 63 bits, MachineError where there is no memory.
HostTensor make_tensor(Dtype dtype, std::vector<std::int64_t> shape);

// One element as f64 (exact for everything but large 64-bit integers) or as an integer.
double read_real(const HostTensor& tensor, std::int64_t element);
std::int64_t read_integer(const HostTensor& tensor, std::int64_t element);
// Stores with the conversion of a Cast from f64 or i64.
void write_real(HostTensor& tensor, std::int64_t element, double value);
void write_integer(HostTensor& tensor, std::int64_t element, std::int64_t value);

// A pattern that no right answer holds by accident: a NaN with payload for floats, 0xA5… for integers.
void poison(HostTensor& tensor);
bool is_poison(const HostTensor& tensor, std::int64_t element);

// Every parameter of a plan by name, and the dims.
struct Arguments {
  std::map<std::string, HostTensor> tensors;
  std::map<std::string, std::int64_t> dims;
};

// Solves the dims from the inputs' shapes (dims may stand affinely, `2*R + 1`) and from `given`, checks that all shapes
// agree, allocates and poisons the outputs. Throws UserError that names the tensor, the axis and both sizes.
Arguments bind_arguments(const Plan& plan, std::map<std::string, HostTensor> inputs,
                         const std::map<std::string, std::int64_t>& given = {});
// Throws UserError where a read by `clamp`, `wrap` or `mirror` would need an element of a tensor that has none. Part of
// bind_arguments; of use where the arguments were bound by a plan without kernels.
void require_elements(const Plan& plan, const Arguments& arguments);
// The value of every `dim` with a formula that needs no device is included.
std::vector<std::pair<std::string, std::int64_t>> dim_values(const Plan& plan, const Arguments& arguments);
// The shape of a tensor for these dims.
std::vector<std::int64_t> shape_of(const std::vector<Expr>& shape, const std::vector<std::pair<std::string, std::int64_t>>& dims);

// The first offence that a checked access reported: which site, the index or bound seen.
struct ErrorHit {
  int site = 0;
  std::int64_t value = 0;
};

// What a run on any device tells.
struct RunReport {
  std::optional<ErrorHit> error;
  std::vector<std::string> faults;  // broken promises that the interpreter or the simulator found, each a sentence
  std::string printed;              // by printf in kernels, where it does not go to the screen by itself
  double share = 1;                 // of the work that was run, where a limit stopped it; `milliseconds` is scaled to all
  double milliseconds = 0;          // device time of the kernels where the device measures it, else wall time
};

}  // namespace tilewright
