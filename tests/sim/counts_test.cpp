// The counters against figures worked out by hand: what each request of a warp touches, edge tiles included.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "ir/plan.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

KernelCounts counts_of(const Plan& plan, const std::map<std::string, std::int64_t>& dims, int sms = 2) {
  std::vector<KernelCounts> counts;
  SimulatorOptions options;
  options.sms = sms;
  options.counts = &counts;
  run_without_faults(plan, exact_inputs(plan, dims), dims, options);
  REQUIRE(counts.size() == 1);
  return counts.front();
}

KernelCounts counts_of_body(const std::string& body, std::int64_t n, const std::string& header = "grid (1) block (64) shared 8192", const std::string& dtype = "f32") {
  const Plan plan = plan_of("plan p {\n  dim N\n  in X: " + dtype + "[N]\n  out Y: " + dtype + "[N]\n  kernel Y thread " + header + " args (X, Y, N) {\n" + body + "  }\n}\n");
  return counts_of(plan, {{"N", n}});
}

const AccessCounts& access_named(const KernelCounts& counts, const std::string& text) {
  const auto found = std::find_if(counts.accesses.begin(), counts.accesses.end(), [&](const AccessCounts& access) { return access.text == text; });
  REQUIRE_MESSAGE(found != counts.accesses.end(), text);
  return *found;
}

// requests, threads, sectors, needed
std::string global_text(const AccessCounts& counts) { return fmt::format("{} {} {} {}", counts.requests, counts.threads, counts.sectors, counts.needed_sectors); }
// requests, wavefronts, ideal
std::string shared_text(const AccessCounts& counts) { return fmt::format("{} {} {}", counts.requests, counts.wavefronts, counts.ideal_wavefronts); }

std::string kind_text(const KernelCounts& counts, const std::string& kind) {
  for (const InstructionCounts& instruction : counts.instructions)
    if (instruction.kind == kind) return fmt::format("{} {}", instruction.warps, instruction.threads);
  return "none";
}

constexpr std::string_view transpose = R"(plan transpose {
  dim M, N
  in A: f32[M, N]
  out B: f32[N, M]
  kernel B thread grid (ceildiv(N, 32), ceildiv(M, 32)) block (32, 8) shared 4224 args (A, B, M, N) {
    shared T: f32[32, PITCH] at 0
    unroll s in 4 {
      if block.y*32 + s*8 + thread.y < M and block.x*32 + thread.x < N {
        T[s*8 + thread.y, thread.x] = A[(block.y*32 + s*8 + thread.y)*N + (block.x*32 + thread.x)]
      }
    }
    barrier.block()
    unroll s in 4 {
      if block.x*32 + s*8 + thread.y < N and block.y*32 + thread.x < M {
        B[(block.x*32 + s*8 + thread.y)*M + (block.y*32 + thread.x)] = T[thread.x, s*8 + thread.y]
      }
    }
  }
}
)";

KernelCounts counts_of_transpose(const std::string& pitch, std::int64_t m, std::int64_t n) {
  std::string text(transpose);
  text.replace(text.find("PITCH"), 5, pitch);
  return counts_of(plan_of(text), {{"M", m}, {"N", n}});
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("counts: side by side, at a stride, from the middle of a sector, one word for all") {
    // Two warps of 32 words: 4 sectors each.
    const KernelCounts plain = counts_of_body("    Y[thread.x] = X[thread.x]\n", 64);
    CHECK(global_text(access_named(plain, "X[thread.x]")) == "2 64 8 8");
    CHECK(global_text(access_named(plain, "Y[thread.x]")) == "2 64 8 8");
    CHECK(access_named(plain, "X[thread.x]").lane_stride == 1);
    CHECK(access_named(plain, "X[thread.x]").bytes == 4);
    // Every eighth word: a sector each.
    const KernelCounts strided = counts_of_body("    Y[thread.x*8] = X[thread.x*8]\n    unroll e in 7 {\n      Y[thread.x*8 + e + 1] = 0.0\n    }\n", 512);
    CHECK(global_text(access_named(strided, "X[thread.x*8]")) == "2 64 64 8");
    CHECK(access_named(strided, "X[thread.x*8]").lane_stride == 8);
    CHECK(global_text(access_named(strided, "Y[thread.x*8 + e + 1]")) == "14 448 448 56");
    // One word further: 128 bytes in 5 sectors.
    CHECK(global_text(access_named(counts_of_body("    Y[thread.x] = if thread.x < 63 then X[thread.x + 1] else 0.0\n", 64), "X[thread.x + 1]")) == "2 63 9 8");
    // One word: one sector, and a word is all that is needed.
    CHECK(global_text(access_named(counts_of_body("    Y[thread.x] = X[5]\n", 64), "X[5]")) == "2 64 2 2");
    // Backwards is as good as forwards.
    CHECK(global_text(access_named(counts_of_body("    Y[thread.x] = X[63 - thread.x]\n", 64), "X[63 - thread.x]")) == "2 64 8 8");
    // Two bytes each: 32 lanes in 2 sectors.
    CHECK(global_text(access_named(counts_of_body("    Y[thread.x] = X[thread.x]\n", 64, "grid (1) block (64) shared 0", "bf16"), "X[thread.x]")) == "2 64 4 4");
  }

  TEST_CASE("counts: the last warp has 4 lanes, the last block ends early") {
    // 3 blocks of 64 over 132 elements: 4 whole warps and one of 4 lanes; the last warp of all does nothing.
    const Plan plan = plan_of("plan p {\n  dim N\n  in X: f32[N]\n  out Y: f32[N]\n  kernel Y thread grid (ceildiv(N, 64)) block (64) shared 0 args (X, Y, N) {\n"
                              "    let i = block.x*64 + thread.x\n    if i < N {\n      Y[i] = X[i] + 1.0\n    }\n  }\n}\n");
    for (int sms = 1; sms <= 3; ++sms) {
      const KernelCounts counts = counts_of(plan, {{"N", 132}}, sms);
      CHECK(global_text(access_named(counts, "X[i]")) == "5 132 17 17");
      CHECK(kind_text(counts, "f32 add") == "5 132");
      REQUIRE(counts.branches.size() == 1);
      CHECK(counts.branches[0].executed == 6);
      CHECK(counts.branches[0].divergent == 1);
      REQUIRE(counts.tensors.size() == 2);
      CHECK(counts.tensors[0].thread_bytes == 528);
      CHECK(counts.tensors[0].sector_bytes == 544);
      CHECK(counts.tensors[0].compulsory_bytes == 528);
    }
  }

  TEST_CASE("counts: a transposition through shared memory, with and without padding") {
    // 40 rows of 50: tiles of 32x32, 32x18, 8x32 and 8x18. A row of A of 32 words begins at a multiple of 200 bytes.
    const KernelCounts plain = counts_of_transpose("32", 40, 50);
    const KernelCounts padded = counts_of_transpose("33", 40, 50);
    const std::string load = "A[(block.y*32 + s*8 + thread.y)*N + (block.x*32 + thread.x)]", turn = "T[thread.x, s*8 + thread.y]";
    std::int64_t sectors = 0;
    for (std::int64_t row = 0; row < 40; ++row)
      for (const std::int64_t column : {0, 32}) {
        const std::int64_t first = (row * 50 + column) * 4, end = (row * 50 + std::min<std::int64_t>(50, column + 32)) * 4;
        sectors += (end + 31) / 32 - first / 32;
      }
    // 18 words are 72 bytes: 3 sectors would do.
    CHECK(global_text(access_named(plain, load)) == fmt::format("80 2000 {} {}", sectors, 40 * 4 + 40 * 3));
    CHECK(shared_text(access_named(plain, "T[s*8 + thread.y, thread.x]")) == "80 80 80");
    // Writing B: 50 requests of 32 lanes, each on one bank, and 50 of 8.
    CHECK(shared_text(access_named(plain, turn)) == fmt::format("100 {} 100", 50 * 32 + 50 * 8));
    CHECK(shared_text(access_named(padded, turn)) == "100 100 100");
    CHECK(access_named(plain, turn).is_shared);
    CHECK(global_text(access_named(padded, load)) == global_text(access_named(plain, load)));
  }

  TEST_CASE("counts: tiled matmul") {
    const Plan plan = ladder_plan("matmul.ch5.thread.ir");
    const KernelCounts counts = counts_of(plan, {{"M", 64}, {"N", 64}, {"K", 64}});
    // 16 blocks of 8 warps, 4 tiles along k; a warp fetches 2 rows of 16 words.
    std::int64_t checked = 0;
    for (const AccessCounts& access : counts.accesses) {
      if (access.kind == AccessKind::Load && !access.is_shared) CHECK(global_text(access) == "512 16384 2048 2048");
      else if (access.kind == AccessKind::Store && !access.is_shared) CHECK(global_text(access) == "128 4096 512 512");
      else if (access.kind == AccessKind::Store) CHECK(shared_text(access) == "512 512 512");
      else CHECK(shared_text(access) == "8192 8192 8192");  // 2 words, or 16 in a row: no bank has to give two
      ++checked;
    }
    CHECK(checked == 7);
    CHECK(kind_text(counts, "f32 fma") == fmt::format("{} {}", 64 * 64 * 64 / 32, 64 * 64 * 64));
    CHECK(kind_text(counts, "barrier.block") == fmt::format("{} {}", 16 * 8 * 4 * 2, 16 * 256 * 4 * 2));
    for (const TensorCounts& tensor : counts.tensors) {
      CHECK(tensor.compulsory_bytes == 64 * 64 * 4);
      CHECK(tensor.thread_bytes == (tensor.name == "C" ? 1 : 4) * 64 * 64 * 4);
    }
  }

  TEST_CASE("counts: vectors") {
    // 16 bytes a thread: a request is 16 sectors, and goes over the banks by quarters.
    const KernelCounts counts = counts_of_body("    reg r: f32[4]\n    shared S: f32[512] at 0\n    load.v4(r[0], X[thread.x*4])\n    store.v4(S[thread.x*4], r[0])\n    barrier.block()\n"
                                               "    load.v4(r[0], S[252 - thread.x*4])\n    store.v4(Y[thread.x*4], r[0])\n", 256);
    CHECK(global_text(access_named(counts, "X[thread.x*4]")) == "2 64 32 32");
    CHECK(access_named(counts, "X[thread.x*4]").width == 4);
    CHECK(access_named(counts, "X[thread.x*4]").bytes == 16);
    CHECK(shared_text(access_named(counts, "S[thread.x*4]")) == "2 8 8");
    CHECK(shared_text(access_named(counts, "S[252 - thread.x*4]")) == "2 8 8");
    CHECK(kind_text(counts, "load.v4") == "4 128");
    // 8 bytes a thread, by halves; 16 words apart all lanes of a half lie on two banks.
    const KernelCounts pairs = counts_of_body("    reg r: f32[2]\n    r[0] = X[thread.x]\n    r[1] = 0.0\n    shared S: f32[1024] at 0\n    store.v2(S[thread.x*2], r[0])\n    barrier.block()\n    store.v2(S[thread.x*16], r[0])\n"
                                              "    Y[thread.x] = r[0]\n", 64);
    CHECK(shared_text(access_named(pairs, "S[thread.x*2]")) == "2 4 4");
    CHECK(shared_text(access_named(pairs, "S[thread.x*16]")) == "2 32 4");
    // Two rows of 16-byte vectors, 1024 bytes apart: 8 lanes of a quarter on 4 banks.
    const KernelCounts column = counts_of_body("    reg r: f32[4]\n    unroll e in 4 {\n      r[e] = X[thread.x]\n    }\n    shared S: f32[2048] at 0\n    store.v4(S[(thread.x % 32)*32 + (thread.x / 32)*4], r[0])\n    Y[thread.x] = r[0]\n", 64);
    CHECK(shared_text(access_named(column, "S[(thread.x % 32)*32 + (thread.x / 32)*4]")) == "2 64 8");
  }

  TEST_CASE("counts: bytes of one word are no conflict, words of one bank are") {
    const KernelCounts bytes = counts_of_body("    shared S: u8[256] at 0\n    S[thread.x] = u8(1)\n    barrier.block()\n    Y[thread.x] = f32(S[thread.x])\n", 64);
    CHECK(shared_text(access_named(bytes, "S[thread.x]")) == "2 2 2");
    const KernelCounts same = counts_of_body("    shared S: f32[64] at 0\n    S[thread.x] = X[thread.x]\n    barrier.block()\n    Y[thread.x] = S[thread.x / 2] + S[(thread.x % 2)*32]\n", 64);
    CHECK(shared_text(access_named(same, "S[thread.x / 2]")) == "2 2 2");
    CHECK(shared_text(access_named(same, "S[(thread.x % 2)*32]")) == "2 4 2");  // two words of bank 0
  }

  TEST_CASE("counts: scatter") {
    const Plan plan = plan_of("plan p {\n  dim N\n  in X: i32[N]\n  out H: i32[8]\n  clear H 0\n  kernel H thread grid (1) block (64) shared 0 args (X, H, N) {\n"
                              "    atomic H[thread.x / 16] += X[thread.x]\n    atomic H[thread.x % 8] += 1\n  }\n}\n");
    const KernelCounts counts = counts_of(plan, {{"N", 64}});
    const AccessCounts& halves = access_named(counts, "H[thread.x / 16]");
    CHECK(halves.kind == AccessKind::Atomic);
    CHECK(global_text(halves) == "2 64 32 2");  // 16 passes a warp over two elements of one sector
    CHECK(halves.most_on_one == 32);  // 16 a warp
    CHECK(access_named(counts, "H[thread.x % 8]").most_on_one == 8);
    CHECK(kind_text(counts, "atomic global") == "4 128");
  }

  TEST_CASE("counts: divergence of branches and of loops") {
    const KernelCounts counts = counts_of_body("    reg a: f32\n    a = 0.0\n    serial k in thread.x % 4 {\n      a = a + 1.0\n    }\n    if thread.x < 32 {\n      a = a + 1.0\n    }\n    if thread.x % 2 == 0 {\n      a = a*2.0\n    }\n    Y[thread.x] = a\n", 64);
    REQUIRE(counts.branches.size() == 3);
    CHECK(counts.branches[0].text == "k in thread.x % 4");
    CHECK(counts.branches[1].executed == 2);
    CHECK(counts.branches[1].divergent == 0);
    CHECK(counts.branches[2].executed == 2);
    CHECK(counts.branches[2].divergent == 2);
    // 3 trips a warp: of 24, 16 and 8 lanes; then one warp with all.
    CHECK(kind_text(counts, "f32 add") == fmt::format("7 {}", 2 * (24 + 16 + 8) + 32));
    CHECK(kind_text(counts, "f32 multiply") == "2 32");
  }

  TEST_CASE("counts: copies of the threads and of the copy engine") {
    const KernelCounts elements = counts_of_body("    shared S: f32[256] at 0\n    cp.async(S[thread.x*4], X[thread.x*4], 16)\n    cp.async.commit()\n    cp.async.wait(0)\n    barrier.block()\n    unroll e in 4 {\n      Y[e*64 + thread.x] = S[e*64 + thread.x]\n    }\n", 256);
    CHECK(access_named(elements, "X[thread.x*4]").kind == AccessKind::ElementCopy);
    CHECK(global_text(access_named(elements, "X[thread.x*4]")) == "2 64 32 32");
    // The Hopper matmul reads each box whole; what lies outside the tensor is not read.
    const KernelCounts hopper = counts_of(ladder_plan("matmul.09.persist.thread.ir"), {{"M", 200}, {"N", 264}, {"K", 64}});
    std::int64_t a_sectors = 0, b_sectors = 0, c_bytes = 0;
    for (const AccessCounts& access : hopper.accesses) {
      if (access.kind == AccessKind::BoxLoad) (access.buffer == "A" ? a_sectors : b_sectors) += access.sectors;
    }
    for (const TensorCounts& tensor : hopper.tensors) {
      if (tensor.name == "C") c_bytes = tensor.thread_bytes;
      if (tensor.name == "order") continue;
      CHECK(tensor.compulsory_bytes == (tensor.name == "A" ? 200 * 64 : tensor.name == "B" ? 64 * 264 : 200 * 264) * 2);
    }
    CHECK(a_sectors == 2 * 200 * 64 * 2 / 32);   // for each of 2 tiles along N
    // Boxes of 64 columns, each by one block of the pair. An odd row begins in the middle of a sector: 5 sectors for 128 bytes.
    CHECK(b_sectors == 32 * (4 * 4 + 1) + 32 * (4 * 5 + 1));
    CHECK(c_bytes == 200 * 264 * 2);
  }

  TEST_CASE("counts: lines of the IR") {
    const Plan plan = ladder_plan("matmul.ch5.thread.ir");
    const KernelCounts counts = counts_of(plan, {{"M", 32}, {"N", 32}, {"K", 32}});
    std::vector<std::string> lines{""};
    const std::string text = print(plan);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines.push_back(text.substr(at, text.find('\n', at) - at));
    for (const AccessCounts& access : counts.accesses) CHECK_MESSAGE(lines.at(static_cast<std::size_t>(access.ir_line)).find(access.text) != std::string::npos, access.text);
    for (const BranchCounts& branch : counts.branches) CHECK_MESSAGE(lines.at(static_cast<std::size_t>(branch.ir_line)).find(branch.text) != std::string::npos, branch.text);
  }
}

}  // namespace tilewright
