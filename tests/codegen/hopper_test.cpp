// The last rung of the ladder through both generators: it compiles without a word of ptxas' about serialised wgmmas
// (C7508 to C7519), without spills, and to the instructions that it was written for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "codegen/codegen.h"
#include "codegen/descriptor_offset.h"
#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "runtime/compile.h"
#include "runtime/disassemble.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

Plan read_case(const std::string& name) {
  std::ifstream file(source_root() / "tests/ir/ladder" / name);
  std::ostringstream text;
  text << file.rdbuf();
  return read_plan(text.str());
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("the last Hopper rung compiles cleanly by both generators") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Ptxas)) TILEWRIGHT_SKIP("NVRTC or ptxas was not found");
    const Plan plan = read_case("matmul.09.persist.thread.ir");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      CAPTURE(static_cast<int>(backend));
      CompileOptions options;
      options.backend = backend;
      options.use_cache = false;
      const CompiledKernel kernel = compile_kernel(plan, *kernels_of(plan).front(), options);
      CHECK_MESSAGE(!std::regex_search(kernel.cubin.log, std::regex("C75[0-9][0-9]|warning")), kernel.cubin.log);
      REQUIRE(kernel.resources);
      CHECK(kernel.resources->registers == 168);  // of 65,536 for 384 threads: what setmaxnreg starts from
      CHECK(kernel.resources->spill_store_bytes == 0);
      CHECK(kernel.resources->stack_bytes == 0);
      if (!find_tool(Tool::Nvdisasm)) continue;
      const std::string sass = disassemble(kernel.cubin);
      CHECK(count(sass, "HGMMA.64x256x16.F32.BF16") == 4);
      CHECK(count(sass, "UTMALDG.2D") == 3);
      CHECK(count(sass, "UTMALDG.2D.MULTICAST") == 2);
      CHECK(count(sass, "UTMASTG.2D") == 4);
      CHECK(count(sass, "USETMAXREG") == 2);
      // From one warpgroup fence to the wait: descriptors cost an addition each.
      const std::size_t loop = sass.find("WARPGROUP.ARRIVE");
      const std::size_t wait = sass.find("WARPGROUP.DEPBAR", loop);
      REQUIRE(wait != std::string::npos);
      CHECK(count(sass.substr(loop, wait - loop), " ;") <= 50);
    }
  }

  TEST_CASE("a block's rank in its cluster stays out of its matrix descriptors") {
    // The hardware's shared addresses have the rank in bits 24 and up; the leading offset of a descriptor lies there.
    const Plan plan = read_case("matmul.09.persist.thread.ir");
    const Kernel& kernel = *kernels_of(plan).front();
    CHECK(count(print_cuda(plan, kernel).text, "shared_address(place) >> 4 & 0x3fff") == 1);
    CHECK(count(print_llvm(plan, kernel, "sm_90a", ""), ", 16320") == 2);  // 0x3fff less what 1024 bytes of alignment tell
  }

  TEST_CASE("llvm: wgmmas one after the other are one assembly, and each keeps its line") {
    const Plan plan = read_case("matmul.09.persist.thread.ir");
    const Kernel& kernel = *kernels_of(plan).front();
    const std::string module = print_llvm(plan, kernel, "sm_90a", "");
    CHECK(count(module, "wgmma.mma_async") == 4);
    CHECK(std::regex_search(module, std::regex("wgmma.fence[^\"]*wgmma.mma_async[^\"]*wgmma.mma_async[^\"]*wgmma.mma_async[^\"]*wgmma.mma_async[^\"]*wgmma.commit[^\"]*wgmma.wait")));
    const KernelText text = print_ptx(plan, kernel, "sm_90a", "");
    CHECK(count(text.text, ".loc") == 0);
    std::istringstream ptx(text.text);
    std::set<int> seen;
    int number = 0;
    for (std::string line; std::getline(ptx, line);) {
      ++number;
      for (const char* word : {"wgmma.fence", "wgmma.mma_async", "wgmma.commit", "wgmma.wait_group"}) {
        if (line.find(word) == std::string::npos) continue;
        const auto origin = std::find_if(text.lines.begin(), text.lines.end(), [&](const LineOrigin& each) { return each.line == number; });
        REQUIRE_MESSAGE(origin != text.lines.end(), line);
        seen.insert(origin->span.line);
      }
    }
    CHECK(seen.size() == 5);  // the fence, the loop's wgmma, the commit, both waits
  }

  TEST_CASE("index expressions are divided where every term is a multiple by its form") {
    const auto quotient = [](const Expr& expr, std::int64_t divisor) -> std::string {
      const std::optional<Expr> found = exact_quotient(expr, divisor);
      return found ? print(*found) : "none";
    };
    const Expr a = var("a");
    const Expr b = var("b");
    CHECK(quotient(a * 8192 + (b * 4096 + integer(16)), 8) == "a*1024 + (b*512 + 2)");
    CHECK(quotient((a + 1) * 16 - b * 8, 8) == "(a + 1)*2 - b");
    CHECK(quotient(a * 4 + b * 8, 8) == "none");
    CHECK(quotient(a, 8) == "none");
    CHECK(quotient(a, 1) == "a");
    CHECK(quotient(integer(-24), 8) == "-3");
    CHECK(quotient(integer(12), 8) == "none");
  }

  TEST_CASE("a second compilation of a Hopper kernel comes from the disk cache at once") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::Ptxas)) TILEWRIGHT_SKIP("NVRTC or ptxas was not found");
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tilewright-hopper-test";
    std::filesystem::remove_all(folder);
    const char* before = std::getenv("TILEWRIGHT_CACHE");
    const std::string kept = before == nullptr ? "" : before;
    setenv("TILEWRIGHT_CACHE", folder.c_str(), 1);
    const Plan plan = read_case("matmul.09.persist.thread.ir");
    for (const Backend backend : {Backend::Nvrtc, Backend::Llvm}) {
      CompileOptions options;
      options.backend = backend;
      const CompiledKernel first = compile_kernel(plan, *kernels_of(plan).front(), options);
      double fastest_ms = 1e9;
      for (int again = 0; again < 5; ++again) {
        const CompiledKernel next = compile_kernel(plan, *kernels_of(plan).front(), options);
        CHECK(next.is_from_cache);
        CHECK(next.source.text == first.source.text);
        CHECK(next.cubin.bytes == first.cubin.bytes);
        fastest_ms = std::min(fastest_ms, next.generate_ms + next.compile_ms);
      }
      CHECK_FALSE(first.is_from_cache);
      MESSAGE("compiled in ", first.generate_ms + first.compile_ms, " ms, from the cache in ", fastest_ms, " ms");
      CHECK(fastest_ms * 5 < first.generate_ms + first.compile_ms);  // 7 ms of 360 where nothing else runs
    }
    before == nullptr ? unsetenv("TILEWRIGHT_CACHE") : setenv("TILEWRIGHT_CACHE", kept.c_str(), 1);
    std::filesystem::remove_all(folder);
  }
}

}  // namespace tilewright
