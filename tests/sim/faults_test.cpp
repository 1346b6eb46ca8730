// Broken kernels: what the simulator says of each.
#include <doctest/doctest.h>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "runtime/sim/instructions.h"
#include "tests/sim/sim.h"

namespace tilewright {

namespace {

// A kernel of one block over X: f32[N], Y: f32[N].
Plan small_plan(const std::string& body, const std::string& header = "grid (1) block (64) shared 1024") {
  return plan_of("plan p {\n  dim N\n  in X: f32[N]\n  out Y: f32[N]\n  kernel Y thread " + header + " args (X, Y, N) {\n" + body + "  }\n}\n");
}

std::string faults_of_body(const std::string& body, std::int64_t n = 64, const std::string& header = "grid (1) block (64) shared 1024") {
  return faults_of(small_plan(body, header), {{"X", exact_tensor(Dtype::F32, {n}, 1)}});
}

}  // namespace

TEST_SUITE("sim") {
  TEST_CASE("an access outside a tensor") {
    CHECK(faults_of_body("    Y[thread.x] = X[thread.x + 1]\n") ==
          "line 6: thread 63 of block 0 reads `X[64]`, which is `X[thread.x + 1]`, outside `X` of 64 elements\n");
    CHECK(faults_of_body("    Y[thread.x] = X[thread.x]\n", 60) ==
          "line 6: thread 60 of block 0 reads `X[60]`, which is `X[thread.x]`, outside `X` of 60 elements (4 times in all)\n"
          "line 6: thread 60 of block 0 writes `Y[60]`, which is `Y[thread.x]`, outside `Y` of 60 elements (4 times in all)\n");
    CHECK(faults_of_body("    Y[thread.x] = X[thread.x - 1]\n") ==
          "line 6: thread 0 of block 0 reads `X[-1]`, which is `X[thread.x - 1]`, outside `X` of 64 elements\n");
  }

  TEST_CASE("an access outside a shared or register buffer") {
    CHECK(faults_of_body("    shared S: f32[32] at 0\n    S[thread.x] = X[thread.x]\n    Y[thread.x] = 0.0\n") ==
          "line 7: thread 32 of block 0 writes `S[32]`, which is `S[thread.x]`, outside `S` of 32 elements (32 times in all)\n");
    CHECK(faults_of_body("    shared S: f32[2, 32] at 0\n    if thread.x < 32 {\n      S[1, thread.x + 1] = X[thread.x]\n    }\n    Y[thread.x] = 0.0\n") ==
          "line 8: thread 31 of block 0 writes `S[1, 32]`, which is `S[1, thread.x + 1]`, outside `S` of 64 elements\n");
    CHECK(faults_of_body("    reg r: f32[4]\n    serial k in 5 {\n      r[k] = 1.0\n    }\n    Y[thread.x] = r[0]\n") ==
          "line 8: thread 0 of block 0 writes `r[4]`, which is `r[k]`, outside `r` of 4 elements (64 times in all)\n");
  }

  TEST_CASE("a read of what nothing has written") {
    CHECK(faults_of_body("    shared S: f32[64] at 0\n    if thread.x < 32 {\n      S[thread.x*2] = 1.0\n    }\n    barrier.block()\n    Y[thread.x] = S[thread.x]\n") ==
          "line 11: thread 1 of block 0 reads `S[1]`, which is `S[thread.x]`, and nothing has been written there (32 times in all)\n");
    CHECK(faults_of_body("    reg a: f32\n    if thread.x > 3 {\n      a = 1.0\n    }\n    Y[thread.x] = a\n") ==
          "line 10: thread 0 of block 0 reads `a`, and has not written it (4 times in all)\n");
    CHECK(faults_of_body("    reg r: f32[2]\n    r[0] = 1.0\n    Y[thread.x] = r[thread.x % 2]\n") ==
          "line 8: thread 1 of block 0 reads `r[1]`, which is `r[thread.x % 2]`, and has not written it (32 times in all)\n");
    CHECK(faults_of_body("    Y[thread.x] = Y[thread.x] + 1.0\n") ==
          "line 6: thread 0 of block 0 reads `Y[0]`, which is `Y[thread.x]`, and nothing has been written there (64 times in all)\n");
    CHECK(faults_of_body("    if thread.x != 5 {\n      Y[thread.x] = 1.0\n    }\n") == "`Y` has 1 of 64 elements that nothing has written, the first of them `Y[5]`\n");
  }

  TEST_CASE("a register buffer loses its content where it is declared again") {
    CHECK(faults_of_body("    serial k in 2 {\n      reg a: f32\n      if k == 0 {\n        a = 1.0\n      }\n      Y[thread.x] = a\n    }\n") ==
          "line 11: thread 0 of block 0 reads `a`, and has not written it (64 times in all)\n");
  }

  TEST_CASE("a barrier that not all threads of a warp reach") {
    CHECK(faults_of_body("    if thread.x < 8 {\n      barrier.block()\n    }\n    Y[thread.x] = 1.0\n", 32, "grid (1) block (32)") ==
          "line 7: `barrier.block` is reached by threads 0 to 7 of block 0 while threads 8 to 31 of the same warp do not come by (8 times in all)\n");
  }

  TEST_CASE("a barrier that a whole warp leaves out is a deadlock") {
    CHECK(faults_of_body("    Y[thread.x] = 1.0\n    if thread.x < 32 {\n      barrier.block()\n    }\n") ==
          "line 8: deadlock: threads 0 to 31 of block 0 wait at `barrier.block` for ever (1 of 2 warps); threads 32 to 63 ended without it\n");
    CHECK(faults_of_body("    Y[thread.x] = 1.0\n    if thread.x < 32 {\n      barrier.named(1, 64)\n    } else {\n      barrier.named(2, 64)\n    }\n") ==
          "line 8: deadlock: threads 0 to 31 of block 0 wait at `barrier.named` for ever (2 of 2 warps); threads 32 to 63 wait at `barrier.named` of line 10\n");
  }

  TEST_CASE("a vector access that is not aligned") {
    CHECK(faults_of_body("    if thread.x < 4 {\n      reg v: f32[4]\n      load.v4(v[0], X[thread.x*4 + 1])\n    }\n    Y[thread.x] = 1.0\n") ==
          "line 8: thread 0 of block 0 reads `X[1]`, which is `X[thread.x*4 + 1]` at byte 4, and one access of 16 bytes needs a multiple of 16 (4 times in all)\n");
    CHECK(faults_of_body("    shared S: f32[64] at 8\n    if thread.x < 4 {\n      reg v: f32[2]\n      v[0] = 1.0\n      v[1] = 1.0\n      store.v2(S[thread.x*2], v[0])\n    }\n    barrier.block()\n"
                         "    if thread.x < 4 {\n      reg w: f32[4]\n      load.v4(w[0], S[0])\n    }\n    Y[thread.x] = 1.0\n") ==
          "line 16: thread 0 of block 0 reads `S[0]` at byte 8, and one access of 16 bytes needs a multiple of 16 (4 times in all)\n");
  }

  TEST_CASE("threads and blocks of several dimensions are named by all their coordinates") {
    CHECK(faults_of_body("    if thread.y == 1 and thread.x == 2 and block.y == 3 {\n      Y[64] = 1.0\n    }\n    Y[(block.y*2 + block.x)*8 + thread.y*4 + thread.x] = 1.0\n", 64,
                         "grid (2, 4) block (4, 2)") == "line 7: thread (2, 1) of block (0, 3) writes `Y[64]`, outside `Y` of 64 elements (2 times in all)\n");
  }

  TEST_CASE("checks that are off leave out initialisation, never bounds") {
    SimulatorOptions options;
    options.checks = false;
    const Plan plan = small_plan("    reg a: f32\n    if thread.x > 100 {\n      a = 1.0\n    }\n    Y[thread.x + 1] = a\n");
    CHECK(faults_of(plan, {{"X", exact_tensor(Dtype::F32, {64}, 1)}}, {}, options) ==
          "line 10: thread 63 of block 0 writes `Y[64]`, which is `Y[thread.x + 1]`, outside `Y` of 64 elements\n");
  }

  TEST_CASE("the simulator executes every instruction of the table") {
    for (const InstrInfo& row : all_instructions()) CHECK_MESSAGE(executes_instruction(row.name), row.name);
    CHECK(!executes_instruction("barrier"));
  }

  TEST_CASE("operands that no value makes right are refused, with their line") {
    const auto message = [](const std::string& body) {
      try {
        faults_of_body(body);
      } catch (const UserError& error) {
        return error.diagnostics().front().message + " @" + std::to_string(error.diagnostics().front().span.line);
      }
      return std::string("nothing");
    };
    CHECK(message("    shared b: mbarrier[1] at 0\n    shared S: f32[4] at 8\n    mbarrier.init(S[0], 1)\n") == "`S` is no barrier object @8");
    CHECK(message("    reg acc: f32[4]\n    wgmma.fence(acc)\n") == "`wgmma.fence` in a block of 64 threads, which are no whole warpgroups @7");
    CHECK(message("    setmaxnreg.dec(42)\n") == "`setmaxnreg.dec` takes a constant multiple of 8 in 24 to 256 @6");
    CHECK(message("    shared S: f32[4] at 0\n    cp.async(S[0], X[0], 6)\n") == "`cp.async` of 6 bytes; 4, 8 and 16 are possible @7");
  }

  TEST_CASE("a loop without end stops at the limit of steps") {
    SimulatorOptions options;
    options.most_steps = 100000;
    const Plan plan = small_plan("    serial k in 100000000 {\n      Y[thread.x] = 1.0\n    }\n");
    CHECK_THROWS_WITH_AS(faults_of(plan, {{"X", exact_tensor(Dtype::F32, {64}, 1)}}, {}, options), doctest::Contains("stopped after 100000 steps"), UserError);
  }
}

}  // namespace tilewright
