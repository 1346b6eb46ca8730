// Conversions between f32 and the narrow floats (f16, bf16, e4m3, e5m2) as LLVM IR, bit for bit those of ir/scalar.h.
// A narrow float is held as its bits, an i16 or an i8.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/dtype.h"

namespace tilewright {

// Which narrow floats the machine converts itself (fptrunc and fpext are then one instruction); the others are
// converted by integer arithmetic, which every machine has and which vectorises.
struct NativeNarrow {
  bool f16 = false;
  bool bf16 = false;
};

llvm::Value* f32_from_narrow(llvm::IRBuilderBase& builder, const NativeNarrow& native, Dtype dtype, llvm::Value* bits);
// To nearest even; beyond the largest f16 and bf16 give infinity, e4m3 and e5m2 saturate.
llvm::Value* narrow_from_f32(llvm::IRBuilderBase& builder, const NativeNarrow& native, Dtype dtype, llvm::Value* value);

// f64 to f32, rounded to odd: what was lost stays visible in the last bit, so that the next rounding, to a narrower
// type, is the only one that counts.
llvm::Value* odd_f32_from_f64(llvm::IRBuilderBase& builder, llvm::Value* value);
// An integer of 64 bits as f64, rounded to odd.
llvm::Value* odd_f64_from_i64(llvm::IRBuilderBase& builder, llvm::Value* value, bool is_signed);

}  // namespace tilewright
