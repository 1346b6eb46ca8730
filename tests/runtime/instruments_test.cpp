// The three instruments, and what a comparison says of a wrong result.
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/instruments.h"

namespace tilewright {

namespace {

Expr read(const std::string& name, std::vector<Expr> index, Dtype dtype = Dtype::F32) { return load(Access{name, std::move(index), {}, {}}, dtype); }
Axis axis(const std::string& name, Expr hi, Expr lo = integer(0)) { return Axis{name, std::move(lo), std::move(hi), {}, {}}; }

TensorFn matmul(Expr (*wrap)(Expr)) {
  TensorFn fn;
  fn.name = "matmul";
  fn.dims = {"M", "K", "N"};
  fn.params = {Param{ParamKind::In, "A", Dtype::F32, {var("M"), var("K")}, {}}, Param{ParamKind::In, "B", Dtype::F32, {var("K"), var("N")}, {}},
               Param{ParamKind::Out, "C", Dtype::F32, {var("M"), var("N")}, {}}};
  TensorStmt stmt;
  stmt.target = "C";
  stmt.axes = {axis("i", var("M")), axis("j", var("N"))};
  stmt.index = {var("i"), var("j")};
  const Expr product = binary(BinaryOp::Mul, read("A", {var("i"), var("k")}), read("B", {var("k"), var("j")}));
  stmt.value = wrap(reduce(CombineOp::Add, {axis("k", var("K"))}, {}, product, Dtype::F32));
  fn.statements = {stmt};
  return fn;
}

Expr plain(Expr value) { return value; }
Expr exponential(Expr value) { return call("exp", {std::move(value)}, Dtype::F32); }

// What a kernel of the declared dtypes gives.
HostTensor kernel_result(const TensorFn& fn, const Arguments& arguments) {
  OracleOptions options;
  options.mode = FloatMode::Typed;
  const OracleTensor output = evaluate(fn, arguments, options).outputs[0];
  HostTensor tensor = make_tensor(output.dtype, output.shape);
  for (std::size_t element = 0; element < output.count(); ++element) write_real(tensor, static_cast<std::int64_t>(element), output.values[element].f);
  return tensor;
}

struct Case {
  TensorFn fn;
  Arguments arguments;
  Expectation expectation;
  HostTensor result;

  Case(TensorFn f, Instrument instrument, std::map<std::string, std::int64_t> dims) : fn(std::move(f)) {
    arguments = bind_arguments(signature_plan(fn), instrument_inputs(instrument, fn, dims, 7), dims);
    expectation = expect(fn, instrument, arguments);
    result = kernel_result(fn, arguments);
  }
  Comparison judged(const TileSizes& tiles = {}) const { return compare(expectation.oracle.outputs[0], result, expectation.rule, tiles); }
};

}  // namespace

TEST_SUITE("instruments") {
  TEST_CASE("exact data is compared bit for bit where the fn keeps integers") {
    const Case exact(matmul(plain), Instrument::Exact, {{"M", 9}, {"K", 31}, {"N", 5}});
    CHECK(exact.expectation.rule.is_bitwise);
    CHECK(exact.judged().text == "`C` is right: 45 elements, bit for bit");
    const Case bounded(matmul(exponential), Instrument::Exact, {{"M", 9}, {"K", 31}, {"N", 5}});
    CHECK_FALSE(bounded.expectation.rule.is_bitwise);
    CHECK(bounded.judged().is_right());
  }

  TEST_CASE("exact data finds one lost term, random data within its bound too") {
    for (const Instrument instrument : {Instrument::Exact, Instrument::Random}) {
      Case test(matmul(plain), instrument, {{"M", 9}, {"K", 31}, {"N", 5}});
      const Comparison right = test.judged();
      CHECK(right.is_right());
      if (instrument == Instrument::Random) {
        CHECK(right.worst_ratio > 0);
        CHECK(right.worst_ratio < 0.5);
      }
      std::int64_t term = 0;  // one that is not 0
      while (read_real(test.arguments.tensors.at("A"), term) * read_real(test.arguments.tensors.at("B"), term * 5) == 0) ++term;
      const double lost = read_real(test.arguments.tensors.at("A"), term) * read_real(test.arguments.tensors.at("B"), term * 5);
      write_real(test.result, 0, read_real(test.result, 0) - lost);
      CHECK(test.judged().wrong == 1);
    }
  }

  TEST_CASE("special data is judged by class") {
    Case test(matmul(plain), Instrument::Special, {{"M", 23}, {"K", 40}, {"N", 23}});
    CHECK(test.judged().is_right());
    std::int64_t specials = 0;
    for (std::int64_t n = 0; n < test.result.elements(); ++n) specials += !std::isfinite(read_real(test.result, n));
    CHECK(specials > 0);
    CHECK(specials < test.result.elements());
    for (std::int64_t n = 0; n < test.result.elements(); ++n)
      if (std::isnan(read_real(test.result, n))) write_real(test.result, n, 0);
    CHECK_FALSE(test.judged().is_right());
  }

  TEST_CASE("indices are valid, bounds grow") {
    TensorFn fn;
    fn.name = "spmv";
    fn.dims = {"R", "Z", "C"};
    fn.params = {Param{ParamKind::In, "ptr", Dtype::I32, {var("R") + integer(1)}, {}}, Param{ParamKind::In, "col", Dtype::I32, {var("Z")}, {}},
                 Param{ParamKind::In, "x", Dtype::F32, {var("C")}, {}}, Param{ParamKind::Out, "y", Dtype::F32, {var("R")}, {}}};
    const auto bound = [](Expr at, int id) { return call("within", {read("ptr", {std::move(at)}, Dtype::I32), var("Z"), integer(id)}, Dtype::Index); };
    TensorStmt stmt;
    stmt.target = "y";
    stmt.axes = {axis("r", var("R"))};
    stmt.index = {var("r")};
    stmt.value = reduce(CombineOp::Add, {axis("p", bound(var("r") + integer(1), 1), bound(var("r"), 0))}, {},
                        load(Access{"x", {read("col", {var("p")}, Dtype::I32)}, Rule{Rule::Kind::Check, {}, 2}, {}}, Dtype::F32), Dtype::F32);
    fn.statements = {stmt};
    for (const Instrument instrument : {Instrument::Exact, Instrument::Random, Instrument::Special}) {
      const Case test(fn, instrument, {{"R", 11}, {"Z", 50}, {"C", 6}});
      CHECK_FALSE(test.expectation.oracle.error.has_value());
      CHECK(test.judged().is_right());
      CHECK(read_integer(test.arguments.tensors.at("ptr"), 11) == 50);
    }
  }

  TEST_CASE("a wrong result is described") {
    Case test(matmul(plain), Instrument::Exact, {{"M", 35}, {"K", 3}, {"N", 40}});
    const HostTensor right = test.result;
    HostTensor unwritten = right;
    poison(unwritten);
    const auto spoil = [&](auto is_wrong, bool leaves_unwritten) {
      test.result = right;
      for (std::int64_t i = 0; i < 35; ++i)
        for (std::int64_t j = 0; j < 40; ++j) {
          if (!is_wrong(i, j)) continue;
          if (leaves_unwritten) write_real(test.result, i * 40 + j, 0);
          if (leaves_unwritten) std::copy_n(unwritten.data.begin() + (i * 40 + j) * 4, 4, test.result.data.begin() + (i * 40 + j) * 4);
          else write_real(test.result, i * 40 + j, 99);
        }
      return test.judged({{16}, {16}}).text;
    };
    const auto has = [](const std::string& text, const std::string& part) {
      INFO(text);
      CHECK(text.find(part) != std::string::npos);
    };
    const std::string last_rows = spoil([](std::int64_t i, std::int64_t) { return i >= 32; }, true);
    has(last_rows, "`C[32, 0]` is nan, the definition gives ");
    has(last_rows, "120 of 1400 elements are wrong, all in `C[32..35, 0..40]`; none of them was ever written");
    has(last_rows, "axis 0: exactly the last, partial tile of 16 (3 of 16 elements)");
    CHECK(last_rows.find("axis 1") == std::string::npos);
    has(spoil([](std::int64_t, std::int64_t j) { return j % 16 == 15; }, false), "axis 1: always element 15 of a tile of 16");
    has(spoil([](std::int64_t, std::int64_t j) { return j >= 16 && j < 32; }, false), "axis 1: whole tiles of 16, from tile 1 to 1");
    has(spoil([](std::int64_t i, std::int64_t) { return i == 17 || i == 18; }, false), "axis 0: within tile 1 of 16, from its element 1 to 2");
    has(spoil([](std::int64_t i, std::int64_t j) { return i == 34 && j == 39; }, false), "1 of 1400 elements is wrong");
  }

  TEST_CASE("two runs bit for bit") {
    HostTensor a = make_tensor(Dtype::F32, {4}), b = make_tensor(Dtype::F32, {4});
    write_real(a, 2, NAN);
    write_real(b, 2, -NAN);
    CHECK(compare(a, b, "Y").is_right());
    write_real(b, 3, -0.0);
    const Comparison comparison = compare(a, b, "Y");
    CHECK(comparison.wrong == 1);
    CHECK(comparison.first == std::vector<std::int64_t>{3});
  }
}

}  // namespace tilewright
