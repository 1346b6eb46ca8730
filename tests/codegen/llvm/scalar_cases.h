// What a generator must give for every operator, conversion and exact function, at every dtype, on values at the edges
// of each: pointwise plans with one output an expression, and what ir/scalar.h says of it. NaN counts as one value.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "ir/plan.h"
#include "ir/scalar.h"

namespace tilewright {

constexpr Dtype all_element_dtypes[] = {Dtype::F64,  Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3,
                                        Dtype::E5M2, Dtype::I64, Dtype::I32, Dtype::I16,  Dtype::I8,
                                        Dtype::U64,  Dtype::U32, Dtype::U16, Dtype::U8,   Dtype::Bool};

inline std::vector<Scalar> edge_values(Dtype dtype, bool many) {
  std::vector<Scalar> result;
  std::mt19937_64 random(7);
  if (is_float(dtype)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (double x :
         {0.0,          1.0,          0.5,          1.5,     2.5,     1.0 / 3,  7.0,     100.25, 240.0,  448.0,
          464.0,        465.0,        57344.0,      61440.0, 65504.0, 65519.99, 65520.0, 3e38,   3.4e38, 1e39,
          1e-3,         6e-8,         2.98e-8,      1e-40,   1e-45,   1e300,    5e-324,  127.5,  128.5,  255.5,
          2147483647.0, 2147483648.0, 4294967296.0, 9.2e18,  9.3e18,  1.9e19,   infinity})
      for (double sign : {1.0, -1.0}) result.push_back(real_scalar(round_to(dtype, sign * x)));
    result.push_back(real_scalar(std::numeric_limits<double>::quiet_NaN()));
    for (int n = 0; many && n < 3000; ++n) {
      const int exponent = static_cast<int>(random() % 300) - 150;
      // Half of them with few bits, where ties are.
      const double mantissa =
          n % 2 ? static_cast<double>(random() >> 11) * 0x1p-53 : static_cast<double>(random() % 4096) / 2048;
      result.push_back(real_scalar(round_to(dtype, std::ldexp(mantissa - 0.5, exponent / (1 + n % 8)))));
    }
    return result;
  }
  if (dtype == Dtype::Bool) return {integer_scalar(0), integer_scalar(1)};
  for (std::int64_t x : {0L,
                         1L,
                         2L,
                         3L,
                         7L,
                         8L,
                         31L,
                         63L,
                         100L,
                         127L,
                         128L,
                         255L,
                         2049L,
                         32767L,
                         65519L,
                         65520L,
                         16777217L,
                         2147483647L,
                         4294967295L,
                         9007199254740993L,
                         9223372036854775807L})
    for (std::int64_t y : {x, -x, -x - 1}) result.push_back(integer_scalar(wrap(dtype, y)));
  for (int n = 0; many && n < 1000; ++n)
    result.push_back(integer_scalar(wrap(dtype, static_cast<std::int64_t>(random() >> (random() % 64)))));
  return result;
}

inline bool is_same(Dtype dtype, Scalar a, Scalar b) {
  return (is_float(dtype) && std::isnan(a.f) && std::isnan(b.f)) || a.i == b.i;
}
inline std::string show(Dtype dtype, Scalar value) {
  return is_float(dtype) ? fmt::format("{}", value.f) : fmt::format("{}", value.i);
}

// One output: an expression of A[i] and B[i], and its value.
struct ScalarColumn {
  Dtype dtype;
  std::string text;
  std::function<Scalar(Scalar, Scalar)> expected;
};

// Outputs of one pointwise plan, with inputs of one dtype.
struct ScalarCase {
  Dtype dtype;
  std::vector<ScalarColumn> columns;
  std::vector<Scalar> a;
  std::vector<Scalar> b;

  // `body`: "parallel i in N" at tile stage; at thread stage the grid's index and an `if`.
  std::string plan_text(bool at_thread_stage) const {
    std::string declared, stores, names;
    for (std::size_t n = 0; n < columns.size(); ++n) {
      declared += fmt::format("  out C{}: {}[N]\n", n, info(columns[n].dtype).name);
      stores += fmt::format("      C{}[i] = {}\n", n, columns[n].text);
      names += fmt::format("C{}, ", n);
    }
    const std::string head =
        fmt::format("plan scalars {{\n  dim N\n  in A: {0}[N]\n  in B: {0}[N]\n{1}", info(dtype).name, declared);
    if (!at_thread_stage) return head + "  kernel K {\n    parallel i in N {\n" + stores + "    }\n  }\n}\n";
    return head + fmt::format(
                      "  kernel K thread grid (ceildiv(N, 128)) block (128) args (A, B, {}N) {{\n    let i = "
                      "block.x*128 + thread.x\n    if i < N {{\n{}    }}\n  }}\n}}\n",
                      names, stores);
  }

  Plan plan(bool at_thread_stage) const {
    const std::string text = plan_text(at_thread_stage);
    try {
      return parse_plan(text);
    } catch (const UserError& error) {
      FAIL(render(error.diagnostics(), {{"plan", text}}));
    }
    return {};
  }

  // `result(column, n)`: what came out. Reports the first wrong element of each column.
  void check(const std::function<Scalar(std::size_t, std::size_t)>& result) const {
    for (std::size_t column = 0; column < columns.size(); ++column)
      for (std::size_t n = 0; n < a.size(); ++n) {
        const Dtype to = columns[column].dtype;
        const Scalar expected = columns[column].expected(a[n], b[n]);
        const Scalar given = result(column, n);
        if (is_same(to, given, expected)) continue;
        FAIL_CHECK(fmt::format("{} with A = {}, B = {} ({}) gives {}, not {}", columns[column].text, show(dtype, a[n]),
                               show(dtype, b[n]), info(dtype).name, show(to, given), show(to, expected)));
        break;
      }
  }
};

// All pairs of edge values under every binary operator that the dtype has.
inline ScalarCase binary_case(Dtype dtype) {
  struct Row {
    BinaryOp op;
    const char* text;
    bool of_floats;
  };
  static constexpr Row rows[] = {
      {BinaryOp::Add, "A[i] + B[i]", true},     {BinaryOp::Sub, "A[i] - B[i]", true},
      {BinaryOp::Mul, "A[i] * B[i]", true},     {BinaryOp::Div, "A[i] / B[i]", true},
      {BinaryOp::Mod, "A[i] % B[i]", true},     {BinaryOp::Min, "min(A[i], B[i])", true},
      {BinaryOp::Max, "max(A[i], B[i])", true}, {BinaryOp::Eq, "A[i] == B[i]", true},
      {BinaryOp::Ne, "A[i] != B[i]", true},     {BinaryOp::Lt, "A[i] < B[i]", true},
      {BinaryOp::Le, "A[i] <= B[i]", true},     {BinaryOp::Gt, "A[i] > B[i]", true},
      {BinaryOp::Ge, "A[i] >= B[i]", true},     {BinaryOp::BitAnd, "A[i] & B[i]", false},
      {BinaryOp::BitOr, "A[i] | B[i]", false},  {BinaryOp::BitXor, "A[i] ^ B[i]", false},
      {BinaryOp::Shl, "A[i] << B[i]", false},   {BinaryOp::Shr, "A[i] >> B[i]", false},
  };
  ScalarCase result{dtype, {}, {}, {}};
  for (const Row& row : rows)
    if (row.of_floats || !is_float(dtype))
      result.columns.push_back({info(row.op).is_comparison ? Dtype::Bool : dtype, row.text,
                                [op = row.op, dtype](Scalar a, Scalar b) { return apply(op, dtype, a, b); }});
  const std::vector<Scalar> values = edge_values(dtype, false);
  for (Scalar a : values)
    for (Scalar b : values) {
      result.a.push_back(a);
      result.b.push_back(b);
    }
  return result;
}

// To every dtype, from edge and random values.
inline ScalarCase conversion_case(Dtype from) {
  ScalarCase result{from, {}, edge_values(from, true), {}};
  result.b = result.a;
  for (Dtype to : all_element_dtypes)
    result.columns.push_back({to, to == from ? "A[i]" : fmt::format("{}(A[i])", info(to).name),
                              [from, to](Scalar a, Scalar) { return convert(to, from, a); }});
  return result;
}

// Negation and the exact functions, of f32 or f64.
inline ScalarCase function_case(Dtype dtype) {
  ScalarCase result{dtype, {}, edge_values(dtype, true), {}};
  result.b = result.a;
  result.columns.push_back({dtype, "-A[i]", [dtype](Scalar a, Scalar) { return apply(UnaryOp::Neg, dtype, a); }});
  result.columns.push_back(
      {dtype, "fma(A[i], A[i], A[i])", [dtype](Scalar a, Scalar) { return fused_multiply_add(dtype, a, a, a); }});
  for (const char* name : {"sqrt", "abs", "floor", "ceil", "round", "trunc", "isnan", "isinf"})
    result.columns.push_back(
        {find_function(name)->result.value_or(dtype), fmt::format("{}(A[i])", name),
         [function = find_scalar_function(name), dtype](Scalar a, Scalar) { return function(dtype, &a); }});
  return result;
}

// Every library function, which ir/scalar.h takes from the host's own libm.
inline ScalarCase library_case(Dtype dtype) {
  ScalarCase result{dtype, {}, edge_values(dtype, true), edge_values(dtype, true)};
  std::reverse(result.b.begin(), result.b.end());
  for (const FunctionInfo& function : all_functions()) {
    if (function.group != FunctionGroup::Library) continue;
    const char* arguments = function.arity == 2 ? "A[i], B[i]" : "A[i]";
    result.columns.push_back({dtype, fmt::format("{}({})", function.name, arguments),
                              [evaluate = find_scalar_function(function.name), dtype](Scalar a, Scalar b) {
                                const Scalar both[] = {a, b};
                                return evaluate(dtype, both);
                              }});
  }
  return result;
}

}  // namespace tilewright
