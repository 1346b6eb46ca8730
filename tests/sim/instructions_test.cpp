// Small right kernels around one instruction each, in every order and with every time of landing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/sim/sim.h"

namespace tilewright {

namespace {

constexpr std::uint64_t seeds = 12;

std::int64_t at(const Arguments& result, const char* name, std::int64_t element) { return static_cast<std::int64_t>(read_real(result.tensors.at(name), element)); }

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("cp.async groups hand a ring of slots from trip to trip") {
    const Plan plan = plan_of(R"(plan p {
  dim N
  in X: f32[N]
  out Y: f32[N]
  kernel Y thread grid (1) block (64) shared 3072 args (X, Y, N) {
    shared S: f32[3, 256] at 0
    let trips = N / 256
    unroll s in 2 {
      if s < trips {
        cp.async(S[s, thread.x*4], X[s*256 + thread.x*4], 16)
      }
      cp.async.commit()
    }
    serial k in trips {
      cp.async.wait(1)
      barrier.block()
      if k + 2 < trips {
        cp.async(S[(k + 2) % 3, thread.x*4], X[(k + 2)*256 + thread.x*4], 16)
      }
      cp.async.commit()
      unroll e in 4 {
        Y[k*256 + e*64 + thread.x] = S[k % 3, 255 - e*64 - thread.x]
      }
    }
  }
}
)");
    for (const std::int64_t trips : {0, 1, 2, 3, 4, 7})
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const HostTensor x = exact_tensor(Dtype::F32, {trips * 256}, 2);
        SimulatorOptions options;
        options.seed = seed;
        const Arguments result = run_without_faults(plan, {{"X", x}}, {}, options);
        std::int64_t wrong = 0;
        for (std::int64_t e = 0; e < trips * 256; ++e) wrong += at(result, "Y", e) != read_integer(x, e / 256 * 256 + 255 - e % 256) ? 1 : 0;
        CHECK(wrong == 0);
      }
  }

  TEST_CASE("a box is filled with 0 outside, swizzled by its address, and clipped on the way out") {
    for (const int swizzle : {0, 32, 64, 128})
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const std::string map = swizzle == 0 ? "" : fmt::format(" xor {}", swizzle);
        const int columns = swizzle == 0 ? 16 : swizzle / 4;
        const Plan plan = plan_of(fmt::format(R"(plan p {{
  dim R, C
  in X: f32[R, C]
  out Y: f32[R, C]
  out Z: f32[16, {0}]
  kernel Y thread for sm_90a grid (1) block (32) shared 4096 align 1024 args (Z) maps (mX = tiled(X, {0}, 16){1}, mY = tiled(Y, {0}, 16){1}) {{
    shared S: f32[512] at 0
    shared full: mbarrier[1] at 2048
    if thread.x == 0 {{
      mbarrier.init(full[0], 1)
      fence.mbarrier_init()
    }}
    barrier.block()
    serial r in 2 {{
      serial c in 2 {{
        if thread.x == 0 {{
          mbarrier.arrive.expect_tx(full[0], {2})
          tma.load.2d(S[0], mX, c*{0} - 4, r*16 - 8, full[0])
        }}
        mbarrier.wait(full[0], c)
        if r == 0 and c == 0 {{
          serial e in {3} {{
            let at = e*32 + thread.x
            let chunk = at / 4 % {4}
            Z[at] = S[at / {0}*{0} + (chunk ^ (at / 32 % 8 & {5}))*4 + at % 4]
          }}
          fence.proxy.async.shared()
          barrier.block()
        }}
        if thread.x == 0 {{
          tma.store.2d(mY, c*{0} - 4, r*16 - 8, S[0])
          bulk.commit()
          bulk.wait_group(0)
        }}
        barrier.block()
      }}
    }}
  }}
}}
)", columns, map, columns * 64, columns / 2, columns / 4, swizzle == 0 ? 0 : swizzle / 16 - 1));
        const std::int64_t rows = 19;
        const std::int64_t width = 2 * columns - 8;
        const HostTensor x = exact_tensor(Dtype::F32, {rows, width}, 2);
        SimulatorOptions options;
        options.seed = seed;
        const Arguments result = run_without_faults(plan, {{"X", x}}, {}, options);
        std::int64_t wrong = 0;
        for (std::int64_t e = 0; e < rows * width; ++e) wrong += at(result, "Y", e) != read_integer(x, e) ? 1 : 0;
        for (std::int64_t row = 0; row < 16; ++row)
          for (std::int64_t column = 0; column < columns; ++column) {
            const bool is_inside = row >= 8 && column >= 4 && column - 4 < width;
            wrong += at(result, "Z", row * columns + column) != (is_inside ? read_integer(x, (row - 8) * width + column - 4) : 0) ? 1 : 0;
          }
        CHECK(wrong == 0);
      }
  }

  TEST_CASE("stmatrix and ldmatrix hold 8 rows of 16 bytes a tile in the layout of the tensor core") {
    const Plan plan = plan_of(R"(plan p {
  dim N
  out Y: u32[128]
  out Z: u16[256]
  kernel Y thread grid (1) block (32) shared 512 args (Y, Z) {
    shared S: u16[256] at 0
    stmatrix.x4(S[(lane % 8)*8 + (lane / 8)*64], u32(lane)*65537, u32(lane)*65537 + 100, u32(lane)*65537 + 200, u32(lane)*65537 + 300)
    barrier.warp()
    reg r: u32[4]
    ldmatrix.x4(r[0], r[1], r[2], r[3], S[(lane % 8)*8 + (lane / 8)*64])
    unroll n in 4 {
      Y[n*32 + lane] = r[n]
    }
    unroll e in 8 {
      Z[e*32 + lane] = S[e*32 + lane]
    }
  }
}
)");
    const Arguments result = run_without_faults(plan, {}, {{"N", 1}});
    for (std::int64_t tile = 0; tile < 4; ++tile)
      for (std::int64_t lane = 0; lane < 32; ++lane) {
        CHECK(at(result, "Y", tile * 32 + lane) == lane * 65537 + tile * 100);
        CHECK(at(result, "Z", tile * 64 + lane * 2) == lane + tile * 100);
        CHECK(at(result, "Z", tile * 64 + lane * 2 + 1) == lane);
      }
  }

  TEST_CASE("named barriers order a part of the block; registers are handed over") {
    const Plan plan = plan_of(R"(plan p {
  dim N
  out Y: i32[256]
  kernel Y thread for sm_90a grid (1) block (384) shared 1024 min_blocks 1 args (Y) {
    shared S: i32[256] at 0
    let wg = uniform(warp / 4)
    if wg == 2 {
      setmaxnreg.dec(40)
    } else {
      setmaxnreg.inc(232)
      serial k in 3 {
        S[thread.x] = i32(k*1000 + thread.x)
        barrier.named(1 + wg, 128)
        Y[thread.x] = S[wg*128 + 127 - thread.x % 128]
        barrier.named(1 + wg, 128)
      }
    }
  }
}
)");
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      SimulatorOptions options;
      options.seed = seed;
      const Arguments result = run_without_faults(plan, {}, {{"N", 1}}, options);
      for (std::int64_t t = 0; t < 256; ++t) CHECK(at(result, "Y", t) == 2000 + t / 128 * 128 + 127 - t % 128);
    }
  }

  TEST_CASE("wgmma of every shape and transposition, swizzled or not") {
    struct Case {
      int n, transpose_a, transpose_b, swizzle;
    };
    const Case cases[] = {{8, 0, 0, 128}, {24, 0, 0, 128}, {64, 0, 1, 128}, {128, 1, 1, 128}, {256, 1, 0, 128}, {32, 0, 0, 64}, {32, 1, 1, 64},
                          {16, 0, 0, 32}, {16, 1, 1, 32},  {16, 0, 0, 0},   {24, 1, 1, 0},   {8, 1, 1, 0}};
    for (const Case& one : cases)
      for (const char* dtype : {"bf16", "f16"}) {
        CAPTURE(one.n);
        CAPTURE(one.transpose_a);
        CAPTURE(one.swizzle);
        // An operand is `lines` by 16; its place in shared memory is the canonical one of the swizzle.
        const auto place = [&](const char* line, bool is_transposed, int lines) -> std::string {
          if (one.swizzle == 0)
            return is_transposed ? fmt::format("({0} / 8)*64 + (k / 8)*{1} + (k % 8)*8 + {0} % 8", line, lines * 8)
                                 : fmt::format("({0} / 8)*64 + (k / 8)*{1} + ({0} % 8)*8 + k % 8", line, lines * 8);
          const int width = one.swizzle / 2;
          const std::string flat = is_transposed ? fmt::format("(({0} / {1})*{2} + k*{1} + {0} % {1})", line, width, width * 16) : fmt::format("({0}*{1} + k)", line, width);
          return fmt::format("{0} ^ (({0} / 64 & {1})*8)", flat, one.swizzle / 16 - 1);
        };
        // Leading and stride byte offset.
        const auto offsets = [&](bool is_transposed, int lines) -> std::string {
          if (one.swizzle == 0) return fmt::format("{}, 128", lines * 16);
          return is_transposed ? fmt::format("{}, {}", one.swizzle * 16, one.swizzle * 8) : fmt::format("16, {}", one.swizzle * 8);
        };
        const Plan plan = plan_of(fmt::format(R"(plan p {{
  dim N
  in A: {0}[64, 16]
  in B: {0}[16, {1}]
  out C: f32[64, {1}]
  kernel C thread for sm_90a grid (1) block (128) shared 65536 align 1024 args (A, B, C) {{
    shared As: {0}[8192] at 0
    shared Bs: {0}[24576] at 16384
    serial e in 64 {{
      As[e*128 + thread.x] = {0}(0.0)
    }}
    serial e in 192 {{
      Bs[e*128 + thread.x] = {0}(0.0)
    }}
    barrier.block()
    serial k in 16 {{
      if thread.x < 64 {{
        As[{2}] = A[thread.x*16 + k]
      }}
      serial h in 2 {{
        let j = h*128 + thread.x
        if j < {1} {{
          Bs[{3}] = B[k*{1} + j]
        }}
      }}
    }}
    fence.proxy.async.shared()
    barrier.block()
    reg acc: f32[{4}]
    unroll r in {4} {{
      acc[r] = 1.0
    }}
    wgmma.fence(acc)
    wgmma.m64n{1}k16.{0}(acc, desc(As[0], {5}, {9}), desc(Bs[0], {6}, {9}), true, {7}, {8})
    wgmma.commit()
    wgmma.wait(0, acc)
    unroll r in {4} {{
      C[(warp*16 + lane / 4 + 8*(r / 2 % 2))*{1} + 8*(r / 4) + 2*(lane % 4) + r % 2] = acc[r]
    }}
  }}
}}
)", dtype, one.n, place("thread.x", one.transpose_a == 1, 64), place("j", one.transpose_b == 1, one.n), one.n / 2, offsets(one.transpose_a == 1, 64), offsets(one.transpose_b == 1, one.n),
                                              one.transpose_a, one.transpose_b, one.swizzle));
        const Dtype type = std::string_view(dtype) == "bf16" ? Dtype::BF16 : Dtype::F16;
        const HostTensor a = exact_tensor(type, {64, 16}, 1);
        const HostTensor b = exact_tensor(type, {16, one.n}, 3);
        const Arguments result = run_without_faults(plan, {{"A", a}, {"B", b}}, {{"N", 1}});
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < 64; ++i)
          for (std::int64_t j = 0; j < one.n; ++j) {
            std::int64_t sum = 1;
            for (std::int64_t k = 0; k < 16; ++k) sum += read_integer(a, i * 16 + k) * read_integer(b, k * one.n + j);
            wrong += at(result, "C", i * one.n + j) != sum ? 1 : 0;
          }
        CHECK(wrong == 0);
      }
  }
}

}  // namespace tilewright
