// print_ptx without a GPU: what is in the PTX, and that nvJitLink assembles it for every listed architecture without
// spilling a register.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "runtime/nvjitlink.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

constexpr const char* architectures[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

Plan read_case(const std::filesystem::path& path) {
  std::ifstream file(source_root() / path);
  std::ostringstream text;
  text << file.rdbuf();
  REQUIRE_MESSAGE(!text.str().empty(), path);
  try {
    return parse_plan(text.str());
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{path.string(), text.str()}}));
  }
  return {};
}

std::string libdevice() {
  const auto path = find_tool(Tool::Libdevice);
  return path ? path->string() : "";
}

std::string ptx_of(const Plan& plan, const std::string& arch = "sm_90a") {
  return print_ptx(plan, *kernels_of(plan).at(0), arch, libdevice()).text;
}

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void assemble(const Plan& plan, const char* arch) {
  CAPTURE(plan.name);
  CAPTURE(arch);
  const std::string ptx = ptx_of(plan, arch);
  NvJitLinkOptions options;
  options.arch = arch;
  const Cubin cubin = assemble_ptx(ptx, options);
  CHECK(!cubin.bytes.empty());
  const auto resources = read_resources(cubin.log, c_name(kernels_of(plan).at(0)->name));
  REQUIRE(resources.has_value());
  CHECK(resources->spill_store_bytes == 0);
  CHECK(resources->stack_bytes == 0);
}

// One thread an element: each output is one expression.
Plan pointwise(const std::string& inputs, const std::vector<std::pair<Dtype, std::string>>& outputs,
               int index_bits = 32) {
  std::string declared, stores, names;
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    declared += fmt::format("  out C{}: {}[N]\n", n, info(outputs[n].first).name);
    stores += fmt::format("      C{}[i] = {}\n", n, outputs[n].second);
    names += fmt::format("C{}, ", n);
  }
  const std::string text = fmt::format(
      "plan pointwise {{\n  dim N\n{}{}{}  kernel K thread grid (ceildiv(N, 256)) block (256) args (A, B, {}N) {{\n"
      "    let i = block.x*256 + thread.x\n    if i < N {{\n{}    }}\n  }}\n}}\n",
      inputs, declared, index_bits == 64 ? "  class index 64\n" : "", names, stores);
  try {
    return parse_plan(text);
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{"plan", text}}));
  }
  return {};
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("llvm: PTX of the naive matmul reads its inputs past the L1's coherence and fuses nothing of its own") {
    const std::string ptx = ptx_of(read_case("tests/ir/ladder/matmul.00.lowered.thread.ir"));
    CHECK(holds(ptx, ".entry C("));
    CHECK(holds(ptx, ".maxntid 16, 16"));
    CHECK(holds(ptx, "ld.global.nc.b16"));
    CHECK(holds(ptx, "fma.rn.f32"));
    CHECK(holds(ptx, "cvt.rn.bf16.f32"));
    CHECK(!holds(ptx, ".local"));
    CHECK(!holds(ptx, ".loc"));
  }

  TEST_CASE("llvm: PTX of the tiled matmul has its shared memory and its barriers, and no local memory") {
    const std::string ptx = ptx_of(read_case("tests/ir/ladder/matmul.ch5.thread.ir"));
    CHECK(holds(ptx, ".shared .align 16 .b8 shared[2048]"));
    CHECK(holds(ptx, "bar.sync"));
    CHECK(holds(ptx, "ld.shared.v4.b32"));
    CHECK(!holds(ptx, ".local"));
  }

  TEST_CASE("llvm: arithmetic is rounded once, to nearest, with denormals") {
    const Plan plan = pointwise("  in A: f32[N]\n  in B: f32[N]\n", {{Dtype::F32, "A[i]*B[i] + A[i]"},
                                                                     {Dtype::F32, "A[i] / B[i]"},
                                                                     {Dtype::F32, "sqrt(A[i])"},
                                                                     {Dtype::F32, "max(A[i], B[i])"}});
    const std::string ptx = ptx_of(plan);
    for (const char* part : {"mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32", "max.NaN.f32"})
      CHECK_MESSAGE(holds(ptx, part), part);
    CHECK(!holds(ptx, ".ftz"));
    CHECK(!holds(ptx, "fma"));
  }

  TEST_CASE("llvm: a vector access is one instruction") {
    const std::string ptx = ptx_of(read_case("tests/codegen/cuda/vector.ir"));
    CHECK(holds(ptx, "ld.global.v4.b32"));  // not .nc: an inout tensor may overlap an input
    CHECK(holds(ptx, "st.global.v4.b32"));
    CHECK(!holds(ptx, ".local"));
  }

  TEST_CASE("llvm: lines of PTX say which line of the program they stem from") {
    const std::string path = "tests/ir/ladder/matmul.ch5.thread.ir";
    const Plan plan = read_case(path);
    const KernelText text = print_ptx(plan, *kernels_of(plan).at(0), "sm_90a", "");
    const auto lines_of = [](std::istream& stream) {
      std::vector<std::string> lines;
      for (std::string line; std::getline(stream, line);) lines.push_back(line);
      return lines;
    };
    std::ifstream file(source_root() / path);
    std::istringstream stream(text.text);
    const std::vector<std::string> program = lines_of(file);
    const std::vector<std::string> ptx = lines_of(stream);
    int seen = 0;
    for (const LineOrigin& origin : text.lines) {
      const std::string& instruction = ptx.at(static_cast<std::size_t>(origin.line) - 1);
      const std::string& statement = program.at(static_cast<std::size_t>(origin.span.line) - 1);
      const auto stems_from = [&](const char* part, const char* source) {
        if (!holds(instruction, part)) return;
        ++seen;
        CHECK_MESSAGE(holds(statement, source), instruction, " from ", statement);
      };
      stems_from("st.global", "C[");
      stems_from("bar.sync", "barrier.block()");
      stems_from("st.shared", "s[");
      stems_from("fma.rn", "fma(");
    }
    CHECK(seen == 1 + 2 + 2 + 16);
  }

  TEST_CASE("llvm: an architecture that does not exist, and a missing libdevice, are the machine's faults") {
    const Plan plan = pointwise("  in A: f32[N]\n  in B: f32[N]\n", {{Dtype::F32, "exp(A[i])"}});
    const Kernel& kernel = *kernels_of(plan).at(0);
    CHECK_THROWS_AS(print_ptx(plan, kernel, "sm_8x", ""), MachineError);
    CHECK_THROWS_AS(print_ptx(plan, kernel, "gfx900", ""), MachineError);
    CHECK_THROWS_AS(print_ptx(plan, kernel, "sm_90a", ""), MachineError);
    CHECK_THROWS_AS(print_ptx(plan, kernel, "sm_90a", "/nowhere/libdevice.10.bc"), MachineError);
    CHECK_THROWS_AS(compile_for_host(plan, kernel), MachineError);
  }

  TEST_CASE("llvm: PTX is assembled for every listed architecture") {
    if (!find_tool(Tool::NvJitLink)) TILEWRIGHT_SKIP("nvJitLink was not found");
    for (const char* file :
         {"tests/ir/ladder/matmul.00.lowered.thread.ir", "tests/ir/ladder/matmul.ch5.thread.ir",
          "tests/codegen/cuda/vector.ir", "tests/codegen/llvm/atomics.ir", "tests/codegen/llvm/warp.ir"}) {
      const Plan plan = read_case(file);
      for (const char* arch : architectures) assemble(plan, arch);
    }
  }

  TEST_CASE("llvm: operators and conversions of every dtype are assembled") {
    if (!find_tool(Tool::NvJitLink)) TILEWRIGHT_SKIP("nvJitLink was not found");
    constexpr Dtype dtypes[] = {Dtype::F64,  Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::E4M3,
                                Dtype::E5M2, Dtype::I64, Dtype::I32, Dtype::I16,  Dtype::I8,
                                Dtype::U64,  Dtype::U32, Dtype::U16, Dtype::U8,   Dtype::Bool};
    if (!find_tool(Tool::Libdevice)) TILEWRIGHT_SKIP("libdevice was not found");
    for (Dtype dtype : dtypes) {
      std::vector<std::pair<Dtype, std::string>> outputs;
      if (dtype != Dtype::Bool) {
        for (const char* text : {"A[i] + B[i]", "A[i] * B[i]", "A[i] / B[i]", "A[i] % B[i]", "min(A[i], B[i])",
                                 "max(A[i], B[i])", "-A[i]"})
          outputs.emplace_back(dtype, text);
        outputs.emplace_back(Dtype::Bool, "A[i] < B[i]");
      }
      for (Dtype to : dtypes)
        if (to != dtype) outputs.emplace_back(to, fmt::format("{}(A[i])", info(to).name));
      const std::string inputs = fmt::format("  in A: {0}[N]\n  in B: {0}[N]\n", info(dtype).name);
      const Plan plan = pointwise(inputs, outputs, dtype == Dtype::I64 ? 64 : 32);
      for (const char* arch : {"sm_75", "sm_90a"}) assemble(plan, arch);
    }
  }

  TEST_CASE("llvm: every function of the table is linked and inlined") {
    if (!find_tool(Tool::Libdevice)) TILEWRIGHT_SKIP("libdevice was not found");
    for (Dtype dtype : {Dtype::F32, Dtype::F64}) {
      std::vector<std::pair<Dtype, std::string>> outputs;
      for (const FunctionInfo& function : all_functions()) {
        const bool is_fast_f64 = function.group == FunctionGroup::Fast && dtype == Dtype::F64;
        if (function.group == FunctionGroup::Structural || !function.takes_float || is_fast_f64) continue;
        std::string arguments = "A[i]";
        for (int n = 1; n < function.arity; ++n) arguments += ", B[i]";
        outputs.emplace_back(function.result.value_or(dtype), fmt::format("{}({})", function.name, arguments));
      }
      const Plan plan = pointwise(fmt::format("  in A: {0}[N]\n  in B: {0}[N]\n", info(dtype).name), outputs);
      const std::string ptx = ptx_of(plan);
      CHECK(!holds(ptx, ".extern .func"));
      CHECK(!holds(ptx, "__nvvm_reflect"));
    }
  }
}

}  // namespace tilewright
