// The cpu device: a plan over the cores gives what one thread gives; clears, temporaries, error word; no thread stage.
#include "runtime/host_device.h"

#include <doctest/doctest.h>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

constexpr const char* two_kernels = R"(plan chain {
  dim N
  in X: f32[N]
  in I: i32[N]
  out Y: f32[N]
  out H: i32[4]
  temp t: f32[N]
  error e { 0: X[I[i]] }
  clear H 0
  kernel t {
    parallel i in N {
      t[i] = X[I[i]; check 0] * 2.0
    }
  }
  kernel Y {
    parallel i in N {
      Y[i] = t[i] + 1.0
    }
  }
  kernel H {
    parallel i in N {
      atomic H[I[i] % 4] += 1
    }
  }
})";

Arguments arguments_for(const Plan& plan, std::int64_t n) {
  HostTensor x = make_tensor(Dtype::F32, {n});
  HostTensor index = make_tensor(Dtype::I32, {n});
  for (std::int64_t e = 0; e < n; ++e) {
    write_real(x, e, static_cast<double>(e));
    write_integer(index, e, n - 1 - e);
  }
  return bind_arguments(plan, {{"X", x}, {"I", index}}, {{"N", n}});
}

}  // namespace

TEST_SUITE("runtime") {
  TEST_CASE("cpu: kernels in order, over one thread and over several, at sizes down to 0") {
    const Plan plan = parse_plan(two_kernels);
    const HostPlan compiled(plan);
    for (const std::int64_t n : {0, 1, 7, 1000}) {
      for (const int threads : {1, 4}) {
        CAPTURE(n);
        CAPTURE(threads);
        Arguments arguments = arguments_for(plan, n);
        const RunReport report = compiled.run(arguments, HostOptions{threads});
        CHECK(!report.error);
        int wrong = 0;
        for (std::int64_t e = 0; e < n; ++e)
          if (read_real(arguments.tensors.at("Y"), e) != static_cast<double>(2 * (n - 1 - e) + 1)) ++wrong;
        CHECK(wrong == 0);
        std::int64_t counted = 0;
        for (std::int64_t bin = 0; bin < 4; ++bin) counted += read_integer(arguments.tensors.at("H"), bin);
        CHECK(counted == n);
      }
    }
  }

  TEST_CASE("cpu: a checked access that leaves its tensor is reported") {
    const Plan plan = parse_plan(two_kernels);
    Arguments arguments = arguments_for(plan, 64);
    write_integer(arguments.tensors.at("I"), 40, 64);
    const RunReport report = run_on_host(plan, arguments);
    REQUIRE(report.error.has_value());
    CHECK(report.error->site == 0);
    CHECK(report.error->value == 64);
  }

  TEST_CASE("cpu: a plan of the thread stage is refused") {
    const Plan plan = parse_plan(
        "plan p {\n  dim N\n  out X: f32[N]\n  kernel X thread grid (N) block (1) args (X, N) {\n    X[block.x] = "
        "1.0\n  "
        "}\n}\n");
    CHECK_THROWS_WITH_AS(HostPlan{plan}, doctest::Contains("thread stage"), UserError);
  }
}

}  // namespace tilewright
