// Operators and conversions of ir/expr.h on LLVM values of one dtype, with exactly the meaning of ir/scalar.h.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/narrow_float.h"
#include "ir/expr.h"

namespace tilewright {

// What is known of the operands of an integer division.
struct DivisionFacts {
  bool lhs_nonnegative = false;
  bool rhs_nonnegative = false;
};

class Arithmetic {
 public:
  Arithmetic(llvm::IRBuilderBase& builder, unsigned index_bits, NativeNarrow native)
      : b_(builder), index_bits_(index_bits), native_(native) {}

  // The type of a value: narrow floats are their bits, Bool is an i1.
  llvm::Type* type(Dtype dtype) const;
  // The type in memory: Bool takes a byte.
  llvm::Type* memory_type(Dtype dtype) const;
  unsigned bits(Dtype dtype) const;

  llvm::Value* constant(std::int64_t bits, Dtype dtype) const;  // bits as in Const
  llvm::Value* index(std::int64_t value) const;

  llvm::Value* unary(UnaryOp op, Dtype dtype, llvm::Value* a) const;
  // Not And and Or (their right side is evaluated only if needed) and not Mod of floats (a function of the target).
  llvm::Value* binary(BinaryOp op, Dtype dtype, llvm::Value* a, llvm::Value* b, DivisionFacts facts = {}) const;
  llvm::Value* convert(Dtype to, Dtype from, llvm::Value* value) const;
  llvm::Value* fma(Dtype dtype, llvm::Value* a, llvm::Value* b, llvm::Value* c) const;
  llvm::Value* ceildiv(Dtype dtype, llvm::Value* a, llvm::Value* b, DivisionFacts facts) const;

  // An f32 or f64 value of a float of any width, and back with one rounding.
  llvm::Value* widen(Dtype dtype, llvm::Value* value) const;
  llvm::Value* narrow(Dtype dtype, llvm::Value* value) const;

 private:
  llvm::Value* float_binary(BinaryOp op, Dtype dtype, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* integer_binary(BinaryOp op, Dtype dtype, llvm::Value* a, llvm::Value* b, DivisionFacts facts) const;
  llvm::Value* division(BinaryOp op, Dtype dtype, llvm::Value* a, llvm::Value* b, DivisionFacts facts) const;
  llvm::Value* signed_division(BinaryOp op, llvm::Value* a, llvm::Value* b) const;
  bool is_signed_type(Dtype dtype) const { return is_signed(dtype); }

  llvm::IRBuilderBase& b_;
  unsigned index_bits_;
  NativeNarrow native_;
};

}  // namespace tilewright
