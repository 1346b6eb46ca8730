// Narrow floats in integer arithmetic; see narrow_float.h.
#include "codegen/llvm/narrow_float.h"

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

using llvm::IRBuilderBase;
using llvm::Value;

// An IEEE-like format: bits of the mantissa and the exponent's bias, and the greatest magnitude that rounding may give.
struct Format {
  unsigned mantissa;
  unsigned bias;
  std::uint32_t most;  // infinity for f16, the largest finite value where the format saturates
  std::uint32_t not_a_number;
};

Format format_of(Dtype dtype) {
  if (dtype == Dtype::F16) return {10, 15, 0x7c00, 0x7fff};
  if (dtype == Dtype::E4M3) return {3, 7, 0x7e, 0x7f};
  if (dtype == Dtype::E5M2) return {2, 15, 0x7b, 0x7f};
  internal_error("narrow_float: a format without a row");
}

Value* float_of_bits(IRBuilderBase& b, Value* bits) { return b.CreateBitCast(bits, b.getFloatTy()); }
Value* bits_of_float(IRBuilderBase& b, Value* value) { return b.CreateBitCast(value, b.getInt32Ty()); }
Value* float_with_bits(IRBuilderBase& b, std::uint32_t bits) { return float_of_bits(b, b.getInt32(bits)); }

constexpr std::uint32_t exponent_bits(unsigned biased) { return biased << 23; }

Value* bf16_from_f32(IRBuilderBase& b, Value* value) {
  Value* bits = bits_of_float(b, value);
  Value* last = b.CreateAnd(b.CreateLShr(bits, 16), b.getInt32(1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, b.getInt32(0x7fff)), last), 16);
  Value* is_nan = b.CreateFCmpUNO(value, value);
  return b.CreateTrunc(b.CreateSelect(is_nan, b.getInt32(0x7fff), rounded), b.getInt16Ty());
}

// Normal results: half a unit is added below the last bit kept, one less where that bit is even. Denormal ones: adding
// a power of two whose unit is theirs leaves the rounded mantissa in the low bits.
Value* small_from_f32(IRBuilderBase& b, const Format& format, Value* value) {
  const unsigned dropped = 23 - format.mantissa;
  Value* bits = bits_of_float(b, value);
  Value* magnitude = b.CreateAnd(bits, b.getInt32(0x7fffffff));
  Value* is_nan = b.CreateICmpUGT(magnitude, b.getInt32(0x7f800000));
  // From here on everything is `most`; the clamp keeps the addition below from running over.
  magnitude =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, magnitude, b.getInt32(exponent_bits(127 + format.bias + 2)));

  Value* last = b.CreateAnd(b.CreateLShr(magnitude, dropped), b.getInt32(1));
  const std::uint32_t rebias = exponent_bits(format.bias) - exponent_bits(127) + (1U << (dropped - 1)) - 1;
  Value* normal = b.CreateLShr(b.CreateAdd(b.CreateAdd(magnitude, b.getInt32(rebias)), last), dropped);

  const std::uint32_t magic = exponent_bits(127 + 1 - format.bias + dropped);
  Value* shifted = b.CreateFAdd(float_of_bits(b, magnitude), float_with_bits(b, magic));
  Value* denormal = b.CreateSub(bits_of_float(b, shifted), b.getInt32(magic));

  Value* is_denormal = b.CreateICmpULT(magnitude, b.getInt32(exponent_bits(127 + 1 - format.bias)));
  Value* result = b.CreateSelect(is_denormal, denormal, normal);
  result = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, result, b.getInt32(format.most));
  const unsigned width = format.mantissa == 10 ? 16 : 8;
  Value* sign = b.CreateAnd(b.CreateLShr(bits, 32 - width), b.getInt32(1U << (width - 1)));
  result = b.CreateSelect(is_nan, b.getInt32(format.not_a_number), b.CreateOr(result, sign));
  return b.CreateTrunc(result, b.getIntNTy(width));
}

// The bits moved to their place in an f32 are the value divided by a power of two, for denormal ones too.
Value* f32_from_small(IRBuilderBase& b, Dtype dtype, Value* bits) {
  const Format format = format_of(dtype);
  const unsigned width = format.mantissa == 10 ? 16 : 8;
  Value* wide = b.CreateZExt(bits, b.getInt32Ty());
  Value* magnitude = b.CreateAnd(wide, b.getInt32((1U << (width - 1)) - 1));
  Value* scaled = b.CreateFMul(float_of_bits(b, b.CreateShl(magnitude, 23 - format.mantissa)),
                               float_with_bits(b, exponent_bits(127 + 127 - format.bias)));
  Value* result = bits_of_float(b, scaled);
  if (dtype == Dtype::E4M3) {
    Value* is_nan = b.CreateICmpEQ(magnitude, b.getInt32(0x7f));
    result = b.CreateSelect(is_nan, b.getInt32(0x7fffffff), result);
  } else {
    Value* is_special = b.CreateICmpUGE(magnitude, b.getInt32(31U << format.mantissa));
    result = b.CreateSelect(is_special, b.CreateOr(result, b.getInt32(0x7f800000)), result);
  }
  Value* sign = b.CreateShl(b.CreateAnd(wide, b.getInt32(1U << (width - 1))), 32 - width);
  return float_of_bits(b, b.CreateOr(result, sign));
}

}  // namespace

Value* f32_from_narrow(IRBuilderBase& b, const NativeNarrow& native, Dtype dtype, Value* bits) {
  if (dtype == Dtype::BF16) return float_of_bits(b, b.CreateShl(b.CreateZExt(bits, b.getInt32Ty()), 16));
  if (dtype == Dtype::F16 && native.f16) return b.CreateFPExt(b.CreateBitCast(bits, b.getHalfTy()), b.getFloatTy());
  return f32_from_small(b, dtype, bits);
}

Value* narrow_from_f32(IRBuilderBase& b, const NativeNarrow& native, Dtype dtype, Value* value) {
  if (dtype == Dtype::BF16) {
    if (native.bf16) return b.CreateBitCast(b.CreateFPTrunc(value, b.getBFloatTy()), b.getInt16Ty());
    return bf16_from_f32(b, value);
  }
  if (dtype == Dtype::F16 && native.f16) return b.CreateBitCast(b.CreateFPTrunc(value, b.getHalfTy()), b.getInt16Ty());
  return small_from_f32(b, format_of(dtype), value);
}

Value* odd_f32_from_f64(IRBuilderBase& b, Value* value) {
  Value* nearest = b.CreateFPTrunc(value, b.getFloatTy());
  Value* back = b.CreateFPExt(nearest, b.getDoubleTy());
  Value* is_inexact = b.CreateFCmpONE(back, value);
  // Where rounding went away from zero, the next magnitude below is the truncated one.
  Value* went_up = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                   b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  Value* truncated = b.CreateSub(bits_of_float(b, nearest), b.CreateZExt(went_up, b.getInt32Ty()));
  Value* odd = b.CreateOr(truncated, b.getInt32(1));
  return b.CreateSelect(is_inexact, float_of_bits(b, odd), nearest);
}

Value* odd_f64_from_i64(IRBuilderBase& b, Value* value, bool is_signed) {
  const auto as_double = [&](Value* integer) {
    return is_signed ? b.CreateSIToFP(integer, b.getDoubleTy()) : b.CreateUIToFP(integer, b.getDoubleTy());
  };
  // 53 bits are exact; above, 11 bits are folded into the last one that stays.
  const std::uint64_t most = std::uint64_t{1} << 53;
  Value* fits = is_signed ? b.CreateICmpULE(b.CreateAdd(value, b.getInt64(most)), b.getInt64(2 * most))
                          : b.CreateICmpULE(value, b.getInt64(most));
  Value* high = is_signed ? b.CreateAShr(value, 11) : b.CreateLShr(value, 11);
  Value* sticky = b.CreateZExt(b.CreateICmpNE(b.CreateAnd(value, b.getInt64(0x7ff)), b.getInt64(0)), b.getInt64Ty());
  Value* folded = b.CreateFMul(as_double(b.CreateOr(high, sticky)), llvm::ConstantFP::get(b.getDoubleTy(), 2048.0));
  return b.CreateSelect(fits, as_double(value), folded);
}

}  // namespace tilewright
