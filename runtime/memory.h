// Places in memory as the flat programs see them: a tensor or buffer, and an access with its rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/scalar.h"
#include "ir/span.h"
#include "runtime/slot_program.h"

namespace tilewright {

// Row-major, contiguous. `errors` may be null.
struct Memory {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::byte* base = nullptr;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;  // in elements
  double* errors = nullptr;

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    return count;
  }
  void set_extents(std::vector<std::int64_t> shape) {
    extents = std::move(shape);
    strides.assign(extents.size(), 1);
    for (std::size_t axis = extents.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  }
};

template <class M>
struct Site {
  M* memory = nullptr;
  std::vector<Slot> index;
  Rule::Kind rule = Rule::Kind::None;
  int check_id = 0;
  Span span;
};

inline std::int64_t bring_inside(Rule::Kind rule, std::int64_t index, std::int64_t extent) {
  if (extent <= 0) return -1;
  if (rule == Rule::Kind::Clamp) return index < 0 ? 0 : extent - 1;
  if (rule == Rule::Kind::Wrap) return floor_modulo(index, extent);
  if (extent == 1) return 0;
  // Mirror: … 2 1 | 0 1 2 … n-1 | n-2 …: the edge element is not repeated.
  const std::int64_t period = 2 * extent - 2;
  const std::int64_t folded = floor_modulo(index, period);
  return folded < extent ? folded : period - folded;
}

// The element that an access means, or -1 where an index is out of range and the rule does not bring it inside; then
// `outside` is that index.
template <class M>
inline std::int64_t locate(const Site<M>& site, const Scalar* slots, std::int64_t& outside) {
  std::int64_t element = 0;
  const M& memory = *site.memory;
  for (std::size_t axis = 0; axis < site.index.size(); ++axis) {
    std::int64_t index = slots[site.index[axis]].i;
    const std::int64_t extent = memory.extents[axis];
    if (static_cast<std::uint64_t>(index) >= static_cast<std::uint64_t>(extent)) {
      outside = index;
      if (site.rule != Rule::Kind::Clamp && site.rule != Rule::Kind::Wrap && site.rule != Rule::Kind::Mirror) return -1;
      index = bring_inside(site.rule, index, extent);
      if (index < 0) return -1;
    }
    element += index * memory.strides[axis];
  }
  return element;
}

// load_scalar with the common dtypes inline, for instructions that know the dtype.
template <Dtype D>
inline Scalar load_typed(const std::byte* memory) {
  const auto read = [memory]<class T>(T value) {
    __builtin_memcpy(&value, memory, sizeof value);
    return value;
  };
  if constexpr (D == Dtype::F64) return real_scalar(read(double{}));
  else if constexpr (D == Dtype::F32) return real_scalar(static_cast<double>(read(float{})));
  else if constexpr (D == Dtype::BF16)
    return real_scalar(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(read(std::uint16_t{})) << 16)));
  else if constexpr (D == Dtype::I64) return integer_scalar(read(std::int64_t{}));
  else if constexpr (D == Dtype::I32) return integer_scalar(read(std::int32_t{}));
  else if constexpr (D == Dtype::U8) return integer_scalar(read(std::uint8_t{}));
  else return load_scalar(D, memory);
}

// The instruction F<dtype>::run. The name of F is unique in the program: g++ 12 merges instances for templates of the same
// name in unnamed namespaces.
template <template <Dtype> class F>
Ins::Run run_for_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64: return F<Dtype::F64>::run;
    case Dtype::F32: return F<Dtype::F32>::run;
    case Dtype::F16: return F<Dtype::F16>::run;
    case Dtype::BF16: return F<Dtype::BF16>::run;
    case Dtype::E4M3: return F<Dtype::E4M3>::run;
    case Dtype::E5M2: return F<Dtype::E5M2>::run;
    case Dtype::I64: case Dtype::U64: case Dtype::Index: case Dtype::Mbarrier: return F<Dtype::I64>::run;
    case Dtype::I32: return F<Dtype::I32>::run;
    case Dtype::I16: return F<Dtype::I16>::run;
    case Dtype::I8: return F<Dtype::I8>::run;
    case Dtype::U32: return F<Dtype::U32>::run;
    case Dtype::U16: return F<Dtype::U16>::run;
    case Dtype::U8: return F<Dtype::U8>::run;
    case Dtype::Bool: return F<Dtype::Bool>::run;
  }
  return nullptr;
}

}  // namespace tilewright
