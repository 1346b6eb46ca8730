// The examples of docs/ir.md: whole plans, and bodies of kernels of one stage inside a frame.
#include <doctest/doctest.h>

#include <fstream>

#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/plan.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

std::string framed(const std::string& stage, const std::string& text) {
  if (stage.empty()) return text;
  const std::string header = stage == "thread" ? " thread grid (1) block (64) shared 1024 args (A, C, M, K)" : "";
  return "plan example {\n  dim M, N, K\n  in A: f32[M, K]\n  in B: f32[K, N]\n  in I: u8[M]\n  out C: f32[M, N]\n  kernel C" + header + " {\n" + text +
         "  }\n}\n";
}

}  // namespace

TEST_SUITE("ir docs") {
  TEST_CASE("the examples of docs/ir.md parse, print back and verify") {
    if (!std::filesystem::exists(source_root() / "docs/ir.md")) TILEWRIGHT_SKIP("no documentation here");
    std::ifstream file(source_root() / "docs/ir.md");
    int examples = 0;
    std::string text;
    std::string stage;
    bool is_inside = false;
    for (std::string line; std::getline(file, line);) {
      if (!is_inside && line.rfind("```ir", 0) == 0) {
        is_inside = true;
        stage = line.size() > 6 ? line.substr(6) : "";
        text.clear();
      } else if (is_inside && line == "```") {
        is_inside = false;
        ++examples;
        const std::string whole = framed(stage, text);
        try {
          const Plan plan = read_plan(whole);
          CHECK(parse_plan(print(plan)) == plan);
          if (stage.empty()) CHECK(print(plan) == whole);
        } catch (const UserError& error) {
          FAIL_CHECK(render(error.diagnostics(), {{"docs/ir.md", whole}}));
        }
      } else if (is_inside) {
        text += line + "\n";
      }
    }
    CHECK(examples >= 6);
  }

  TEST_CASE("rows of the tables are in order and have their facts") {
    for (int op = 0; op <= static_cast<int>(BinaryOp::Shr); ++op) {
      const BinaryInfo& row = info(static_cast<BinaryOp>(op));
      CHECK(binary_by_spelling(row.spelling) == static_cast<BinaryOp>(op));
    }
    CHECK(info(BinaryOp::Shr).spelling == ">>");
    CHECK(info(BinaryOp::And).is_logical);
    CHECK(info(BinaryOp::Ge).is_comparison);
    for (const FunctionInfo& row : all_functions()) {
      CHECK(find_function(row.name) == &row);
      CHECK(row.arity > 0);
      if (row.group == FunctionGroup::Library || row.group == FunctionGroup::Fast) CHECK_MESSAGE(!row.libdevice_f32.empty(), row.name);
    }
    for (const InstrInfo& row : all_instructions()) {
      CHECK(find_instruction(row.name) == &row);
      CHECK(!row.meaning.empty());
      CHECK(row.min_operands <= row.max_operands);
      CHECK_MESSAGE(find_function(row.name) == nullptr, row.name);
    }
    int shapes = 0;
    for (const InstrInfo& row : all_instructions()) shapes += wgmma_form(row.name) ? 1 : 0;
    CHECK(shapes == 64);
    CHECK(wgmma_form("wgmma.m64n24k16.f16")->n == 24);
    CHECK(wgmma_form("wgmma.m64n24k16.f16")->dtype == Dtype::F16);
    CHECK(wgmma_form("wgmma.m64n256k16.bf16")->dtype == Dtype::BF16);
    CHECK(!wgmma_form("wgmma.fence"));
    CHECK(find_instruction("wgmma.m64n12k16.bf16") == nullptr);
  }
}

}  // namespace tilewright
