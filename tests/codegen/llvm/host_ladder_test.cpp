// compile_for_host on the texts of the ladder: whole kernels, each construct of the tile stage, against loops written
// here.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

Plan read_ladder(const std::string& name) {
  std::ifstream file(source_root() / "tests/ir/ladder" / (name + ".ir"));
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return parse_plan(text.str());
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{name, text.str()}}));
  }
  return {};
}

// A call on zeroed tensors; values are written and read as f64 or i64.
struct HostCall {
  Plan plan;
  std::vector<std::int64_t> dims;
  std::map<std::string, std::vector<std::byte>> memory;
  std::int64_t error_word[3] = {0, 0, 0};

  HostCall(const std::string& name, const std::map<std::string, std::int64_t>& sizes) : plan(read_ladder(name)) {
    std::vector<std::pair<std::string, std::int64_t>> names;
    for (const Dim& dim : plan.dims) {
      dims.push_back(sizes.count(dim.name) ? sizes.at(dim.name) : evaluate_index(dim.value, names));
      names.emplace_back(dim.name, dims.back());
    }
    const auto add = [&](const std::string& tensor, Dtype dtype, const std::vector<Expr>& shape) {
      std::int64_t elements = 1;
      for (const Expr& extent : shape) elements *= evaluate_index(extent, names);
      memory[tensor].resize(static_cast<std::size_t>(elements * bytes_of(dtype)));
    };
    for (const Param& param : plan.params) add(param.name, param.dtype, param.shape);
    for (const Temp& temp : plan.temps) add(temp.name, temp.dtype, temp.shape);
    for (const Step& step : plan.steps)
      if (const auto* table = std::get_if<Table>(&step)) add(table->name, table->dtype, table->shape);
  }

  std::byte* element(const std::string& tensor, std::size_t at) {
    return memory.at(tensor).data() + at * static_cast<std::size_t>(bytes_of(find_tensor(plan, tensor)->dtype));
  }
  std::size_t size(const std::string& tensor) {
    return memory.at(tensor).size() / static_cast<std::size_t>(bytes_of(find_tensor(plan, tensor)->dtype));
  }
  void set(const std::string& tensor, std::size_t at, double value) {
    const Dtype dtype = find_tensor(plan, tensor)->dtype;
    store_scalar(dtype, element(tensor, at), convert(dtype, Dtype::F64, real_scalar(value)));
  }
  double get(const std::string& tensor, std::size_t at) {
    const Dtype dtype = find_tensor(plan, tensor)->dtype;
    return convert(Dtype::F64, dtype, load_scalar(dtype, element(tensor, at))).f;
  }

  // Each kernel in `parts` ranges of iterations.
  void run(std::int64_t parts = 1) {
    std::vector<void*> tensors;
    for (const Param& param : plan.params) tensors.push_back(memory.at(param.name).data());
    for (const Temp& temp : plan.temps) tensors.push_back(memory.at(temp.name).data());
    for (const Step& step : plan.steps)
      if (const auto* table = std::get_if<Table>(&step)) tensors.push_back(memory.at(table->name).data());
    for (const Kernel* kernel : kernels_of(plan)) {
      const auto compiled = compile_for_host(plan, *kernel);
      const std::int64_t count = compiled->iterations(dims);
      for (std::int64_t part = 0; part < parts; ++part)
        compiled->run(tensors, dims, count * part / parts, count * (part + 1) / parts, error_word);
    }
  }
};

double small(std::size_t n) { return static_cast<double>(n * 2654435761U % 1000 % 3) - 1; }

void check_matmul(const std::string& name, std::size_t rows, std::size_t columns, std::size_t depth) {
  CAPTURE(name);
  std::map<std::string, std::int64_t> sizes = {{"M", rows}, {"N", columns}, {"K", depth}, {"workers", 3}};
  HostCall call(name, sizes);
  for (std::size_t n = 0; n < rows * depth; ++n) call.set("A", n, small(n));
  for (std::size_t n = 0; n < depth * columns; ++n) call.set("B", n, small(n + 77));
  if (name == "matmul.09.persist") {
    const std::size_t across = (columns + 255) / 256;
    for (std::size_t tile = 0; tile < call.size("order") / 2; ++tile) {
      call.set("order", 2 * tile, static_cast<double>(tile / across));
      call.set("order", 2 * tile + 1, static_cast<double>(tile % across));
    }
  }
  call.run(2);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < depth; ++k) sum += small(i * depth + k) * small(k * columns + j + 77);
      wrong += call.get("C", i * columns + j) != sum;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("llvm host: every rung of the matmul ladder is exact on exact data") {
    for (const char* name :
         {"matmul.00.lowered", "matmul.01.tile", "matmul.02.warps", "matmul.03.stage", "matmul.04.mma",
          "matmul.05.pipeline", "matmul.06.roles", "matmul.07.cluster", "matmul.08.epilogue", "matmul.09.persist"}) {
      check_matmul(name, 130, 264, 72);
      check_matmul(name, 1, 8, 8);
    }
    check_matmul("matmul.00.lowered", 7, 5, 0);
    check_matmul("matmul.05.pipeline", 7, 5, 0);
  }

  TEST_CASE("llvm host: iterations are those of the outer loops, in any cut") {
    HostCall call("matmul.00.lowered", {{"M", 7}, {"N", 5}, {"K", 3}});
    const auto compiled = compile_for_host(call.plan, *kernels_of(call.plan).at(0));
    CHECK(compiled->iterations(call.dims) == 35);
    CHECK(compiled->iterations({0, 5, 3}) == 0);
    for (std::size_t n = 0; n < 21; ++n) call.set("A", n, 1);
    for (std::size_t n = 0; n < 15; ++n) call.set("B", n, 2);
    std::vector<void*> tensors = {call.memory.at("A").data(), call.memory.at("B").data(), call.memory.at("C").data()};
    compiled->run(tensors, call.dims, 3, 17, call.error_word);
    for (std::size_t n = 0; n < 35; ++n) CHECK(call.get("C", n) == (n >= 3 && n < 17 ? 6 : 0));
  }

  TEST_CASE("llvm host: softmax of three kernels, and of one") {
    for (const char* name : {"softmax3", "softmax1"}) {
      CAPTURE(name);
      HostCall call(name, {{"R", 5}, {"D", 1030}});
      for (std::size_t n = 0; n < 5 * 1030; ++n) call.set("X", n, static_cast<double>(n % 97) / 16 - 3);
      call.run();
      for (std::size_t r = 0; r < 5; ++r) {
        double most = -1e9, sum = 0;
        for (std::size_t d = 0; d < 1030; ++d) most = std::max(most, call.get("X", r * 1030 + d));
        for (std::size_t d = 0; d < 1030; ++d) sum += std::exp(call.get("X", r * 1030 + d) - most);
        for (std::size_t d = 0; d < 1030; ++d)
          CHECK(call.get("Y", r * 1030 + d) ==
                doctest::Approx(std::exp(call.get("X", r * 1030 + d) - most) / sum).epsilon(1e-5));
      }
    }
  }

  TEST_CASE("llvm host: a stencil with a halo fills what lies outside") {
    HostCall call("stencil", {{"H", 21}, {"W", 50}});
    for (std::size_t n = 0; n < 21 * 50; ++n) call.set("I", n, static_cast<double>(n % 13));
    call.run(3);
    const auto at = [&](int y, int x) {
      return y < 0 || x < 0 || y >= 21 || x >= 50 ? 0.0 : call.get("I", static_cast<std::size_t>(y * 50 + x));
    };
    for (int y = 0; y < 21; ++y)
      for (int x = 0; x < 50; ++x) {
        const double sum = at(y, x) + at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
        CHECK(call.get("O", static_cast<std::size_t>(y * 50 + x)) ==
              static_cast<double>(0.2F * static_cast<float>(sum)));
      }
  }

  TEST_CASE("llvm host: a single-pass scan adds what came before") {
    HostCall call("scan", {{"N", 10000}});
    for (std::size_t n = 0; n < 10000; ++n) call.set("X", n, small(n));
    call.run();
    double sum = 0;
    for (std::size_t n = 0; n < 10000; ++n) {
      sum += small(n);
      REQUIRE(call.get("P", n) == sum);
    }
  }

  TEST_CASE("llvm host: a histogram, a checked scatter and a sparse product") {
    HostCall histogram("histogram", {{"N", 5000}});
    for (std::size_t n = 0; n < 5000; ++n) histogram.set("X", n, static_cast<double>(n * n % 251));
    histogram.run();
    std::vector<int> bins(256);
    for (std::size_t n = 0; n < 5000; ++n) ++bins[n * n % 251];
    for (std::size_t bin = 0; bin < 256; ++bin) CHECK(histogram.get("H", bin) == bins[bin]);

    HostCall scatter("scatter", {{"N", 100}});
    for (std::size_t n = 0; n < 100; ++n) {
      scatter.set("X", n, n == 40 ? 256 : static_cast<double>(n % 10));
      scatter.set("W", n, 1);
    }
    scatter.run(4);
    for (std::size_t bin = 0; bin < 10; ++bin) CHECK(scatter.get("H", bin) == (bin == 0 ? 9 : 10));
    CHECK(scatter.error_word[0] == 1);
    CHECK(scatter.error_word[1] == 256);

    HostCall spmv("spmv", {{"R", 3}, {"Z", 4}, {"C", 2}});
    const double rows[] = {0, 2, 3, 9}, columns[] = {0, 1, 7, 1};
    for (std::size_t n = 0; n < 4; ++n) {
      spmv.set("ptr", n, rows[n]);
      spmv.set("col", n, columns[n]);
      spmv.set("val", n, static_cast<double>(n + 1));
    }
    spmv.set("x", 0, 10);
    spmv.set("x", 1, 100);
    spmv.run();
    CHECK(spmv.get("y", 0) == 210);
    CHECK(spmv.get("y", 1) == 0);    // column 7 counts as 0
    CHECK(spmv.get("y", 2) == 400);  // row end 9 is cut to 4
    CHECK(spmv.error_word[0] == 3);
    CHECK(spmv.error_word[1] == 7);
  }

  TEST_CASE("llvm host: a thread-stage kernel is refused") {
    HostCall call("matmul.00.lowered", {{"M", 1}, {"N", 1}, {"K", 1}});
    const Plan finished = read_ladder("matmul.00.lowered.thread");
    CHECK_THROWS_AS(compile_for_host(finished, *kernels_of(finished).at(0)), MachineError);
  }
}

}  // namespace tilewright
