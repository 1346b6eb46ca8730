// The oracle: values, bounds, roundings, samples, rules.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

#include "ir/diagnostic.h"
#include "runtime/oracle.h"

namespace tilewright {

namespace {

Expr read(const std::string& name, std::vector<Expr> index, Dtype dtype = Dtype::F32, Rule rule = {}) {
  return load(Access{name, std::move(index), std::move(rule), {}}, dtype);
}
Axis axis(const std::string& name, Expr hi, Expr lo = integer(0)) { return Axis{name, std::move(lo), std::move(hi), {}, {}}; }
Expr mul(Expr a, Expr b) { return binary(BinaryOp::Mul, std::move(a), std::move(b)); }
Expr sub(Expr a, Expr b) { return binary(BinaryOp::Sub, std::move(a), std::move(b)); }
Expr div(Expr a, Expr b) { return binary(BinaryOp::Div, std::move(a), std::move(b)); }
Expr v(const std::string& name) { return var(name); }

Param param(ParamKind kind, const std::string& name, std::vector<Expr> shape, Dtype dtype = Dtype::F32) {
  return Param{kind, name, dtype, std::move(shape), {}};
}

TensorStmt define(const std::string& target, std::vector<Axis> axes, Expr value) {
  TensorStmt stmt;
  stmt.target = target;
  for (const Axis& a : axes) stmt.index.push_back(var(a.name));
  stmt.axes = std::move(axes);
  stmt.value = std::move(value);
  return stmt;
}

TensorFn matmul(Dtype in = Dtype::F32, Dtype out = Dtype::F32) {
  TensorFn fn;
  fn.name = "matmul";
  fn.dims = {"M", "K", "N"};
  fn.params = {param(ParamKind::In, "A", {v("M"), v("K")}, in), param(ParamKind::In, "B", {v("K"), v("N")}, in),
               param(ParamKind::Out, "C", {v("M"), v("N")}, out)};
  Expr product = mul(cast(Dtype::F32, read("A", {v("i"), v("k")}, in)), cast(Dtype::F32, read("B", {v("k"), v("j")}, in)));
  Expr total = reduce(CombineOp::Add, {axis("k", v("K"))}, {}, product, Dtype::F32);
  fn.statements = {define("C", {axis("i", v("M")), axis("j", v("N"))}, cast(out, total))};
  return fn;
}

TensorFn softmax() {
  TensorFn fn;
  fn.name = "softmax";
  fn.dims = {"R", "D"};
  fn.params = {param(ParamKind::In, "X", {v("R"), v("D")}), param(ParamKind::Out, "Y", {v("R"), v("D")})};
  fn.lets = {Temp{"m", Dtype::F32, {v("R")}}, Temp{"e", Dtype::F32, {v("R"), v("D")}}};
  fn.statements = {
      define("m", {axis("r", v("R"))}, reduce(CombineOp::Max, {axis("d", v("D"))}, {}, read("X", {v("r"), v("d")}), Dtype::F32)),
      define("e", {axis("r", v("R")), axis("d", v("D"))},
             call("exp", {sub(read("X", {v("r"), v("d")}), read("m", {v("r")}))}, Dtype::F32)),
      define("Y", {axis("r", v("R")), axis("d", v("D"))},
             div(read("e", {v("r"), v("d")}), reduce(CombineOp::Add, {axis("c", v("D"))}, {}, read("e", {v("r"), v("c")}), Dtype::F32)))};
  return fn;
}

HostTensor filled(Dtype dtype, std::vector<std::int64_t> shape, double scale) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::int64_t element = 0; element < tensor.elements(); ++element)
    write_real(tensor, element, scale * static_cast<double>((element * 7919) % 101 - 50));
  return tensor;
}

}  // namespace

TEST_SUITE("oracle") {
  TEST_CASE("matmul of small integers is exact") {
    const TensorFn fn = matmul();
    Arguments arguments = bind_arguments(signature_plan(fn), {{"A", filled(Dtype::F32, {5, 7}, 1)}, {"B", filled(Dtype::F32, {7, 3}, 1)}});
    const OracleResult result = evaluate(fn, arguments);
    REQUIRE(result.outputs.size() == 1);
    const OracleTensor& c = result.outputs[0];
    REQUIRE(c.count() == 15);
    for (std::int64_t i = 0; i < 5; ++i)
      for (std::int64_t j = 0; j < 3; ++j) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < 7; ++k) {
          const double term = read_real(arguments.tensors.at("A"), i * 7 + k) * read_real(arguments.tensors.at("B"), k * 3 + j);
          sum += term;
          magnitude += std::fabs(term);
        }
        CHECK(c.values[static_cast<std::size_t>(i * 3 + j)].f == sum);
        const double bound = c.bounds[static_cast<std::size_t>(i * 3 + j)];
        CHECK(bound >= 7 * 0x1p-24 * magnitude);
        CHECK(bound <= 9 * 0x1p-24 * magnitude + half_ulp(Dtype::F32, sum) * 2);
      }
  }

  TEST_CASE("the output's dtype rounds once; unrounded does not") {
    const TensorFn fn = matmul(Dtype::BF16, Dtype::BF16);
    Arguments arguments = bind_arguments(signature_plan(fn), {{"A", filled(Dtype::BF16, {4, 9}, 0.37)}, {"B", filled(Dtype::BF16, {9, 4}, 0.11)}});
    const OracleTensor rounded = evaluate(fn, arguments).outputs[0];
    OracleOptions options;
    options.mode = FloatMode::Unrounded;
    const OracleTensor exact = evaluate(fn, arguments, options).outputs[0];
    for (std::size_t element = 0; element < rounded.count(); ++element) {
      CHECK(rounded.values[element].f == round_to(Dtype::BF16, exact.values[element].f));
      CHECK(std::fabs(rounded.values[element].f - exact.values[element].f) <= exact.bounds[element]);
    }
  }

  TEST_CASE("an intermediate that overflows f32 widens the bound to the quotient, and no further") {
    // 1 / (1 + exp(-x)) for x = -89.5: exp is 7.4e38, which is infinite in f32, so a kernel gives 0.
    TensorFn fn;
    fn.name = "sigmoid";
    fn.dims = {"N"};
    fn.params = {param(ParamKind::In, "X", {v("N")}), param(ParamKind::Out, "Y", {v("N")})};
    const Expr grown = call("exp", {sub(real(0, Dtype::F32), read("X", {v("i")}))}, Dtype::F32);
    fn.statements = {define("Y", {axis("i", v("N"))}, div(real(1, Dtype::F32), binary(BinaryOp::Add, real(1, Dtype::F32), grown)))};
    HostTensor x = make_tensor(Dtype::F32, {2});
    write_real(x, 0, -89.5);
    write_real(x, 1, -80);
    const OracleTensor y = evaluate(fn, bind_arguments(signature_plan(fn), {{"X", x}})).outputs[0];
    CHECK(y.values[0].f > 1e-39);
    CHECK(y.bounds[0] >= y.values[0].f);
    CHECK(y.bounds[0] <= 2 * y.values[0].f);
    CHECK(y.bounds[1] < 1e-5 * y.values[1].f);
  }

  TEST_CASE("typed rounds every operation, inside the bound") {
    const TensorFn fn = softmax();
    Arguments arguments = bind_arguments(signature_plan(fn), {{"X", filled(Dtype::F32, {3, 40}, 0.03)}});
    OracleOptions typed;
    typed.mode = FloatMode::Typed;
    const OracleTensor kernel = evaluate(fn, arguments, typed).outputs[0];
    const OracleTensor real = evaluate(fn, arguments).outputs[0];
    CHECK(kernel.bounds.empty());
    double sum = 0;
    for (std::size_t element = 0; element < real.count(); ++element) {
      CHECK(std::fabs(kernel.values[element].f - real.values[element].f) <= real.bounds[element]);
      CHECK(real.bounds[element] < 1e-4 * real.values[element].f);
      sum += real.values[element].f;
    }
    CHECK(sum == doctest::Approx(3.0));
  }

  TEST_CASE("a sample has the values of the whole, lets included") {
    const TensorFn fn = softmax();
    Arguments arguments = bind_arguments(signature_plan(fn), {{"X", filled(Dtype::F32, {5, 33}, 0.05)}});
    const OracleTensor whole = evaluate(fn, arguments).outputs[0];
    OracleOptions options;
    options.sample["Y"] = {0, 17, 33, 164, 100};
    const OracleTensor some = evaluate(fn, arguments, options).outputs[0];
    REQUIRE(some.count() == 5);
    for (std::size_t position = 0; position < 5; ++position) {
      const auto element = static_cast<std::size_t>(some.element(position));
      CHECK(some.values[position].f == whole.values[element].f);
      CHECK(some.bounds[position] == whole.bounds[element]);
    }
  }

  TEST_CASE("rules of accesses") {
    TensorFn fn;
    fn.name = "shift";
    fn.dims = {"N"};
    fn.params = {param(ParamKind::In, "X", {v("N")}), param(ParamKind::Out, "O", {v("N")})};
    const auto with = [&](Rule rule, std::int64_t by) {
      fn.statements = {define("O", {axis("i", v("N"))}, read("X", {v("i") + integer(by)}, Dtype::F32, std::move(rule)))};
      HostTensor x = make_tensor(Dtype::F32, {4});
      for (int i = 0; i < 4; ++i) write_real(x, i, i + 1);
      const Arguments arguments = bind_arguments(signature_plan(fn), {{"X", x}});
      const bool is_checked = as<Load>(fn.statements[0].value)->access.rule.kind == Rule::Kind::Check;
      const OracleResult result = evaluate(fn, arguments);
      std::vector<double> values;
      for (const Scalar value : result.outputs[0].values) values.push_back(value.f);
      CHECK(result.error.has_value() == is_checked);
      if (result.error) CHECK(result.error->site == 3);
      return values;
    };
    using Values = std::vector<double>;
    CHECK(with(Rule{Rule::Kind::Fill, real(9, Dtype::F32), 0}, 2) == Values{3, 4, 9, 9});
    CHECK(with(Rule{Rule::Kind::Clamp, {}, 0}, -2) == Values{1, 1, 1, 2});
    CHECK(with(Rule{Rule::Kind::Wrap, {}, 0}, 3) == Values{4, 1, 2, 3});
    CHECK(with(Rule{Rule::Kind::Mirror, {}, 0}, 2) == Values{3, 4, 3, 2});
    CHECK(with(Rule{Rule::Kind::Mirror, {}, 0}, -2) == Values{3, 2, 1, 2});
    CHECK(with(Rule{Rule::Kind::Check, {}, 3}, 2) == Values{3, 4, 0, 0});
  }

  TEST_CASE("an uncertain branch is covered by the bound") {
    TensorFn fn;  // O[i] = if s > 0.3 then 1 else 0, s a sum that is 0.3 but for its rounding
    fn.name = "step";
    fn.dims = {"N"};
    fn.params = {param(ParamKind::In, "X", {v("N")}), param(ParamKind::Out, "O", {integer(1)})};
    Expr sum = reduce(CombineOp::Add, {axis("k", v("N"))}, {}, read("X", {v("k")}), Dtype::F32);
    fn.statements = {define("O", {axis("i", integer(1))},
                            select(binary(BinaryOp::Gt, sum, real(0.3, Dtype::F32)), real(1, Dtype::F32), real(0, Dtype::F32)))};
    HostTensor x = make_tensor(Dtype::F32, {3});
    for (int i = 0; i < 3; ++i) write_real(x, i, 0.1);
    CHECK(evaluate(fn, bind_arguments(signature_plan(fn), {{"X", x}})).outputs[0].bounds[0] >= 1);
    write_real(x, 0, 5);
    CHECK(evaluate(fn, bind_arguments(signature_plan(fn), {{"X", x}})).outputs[0].bounds[0] == 0);
  }

  TEST_CASE("updates: histogram, and a float scatter with its bound") {
    TensorFn fn;
    fn.name = "histogram";
    fn.dims = {"N"};
    fn.params = {param(ParamKind::In, "X", {v("N")}, Dtype::U8), param(ParamKind::Out, "H", {integer(4)}, Dtype::I32),
                 param(ParamKind::Out, "F", {integer(4)})};
    TensorStmt count;
    count.target = "H";
    count.axes = {axis("i", v("N"))};
    count.index = {cast(Dtype::Index, read("X", {v("i")}, Dtype::U8))};
    count.rule = Rule{Rule::Kind::Check, {}, 7};
    count.value = integer(1, Dtype::I32);
    count.combine = CombineOp::Add;
    TensorStmt weigh = count;
    weigh.target = "F";
    weigh.rule.kind = Rule::Kind::Skip;
    weigh.value = real(0.1, Dtype::F32);
    fn.statements = {count, weigh};
    HostTensor x = make_tensor(Dtype::U8, {10});
    for (int i = 0; i < 10; ++i) write_integer(x, i, i % 5);
    const OracleResult result = evaluate(fn, bind_arguments(signature_plan(fn), {{"X", x}}));
    for (std::size_t bin = 0; bin < 4; ++bin) {
      CHECK(result.outputs[0].values[bin].i == 2);
      CHECK(result.outputs[0].bounds[bin] == 0);
      CHECK(result.outputs[1].values[bin].f == doctest::Approx(0.2));
      CHECK(result.outputs[1].bounds[bin] > 0);
    }
    REQUIRE(result.error.has_value());
    CHECK(result.error->site == 7);
    CHECK(result.error->value == 4);
  }

  TEST_CASE("sparse rows: bounds from tensors are cut and reported") {
    TensorFn fn;
    fn.name = "spmv";
    fn.dims = {"R", "Z"};
    fn.params = {param(ParamKind::In, "ptr", {v("R") + integer(1)}, Dtype::I32), param(ParamKind::In, "val", {v("Z")}),
                 param(ParamKind::Out, "y", {v("R")})};
    const auto bound = [&](Expr at, int id) {
      return call("within", {cast(Dtype::Index, read("ptr", {std::move(at)}, Dtype::I32)), v("Z"), integer(id)}, Dtype::Index);
    };
    fn.statements = {define("y", {axis("r", v("R"))},
                            reduce(CombineOp::Add, {axis("p", bound(v("r") + integer(1), 1), bound(v("r"), 0))}, {}, read("val", {v("p")}), Dtype::F32))};
    HostTensor ptr = make_tensor(Dtype::I32, {4});
    const int rows[] = {0, 2, 2, 9};
    for (int i = 0; i < 4; ++i) write_integer(ptr, i, rows[i]);
    HostTensor val = make_tensor(Dtype::F32, {5});
    for (int i = 0; i < 5; ++i) write_real(val, i, i + 1);
    const OracleResult result = evaluate(fn, bind_arguments(signature_plan(fn), {{"ptr", ptr}, {"val", val}}));
    CHECK(result.outputs[0].values[0].f == 3);
    CHECK(result.outputs[0].values[1].f == 0);
    CHECK(result.outputs[0].values[2].f == 12);
    REQUIRE(result.error.has_value());
    CHECK(result.error->value == 9);
  }

  TEST_CASE("sizes of 0 and identities of empty reductions") {
    TensorFn fn = softmax();
    CHECK(evaluate(fn, bind_arguments(signature_plan(fn), {{"X", make_tensor(Dtype::F32, {0, 4})}})).outputs[0].count() == 0);
    fn = matmul();
    const OracleTensor c =
        evaluate(fn, bind_arguments(signature_plan(fn), {{"A", make_tensor(Dtype::F32, {2, 0})}, {"B", make_tensor(Dtype::F32, {0, 2})}})).outputs[0];
    CHECK(c.values[3].f == 0);
    CHECK(c.bounds[3] == 0);
  }

  TEST_CASE("a matmul of 256 cubed takes about a second at most") {
    const TensorFn fn = matmul();
    Arguments arguments = bind_arguments(signature_plan(fn), {{"A", filled(Dtype::F32, {256, 256}, 0.1)}, {"B", filled(Dtype::F32, {256, 256}, 0.1)}});
    const auto start = std::chrono::steady_clock::now();
    CHECK(evaluate(fn, arguments).outputs[0].count() == 65536);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    MESSAGE("oracle, matmul 256: ", seconds, " s");
  }
}

}  // namespace tilewright
