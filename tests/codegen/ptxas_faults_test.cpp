// What the generators do against faults of the assembler, and what they once handed to it that it refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <regex>

#include "codegen/codegen.h"
#include "ir/plan.h"
#include "runtime/compile.h"
#include "runtime/disassemble.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

Plan signed_chain(const char* dtype, const char* result) {
  return parse_plan(fmt::format(R"(plan chain {{
  dim N
  in A: {0}[N]
  in B: {0}[N]
  in C: {0}[N]
  out R: {0}[N]
  kernel R thread grid (ceildiv(N, 256)) block (256) args (A, B, C, R, N) {{
    let i = block.x*256 + thread.x
    if i < N {{
      R[i] = {1}
    }}
  }}
}}
)",
                                dtype, result));
}

std::string sass_of(const Plan& plan, Backend backend, const char* arch) {
  CompileOptions options;
  options.backend = backend;
  options.arch = arch;
  options.use_cache = false;
  return disassemble(compile_kernel(plan, *kernels_of(plan).front(), options).cubin);
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("a minus inside two signed maxima or minima reaches the machine") {
    // ptxas 13.0 drops it where it makes the two one instruction; of unsigned numbers it does not.
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Ptxas) || !find_tool(Tool::Nvdisasm))
      TILEWRIGHT_SKIP("NVRTC, ptxas or nvdisasm was not found");
    const std::regex signed_triple("VIMNMX3(\\.S16x2)? ");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm})
      for (const char* arch : {"sm_90a", "sm_100a"})
        for (const char* dtype : {"i32", "i16", "i8"})
          for (const char* word : {"min", "max"}) {
            CAPTURE(static_cast<int>(backend));
            CAPTURE(arch);
            CAPTURE(dtype);
            const std::string sass =
                sass_of(signed_chain(dtype, fmt::format("{0}({0}(A[i], -B[i]), C[i])", word).c_str()), backend, arch);
            CHECK_MESSAGE(!std::regex_search(sass, signed_triple), sass);
            CHECK_MESSAGE(std::regex_search(sass, std::regex("MNMX3?\\.U")), sass);
          }
  }

  TEST_CASE("CUDA C: no tensor takes the name of a function in front of the kernel") {
    for (const char* name : {"fill", "max_i32", "i32_from_f32", "within", "f32_odd_from_i64", "bf16x2", "wgmma_wait", "shared"}) CHECK(c_name(name) == std::string(name) + "_");
    CHECK(c_name("filled") == "filled");
  }

  TEST_CASE("llvm: an array that is indexed at run time has its place in local memory") {
    if (!find_tool(Tool::Ptxas)) TILEWRIGHT_SKIP("ptxas was not found");
    const Plan plan = parse_plan(R"(plan local {
  dim N
  in A: i32[N]
  out R: i32[N]
  kernel R thread grid (ceildiv(N, 256)) block (256) args (A, R, N) {
    let i = block.x*256 + thread.x
    reg t: i32[64]
    unroll s in 64 {
      t[s] = s
    }
    if i < N {
      t[A[i] & 63] = i32(i)
      R[i] = t[(A[i] >> 8) & 63]
    }
  }
}
)");
    CHECK(print_ptx(plan, *kernels_of(plan).front(), "sm_90a", "").text.find(".local") != std::string::npos);
    CompileOptions options;
    options.backend = Backend::Llvm;
    options.use_cache = false;
    const CompiledKernel kernel = compile_kernel(plan, *kernels_of(plan).front(), options);
    REQUIRE(kernel.resources);
    CHECK(kernel.resources->stack_bytes == 256);
  }
}

}  // namespace tilewright
