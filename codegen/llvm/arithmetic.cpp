// Operators and conversions as LLVM IR; see arithmetic.h.
#include "codegen/llvm/arithmetic.h"

#include <bit>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace tilewright {

using llvm::Value;

unsigned Arithmetic::bits(Dtype dtype) const {
  return dtype == Dtype::Index ? index_bits_ : static_cast<unsigned>(info(dtype).bits);
}

llvm::Type* Arithmetic::type(Dtype dtype) const {
  if (dtype == Dtype::F64) return b_.getDoubleTy();
  if (dtype == Dtype::F32) return b_.getFloatTy();
  if (dtype == Dtype::Bool) return b_.getInt1Ty();
  return b_.getIntNTy(bits(dtype));
}

llvm::Type* Arithmetic::memory_type(Dtype dtype) const { return dtype == Dtype::Bool ? b_.getInt8Ty() : type(dtype); }

Value* Arithmetic::constant(std::int64_t value, Dtype dtype) const {
  if (dtype == Dtype::F64 || dtype == Dtype::F32)
    return llvm::ConstantFP::get(type(dtype), std::bit_cast<double>(value));
  if (is_narrow_float(dtype)) {
    std::uint16_t memory = 0;
    store_scalar(dtype, &memory, real_scalar(round_to(dtype, std::bit_cast<double>(value))));
    return llvm::ConstantInt::get(type(dtype), memory);
  }
  if (dtype == Dtype::Bool) return b_.getInt1(value != 0);
  return llvm::ConstantInt::get(b_.getContext(),
                                llvm::APInt(bits(dtype), static_cast<std::uint64_t>(value), false, true));
}

Value* Arithmetic::index(std::int64_t value) const { return constant(value, Dtype::Index); }

Value* Arithmetic::widen(Dtype dtype, Value* value) const {
  return is_narrow_float(dtype) ? f32_from_narrow(b_, native_, dtype, value) : value;
}

Value* Arithmetic::narrow(Dtype dtype, Value* value) const {
  return is_narrow_float(dtype) ? narrow_from_f32(b_, native_, dtype, value) : value;
}

Value* Arithmetic::unary(UnaryOp op, Dtype dtype, Value* a) const {
  switch (op) {
    case UnaryOp::Neg:
      if (is_narrow_float(dtype))
        return b_.CreateXor(a, llvm::ConstantInt::get(type(dtype), 1ULL << (info(dtype).bits - 1)));
      if (is_float(dtype)) return b_.CreateFNeg(a);
      return b_.CreateNeg(a, "", dtype == Dtype::Index);
    case UnaryOp::Not:
    case UnaryOp::BitNot:
      return b_.CreateNot(a);
  }
  internal_error("llvm: an unknown unary operator");
}

Value* Arithmetic::binary(BinaryOp op, Dtype dtype, Value* a, Value* b, DivisionFacts facts) const {
  return is_float(dtype) ? float_binary(op, dtype, a, b) : integer_binary(op, dtype, a, b, facts);
}

Value* Arithmetic::float_binary(BinaryOp op, Dtype dtype, Value* a, Value* b) const {
  Value* x = widen(dtype, a);
  Value* y = widen(dtype, b);
  switch (op) {
    case BinaryOp::Add:
      return narrow(dtype, b_.CreateFAdd(x, y));
    case BinaryOp::Sub:
      return narrow(dtype, b_.CreateFSub(x, y));
    case BinaryOp::Mul:
      return narrow(dtype, b_.CreateFMul(x, y));
    case BinaryOp::Div:
      return narrow(dtype, b_.CreateFDiv(x, y));
    case BinaryOp::Min:
      return narrow(dtype, b_.CreateMinimum(x, y));
    case BinaryOp::Max:
      return narrow(dtype, b_.CreateMaximum(x, y));
    case BinaryOp::Eq:
      return b_.CreateFCmpOEQ(x, y);
    case BinaryOp::Ne:
      return b_.CreateFCmpUNE(x, y);
    case BinaryOp::Lt:
      return b_.CreateFCmpOLT(x, y);
    case BinaryOp::Le:
      return b_.CreateFCmpOLE(x, y);
    case BinaryOp::Gt:
      return b_.CreateFCmpOGT(x, y);
    case BinaryOp::Ge:
      return b_.CreateFCmpOGE(x, y);
    case BinaryOp::Mod:
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor:
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      break;
  }
  internal_error("llvm: an operator that floats do not have");
}

Value* Arithmetic::integer_binary(BinaryOp op, Dtype dtype, Value* a, Value* b, DivisionFacts facts) const {
  const bool is_ordered_signed = is_signed(dtype);
  const bool no_wrap = dtype == Dtype::Index;  // its class promises that it does not overflow
  const auto compare = [&](llvm::CmpInst::Predicate of_signed, llvm::CmpInst::Predicate of_unsigned) {
    return b_.CreateICmp(is_ordered_signed ? of_signed : of_unsigned, a, b);
  };
  using Predicate = llvm::CmpInst;
  switch (op) {
    case BinaryOp::Add:
      return b_.CreateAdd(a, b, "", false, no_wrap);
    case BinaryOp::Sub:
      return b_.CreateSub(a, b, "", false, no_wrap);
    case BinaryOp::Mul:
      return b_.CreateMul(a, b, "", false, no_wrap);
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return division(op, dtype, a, b, facts);
    case BinaryOp::Min:
      return b_.CreateBinaryIntrinsic(is_ordered_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case BinaryOp::Max:
      return b_.CreateBinaryIntrinsic(is_ordered_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case BinaryOp::Eq:
      return b_.CreateICmpEQ(a, b);
    case BinaryOp::Ne:
      return b_.CreateICmpNE(a, b);
    case BinaryOp::Lt:
      return compare(Predicate::ICMP_SLT, Predicate::ICMP_ULT);
    case BinaryOp::Le:
      return compare(Predicate::ICMP_SLE, Predicate::ICMP_ULE);
    case BinaryOp::Gt:
      return compare(Predicate::ICMP_SGT, Predicate::ICMP_UGT);
    case BinaryOp::Ge:
      return compare(Predicate::ICMP_SGE, Predicate::ICMP_UGE);
    case BinaryOp::And:
    case BinaryOp::BitAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::Or:
    case BinaryOp::BitOr:
      return b_.CreateOr(a, b);
    case BinaryOp::BitXor:
      return b_.CreateXor(a, b);
    case BinaryOp::Shl:
    case BinaryOp::Shr: {
      // The count may be of another integer dtype; its low bits say how far.
      llvm::Type* own = type(dtype);
      Value* count = b_.CreateAnd(b_.CreateZExtOrTrunc(b, own), llvm::ConstantInt::get(own, bits(dtype) - 1));
      if (op == BinaryOp::Shl) return b_.CreateShl(a, count);
      return is_ordered_signed ? b_.CreateAShr(a, count) : b_.CreateLShr(a, count);
    }
  }
  internal_error("llvm: an unknown binary operator");
}

// Div and Mod floor; division by zero gives 0 and the left side.
Value* Arithmetic::division(BinaryOp op, Dtype dtype, Value* a, Value* b, DivisionFacts facts) const {
  const bool is_div = op == BinaryOp::Div;
  llvm::Type* own = type(dtype);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(b);
  const bool is_unsigned_form = !is_signed(dtype) || (facts.lhs_nonnegative && facts.rhs_nonnegative);
  if (known && known->isZero()) return is_div ? llvm::ConstantInt::get(own, 0) : a;
  if (is_unsigned_form) {
    if (known) return is_div ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
    Value* is_zero = b_.CreateICmpEQ(b, llvm::ConstantInt::get(own, 0));
    Value* divisor = b_.CreateSelect(is_zero, llvm::ConstantInt::get(own, 1), b);
    Value* result = is_div ? b_.CreateUDiv(a, divisor) : b_.CreateURem(a, divisor);
    return b_.CreateSelect(is_zero, is_div ? llvm::ConstantInt::get(own, 0) : a, result);
  }
  if (known && known->getValue().isStrictlyPositive() && known->getValue().isPowerOf2()) {
    if (is_div) return b_.CreateAShr(a, known->getValue().logBase2());
    return b_.CreateAnd(a, llvm::ConstantInt::get(own, known->getValue() - 1));
  }
  return signed_division(op, a, b);
}

Value* Arithmetic::signed_division(BinaryOp op, Value* a, Value* b) const {
  const bool is_div = op == BinaryOp::Div;
  llvm::Type* own = a->getType();
  Value* zero = llvm::ConstantInt::get(own, 0);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(b);
  const bool is_safe = known && !known->isZero() && !known->isMinusOne();
  Value* is_zero = b_.CreateICmpEQ(b, zero);
  Value* is_minus_one = b_.CreateICmpEQ(b, llvm::ConstantInt::getSigned(own, -1));
  Value* divisor = is_safe ? b : b_.CreateSelect(b_.CreateOr(is_zero, is_minus_one), llvm::ConstantInt::get(own, 1), b);
  Value* rest = b_.CreateSRem(a, divisor);
  Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero);
  Value* is_off = b_.CreateAnd(b_.CreateICmpNE(rest, zero), signs_differ);
  Value* result = is_div ? b_.CreateSub(b_.CreateSDiv(a, divisor), b_.CreateZExt(is_off, own))
                         : b_.CreateAdd(rest, b_.CreateSelect(is_off, divisor, zero));
  if (is_safe) return result;
  result = b_.CreateSelect(is_minus_one, is_div ? b_.CreateNeg(a) : zero, result);
  return b_.CreateSelect(is_zero, is_div ? zero : a, result);
}

Value* Arithmetic::ceildiv(Dtype dtype, Value* a, Value* b, DivisionFacts facts) const {
  Value* quotient = division(BinaryOp::Div, dtype, a, b, facts);
  Value* rest = division(BinaryOp::Mod, dtype, a, b, facts);
  llvm::Type* own = type(dtype);
  Value* zero = llvm::ConstantInt::get(own, 0);
  Value* is_inexact = b_.CreateICmpNE(rest, zero);
  Value* result = b_.CreateAdd(quotient, b_.CreateZExt(is_inexact, own));
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (constant != nullptr && !constant->isZero()) return result;
  return b_.CreateSelect(b_.CreateICmpEQ(b, zero), zero, result);
}

Value* Arithmetic::fma(Dtype dtype, Value* a, Value* b, Value* c) const {
  if (!is_float(dtype)) return binary(BinaryOp::Add, dtype, binary(BinaryOp::Mul, dtype, a, b), c);
  Value* x = widen(dtype, a);
  return narrow(dtype, b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, widen(dtype, b), widen(dtype, c)}));
}

Value* Arithmetic::convert(Dtype to, Dtype from, Value* value) const {
  if (to == from) return value;
  llvm::Type* target = type(to);
  if (is_float(from)) {
    Value* wide = widen(from, value);
    if (to == Dtype::Bool) return b_.CreateFCmpUNE(wide, llvm::ConstantFP::get(wide->getType(), 0.0));
    if (!is_float(to)) {
      const auto saturating = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
      return b_.CreateIntrinsic(saturating, {target, wide->getType()}, {wide});
    }
    if (to == Dtype::F64) return b_.CreateFPExt(wide, target);
    if (to == Dtype::F32) return from == Dtype::F64 ? b_.CreateFPTrunc(wide, target) : wide;
    return narrow(to, from == Dtype::F64 ? odd_f32_from_f64(b_, wide) : wide);
  }
  const bool from_signed = is_signed(from);
  if (is_float(to)) {
    const auto as_float = [&](llvm::Type* type_of_float) {
      return from_signed ? b_.CreateSIToFP(value, type_of_float) : b_.CreateUIToFP(value, type_of_float);
    };
    if (!is_narrow_float(to)) return as_float(target);
    const unsigned width = from == Dtype::Bool ? 1 : bits(from);
    if (width <= 16) return narrow(to, as_float(b_.getFloatTy()));  // exact in f32
    if (width <= 32) return narrow(to, odd_f32_from_f64(b_, as_float(b_.getDoubleTy())));
    return narrow(to, odd_f32_from_f64(b_, odd_f64_from_i64(b_, value, from_signed)));
  }
  if (to == Dtype::Bool) return b_.CreateICmpNE(value, llvm::ConstantInt::get(value->getType(), 0));
  return from_signed ? b_.CreateSExtOrTrunc(value, target) : b_.CreateZExtOrTrunc(value, target);
}

}  // namespace tilewright
