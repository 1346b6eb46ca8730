// Every conversion, operator and exact function at every element type: the text compiles, and on a GPU both generators
// give, bit for bit, what ir/scalar.h says (a NaN for a NaN).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/operators.h"
#include "ir/scalar.h"
#include "runtime/cuda_device.h"
#include "runtime/nvrtc.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

constexpr std::array dtypes = {Dtype::F64,  Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3,
                               Dtype::E5M2, Dtype::I64, Dtype::I32, Dtype::I16,  Dtype::I8,
                               Dtype::U64,  Dtype::U32, Dtype::U16, Dtype::U8,   Dtype::Bool};

// One output of the kernel and how the host computes it from x and z.
struct Case {
  std::string name;
  Expr value;
  std::function<Scalar(Scalar, Scalar)> on_host;
};

// `kernel k: for each i, each case: out[i] = value(X[i], Z[i])`.
Plan plan_of(Dtype dtype, const std::vector<Case>& cases) {
  Plan plan;
  plan.name = "scalars";
  plan.dims.push_back({"N", {}});
  const auto param = [&](ParamKind kind, const std::string& name, Dtype type) {
    plan.params.push_back({kind, name, type, {var("N")}, {}});
  };
  param(ParamKind::In, "X", dtype);
  param(ParamKind::In, "Z", dtype);
  Kernel kernel;
  kernel.name = "k";
  kernel.stage = Stage::Thread;
  kernel.launch.grid = {ceildiv(var("N"), integer(256))};
  kernel.launch.block = {256};
  kernel.launch.arguments = {"X", "Z"};
  Block stores = {make_stmt(Let{"x", load({"X", {var("i")}, {}, {}}, dtype), {}, {}}),
                  make_stmt(Let{"z", load({"Z", {var("i")}, {}, {}}, dtype), {}, {}})};
  for (const Case& each : cases) {
    param(ParamKind::Out, each.name, each.value->dtype);
    kernel.launch.arguments.push_back(each.name);
    stores.push_back(make_stmt(Store{{each.name, {var("i")}, {}, {}}, each.value, {}, std::nullopt}));
  }
  kernel.launch.arguments.push_back("N");
  kernel.body = {make_stmt(Let{"i", var("block.x") * 256 + var("thread.x"), {}, {}}),
                 make_stmt(If{less(var("i"), var("N")), stores, {}})};
  plan.steps.emplace_back(kernel);
  return plan;
}

std::vector<Case> conversions(Dtype from) {
  std::vector<Case> cases;
  for (const Dtype to : dtypes) {
    if (to == from) continue;
    cases.push_back({"to." + std::string(info(to).name), cast(to, var("x", from)),
                     [=](Scalar x, Scalar) { return convert(to, from, x); }});
  }
  return cases;
}

bool takes(BinaryOp op, Dtype dtype) {
  const bool is_bits = op == BinaryOp::BitAnd || op == BinaryOp::BitOr || op == BinaryOp::BitXor ||
                       op == BinaryOp::Shl || op == BinaryOp::Shr;
  if (op == BinaryOp::And || op == BinaryOp::Or) return dtype == Dtype::Bool;
  if (dtype == Dtype::Bool) return op == BinaryOp::Eq || op == BinaryOp::Ne;
  return !is_float(dtype) || !is_bits;
}

std::vector<Case> operators_of(Dtype dtype) {
  std::vector<Case> cases;
  for (int index = 0; index <= static_cast<int>(BinaryOp::Shr); ++index) {
    const auto op = static_cast<BinaryOp>(index);
    if (!takes(op, dtype)) continue;
    cases.push_back({fmt::format("op{}", index), binary(op, var("x", dtype), var("z", dtype)),
                     [=](Scalar x, Scalar z) { return apply(op, dtype, x, z); }});
    // By a constant, which the printer spells its own way.
    if ((op == BinaryOp::Div || op == BinaryOp::Mod || op == BinaryOp::Shl || op == BinaryOp::Shr) &&
        !is_float(dtype)) {
      for (const int divisor : {3, 4}) {
        const Scalar constant = integer_scalar(divisor);
        cases.push_back({fmt::format("op{}.{}", index, divisor), binary(op, var("x", dtype), integer(divisor, dtype)),
                         [=](Scalar x, Scalar) { return apply(op, dtype, x, constant); }});
      }
    }
  }
  if (dtype == Dtype::Bool) {
    cases.push_back(
        {"not", unary(UnaryOp::Not, var("x", dtype)), [=](Scalar x, Scalar) { return apply(UnaryOp::Not, dtype, x); }});
    return cases;
  }
  cases.push_back(
      {"neg", unary(UnaryOp::Neg, var("x", dtype)), [=](Scalar x, Scalar) { return apply(UnaryOp::Neg, dtype, x); }});
  if (!is_float(dtype))
    cases.push_back({"flip", unary(UnaryOp::BitNot, var("x", dtype)),
                     [=](Scalar x, Scalar) { return apply(UnaryOp::BitNot, dtype, x); }});
  return cases;
}

std::vector<Case> functions_of(Dtype dtype) {
  std::vector<Case> cases;
  for (const FunctionInfo& function : all_functions()) {
    if (function.group != FunctionGroup::Exact || (is_float(dtype) ? !function.takes_float : !function.takes_integer))
      continue;
    const Expr x = var("x", dtype);
    const Expr z = var("z", dtype);
    std::vector<Expr> arguments = {x, z, x};
    arguments.resize(static_cast<std::size_t>(function.arity));
    const ScalarFunction on_host = find_scalar_function(function.name);
    const Dtype result = function.result.value_or(dtype);
    cases.push_back({"f." + std::string(function.name), call(std::string(function.name), arguments, result),
                     [=](Scalar a, Scalar b) {
                       const std::array<Scalar, 3> values = {a, b, a};
                       return on_host(dtype, values.data());
                     }});
  }
  return cases;
}

// Edge values of the type, and a spread of others.
std::vector<Scalar> values_of(Dtype dtype) {
  std::vector<Scalar> values;
  std::uint64_t state = 88172645463325252ull;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  if (is_float(dtype)) {
    for (const double value : {0.0,
                               1.0,
                               0.5,
                               1.5,
                               2.5,
                               3.0,
                               127.5,
                               255.5,
                               256.0,
                               32767.5,
                               65504.0,
                               65519.9,
                               65520.0,
                               2147483647.0,
                               4294967295.0,
                               9.3e18,
                               1.9e19,
                               3.4e38,
                               1e-45,
                               6e-8,
                               2.9e-8,
                               1e300,
                               4.9e-324,
                               1.0000000298023225,
                               1.00048828125,
                               1.0004882812500002,
                               1.00390625,
                               1.0039062500000002,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
      for (const double sign : {1.0, -1.0}) values.push_back(real_scalar(round_to(dtype, sign * value)));
    }
    for (int count = 0; count < 400; ++count) {
      const int exponent = static_cast<int>(next() % 80) - 40;
      const double mantissa = static_cast<double>(static_cast<std::int64_t>(next())) / 9.3e18;
      values.push_back(real_scalar(round_to(dtype, std::ldexp(mantissa, exponent))));
    }
    return values;
  }
  for (const std::int64_t value : {0l,
                                   1l,
                                   2l,
                                   3l,
                                   5l,
                                   7l,
                                   8l,
                                   31l,
                                   32l,
                                   33l,
                                   63l,
                                   64l,
                                   100l,
                                   127l,
                                   128l,
                                   255l,
                                   256l,
                                   2049l,
                                   32767l,
                                   32768l,
                                   65535l,
                                   16777217l,
                                   2147483647l,
                                   2147483648l,
                                   4294967295l,
                                   9007199254740993l,
                                   9223372036854775807l}) {
    values.push_back(integer_scalar(wrap(dtype, value)));
    values.push_back(integer_scalar(wrap(dtype, -value)));
  }
  for (int count = 0; count < 400; ++count)
    values.push_back(integer_scalar(wrap(dtype, static_cast<std::int64_t>(next() >> (next() % 60)))));
  return values;
}

bool is_same(Dtype dtype, Scalar a, Scalar b) {
  if (is_float(dtype) && std::isnan(a.f) && std::isnan(b.f)) return true;
  return bits_of(a) == bits_of(b);
}

std::vector<std::vector<Case>> all_cases(Dtype dtype) {
  std::vector<std::vector<Case>> all = {conversions(dtype), operators_of(dtype)};
  if (dtype != Dtype::Bool) all.push_back(functions_of(dtype));
  return all;
}

}  // namespace

TEST_SUITE("runtime") {
  TEST_CASE("CUDA C of every operator and conversion compiles") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    for (const Dtype dtype : dtypes) {
      CAPTURE(info(dtype).name);
      for (const std::vector<Case>& cases : all_cases(dtype)) {
        const Plan plan = plan_of(dtype, cases);
        NvrtcOptions options;
        for (const char* arch : {"sm_75", "sm_90a"}) {
          options.arch = arch;
          const std::string text = print_cuda(plan, *kernels_of(plan)[0]).text;
          const Cubin cubin = compile_cuda(text, options);
          CHECK_MESSAGE(cubin.log.find("warning") == std::string::npos, cubin.log);
        }
      }
    }
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("gpu: every operator and conversion gives the bits that the host gives") {
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      for (const Dtype dtype : dtypes) {
        const std::vector<Scalar> values = values_of(dtype);
        const std::size_t count = values.size();
        for (const std::vector<Case>& cases : all_cases(dtype)) {
          const Plan plan = plan_of(dtype, cases);
          const auto n = static_cast<std::int64_t>(count * count);
          HostTensor x = make_tensor(dtype, {n});
          HostTensor z = make_tensor(dtype, {n});
          for (std::size_t e = 0; e < count * count; ++e) {
            const auto at = e * static_cast<std::size_t>(bytes_of(dtype));
            store_scalar(dtype, x.data.data() + at, values[e / count]);
            store_scalar(dtype, z.data.data() + at, values[e % count]);
          }
          Arguments arguments = bind_arguments(plan, {{"X", x}, {"Z", z}}, {{"N", n}});
          CompileOptions options;
          options.backend = backend;
          options.arch = use_gpu().arch;
          run_on_cuda(compile_plan(plan, options), arguments);
          for (const Case& each : cases) {
            const Dtype result = each.value->dtype;
            const HostTensor& out = arguments.tensors.at(each.name);
            int wrong = 0;
            std::string first;
            for (std::size_t e = 0; e < count * count; ++e) {
              const Scalar want = each.on_host(values[e / count], values[e % count]);
              const Scalar got = load_scalar(result, out.data.data() + e * static_cast<std::size_t>(bytes_of(result)));
              if (is_same(result, want, got)) continue;
              if (wrong++ == 0)
                first = fmt::format("x {:x} z {:x}: want {:x}, got {:x}", bits_of(values[e / count]),
                                    bits_of(values[e % count]), bits_of(want), bits_of(got));
            }
            CHECK_MESSAGE(wrong == 0,
                          fmt::format("{} {} {} by {}: {} wrong, {}", info(dtype).name, each.name, print(each.value),
                                      backend == Backend::Nvrtc ? "NVRTC" : "LLVM", wrong, first));
          }
        }
      }
    }
  }
}

}  // namespace tilewright
