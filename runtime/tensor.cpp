// Host tensors: memory, elements, poison.
#include "runtime/tensor.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace tilewright {

namespace {

std::size_t offset_of(const HostTensor& tensor, std::int64_t element) {
  const auto offset = static_cast<std::size_t>(element) * static_cast<std::size_t>(bytes_of(tensor.dtype));
  if (element < 0 || offset >= tensor.data.size())
    internal_error(fmt::format("element {} of a tensor of {} bytes", element, tensor.data.size()));
  return offset;
}

// The bytes of the poison of a dtype, lowest first; a float's is a quiet NaN that no conversion makes.
std::array<std::uint8_t, 8> poison_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return {0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xfc, 0x7f};
    case Dtype::F32: return {0xa5, 0xa5, 0xe5, 0x7f};
    case Dtype::F16: return {0xa5, 0x7f};
    case Dtype::BF16: return {0xe5, 0x7f};
    case Dtype::E4M3: return {0xff};
    case Dtype::E5M2: return {0xfe};
    case Dtype::I64: case Dtype::I32: case Dtype::I16: case Dtype::I8: case Dtype::U64: case Dtype::U32: case Dtype::U16:
    case Dtype::U8: case Dtype::Bool: case Dtype::Index: case Dtype::Mbarrier: break;
  }
  return {0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5};
}

}  // namespace

std::int64_t HostTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

HostTensor make_tensor(Dtype dtype, std::vector<std::int64_t> shape) {
  std::int64_t bytes = bytes_of(dtype);
  bool overflows = false;
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw UserError({}, fmt::format("a tensor cannot have {} elements on an axis", extent));
    is_empty = is_empty || extent == 0;
    overflows = overflows || __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (is_empty) bytes = 0;
  constexpr std::int64_t most_bytes = std::int64_t{1} << 46;
  if ((overflows || bytes > most_bytes) && !is_empty)
    throw UserError({}, fmt::format("a tensor of shape [{}] is larger than any memory", fmt::join(shape, ", ")));
  HostTensor tensor{dtype, std::move(shape), {}};
  try {
    tensor.data.resize(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    throw MachineError(fmt::format("no memory for a tensor of {} bytes; give smaller sizes with --set", bytes));
  } catch (const std::length_error&) {
    throw UserError({}, fmt::format("a tensor of shape [{}] is larger than any memory", fmt::join(tensor.shape, ", ")));
  }
  return tensor;
}

double read_real(const HostTensor& tensor, std::int64_t element) {
  const Scalar value = load_scalar(tensor.dtype, tensor.data.data() + offset_of(tensor, element));
  return convert(Dtype::F64, tensor.dtype, value).f;
}

std::int64_t read_integer(const HostTensor& tensor, std::int64_t element) {
  const Scalar value = load_scalar(tensor.dtype, tensor.data.data() + offset_of(tensor, element));
  return convert(Dtype::I64, tensor.dtype, value).i;
}

void write_real(HostTensor& tensor, std::int64_t element, double value) {
  store_scalar(tensor.dtype, tensor.data.data() + offset_of(tensor, element),
               convert(tensor.dtype, Dtype::F64, real_scalar(value)));
}

void write_integer(HostTensor& tensor, std::int64_t element, std::int64_t value) {
  store_scalar(tensor.dtype, tensor.data.data() + offset_of(tensor, element),
               convert(tensor.dtype, Dtype::I64, integer_scalar(value)));
}

void poison(HostTensor& tensor) {
  const auto pattern = poison_of(tensor.dtype);
  const auto size = static_cast<std::size_t>(bytes_of(tensor.dtype));
  for (std::size_t offset = 0; offset < tensor.data.size(); offset += size)
    std::memcpy(tensor.data.data() + offset, pattern.data(), size);
}

bool is_poison(const HostTensor& tensor, std::int64_t element) {
  const auto pattern = poison_of(tensor.dtype);
  return std::memcmp(tensor.data.data() + offset_of(tensor, element), pattern.data(),
                     static_cast<std::size_t>(bytes_of(tensor.dtype))) == 0;
}

}  // namespace tilewright
