// The tile interpreter: the ladder's plans give the right results in every order, and broken promises are reported.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "runtime/execute.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

using Dims = std::map<std::string, std::int64_t>;

Plan ladder_plan(const std::string& name) {
  std::ifstream file(source_root() / "tests/ir/ladder" / (name + ".ir"));
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return parse_plan(text.str());
}

// Small integers that repeat with a period unlike any tile.
HostTensor ternary(Dtype dtype, std::vector<std::int64_t> shape, std::int64_t seed = 0) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::int64_t element = 0; element < tensor.elements(); ++element)
    write_real(tensor, element, static_cast<double>((element * 31 + element / 7 + seed) % 3 - 1));
  return tensor;
}

std::string all(const RunReport& report) {
  std::string text;
  for (const std::string& fault : report.faults) text += fault + "\n";
  return text;
}

HostTensor run_matmul(const Plan& plan, std::int64_t m, std::int64_t n, std::int64_t k, const InterpreterOptions& options) {
  const Dtype dtype = plan.params[0].dtype;
  Arguments arguments = bind_arguments(plan, {{"A", ternary(dtype, {m, k})}, {"B", ternary(dtype, {k, n}, 1)}});
  const RunReport report = interpret(plan, arguments, options);
  CHECK(all(report) == "");
  CHECK_FALSE(report.error.has_value());
  return arguments.tensors.at("C");
}

void check_matmul(const HostTensor& c, Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  const HostTensor a = ternary(dtype, {m, k}), b = ternary(dtype, {k, n}, 1);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += read_real(a, i * k + p) * read_real(b, p * n + j);
      wrong += read_real(c, i * n + j) != sum;
    }
  CHECK(wrong == 0);
}

// Runs a plan's text; gives the faults.
std::string faults_of(const std::string& text, std::map<std::string, HostTensor> inputs = {}, const Dims& dims = {}) {
  const Plan plan = parse_plan(text);
  Arguments arguments = bind_arguments(plan, std::move(inputs), dims);
  return all(interpret(plan, arguments));
}

HostTensor iota(Dtype dtype, std::int64_t count) {
  HostTensor tensor = make_tensor(dtype, {count});
  for (std::int64_t element = 0; element < count; ++element) write_real(tensor, element, static_cast<double>(element));
  return tensor;
}

}  // namespace

TEST_SUITE("interpreter") {
  TEST_CASE("the lowered matmul, in every order") {
    const Plan plan = ladder_plan("matmul.00.lowered");
    for (const LoopOrder order : {LoopOrder::Forwards, LoopOrder::Backwards, LoopOrder::Shuffled}) {
      InterpreterOptions options;
      options.order = order;
      check_matmul(run_matmul(plan, 13, 17, 19, options), plan.params[0].dtype, 13, 17, 19);
    }
    run_matmul(plan, 0, 4, 4, {});
    check_matmul(run_matmul(plan, 3, 4, 0, {}), plan.params[0].dtype, 3, 4, 0);
  }

  TEST_CASE("each rung of the ladder gives the same matmul") {
    for (const char* name : {"matmul.01.tile", "matmul.02.warps", "matmul.03.stage", "matmul.04.mma", "matmul.05.pipeline",
                             "matmul.06.roles", "matmul.07.cluster", "matmul.08.epilogue", "matmul.09.persist"}) {
      INFO(name);
      const Plan plan = ladder_plan(name);
      InterpreterOptions options;
      options.order = LoopOrder::Shuffled;
      const std::int64_t k = name == std::string("matmul.05.pipeline") ? 72 : 8;
      check_matmul(run_matmul(plan, 9, 8, k, options), plan.params[0].dtype, 9, 8, k);
    }
  }

  TEST_CASE("workers do not change the result of the persistent kernel") {
    const Plan plan = ladder_plan("matmul.09.persist");
    for (const std::int64_t workers : {1, 3}) {
      InterpreterOptions options;
      options.workers = workers;
      check_matmul(run_matmul(plan, 8, 264, 8, options), plan.params[0].dtype, 8, 264, 8);
    }
  }

  TEST_CASE("both softmaxes") {
    for (const char* name : {"softmax3", "softmax1"}) {
      INFO(name);
      const Plan plan = ladder_plan(name);
      HostTensor x = make_tensor(Dtype::F32, {3, 70});
      for (std::int64_t element = 0; element < x.elements(); ++element) write_real(x, element, std::sin(static_cast<double>(element)));
      Arguments arguments = bind_arguments(plan, {{"X", x}});
      InterpreterOptions options;
      options.order = LoopOrder::Backwards;
      CHECK(all(interpret(plan, arguments, options)) == "");
      for (std::int64_t r = 0; r < 3; ++r) {
        double sum = 0;
        for (std::int64_t d = 0; d < 70; ++d) sum += std::exp(read_real(x, r * 70 + d));
        for (std::int64_t d = 0; d < 70; ++d)
          CHECK(read_real(arguments.tensors.at("Y"), r * 70 + d) == doctest::Approx(std::exp(read_real(x, r * 70 + d)) / sum).epsilon(1e-5));
      }
    }
  }

  TEST_CASE("stencil with its halo") {
    const Plan plan = ladder_plan("stencil");
    Arguments arguments = bind_arguments(plan, {{"I", ternary(Dtype::F32, {11, 37})}});
    CHECK(all(interpret(plan, arguments)) == "");
    const HostTensor& image = arguments.tensors.at("I");
    const auto at = [&](std::int64_t y, std::int64_t x) { return y < 0 || y >= 11 || x < 0 || x >= 37 ? 0.0 : read_real(image, y * 37 + x); };
    for (std::int64_t y = 0; y < 11; ++y)
      for (std::int64_t x = 0; x < 37; ++x)
        CHECK(read_real(arguments.tensors.at("O"), y * 37 + x) ==
              doctest::Approx(0.2 * (at(y, x) + at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1))));
  }

  TEST_CASE("sparse rows: right, and an offender is reported") {
    const Plan plan = ladder_plan("spmv");
    HostTensor ptr = make_tensor(Dtype::I32, {4}), col = make_tensor(Dtype::I32, {5});
    const int rows[] = {0, 2, 2, 5}, columns[] = {0, 1, 2, 0, 1};
    for (int i = 0; i < 4; ++i) write_integer(ptr, i, rows[i]);
    for (int i = 0; i < 5; ++i) write_integer(col, i, columns[i]);
    const auto run = [&] {
      Arguments arguments = bind_arguments(plan, {{"ptr", ptr}, {"col", col}, {"val", iota(Dtype::F32, 5)}, {"x", iota(Dtype::F32, 3)}});
      const RunReport report = interpret(plan, arguments);
      CHECK(all(report) == "");
      std::vector<double> y;
      for (int i = 0; i < 3; ++i) y.push_back(read_real(arguments.tensors.at("y"), i));
      return std::pair(y, report.error);
    };
    CHECK(run().first == std::vector<double>{1, 0, 8});
    CHECK_FALSE(run().second.has_value());
    write_integer(col, 4, 3);
    CHECK(run().first == std::vector<double>{1, 0, 4});
    REQUIRE(run().second.has_value());
    CHECK(run().second->site == 2);
    CHECK(run().second->value == 3);
    write_integer(col, 4, 1);
    write_integer(ptr, 3, 50);
    CHECK(run().first == std::vector<double>{1, 0, 8});
    CHECK(run().second->value == 50);
  }

  TEST_CASE("histogram, scatter and scan") {
    const Plan histogram = ladder_plan("histogram");
    Arguments arguments = bind_arguments(histogram, {{"X", iota(Dtype::U8, 600)}});  // saturates at 255
    CHECK(all(interpret(histogram, arguments)) == "");
    CHECK(read_integer(arguments.tensors.at("H"), 7) == 1);
    CHECK(read_integer(arguments.tensors.at("H"), 255) == 345);

    const Plan scatter = ladder_plan("scatter");
    HostTensor places = iota(Dtype::I32, 8);
    write_integer(places, 3, -1);
    arguments = bind_arguments(scatter, {{"X", places}, {"W", iota(Dtype::F32, 8)}, {"H", make_tensor(Dtype::F32, {256})}});
    const RunReport report = interpret(scatter, arguments);
    CHECK(all(report) == "");
    REQUIRE(report.error.has_value());
    CHECK(report.error->value == -1);
    CHECK(read_real(arguments.tensors.at("H"), 5) == 5);

    const Plan scan = ladder_plan("scan");
    arguments = bind_arguments(scan, {{"X", ternary(Dtype::F32, {9000})}});
    CHECK(all(interpret(scan, arguments)) == "");
    double sum = 0;
    for (std::int64_t i = 0; i < 9000; ++i) {
      sum += read_real(arguments.tensors.at("X"), i);
      if (i % 500 == 499) CHECK(read_real(arguments.tensors.at("P"), i) == sum);
    }
  }

  TEST_CASE("thread-stage plans and endless runs are refused") {
    const Plan thread = ladder_plan("matmul.ch5.thread");
    Arguments arguments = bind_arguments(thread, {{"A", ternary(Dtype::F32, {4, 4})}, {"B", ternary(Dtype::F32, {4, 4})}});
    CHECK_THROWS_AS(interpret(thread, arguments), UserError);
    const Plan plan = ladder_plan("matmul.00.lowered");
    InterpreterOptions options;
    options.most_steps = 100;
    CHECK_THROWS_AS(run_matmul(plan, 20, 20, 20, options), UserError);
  }

  TEST_CASE("broken promises") {
    CHECK(faults_of("plan p {\n dim N\n out C: f32[N]\n kernel C { parallel i in N + 1 { C[i] = 1.0 } } }", {}, {{"N", 3}}) ==
          "kernel `C`: `C[3]` is outside `C` of [3]\n");
    CHECK(faults_of("plan p {\n dim N\n out C: f32[N]\n kernel C { parallel i in N { C[0] = 1.0 } } }", {}, {{"N", 3}}) ==
          "kernel `C`: `C[0]` is written by two iterations of a parallel loop\n2 elements of `C` are never written, `C[1]` the first of them\n");
    CHECK(faults_of("plan p {\n dim N\n out C: f32[N]\n kernel C { parallel i in N - 1 { C[i] = 1.0 } } }", {}, {{"N", 3}}) ==
          "`C[2]` is never written\n");
    CHECK(faults_of("plan p {\n dim N\n out C: f32[N]\n kernel C { parallel i in N { reg a: f32\n C[i] = a } } }", {}, {{"N", 3}}) ==
          "kernel `C`: `a` is read before it is written\n");
    CHECK(faults_of("plan p {\n dim N\n inout C: f32[N]\n kernel C { parallel i in N - 1 { C[i] = C[i + 1] } } }", {{"C", iota(Dtype::F32, 4)}}) ==
          "kernel `C`: `C[1]` is read by one iteration of a parallel loop and written by another\n");
    CHECK(faults_of("plan p {\n dim N\n out C: f32[N]\n kernel C warps 1 { grid b in N { shared s: f32[i 4]\n each i in 4 { s[i] = 1.0 }\n"
                    " each i in 4 { s[i] = s[3 - i] }\n C[b] = s[0] } } }",
                    {}, {{"N", 2}}) == "kernel `C`: `s[1]` is read by one iteration of a parallel loop and written by another\n"
                                       "kernel `C`: `s[2]` is read by one iteration of a parallel loop and written by another\n");
    CHECK(faults_of("plan p {\n dim N\n in X: i32[N]\n out C: f32[N]\n kernel C { parallel i in N { let j = index(X[i]) in 0 .. 2\n C[i] = f32(j) } } }",
                    {{"X", iota(Dtype::I32, 3)}}) == "kernel `C`: `j` is 2, outside its promised range 0 .. 2\n");
  }

  TEST_CASE("what is ordered, private or atomic is no conflict") {
    CHECK(faults_of("plan p {\n dim N\n out C: f32[N]\n kernel C warps 1 { grid b in N { shared s: f32[i 4]\n serial t in 3 {\n each i in 4 { s[i] = f32(t) }\n"
                    " each i in 4 { if s[3 - i] > 5.0 { C[b] = 1.0 } } }\n C[b] = s[0] } } }",
                    {}, {{"N", 2}}) == "");
    CHECK(faults_of("plan p {\n dim N\n out C: i32[1]\n clear C 0\n kernel C { parallel i in N { atomic C[0] += 1 } } }", {}, {{"N", 9}}) == "");
    CHECK(faults_of("plan p {\n dim N\n out C: i32[1]\n clear C 0\n kernel C { parallel i in N { atomic C[0] += 1\n if i == 3 { C[0] = 4 } } } }", {}, {{"N", 9}}) ==
          "kernel `C`: `C[0]` is written by two iterations of a parallel loop\n");
  }

  TEST_CASE("pipes: stale slots and verbs that wait for ever") {
    const std::string head = "plan p {\n dim N\n out C: f32[4]\n kernel C warps 1 { grid b in 1 { shared s: f32[slot 2, i 4]\n pipe q: s slots 2 via cp.async\n";
    const std::string tail = " each i in 4 { C[i] = 1.0 } } } }";
    const std::string fill = " acquire q\n each i in 4 { s[q.in, i] = 2.0 }\n commit q\n";
    CHECK(faults_of(head + fill + " wait q\n each i in 4 { C[i] = s[q.out, i] }\n release q } } }", {}, {{"N", 1}}) == "");
    CHECK(faults_of(head + fill + fill + " acquire q\n commit q\n wait q\n release q\n wait q\n release q\n wait q\n release q\n" + tail, {}, {{"N", 1}}) ==
          "kernel `C`: `acquire q` waits for ever: all 2 slots are in use\nkernel `C`: `wait q` waits for ever: no slot is full\n");
    CHECK(faults_of(head + " release q\n" + tail, {}, {{"N", 1}}) == "kernel `C`: `release q` without a slot in use\n");
    CHECK(faults_of(head + " acquire q\n commit q\n wait q\n each i in 4 { C[i] = s[q.out, i] }\n release q } } }", {}, {{"N", 1}}) ==
          "kernel `C`: `s[0, 0]` is read before it is written\n");
    CHECK(faults_of(head + fill + tail, {}, {{"N", 1}}) == "kernel `C`: pipe `q` ends with slot 0 not released\n");
  }

  TEST_CASE("pipes: bodies of roles take turns where a verb waits, and are told where all wait") {
    const auto plan = [](const std::string& consumer) {
      return "plan p {\n dim N\n out C: f32[N, 4]\n kernel C { role consumer warps 0 .. 1 registers 0\n role producer warps 1 .. 2 registers 0\n"
             " grid b in 1 { shared s: f32[slot 2, i 4]\n pipe q: s slots 2 via tma\n"
             " @consumer serial n in N { wait q\n each i in 4 { C[n, i] = s[q.out, i] }\n" + consumer + " }\n"
             " @producer serial n in N { acquire q\n each i in 4 { s[q.in, i] = f32(n*4 + i) }\n commit q }\n } } }";
    };
    for (const std::int64_t trips : {0, 1, 2, 3, 7}) CHECK(faults_of(plan(" release q"), {}, {{"N", trips}}) == "");
    CHECK(faults_of(plan(" wait q\n release q"), {}, {{"N", 3}}).find("`wait q` waits for ever: no slot is full") != std::string::npos);
  }

  TEST_CASE("a matmul of 128 cubed with checks takes about a second at most") {
    const Plan plan = ladder_plan("matmul.00.lowered");
    const auto start = std::chrono::steady_clock::now();
    run_matmul(plan, 128, 128, 128, {});
    MESSAGE("interpreter, matmul 128: ", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), " s");
  }
}

TEST_SUITE("interpreter full") {
  TEST_CASE("each rung on several blocks in every order") {
    for (const char* name : {"matmul.03.stage", "matmul.05.pipeline", "matmul.07.cluster", "matmul.09.persist"})
      for (const LoopOrder order : {LoopOrder::Forwards, LoopOrder::Backwards, LoopOrder::Shuffled}) {
        INFO(name);
        const Plan plan = ladder_plan(name);
        InterpreterOptions options;
        options.order = order;
        check_matmul(run_matmul(plan, 304, 520, 200, options), plan.params[0].dtype, 304, 520, 200);
      }
  }
}

}  // namespace tilewright
