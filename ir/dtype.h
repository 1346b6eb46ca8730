// Element types: one row a type, with every fact about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

// `Index` is the type of sizes, loop variables and index arithmetic: a signed integer of 32 or 64 bits,
// as the plan's class says (Plan::index_bits). `Mbarrier` is a 64-bit barrier object in shared memory.
enum class Dtype : std::uint8_t {
  F64, F32, F16, BF16, E4M3, E5M2, I64, I32, I16, I8, U64, U32, U16, U8, Bool, Index, Mbarrier
};

enum class DtypeKind : std::uint8_t { Float, Signed, Unsigned, Bool, Opaque };

struct DtypeInfo {
  std::string_view name;  // as the language and the IR write it
  int bits;               // in memory; a bool takes a byte; Index counts as 64
  DtypeKind kind;
};

const DtypeInfo& info(Dtype dtype);
std::optional<Dtype> dtype_by_name(std::string_view name);

inline int bytes_of(Dtype dtype) { return info(dtype).bits / 8; }
inline bool is_float(Dtype dtype) { return info(dtype).kind == DtypeKind::Float; }
inline bool is_signed(Dtype dtype) { return info(dtype).kind == DtypeKind::Signed; }
inline bool is_unsigned(Dtype dtype) { return info(dtype).kind == DtypeKind::Unsigned; }
inline bool is_integer(Dtype dtype) { return is_signed(dtype) || is_unsigned(dtype); }
// f16, bf16 and fp8: stored narrow, computed in f32.
inline bool is_narrow_float(Dtype dtype) { return is_float(dtype) && info(dtype).bits < 32; }
// The accumulator of a reduction over elements of this type: f32 for narrow floats, i32 for narrower integers and bool.
Dtype accumulator_of(Dtype dtype);

}  // namespace tilewright
