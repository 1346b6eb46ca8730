// Tensor IR in text, and what its verifier refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/tensor.h"

namespace tilewright {

namespace {

Axis axis(const std::string& name, const std::string& size) { return Axis{name, integer(0), var(size), {}, {}}; }
Expr element(const std::string& name, const std::vector<std::string>& index, Dtype dtype) {
  Access access{name, {}, {}, {}};
  for (const std::string& item : index) access.index.push_back(var(item));
  return load(access, dtype);
}

TensorFn matmul() {
  TensorFn fn;
  fn.name = "matmul";
  fn.dims = {"M", "K", "N"};
  fn.params = {Param{ParamKind::In, "A", Dtype::BF16, {var("M"), var("K")}, {}}, Param{ParamKind::In, "B", Dtype::BF16, {var("K"), var("N")}, {}},
               Param{ParamKind::Out, "C", Dtype::BF16, {var("M"), var("N")}, {}}};
  const Expr product = binary(BinaryOp::Mul, cast(Dtype::F32, element("A", {"i", "k"}, Dtype::BF16)), cast(Dtype::F32, element("B", {"k", "j"}, Dtype::BF16)));
  const Expr sum = reduce(CombineOp::Add, {axis("k", "K")}, {}, product, Dtype::F32);
  TensorStmt stmt;
  stmt.target = "C";
  stmt.axes = {axis("i", "M"), axis("j", "N")};
  stmt.index = {var("i"), var("j")};
  stmt.value = cast(Dtype::BF16, sum);
  fn.statements = {stmt};
  return fn;
}

std::string messages(const TensorFn& fn) { return fmt::format("{}", fmt::join(verify(fn), "\n")); }

}  // namespace

TEST_SUITE("tensor ir text") {
  TEST_CASE("prints in the words of the language, all ranges and conversions written out") {
    CHECK(print(matmul()) ==
          "fn matmul(A: bf16[M, K], B: bf16[K, N]) -> (C: bf16[M, N]) {\n"
          "  C[i, j] = bf16(sum[k in K] f32(A[i, k])*f32(B[k, j])) for i in M, j in N\n"
          "}\n");
    CHECK(messages(matmul()) == "");
  }

  TEST_CASE("a scatter with a rule, a let, an access that is checked") {
    TensorFn fn;
    fn.name = "histogram";
    fn.dims = {"N"};
    fn.params = {Param{ParamKind::In, "X", Dtype::I32, {var("N")}, {}}, Param{ParamKind::InOut, "H", Dtype::I32, {integer(256)}, {}}};
    fn.lets = {Temp{"w", Dtype::I32, {var("N")}}};
    fn.errors = {ErrorSite{0, load(Access{"H", {element("X", {"i"}, Dtype::I32)}, {}, {}}, Dtype::I32)}};
    TensorStmt weight;
    weight.target = "w";
    weight.axes = {axis("i", "N")};
    weight.index = {var("i")};
    weight.value = integer(1, Dtype::I32);
    TensorStmt scatter = weight;
    scatter.target = "H";
    scatter.index = {element("X", {"i"}, Dtype::I32)};
    scatter.rule = Rule{Rule::Kind::Check, {}, 0};
    scatter.value = element("w", {"i"}, Dtype::I32);
    scatter.combine = CombineOp::Add;
    scatter.where = {less(var("i"), integer(7))};
    fn.statements = {weight, scatter};
    CHECK(print(fn) ==
          "fn histogram(X: i32[N], inout H: i32[256]) -> () {\n"
          "  let w: i32[N]\n"
          "  w[i] = 1 for i in N\n"
          "  H[X[i]; check 0] += w[i] where i < 7 for i in N\n"
          "  // access 0: H[X[i]]\n"
          "}\n");
    CHECK(messages(fn) == "");
  }

  TEST_CASE("what is refused") {
    TensorFn fn = matmul();
    fn.statements[0].axes.pop_back();
    CHECK(messages(fn) ==
          "`j` is not declared (in `C[i, j] = bf16(sum[k in K] f32(A[i, k])*f32(B[k, j])) for i in M`)\n"
          "`=` does not have each of its axes once on its left side (in `C[i, j] = bf16(sum[k in K] f32(A[i, k])*f32(B[k, j])) for i in M`)");
    fn = matmul();
    fn.statements[0].value = real(0.0, Dtype::F32);
    CHECK(messages(fn) == "`C` of bf16 is given f32 (in `C[i, j] = 0.0 for i in M, j in N`)");
    fn = matmul();
    fn.statements[0].target = "A";
    fn.statements[0].rule.kind = Rule::Kind::Clamp;
    fn.statements[0].value = real(0.0, Dtype::BF16);
    CHECK(messages(fn) ==
          "`A` is an input and is written (in `A[i, j; clamp] = 0.0 for i in M, j in N`)\n"
          "the target `A` skips or checks (in `A[i, j; clamp] = 0.0 for i in M, j in N`)");
    fn = matmul();
    fn.statements[0].value = reduce(CombineOp::Add, {axis("i", "K")}, {var("i")}, integer(1), Dtype::BF16);
    CHECK(messages(fn) ==
          "`i` is declared twice (in `C[i, j] = sum[i in K where i] index(1) for i in M, j in N`)\n"
          "a condition is of index, not of bool: `i` (in `C[i, j] = sum[i in K where i] index(1) for i in M, j in N`)\n"
          "the body of a reduction is of index, not of bf16: `1` (in `C[i, j] = sum[i in K where i] index(1) for i in M, j in N`)");
  }
}

}  // namespace tilewright
