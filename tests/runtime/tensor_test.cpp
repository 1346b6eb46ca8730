// Host tensors, poison, and the binding of arguments.
#include <doctest/doctest.h>

#include <cmath>

#include "ir/diagnostic.h"
#include "runtime/tensor.h"

namespace tilewright {

namespace {

std::string refusal(const Plan& plan, std::map<std::string, HostTensor> inputs, const std::map<std::string, std::int64_t>& given = {}) {
  try {
    bind_arguments(plan, std::move(inputs), given);
  } catch (const UserError& error) {
    return error.what();
  }
  return "bound";
}

Param tensor(ParamKind kind, std::string name, std::vector<Expr> shape, Dtype dtype = Dtype::F32) {
  return Param{kind, std::move(name), dtype, std::move(shape), {}};
}

Plan matmul_plan() {
  Plan plan;
  plan.name = "matmul";
  plan.dims = {{"M", {}}, {"N", {}}, {"K", {}}};
  plan.params = {tensor(ParamKind::In, "A", {var("M"), var("K")}), tensor(ParamKind::In, "B", {var("K"), var("N")}),
                 tensor(ParamKind::Out, "C", {var("M"), var("N")})};
  return plan;
}

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("elements read and write with conversion") {
    HostTensor t = make_tensor(Dtype::BF16, {2, 3});
    CHECK(t.elements() == 6);
    CHECK(t.data.size() == 12);
    write_real(t, 4, 1.00390625);
    CHECK(read_real(t, 4) == 1.0);
    HostTensor u = make_tensor(Dtype::U8, {3});
    write_real(u, 1, 300.0);
    CHECK(read_integer(u, 1) == 255);
    write_integer(u, 2, 257);
    CHECK(read_integer(u, 2) == 1);
    CHECK(make_tensor(Dtype::F32, {}).elements() == 1);
    CHECK(make_tensor(Dtype::F32, {0, 1LL << 62, 1LL << 62}).data.empty());
  }

  TEST_CASE("sizes that no memory has") {
    CHECK_THROWS_AS(make_tensor(Dtype::F32, {1LL << 40, 1LL << 40}), UserError);
    CHECK_THROWS_AS(make_tensor(Dtype::F32, {-1}), UserError);
    CHECK_THROWS_AS(make_tensor(Dtype::F32, {1LL << 55}), UserError);
  }

  TEST_CASE("poison is seen and no right answer looks like it") {
    for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I64, Dtype::I32,
                              Dtype::I8, Dtype::U8, Dtype::Bool}) {
      HostTensor t = make_tensor(dtype, {4});
      CHECK_FALSE(is_poison(t, 3));
      poison(t);
      CHECK(is_poison(t, 3));
      if (is_float(dtype)) {
        CHECK(std::isnan(read_real(t, 0)));
        if (info(dtype).bits >= 16) {
          write_real(t, 3, NAN);
          CHECK_FALSE(is_poison(t, 3));
        }
      }
      write_real(t, 3, 1);
      CHECK_FALSE(is_poison(t, 3));
    }
  }

  TEST_CASE("dims follow from shapes; outputs are made and poisoned") {
    Arguments arguments = bind_arguments(matmul_plan(), {{"A", make_tensor(Dtype::F32, {3, 5})}, {"B", make_tensor(Dtype::F32, {5, 7})}});
    CHECK(arguments.dims == std::map<std::string, std::int64_t>{{"K", 5}, {"M", 3}, {"N", 7}});
    CHECK(arguments.tensors.at("C").shape == std::vector<std::int64_t>{3, 7});
    CHECK(is_poison(arguments.tensors.at("C"), 20));
  }

  TEST_CASE("what does not fit is named with both sizes") {
    CHECK(refusal(matmul_plan(), {{"A", make_tensor(Dtype::F32, {3, 5})}, {"B", make_tensor(Dtype::F32, {6, 7})}}) ==
          "axis 0 of `B` has 6 elements, but `K` is 5 (`K` is 5 by axis 1 of `A`)");
    CHECK(refusal(matmul_plan(), {{"A", make_tensor(Dtype::F32, {3, 5})}}) == "nothing is given for `B`");
    CHECK(refusal(matmul_plan(), {{"A", make_tensor(Dtype::F32, {3})}, {"B", make_tensor(Dtype::F32, {5, 7})}}) ==
          "`A` has 2 axes, but what is given has 1: [3]");
    CHECK(refusal(matmul_plan(), {{"A", make_tensor(Dtype::F64, {3, 5})}, {"B", make_tensor(Dtype::F32, {5, 7})}}) ==
          "`A` is f32, but what is given has f64");
    CHECK(refusal(matmul_plan(), {{"A", make_tensor(Dtype::F32, {3, 5})}, {"B", make_tensor(Dtype::F32, {5, 7})}, {"D", make_tensor(Dtype::F32, {})}}) ==
          "`matmul` has no parameter `D`");
    CHECK(refusal(matmul_plan(), {{"A", make_tensor(Dtype::F32, {3, 5})}, {"B", make_tensor(Dtype::F32, {5, 7})}}, {{"M", 4}}) ==
          "axis 0 of `A` has 3 elements, but `M` is 4 (`M` is 4 by the call)");
  }

  TEST_CASE("affine dims are solved") {
    Plan plan;
    plan.name = "filter";
    plan.dims = {{"R", {}}, {"N", {}}, {"P", var("N") + integer(1)}};
    plan.params = {tensor(ParamKind::In, "F", {var("R") * 2 + integer(1)}), tensor(ParamKind::In, "X", {var("N")}),
                   tensor(ParamKind::Out, "O", {ceildiv(var("N"), integer(4)), var("P")})};
    const Arguments arguments = bind_arguments(plan, {{"F", make_tensor(Dtype::F32, {7})}, {"X", make_tensor(Dtype::F32, {9})}});
    CHECK(arguments.dims.at("R") == 3);
    CHECK(arguments.tensors.at("O").shape == std::vector<std::int64_t>{3, 10});
    CHECK(refusal(plan, {{"F", make_tensor(Dtype::F32, {6})}, {"X", make_tensor(Dtype::F32, {9})}}) ==
          "axis 0 of `F` has 6 elements, but no `R` makes `R*2 + 1` that size");
  }

  TEST_CASE("a size that no input gives comes from the call") {
    Plan plan;
    plan.name = "range";
    plan.dims = {{"N", {}}};
    plan.params = {tensor(ParamKind::Out, "O", {var("N")})};
    CHECK(refusal(plan, {}) == "no input gives the size `N`");
    CHECK(bind_arguments(plan, {}, {{"N", 4}}).tensors.at("O").elements() == 4);
  }
}

}  // namespace tilewright
