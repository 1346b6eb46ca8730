// Right kernels of every kind that the simulator executes: control flow, dtypes, vectors, atomics, warps, several steps.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/operators.h"
#include "ir/scalar.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

std::vector<std::int64_t> integers_of(const HostTensor& tensor) {
  std::vector<std::int64_t> values;
  for (std::int64_t element = 0; element < tensor.elements(); ++element) values.push_back(read_integer(tensor, element));
  return values;
}

HostTensor integers(Dtype dtype, const std::vector<std::int64_t>& values) {
  HostTensor tensor = make_tensor(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t n = 0; n < values.size(); ++n) write_integer(tensor, static_cast<std::int64_t>(n), values[n]);
  return tensor;
}

// One thread an element of X and Z of `from`, Y of `to`.
HostTensor map_elements(Dtype from, Dtype to, const std::string& value, const HostTensor& x, const HostTensor& z) {
  const std::string text = fmt::format(
      "plan p {{\n  dim N\n  in X: {0}[N]\n  in Z: {0}[N]\n  out Y: {1}[N]\n  kernel Y thread grid (ceildiv(N, 64)) block (64) args (X, Z, Y, N) {{\n"
      "    let i = block.x*64 + thread.x\n    if i < N {{\n      let x = X[i]\n      let z = Z[i]\n      Y[i] = {2}\n    }}\n  }}\n}}\n",
      info(from).name, info(to).name, value);
  return run_without_faults(plan_of(text), {{"X", x}, {"Z", z}}).tensors.at("Y");
}

// Corner cases of a dtype: every pair of them stands in X and Z.
std::vector<Scalar> corners_of(Dtype dtype) {
  std::vector<Scalar> values;
  if (is_float(dtype)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double value : {0.0, -0.0, 1.0, -1.5, 3.25, 1e-3, -7e4, 65504.0, 1e30, 1e-42, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})
      values.push_back(real_scalar(round_to(dtype, value)));
  } else {
    const std::uint64_t top_bit = std::uint64_t{1} << (info(dtype).bits - 1);
    for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{7}, std::uint64_t{31}, std::uint64_t{33}, top_bit, top_bit - 1})
      values.push_back(integer_scalar(wrap(dtype, static_cast<std::int64_t>(bits))));
  }
  return values;
}

bool is_same(Dtype dtype, Scalar a, Scalar b) {
  if (is_float(dtype) && std::isnan(a.f)) return std::isnan(b.f);
  return bits_of(a) == bits_of(b);
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("every binary operator gives what ir/scalar.h says, at every dtype") {
    using enum BinaryOp;
    for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::I64, Dtype::I32, Dtype::I16, Dtype::I8, Dtype::U64, Dtype::U32, Dtype::U16, Dtype::U8}) {
      const std::vector<Scalar> corners = corners_of(dtype);
      const auto count = static_cast<std::int64_t>(corners.size());
      HostTensor x = make_tensor(dtype, {count * count});
      HostTensor z = x;
      const auto bytes = static_cast<std::size_t>(bytes_of(dtype));
      for (std::size_t n = 0; n < static_cast<std::size_t>(count * count); ++n) {
        store_scalar(dtype, x.data.data() + n * bytes, corners[n / corners.size()]);
        store_scalar(dtype, z.data.data() + n * bytes, corners[n % corners.size()]);
      }
      for (const BinaryOp op : {Add, Sub, Mul, Div, Mod, Min, Max, Eq, Ne, Lt, Le, Gt, Ge, BitAnd, BitOr, BitXor, Shl, Shr}) {
        if (is_float(dtype) && op >= BitAnd) continue;
        const bool is_call = op == Min || op == Max;
        const std::string spelling(info(op).spelling);
        const Dtype result = info(op).is_comparison ? Dtype::Bool : dtype;
        const HostTensor y = map_elements(dtype, result, is_call ? fmt::format("{}(x, z)", spelling) : fmt::format("x {} z", spelling), x, z);
        std::int64_t wrong = 0;
        for (std::size_t n = 0; n < static_cast<std::size_t>(count * count); ++n) {
          const Scalar expected = apply(op, dtype, corners[n / corners.size()], corners[n % corners.size()]);
          wrong += is_same(result, expected, load_scalar(result, y.data.data() + n * static_cast<std::size_t>(bytes_of(result)))) ? 0 : 1;
        }
        CHECK_MESSAGE(wrong == 0, fmt::format("{} elements of {} with `{}`", wrong, info(dtype).name, spelling));
      }
    }
  }

  TEST_CASE("every conversion gives what ir/scalar.h says") {
    const Dtype dtypes[] = {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2, Dtype::I64, Dtype::I32, Dtype::I16, Dtype::I8, Dtype::U64, Dtype::U32, Dtype::U16, Dtype::U8};
    for (const Dtype from : dtypes)
      for (const Dtype to : dtypes) {
        const std::vector<Scalar> corners = corners_of(from);
        HostTensor x = make_tensor(from, {static_cast<std::int64_t>(corners.size())});
        for (std::size_t n = 0; n < corners.size(); ++n) store_scalar(from, x.data.data() + n * static_cast<std::size_t>(bytes_of(from)), corners[n]);
        const HostTensor y = map_elements(from, to, to == from ? "x" : fmt::format("{}(x)", info(to).name), x, x);
        std::int64_t wrong = 0;
        for (std::size_t n = 0; n < corners.size(); ++n)
          wrong += is_same(to, convert(to, from, corners[n]), load_scalar(to, y.data.data() + n * static_cast<std::size_t>(bytes_of(to)))) ? 0 : 1;
        CHECK_MESSAGE(wrong == 0, fmt::format("{} elements of {} as {}", wrong, info(from).name, info(to).name));
      }
  }

  TEST_CASE("branches, loops with bounds of their own, selects that guard a load") {
    const Plan plan = plan_of(R"(plan p {
  dim N, Z
  in ptr: i32[N + 1]
  in val: i32[Z]
  out y: i32[N]
  out z: i32[N]
  kernel y thread grid (ceildiv(N, 48)) block (48) args (ptr, val, y, z, N, Z) {
    let i = block.x*48 + thread.x
    if i < N {
      reg acc: i32
      acc = i32(0)
      serial p in ptr[i] .. ptr[i + 1] {
        if val[p] % i32(2) == i32(0) {
          acc = acc + val[p]
        } else {
          acc = acc - val[p]
        }
      }
      y[i] = acc
      z[i] = if i > 0 and val[i - 1] > i32(0) then val[i - 1] else i32(-1)
    }
  }
}
)");
    const std::vector<std::int64_t> ptr = {0, 3, 3, 4, 10, 12, 12};
    const std::vector<std::int64_t> val = {1, 2, 3, 4, 5, 6, 7, 8, 9, -10, 11, 12};
    const Arguments result = run_without_faults(plan, {{"ptr", integers(Dtype::I32, ptr)}, {"val", integers(Dtype::I32, val)}});
    CHECK(integers_of(result.tensors.at("y")) == std::vector<std::int64_t>{-2, 0, 4, -17, 1, 0});
    CHECK(integers_of(result.tensors.at("z")) == std::vector<std::int64_t>{-1, 1, 2, 3, 4, 5});
  }

  TEST_CASE("vector accesses and scalars of the caller") {
    const Plan plan = plan_of(R"(plan scale {
  dim N
  in a: f32
  in X: bf16[N]
  inout Y: f16[N]
  kernel Y thread grid (ceildiv(N, 2048)) block (256) args (a, X, Y, N) {
    let e = block.x*2048 + thread.x*8
    if e < N {
      reg X.v: bf16[8]
      reg Y.v: f16[8]
      load.v8(X.v[0], X[e])
      load.v8(Y.v[0], Y[e])
      unroll x in 8 {
        Y.v[x] = f16(fma(a, f32(X.v[x]), f32(Y.v[x])))
      }
      store.v8(Y[e], Y.v[0])
    }
  }
}
)");
    HostTensor a = make_tensor(Dtype::F32, {});
    write_real(a, 0, 3);
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{8}, std::int64_t{4104}}) {
      const HostTensor x = exact_tensor(Dtype::BF16, {n}, 1);
      const HostTensor y = exact_tensor(Dtype::F16, {n}, 2);
      const Arguments result = run_without_faults(plan, {{"a", a}, {"X", x}, {"Y", y}});
      std::int64_t wrong = 0;
      for (std::int64_t e = 0; e < n; ++e) wrong += read_real(result.tensors.at("Y"), e) == 3 * read_real(x, e) + read_real(y, e) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }

  TEST_CASE("atomics in shared and global memory, a clear, kernels in order, a temporary") {
    const Plan plan = plan_of(R"(plan histogram {
  dim N
  in X: u8[N]
  out H: i32[16]
  out total: i32[1]
  temp half: i32[16]
  clear H 0
  clear total 0
  kernel H thread grid (ceildiv(N, 256)) block (64) shared 64 args (X, H, N) {
    shared S: i32[16] at 0
    if thread.x < 16 {
      S[thread.x] = 0
    }
    barrier.block()
    serial s in 4 {
      let e = block.x*256 + s*64 + thread.x
      if e < N {
        atomic S[X[e] % u8(16)] += 1
      }
    }
    barrier.block()
    if thread.x < 16 {
      atomic H[thread.x] += S[thread.x]
    }
  }
  kernel half thread grid (1) block (16) args (H, half) {
    half[thread.x] = H[thread.x] / 2
  }
  kernel total thread grid (1) block (16) args (half, total) {
    atomic total[0] += half[thread.x]
  }
}
)");
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{255}, std::int64_t{1031}}) {
      std::vector<std::int64_t> x;
      std::vector<std::int64_t> expected(16, 0);
      for (std::int64_t e = 0; e < n; ++e) {
        x.push_back(e * e % 251);
        ++expected[static_cast<std::size_t>(x.back() % 16)];
      }
      const Arguments result = run_without_faults(plan, {{"X", integers(Dtype::U8, x)}});
      CHECK(integers_of(result.tensors.at("H")) == expected);
      std::int64_t total = 0;
      for (const std::int64_t bin : expected) total += bin / 2;
      CHECK(integers_of(result.tensors.at("total")) == std::vector<std::int64_t>{total});
    }
  }

  TEST_CASE("a warp sums by shuffles, votes and elects") {
    const Plan plan = plan_of(R"(plan p {
  dim N
  in X: i32[N]
  out Y: i32[N]
  out V: bool[N]
  kernel Y thread grid (ceildiv(N, 64)) block (64) args (X, Y, V, N) {
    let i = block.x*64 + thread.x
    reg a: i32
    a = X[i]
    unroll s in 5 {
      a = a + shuffle.xor(a, 1 << s)
    }
    let first = uniform(X[i])
    let any = vote.any(X[i] == i32(2))
    Y[i] = if elect() then a else first
    V[i] = any and vote.all(X[i] < i32(3))
    barrier.warp()
  }
}
)");
    const HostTensor x = exact_tensor(Dtype::I32, {128}, 1);
    const Arguments result = run_without_faults(plan, {{"X", x}});
    const std::vector<std::int64_t> input = integers_of(x);
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < 128; ++i) {
      std::int64_t sum = 0;
      for (std::size_t lane = 0; lane < 32; ++lane) sum += input[i / 32 * 32 + lane];
      expected.push_back(i % 32 == 0 ? sum : input[i / 32 * 32]);
    }
    CHECK(integers_of(result.tensors.at("Y")) == expected);
    CHECK(integers_of(result.tensors.at("V")) == std::vector<std::int64_t>(128, 1));
  }

  TEST_CASE("threads and blocks in three dimensions, a partial warp, slots of a shared buffer") {
    const Plan plan = plan_of(R"(plan p {
  dim A, B, C
  out Y: i32[A, B, C]
  kernel Y thread grid (ceildiv(C, 3), ceildiv(B, 5), A) block (3, 5, 1) shared 240 args (Y, A, B, C) {
    shared S: i32[2, 15] at 0
    let t = thread.y*3 + thread.x
    S[t % 2, t] = i32(t)
    barrier.block()
    let y = block.y*5 + thread.y
    let x = block.x*3 + thread.x
    if y < B and x < C {
      Y[(block.z*B + y)*C + x] = S[(14 - t) % 2, 14 - t] + i32(100)*i32(block.z)
    }
  }
}
)");
    const Arguments result = run_without_faults(plan, {}, {{"A", 3}, {"B", 7}, {"C", 4}});
    std::vector<std::int64_t> expected;
    for (std::int64_t a = 0; a < 3; ++a)
      for (std::int64_t b = 0; b < 7; ++b)
        for (std::int64_t c = 0; c < 4; ++c) expected.push_back(14 - (b % 5 * 3 + c % 3) + 100 * a);
    CHECK(integers_of(result.tensors.at("Y")) == expected);
  }

  TEST_CASE("resident workers take tiles in the order of a table") {
    const Plan plan = plan_of(R"(plan p {
  dim A, B
  out Y: i32[A, B]
  dim workers = resident(Y)
  table order: i32[A*B, 2] = hilbert(A, B)
  kernel Y thread grid (workers) block (32) shared 100000 args (order, Y, A, B, workers) {
    serial tile in block.x .. A*B step workers {
      let a = order[tile*2]
      let b = order[tile*2 + 1]
      if thread.x == 0 {
        Y[a*i32(B) + b] = a*i32(100) + b
      }
    }
  }
}
)");
    for (const int sms : {1, 2, 3}) {
      SimulatorOptions options;
      options.sms = sms;
      const Arguments result = run_without_faults(plan, {}, {{"A", 5}, {"B", 7}}, options);
      std::vector<std::int64_t> expected;
      for (std::int64_t a = 0; a < 5; ++a)
        for (std::int64_t b = 0; b < 7; ++b) expected.push_back(100 * a + b);
      CHECK(integers_of(result.tensors.at("Y")) == expected);
    }
  }

  TEST_CASE("the first offender of a checked access is reported") {
    const Plan plan = plan_of(R"(plan p {
  dim N, Z
  in I: i32[N]
  in X: i32[Z]
  out Y: i32[N]
  error e {
    0: X[I[i]]
  }
  kernel Y thread grid (1) block (32) args (I, X, Y, N, Z) {
    let i = thread.x
    if i < N {
      let at = I[i]
      if not (i32(0) <= at and at < i32(Z)) {
        error.report(0, at)
      }
      Y[i] = if i32(0) <= at and at < i32(Z) then X[at] else i32(0)
    }
  }
}
)");
    Arguments arguments = bind_arguments(plan, {{"I", integers(Dtype::I32, {1, 0, 7, -3})}, {"X", integers(Dtype::I32, {5, 6})}});
    const RunReport report = simulate(plan, arguments);
    CHECK(report.faults.empty());
    REQUIRE(report.error);
    CHECK(report.error->site == 0);
    CHECK(report.error->value == 7);
    CHECK(integers_of(arguments.tensors.at("Y")) == std::vector<std::int64_t>{6, 5, 0, 0});
  }

  TEST_CASE("library functions and narrow floats are those of ir/scalar.h") {
    HostTensor x = make_tensor(Dtype::F32, {40});
    for (std::int64_t e = 0; e < 40; ++e) write_real(x, e, static_cast<double>(e - 20) * 0.37);
    for (const char* name : {"exp", "tanh", "sqrt", "abs", "floor", "erf"}) {
      const HostTensor y = map_elements(Dtype::F32, Dtype::F32, fmt::format("{}(x)", name), x, x);
      for (std::int64_t e = 0; e < 40; ++e) {
        const Scalar argument = real_scalar(read_real(x, e));
        CHECK(is_same(Dtype::F32, find_scalar_function(name)(Dtype::F32, &argument), real_scalar(read_real(y, e))));
      }
    }
  }
}

}  // namespace tilewright
