// What an access on the host does where its index is out of range, by rule; and loops whose bounds depend on others.
#include <doctest/doctest.h>

#include <numeric>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"

namespace tilewright {

namespace {

std::vector<std::int32_t> run(const std::string& text, std::vector<std::int32_t> input, std::size_t outputs) {
  Plan plan;
  try {
    plan = parse_plan(text);
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{"plan", text}}));
  }
  std::vector<std::int32_t> result(outputs, -99);
  const std::vector<std::int64_t> dims = {static_cast<std::int64_t>(input.size())};
  input.resize(input.size() + 1, 1000);  // what an access behind the end would see
  std::int64_t error_word[3] = {0, 0, 0};
  const auto kernel = compile_for_host(plan, *kernels_of(plan).at(0));
  kernel->run({input.data(), result.data()}, dims, 0, kernel->iterations(dims), error_word);
  return result;
}

std::vector<std::int32_t> shifted(const std::string& rule, std::int32_t size) {
  std::vector<std::int32_t> input(static_cast<std::size_t>(size));
  std::iota(input.begin(), input.end(), 1);
  return run("plan p {\n  dim N\n  in A: i32[N]\n  out C: i32[15]\n  kernel C { parallel i in 15 { C[i] = A[i - 7; " +
                 rule + "] } }\n}\n",
             input, 15);
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("llvm host: rules of loads, also of a tensor without elements") {
    using Values = std::vector<std::int32_t>;
    CHECK(shifted("-1", 4) == Values{-1, -1, -1, -1, -1, -1, -1, 1, 2, 3, 4, -1, -1, -1, -1});
    CHECK(shifted("clamp", 4) == Values{1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 4});
    CHECK(shifted("wrap", 4) == Values{2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
    CHECK(shifted("mirror", 4) == Values{2, 1, 2, 3, 4, 3, 2, 1, 2, 3, 4, 3, 2, 1, 2});
    CHECK(shifted("mirror", 1) == Values(15, 1));
    for (const char* rule : {"0", "clamp", "wrap", "mirror"}) CHECK(shifted(rule, 0) == Values(15, 0));
  }

  TEST_CASE("llvm host: inner bounds of an outer nest may depend on outer axes") {
    const auto result =
        run("plan p {\n  dim N\n  in A: i32[N]\n  out C: i32[16]\n  kernel C { parallel i in 4, j in i .. 4 { C[i*4 + "
            "j] = A[j] } }\n}\n",
            {1, 2, 3, 4}, 16);
    for (std::int32_t i = 0; i < 4; ++i)
      for (std::int32_t j = 0; j < 4; ++j) CHECK(result[static_cast<std::size_t>(i * 4 + j)] == (j < i ? -99 : j + 1));
  }

  TEST_CASE("llvm host: steps, lets in front, and a kernel of several parts") {
    CHECK(run("plan p {\n  dim N\n  in A: i32[N]\n  out C: i32[8]\n  kernel C { let k = N / 2\n  parallel i in 1 .. N "
              "step 3 { C[i] = A[i] + i32(k) } }\n}\n",
              {1, 2, 3, 4, 5, 6, 7, 8}, 8) == std::vector<std::int32_t>{-99, 6, -99, -99, 9, -99, -99, 12});
    CHECK(run("plan p {\n  dim N\n  in A: i32[N]\n  out C: i32[4]\n  kernel C { parallel i in 2 { C[i] = A[i] }\n  "
              "parallel i in 2 { C[i + 2] = C[i] * 2 } }\n}\n",
              {3, 4}, 4) == std::vector<std::int32_t>{3, 4, 6, 8});
  }
}

}  // namespace tilewright
