// Scalar meaning: rounding, conversions, integer arithmetic, functions.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/operators.h"
#include "ir/scalar.h"

namespace tilewright {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Scalar via_memory(Dtype dtype, Scalar value) {
  std::uint64_t memory = 0;
  store_scalar(dtype, &memory, value);
  return load_scalar(dtype, &memory);
}

std::int64_t apply_integer(BinaryOp op, Dtype dtype, std::int64_t a, std::int64_t b) {
  return apply(op, dtype, integer_scalar(a), integer_scalar(b)).i;
}

}  // namespace

TEST_SUITE("scalar") {
  TEST_CASE("every finite bit pattern of the narrow floats survives decoding, rounding and encoding") {
    for (const Dtype dtype : {Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2}) {
      const std::uint32_t count = 1U << info(dtype).bits;
      for (std::uint32_t bits = 0; bits < count; ++bits) {
        const Scalar value = load_scalar(dtype, &bits);
        if (std::isnan(value.f)) continue;
        if (std::isinf(value.f) && dtype == Dtype::E5M2) continue;  // saturates
        CHECK(round_to(dtype, value.f) == value.f);
        std::uint32_t back = 0;
        store_scalar(dtype, &back, value);
        if (back != bits) FAIL(info(dtype).name, " ", bits, " ", back);
      }
    }
  }

  TEST_CASE("narrow floats round to the nearest, ties to even") {
    for (const Dtype dtype : {Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2}) {
      const std::uint32_t count = 1U << (info(dtype).bits - 1);
      for (std::uint32_t bits = 0; bits + 1 < count; ++bits) {
        const std::uint32_t above_bits = bits + 1;
        const double low = load_scalar(dtype, &bits).f;
        const double high = load_scalar(dtype, &above_bits).f;
        if (!std::isfinite(low) || !std::isfinite(high)) continue;
        const double middle = (low + high) / 2;
        const double even = bits % 2 == 0 ? low : high;
        const bool is_right = round_to(dtype, middle) == even && round_to(dtype, std::nextafter(middle, 0.0)) == low &&
                              round_to(dtype, std::nextafter(middle, infinity)) == high && round_to(dtype, -middle) == -even;
        if (!is_right) FAIL(info(dtype).name, " at ", bits);
      }
    }
  }

  TEST_CASE("beyond the largest value") {
    CHECK(round_to(Dtype::F16, 65519.9) == 65504.0);
    CHECK(round_to(Dtype::F16, 65520.0) == infinity);
    CHECK(round_to(Dtype::BF16, 3.4e38) == infinity);
    CHECK(round_to(Dtype::E4M3, 1e6) == 448.0);
    CHECK(round_to(Dtype::E5M2, -infinity) == -57344.0);
    CHECK(round_to(Dtype::F32, 1e39) == infinity);
    CHECK(std::isnan(round_to(Dtype::E4M3, NAN)));
    CHECK(std::signbit(round_to(Dtype::F16, -1e-30)));
    CHECK(round_to(Dtype::F16, 1e300) == infinity);
  }

  TEST_CASE("memory holds every dtype") {
    CHECK(via_memory(Dtype::I8, integer_scalar(-3)).i == -3);
    CHECK(via_memory(Dtype::U8, integer_scalar(253)).i == 253);
    CHECK(via_memory(Dtype::I16, integer_scalar(-30000)).i == -30000);
    CHECK(via_memory(Dtype::U32, integer_scalar(4000000000)).i == 4000000000);
    CHECK(via_memory(Dtype::U64, integer_scalar(-1)).i == -1);
    CHECK(via_memory(Dtype::Bool, integer_scalar(1)).i == 1);
    CHECK(via_memory(Dtype::F32, real_scalar(0.1f)).f == static_cast<double>(0.1f));
    CHECK(via_memory(Dtype::F64, real_scalar(0.1)).f == 0.1);
    CHECK(std::isnan(via_memory(Dtype::F16, real_scalar(NAN)).f));
    CHECK(std::isnan(via_memory(Dtype::BF16, real_scalar(NAN)).f));
  }

  TEST_CASE("float to integer truncates, saturates, NaN is 0") {
    const auto to = [](Dtype dtype, double value) { return convert(dtype, Dtype::F32, real_scalar(value)).i; };
    CHECK(to(Dtype::I32, 2.9) == 2);
    CHECK(to(Dtype::I32, -2.9) == -2);
    CHECK(to(Dtype::I32, 1e20) == 2147483647);
    CHECK(to(Dtype::I32, -infinity) == -2147483648LL);
    CHECK(to(Dtype::I32, NAN) == 0);
    CHECK(to(Dtype::U8, -1.0) == 0);
    CHECK(to(Dtype::U8, 300.0) == 255);
    CHECK(to(Dtype::U64, 1e30) == -1);
    CHECK(to(Dtype::U64, 9223372036854775808.0) == std::numeric_limits<std::int64_t>::min());
    CHECK(to(Dtype::I64, 1e30) == std::numeric_limits<std::int64_t>::max());
    CHECK(to(Dtype::Bool, 0.5) == 1);
    CHECK(to(Dtype::Bool, -0.0) == 0);
    CHECK(to(Dtype::Bool, NAN) == 1);
  }

  TEST_CASE("integers wrap and convert by their bits") {
    CHECK(convert(Dtype::I8, Dtype::I32, integer_scalar(200)).i == -56);
    CHECK(convert(Dtype::U8, Dtype::I32, integer_scalar(-1)).i == 255);
    CHECK(convert(Dtype::F32, Dtype::I64, integer_scalar(16777217)).f == 16777216.0);
    CHECK(convert(Dtype::F64, Dtype::U64, integer_scalar(-1)).f == 18446744073709551616.0);
    // A double rounding would give the lower neighbour.
    CHECK(convert(Dtype::BF16, Dtype::I64, integer_scalar((std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1)).f ==
          std::ldexp(129.0, 53));
    CHECK(apply_integer(BinaryOp::Add, Dtype::I32, 2147483647, 1) == -2147483648LL);
    CHECK(apply_integer(BinaryOp::Mul, Dtype::U8, 200, 2) == 144);
    CHECK(apply_integer(BinaryOp::Sub, Dtype::U32, 0, 1) == 4294967295);
  }

  TEST_CASE("division floors; by zero it gives 0 and the left side") {
    CHECK(apply_integer(BinaryOp::Div, Dtype::I32, -7, 2) == -4);
    CHECK(apply_integer(BinaryOp::Mod, Dtype::I32, -7, 2) == 1);
    CHECK(apply_integer(BinaryOp::Mod, Dtype::I32, 7, -2) == -1);
    CHECK(apply_integer(BinaryOp::Div, Dtype::I32, 5, 0) == 0);
    CHECK(apply_integer(BinaryOp::Mod, Dtype::I32, 5, 0) == 5);
    CHECK(apply_integer(BinaryOp::Div, Dtype::I32, -2147483648LL, -1) == -2147483648LL);
    CHECK(apply_integer(BinaryOp::Div, Dtype::I64, std::numeric_limits<std::int64_t>::min(), -1) == std::numeric_limits<std::int64_t>::min());
    CHECK(apply_integer(BinaryOp::Mod, Dtype::I64, std::numeric_limits<std::int64_t>::min(), -1) == 0);
    CHECK(apply_integer(BinaryOp::Div, Dtype::U64, -1, 2) == std::numeric_limits<std::int64_t>::max());
  }

  TEST_CASE("shifts count modulo the width") {
    CHECK(apply_integer(BinaryOp::Shl, Dtype::I32, 1, 33) == 2);
    CHECK(apply_integer(BinaryOp::Shr, Dtype::I32, -8, 1) == -4);
    CHECK(apply_integer(BinaryOp::Shr, Dtype::U32, 0x80000000, 31) == 1);
    CHECK(apply_integer(BinaryOp::Shr, Dtype::U64, -1, 63) == 1);
    CHECK(apply_integer(BinaryOp::Shl, Dtype::U8, 255, 9) == 254);
  }

  TEST_CASE("order of u64 and NaN") {
    CHECK(apply_integer(BinaryOp::Lt, Dtype::U64, 1, -1) == 1);
    CHECK(apply_integer(BinaryOp::Max, Dtype::U64, 1, -1) == -1);
    const auto compare = [](BinaryOp op) { return apply(op, Dtype::F32, real_scalar(NAN), real_scalar(1)).i; };
    CHECK(compare(BinaryOp::Lt) == 0);
    CHECK(compare(BinaryOp::Eq) == 0);
    CHECK(compare(BinaryOp::Ne) == 1);
    CHECK(std::isnan(apply(BinaryOp::Max, Dtype::F32, real_scalar(NAN), real_scalar(1)).f));
    CHECK(std::isnan(apply(BinaryOp::Min, Dtype::F32, real_scalar(1), real_scalar(NAN)).f));
    CHECK(std::signbit(apply(BinaryOp::Min, Dtype::F32, real_scalar(0.0), real_scalar(-0.0)).f));
  }

  TEST_CASE("f32 rounds at each step, fma once") {
    const Scalar a = real_scalar(1 + 0x1p-12), c = real_scalar(-1 - 0x1p-11);
    CHECK(apply(BinaryOp::Mul, Dtype::F32, a, a).f == 1 + 0x1p-11);
    CHECK(fused_multiply_add(Dtype::F32, a, a, c).f == 0x1p-24);
    CHECK(apply(BinaryOp::Add, Dtype::F32, real_scalar(16777216), real_scalar(1)).f == 16777216.0);
    CHECK(apply(BinaryOp::Add, Dtype::F16, real_scalar(2048), real_scalar(1)).f == 2048.0);
  }

  TEST_CASE("identities leave the other side as it is") {
    for (const CombineOp op : {CombineOp::Add, CombineOp::Mul, CombineOp::Max, CombineOp::Min, CombineOp::And, CombineOp::Or})
      for (const Dtype dtype : {Dtype::F32, Dtype::F16, Dtype::I32, Dtype::I8, Dtype::U8, Dtype::U64, Dtype::I64, Dtype::Bool}) {
        const bool is_bitwise = op == CombineOp::And || op == CombineOp::Or;
        if ((is_bitwise && is_float(dtype)) || (!is_bitwise && dtype == Dtype::Bool)) continue;
        const Scalar one = is_float(dtype) ? real_scalar(1) : integer_scalar(1);
        CHECK(apply(binary_of(op, dtype), dtype, identity_scalar(op, dtype), one).i == one.i);
      }
  }

  TEST_CASE("every function of the table has a meaning here") {
    for (const FunctionInfo& function : all_functions()) {
      if (function.group == FunctionGroup::Structural) continue;
      INFO(function.name);
      REQUIRE(static_cast<bool>(find_scalar_function(function.name) != nullptr));
    }
    const auto value = [](std::string_view name, double x) {
      const Scalar argument = real_scalar(x);
      return find_scalar_function(name)(Dtype::F32, &argument).f;
    };
    CHECK(value("round", 2.5) == 2.0);
    CHECK(value("round", 3.5) == 4.0);
    CHECK(value("exp", 0.0) == 1.0);
    CHECK(value("exp", 100.0) == infinity);
    CHECK(value("rsqrt", 4.0) == 0.5);
    CHECK(value("abs", -0.5) == 0.5);
    const Scalar arguments[2] = {integer_scalar(-7), integer_scalar(2)};
    CHECK(find_scalar_function("ceildiv")(Dtype::Index, arguments).i == -3);
  }

  TEST_CASE("constant expressions") {
    const Expr sum = binary(BinaryOp::Add, real(0.1, Dtype::F32), real(0.2, Dtype::F32));
    REQUIRE(constant_scalar(sum).has_value());
    CHECK(constant_scalar(sum)->f == static_cast<double>(0.1f + 0.2f));
    CHECK_FALSE(constant_scalar(binary(BinaryOp::Add, var("n"), integer(2))).has_value());
  }
}

}  // namespace tilewright
