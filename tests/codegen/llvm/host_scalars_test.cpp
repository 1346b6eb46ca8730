// The host generator gives bit for bit what ir/scalar.h says: every operator and conversion, at every dtype, on values at
// the edges of each. NaN counts as one value.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "ir/scalar.h"

namespace tilewright {

namespace {

constexpr Dtype dtypes[] = {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I64, Dtype::I32,
                            Dtype::I16, Dtype::I8,  Dtype::U64, Dtype::U32,  Dtype::U16,  Dtype::U8,   Dtype::Bool};

std::vector<Scalar> values_of(Dtype dtype, bool many) {
  std::vector<Scalar> result;
  std::mt19937_64 random(7);
  if (is_float(dtype)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (double x : {0.0, 1.0, 0.5, 1.5, 2.5, 1.0 / 3, 7.0, 100.25, 240.0, 448.0, 464.0, 465.0, 57344.0, 61440.0, 65504.0, 65519.99, 65520.0, 3e38,
                     3.4e38, 1e39, 1e-3, 6e-8, 2.98e-8, 1e-40, 1e-45, 1e300, 5e-324, 127.5, 128.5, 255.5, 2147483647.0, 2147483648.0,
                     4294967296.0, 9.2e18, 9.3e18, 1.9e19, infinity})
      for (double sign : {1.0, -1.0}) result.push_back(real_scalar(round_to(dtype, sign * x)));
    result.push_back(real_scalar(std::numeric_limits<double>::quiet_NaN()));
    for (int n = 0; many && n < 3000; ++n) {
      const int exponent = static_cast<int>(random() % 300) - 150;
      // Half of them with few bits, where ties are.
      const double mantissa = n % 2 ? static_cast<double>(random() >> 11) * 0x1p-53 : static_cast<double>(random() % 4096) / 2048;
      result.push_back(real_scalar(round_to(dtype, std::ldexp(mantissa - 0.5, exponent / (1 + n % 8)))));
    }
    return result;
  }
  if (dtype == Dtype::Bool) return {integer_scalar(0), integer_scalar(1)};
  for (std::int64_t x : {0L, 1L, 2L, 3L, 7L, 8L, 31L, 63L, 100L, 127L, 128L, 255L, 2049L, 32767L, 65519L, 65520L, 16777217L, 2147483647L, 4294967295L,
                         9007199254740993L, 9223372036854775807L})
    for (std::int64_t y : {x, -x, -x - 1}) result.push_back(integer_scalar(wrap(dtype, y)));
  for (int n = 0; many && n < 1000; ++n) result.push_back(integer_scalar(wrap(dtype, static_cast<std::int64_t>(random() >> (random() % 64)))));
  return result;
}

// Runs a plan of one kernel and returns the bytes of its outputs; inputs as scalars in the order of the parameters.
std::vector<std::vector<Scalar>> run(const std::string& text, const std::vector<std::vector<Scalar>>& inputs) {
  Plan plan;
  try {
    plan = parse_plan(text);
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{"plan", text}}));
  }
  const auto count = static_cast<std::int64_t>(inputs.at(0).size());
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> tensors;
  std::size_t next_input = 0;
  for (const Param& param : plan.params) {
    const auto bytes = static_cast<std::size_t>(bytes_of(param.dtype));
    memory.emplace_back(static_cast<std::size_t>(count) * bytes);
    if (param.kind != ParamKind::In) continue;
    const std::vector<Scalar>& input = inputs.at(next_input++);
    for (std::size_t n = 0; n < input.size(); ++n) store_scalar(param.dtype, memory.back().data() + n * bytes, input[n]);
  }
  for (std::vector<std::byte>& tensor : memory) tensors.push_back(tensor.data());
  const auto kernel = compile_for_host(plan, *kernels_of(plan).at(0));
  std::int64_t error_word[3] = {0, 0, 0};
  CHECK(kernel->iterations({count}) == count);
  kernel->run(tensors, {count}, 0, count, error_word);
  std::vector<std::vector<Scalar>> results;
  for (std::size_t tensor = 0; tensor < plan.params.size(); ++tensor) {
    const Param& param = plan.params[tensor];
    if (param.kind == ParamKind::In) continue;
    results.emplace_back();
    for (std::size_t n = 0; n < static_cast<std::size_t>(count); ++n)
      results.back().push_back(load_scalar(param.dtype, memory[tensor].data() + n * static_cast<std::size_t>(bytes_of(param.dtype))));
  }
  return results;
}

bool same(Dtype dtype, Scalar a, Scalar b) {
  if (is_float(dtype) && std::isnan(a.f) && std::isnan(b.f)) return true;
  return a.i == b.i;
}

std::string show(Dtype dtype, Scalar value) { return is_float(dtype) ? fmt::format("{}", value.f) : fmt::format("{}", value.i); }

// A kernel with one output an expression: `C0[i] = …`.
std::string plan_text(const std::string& inputs, const std::vector<std::pair<Dtype, std::string>>& outputs) {
  std::string declared, stores;
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    declared += fmt::format("  out C{}: {}[N]\n", n, info(outputs[n].first).name);
    stores += fmt::format("      C{}[i] = {}\n", n, outputs[n].second);
  }
  return fmt::format("plan scalars {{\n  dim N\n{}{}  kernel K {{\n    parallel i in N {{\n{}    }}\n  }}\n}}\n", inputs, declared, stores);
}

}  // namespace

TEST_CASE("llvm host: binary operators are those of ir/scalar.h at every dtype") {
  struct Row {
    BinaryOp op;
    const char* text;
    bool of_floats;
  };
  const Row rows[] = {
      {BinaryOp::Add, "A[i] + B[i]", true},    {BinaryOp::Sub, "A[i] - B[i]", true},     {BinaryOp::Mul, "A[i] * B[i]", true},
      {BinaryOp::Div, "A[i] / B[i]", true},    {BinaryOp::Mod, "A[i] % B[i]", true},     {BinaryOp::Min, "min(A[i], B[i])", true},
      {BinaryOp::Max, "max(A[i], B[i])", true}, {BinaryOp::Eq, "A[i] == B[i]", true},    {BinaryOp::Ne, "A[i] != B[i]", true},
      {BinaryOp::Lt, "A[i] < B[i]", true},     {BinaryOp::Le, "A[i] <= B[i]", true},     {BinaryOp::Gt, "A[i] > B[i]", true},
      {BinaryOp::Ge, "A[i] >= B[i]", true},    {BinaryOp::BitAnd, "A[i] & B[i]", false}, {BinaryOp::BitOr, "A[i] | B[i]", false},
      {BinaryOp::BitXor, "A[i] ^ B[i]", false}, {BinaryOp::Shl, "A[i] << B[i]", false},  {BinaryOp::Shr, "A[i] >> B[i]", false},
  };
  for (Dtype dtype : dtypes) {
    if (dtype == Dtype::Bool) continue;
    const std::vector<Scalar> values = values_of(dtype, false);
    std::vector<std::vector<Scalar>> pairs(2);
    for (Scalar a : values)
      for (Scalar b : values) {
        pairs[0].push_back(a);
        pairs[1].push_back(b);
      }
    std::vector<const Row*> used;
    std::vector<std::pair<Dtype, std::string>> outputs;
    for (const Row& row : rows) {
      if (is_float(dtype) && !row.of_floats) continue;
      used.push_back(&row);
      outputs.emplace_back(info(row.op).is_comparison ? Dtype::Bool : dtype, row.text);
    }
    const std::string inputs = fmt::format("  in A: {0}[N]\n  in B: {0}[N]\n", info(dtype).name);
    const auto results = run(plan_text(inputs, outputs), pairs);
    for (std::size_t row = 0; row < used.size(); ++row)
      for (std::size_t n = 0; n < pairs[0].size(); ++n) {
        const Scalar expected = apply(used[row]->op, dtype, pairs[0][n], pairs[1][n]);
        if (same(outputs[row].first, results[row][n], expected)) continue;
        FAIL_CHECK(fmt::format("{}: {} with A = {}, B = {} gives {}, not {}", info(dtype).name, used[row]->text, show(dtype, pairs[0][n]),
                               show(dtype, pairs[1][n]), show(outputs[row].first, results[row][n]), show(outputs[row].first, expected)));
        break;
      }
  }
}

TEST_CASE("llvm host: conversions are those of ir/scalar.h between all dtypes") {
  for (Dtype from : dtypes) {
    const std::vector<Scalar> values = values_of(from, true);
    std::vector<std::pair<Dtype, std::string>> outputs;
    for (Dtype to : dtypes) outputs.emplace_back(to, to == from ? "A[i]" : fmt::format("{}(A[i])", info(to).name));
    const auto results = run(plan_text(fmt::format("  in A: {}[N]\n", info(from).name), outputs), {values});
    for (std::size_t row = 0; row < outputs.size(); ++row)
      for (std::size_t n = 0; n < values.size(); ++n) {
        const Dtype to = outputs[row].first;
        const Scalar expected = convert(to, from, values[n]);
        if (same(to, results[row][n], expected)) continue;
        FAIL_CHECK(fmt::format("{}({}: {}) gives {}, not {}", info(to).name, show(from, values[n]), info(from).name, show(to, results[row][n]), show(to, expected)));
        break;
      }
  }
}

TEST_CASE("llvm host: unary operators and exact functions are those of ir/scalar.h") {
  for (Dtype dtype : {Dtype::F64, Dtype::F32}) {
    const std::vector<Scalar> values = values_of(dtype, true);
    std::vector<std::string> names = {"sqrt", "abs", "floor", "ceil", "round", "trunc", "isnan", "isinf", "rsqrt"};
    std::vector<std::pair<Dtype, std::string>> outputs;
    for (const std::string& name : names) outputs.emplace_back(name.starts_with("is") ? Dtype::Bool : dtype, name + "(A[i])");
    outputs.emplace_back(dtype, "-A[i]");
    outputs.emplace_back(dtype, "fma(A[i], A[i], A[i])");
    const auto results = run(plan_text(fmt::format("  in A: {}[N]\n", info(dtype).name), outputs), {values});
    for (std::size_t n = 0; n < values.size(); ++n) {
      for (std::size_t row = 0; row < names.size(); ++row) {
        const Scalar expected = find_scalar_function(names[row])(dtype, &values[n]);
        INFO(names[row], " of ", show(dtype, values[n]), ": ", show(outputs[row].first, results[row][n]), ", not ", show(outputs[row].first, expected));
        REQUIRE(same(outputs[row].first, results[row][n], expected));
      }
      REQUIRE(same(dtype, results[names.size()][n], apply(UnaryOp::Neg, dtype, values[n])));
      REQUIRE(same(dtype, results[names.size() + 1][n], fused_multiply_add(dtype, values[n], values[n], values[n])));
    }
  }
}

}  // namespace tilewright
