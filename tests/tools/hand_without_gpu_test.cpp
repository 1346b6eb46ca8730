// Hand kernels without a GPU: a planted bug is described, and every hand kernel of every example is right.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "runtime/library/hands.h"
#include "runtime/oracle.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

HandVerdict verdict_of_file(const char* file, const DimMap& dims) {
  const Program program = load_program((source_root() / "examples/ch05_tiled_matmul/matmul.tw").string());
  const TensorFn& fn = choose_fn(program);
  return check_hand(compile_hand_to_ptx(hand_from_file((source_root() / file).string(), fn), "sm_90a"), fn, signature_plan(fn), dims, 1);
}

bool says(const HandVerdict& verdict, const char* part) { return verdict.text.find(part) != std::string::npos; }

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("hand kernel without a GPU: a store that asks for whole tiles leaves the partial ones unwritten") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const HandVerdict columns = verdict_of_file("tests/hand/matmul_student_partial_tile.cu", {{"M", 32}, {"N", 38}, {"K", 43}});
    CAPTURE(columns.text);
    CHECK(!columns.is_right);
    CHECK(says(columns, "`C[0, 32]` is nan"));
    CHECK(says(columns, "192 of 1216 elements are wrong, all in `C[0..32, 32..38]`; none of them was ever written"));
    CHECK(says(columns, "axis 1: exactly the last, partial tile of 16 (6 of 16 elements)"));
    CHECK(says(columns, "it is right with N = 48: N is then a multiple of 16"));
    const HandVerdict both = verdict_of_file("tests/hand/matmul_student_partial_tile.cu", {{"M", 33}, {"N", 38}, {"K", 43}});
    CAPTURE(both.text);
    CHECK(says(both, "230 of 1254 elements are wrong"));
    CHECK(says(both, "exactly the partial tiles of 16: from 32 on along axis 0 or from 32 on along axis 1"));
    CHECK(says(both, "it is right where all sizes are multiples of 16"));
  }

  TEST_CASE("hand kernel without a GPU: a lost step along K shows at sizes that are no multiple of the tile") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const HandVerdict wrong = verdict_of_file("tests/hand/matmul_student_lost_step.cu", {{"M", 33}, {"N", 38}, {"K", 43}});
    CAPTURE(wrong.text);
    CHECK(!wrong.is_right);
    CHECK(says(wrong, "on exact data: `C[0, "));
    CHECK(says(wrong, "all in `C[0..33, 0..38]`"));
    CHECK(!says(wrong, "never written"));
    CHECK(says(wrong, "it is right with K = 48: K is then a multiple of 16"));
  }

  TEST_CASE("hand kernel without a GPU: a file with main, headers, a template and a constant is right as it is") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const HandVerdict right = verdict_of_file("examples/student/matmul_student.cu", {{"M", 33}, {"N", 38}, {"K", 43}});
    CHECK_MESSAGE(right.is_right, right.text);
  }

  TEST_CASE("hand kernel without a GPU: every hand kernel of every example, at boundary sizes") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const std::vector<std::int64_t> sizes = runs_full_tests() ? std::vector<std::int64_t>{0, 1, 2, 7, 16, 17, 20, 33, 64, 67} : std::vector<std::int64_t>{0, 1, 17, 20};
    int checked = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_root() / "examples")) {
      if (entry.path().extension() != ".tw") continue;
      const Program program = load_program(entry.path().string());
      for (const TensorFn& fn : program.fns)
        for (const std::int64_t size : sizes) {
          DimMap dims;
          for (std::size_t n = 0; n < fn.dims.size(); ++n) dims[fn.dims[n]] = size;
          for (const HandProgram& hand : hand_programs(program, fn, entry.path().parent_path().string(), dims)) {
            CAPTURE(entry.path().string());
            CAPTURE(hand.name);
            CAPTURE(size);
            const HandVerdict verdict = check_hand(compile_hand_to_ptx(hand, "sm_90a"), fn, signature_plan(fn), dims, 1);
            CHECK_MESSAGE(verdict.is_right, verdict.text);
            ++checked;
          }
        }
    }
    CHECK(checked > 50);
  }
}

}  // namespace tilewright
