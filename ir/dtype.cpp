// The dtypes of element types.
#include "ir/dtype.h"

#include <array>

namespace tilewright {

namespace {
constexpr std::array<DtypeInfo, 17> dtypes = {{
    {"f64", 64, DtypeKind::Float},   {"f32", 32, DtypeKind::Float},    {"f16", 16, DtypeKind::Float},
    {"bf16", 16, DtypeKind::Float},  {"e4m3", 8, DtypeKind::Float},    {"e5m2", 8, DtypeKind::Float},
    {"i64", 64, DtypeKind::Signed},  {"i32", 32, DtypeKind::Signed},   {"i16", 16, DtypeKind::Signed},
    {"i8", 8, DtypeKind::Signed},    {"u64", 64, DtypeKind::Unsigned}, {"u32", 32, DtypeKind::Unsigned},
    {"u16", 16, DtypeKind::Unsigned}, {"u8", 8, DtypeKind::Unsigned},  {"bool", 8, DtypeKind::Bool},
    {"index", 64, DtypeKind::Signed}, {"mbarrier", 64, DtypeKind::Opaque},
}};
}  // namespace

const DtypeInfo& info(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> dtype_by_name(std::string_view name) {
  for (std::size_t row = 0; row < dtypes.size(); ++row)
    if (dtypes[row].name == name) return static_cast<Dtype>(row);
  return std::nullopt;
}

Dtype accumulator_of(Dtype dtype) {
  if (is_narrow_float(dtype)) return Dtype::F32;
  if (dtype == Dtype::Bool) return Dtype::I32;
  if (is_integer(dtype) && info(dtype).bits < 32) return Dtype::I32;
  return dtype;
}

}  // namespace tilewright
