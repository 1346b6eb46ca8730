// The functions of ir/operators.h on scalars. A function of f32 (or narrower) is that of f64, rounded once.
#include <algorithm>
#include <array>

#include "ir/scalar.h"

namespace tilewright {

namespace {

template <double (*F)(double)>
Scalar one(Dtype dtype, const Scalar* a) {
  return real_scalar(round_to(dtype, F(a[0].f)));
}
template <double (*F)(double, double)>
Scalar two(Dtype dtype, const Scalar* a) {
  return real_scalar(round_to(dtype, F(a[0].f, a[1].f)));
}

double reciprocal_root(double x) { return 1.0 / std::sqrt(x); }
double quotient(double x, double y) { return x / y; }

Scalar fma_of(Dtype dtype, const Scalar* a) { return fused_multiply_add(dtype, a[0], a[1], a[2]); }

Scalar absolute(Dtype dtype, const Scalar* a) {
  if (is_float(dtype)) return real_scalar(std::fabs(a[0].f));
  if (is_unsigned(dtype) || dtype == Dtype::Bool || a[0].i >= 0) return a[0];
  return apply(UnaryOp::Neg, dtype, a[0]);
}

Scalar ceiling_quotient(Dtype dtype, const Scalar* a) {
  if (a[1].i == 0) return Scalar{};
  const Scalar quotient = apply(BinaryOp::Div, dtype, a[0], a[1]);
  const Scalar rest = apply(BinaryOp::Mod, dtype, a[0], a[1]);
  return rest.i != 0 ? apply(BinaryOp::Add, dtype, quotient, integer_scalar(1)) : quotient;
}

Scalar is_not_a_number(Dtype dtype, const Scalar* a) { return integer_scalar(is_float(dtype) && std::isnan(a[0].f)); }
Scalar is_infinite(Dtype dtype, const Scalar* a) { return integer_scalar(is_float(dtype) && std::isinf(a[0].f)); }

struct Row {
  std::string_view name;
  ScalarFunction function;
};

constexpr std::array functions = {
    // Correctly rounded or exact.
    Row{"fma", fma_of}, Row{"fma.kept", fma_of}, Row{"sqrt", one<std::sqrt>}, Row{"abs", absolute},
    Row{"floor", one<std::floor>}, Row{"ceil", one<std::ceil>}, Row{"trunc", one<std::trunc>},
    Row{"round", one<std::nearbyint>}, Row{"ceildiv", ceiling_quotient}, Row{"isnan", is_not_a_number},
    Row{"isinf", is_infinite},
    // Library functions, and the same names as `math fast` writes them.
    Row{"exp", one<std::exp>}, Row{"exp2", one<std::exp2>}, Row{"expm1", one<std::expm1>}, Row{"log", one<std::log>},
    Row{"log2", one<std::log2>}, Row{"log10", one<std::log10>}, Row{"log1p", one<std::log1p>},
    Row{"rsqrt", one<reciprocal_root>}, Row{"cbrt", one<std::cbrt>}, Row{"sin", one<std::sin>}, Row{"cos", one<std::cos>},
    Row{"tan", one<std::tan>}, Row{"sinh", one<std::sinh>}, Row{"cosh", one<std::cosh>}, Row{"tanh", one<std::tanh>},
    Row{"asin", one<std::asin>}, Row{"acos", one<std::acos>}, Row{"atan", one<std::atan>}, Row{"atan2", two<std::atan2>},
    Row{"asinh", one<std::asinh>}, Row{"acosh", one<std::acosh>}, Row{"atanh", one<std::atanh>}, Row{"erf", one<std::erf>},
    Row{"erfc", one<std::erfc>}, Row{"pow", two<std::pow>}, Row{"div", two<quotient>},
};

}  // namespace

ScalarFunction find_scalar_function(std::string_view name) {
  if (name.ends_with(".fast")) name.remove_suffix(5);
  const auto row = std::find_if(functions.begin(), functions.end(), [&](const Row& candidate) { return candidate.name == name; });
  return row == functions.end() ? nullptr : row->function;
}

}  // namespace tilewright
