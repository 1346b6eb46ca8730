// The last rung of the ladder through both generators: it compiles without a word of ptxas' about serialised wgmmas
// (C7508 to C7519), without spills, and to the instructions that it was written for.
#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "ir/diagnostic.h"
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
    }
  }
}

}  // namespace tilewright
