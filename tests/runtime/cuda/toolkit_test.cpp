// The search for CUDA's tools, the reading of ptxas' report, the disk cache, SASS.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/diagnostic.h"
#include "runtime/cache.h"
#include "runtime/compile.h"
#include "runtime/disassemble.h"
#include "runtime/nvjitlink.h"
#include "runtime/nvrtc.h"
#include "runtime/process.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

constexpr const char* small_kernel = R"(extern "C" __global__ void k(float* x, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = s[127 - threadIdx.x];
})";

constexpr const char* small_ptx = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry p(.param .u64 x) {
  .reg .b64 %a;
  ld.param.u64 %a, [x];
  cvta.to.global.u64 %a, %a;
  st.global.u32 [%a], 7;
  ret;
})";

// Sets a variable of the environment for the life of the object.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_)
      setenv(name_, old_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_SUITE("runtime") {
  TEST_CASE("every tool is reported with its place or with the command that gets it") {
    const std::vector<ToolReport> reports = report_tools();
    CHECK(reports.size() == 8);
    for (const ToolReport& report : reports) {
      CAPTURE(report.name);
      CHECK(report.is_found == report.cure.empty());
    }
  }

  TEST_CASE("NVRTC: machine code, resources, log on failure") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const Cubin cubin = compile_cuda(small_kernel, NvrtcOptions{});
    const auto resources = read_resources(cubin.log, "k");
    REQUIRE_MESSAGE(resources.has_value(), cubin.log);
    CHECK(resources->registers > 0);
    CHECK(resources->shared_bytes >= 512);
    CHECK(resources->spill_store_bytes == 0);
    CHECK(!instruction_bytes(cubin, "k").empty());
    CHECK(instruction_bytes(cubin, "other").empty());
    try {
      compile_cuda("extern \"C\" __global__ void k() { undeclared(); }", NvrtcOptions{});
      FAIL("a wrong text was compiled");
    } catch (const MachineError& error) {
      const std::string message = error.what();
      CHECK(message.find("undeclared") != std::string::npos);
      CHECK(message.find("the source was saved as") != std::string::npos);
    }
  }

  TEST_CASE("the same text gives the same instructions with and without line info") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    NvrtcOptions lines;
    lines.line_info = true;
    CHECK(instruction_bytes(compile_cuda(small_kernel, lines), "k") ==
          instruction_bytes(compile_cuda(small_kernel, NvrtcOptions{}), "k"));
  }

  TEST_CASE("nvJitLink: machine code, resources, log on failure") {
    try {
      nvjitlink_version();
    } catch (const MachineError&) {
      TILEWRIGHT_SKIP("nvJitLink was not found");
    }
    const Cubin cubin = assemble_ptx(small_ptx, NvJitLinkOptions{});
    CHECK(!instruction_bytes(cubin, "p").empty());
    const auto resources = read_resources(cubin.log, "p");
    CHECK_MESSAGE(resources.has_value(), cubin.log);
    CHECK_THROWS_AS(assemble_ptx("not ptx at all", NvJitLinkOptions{}), MachineError);
  }

  TEST_CASE("SASS text, or a message that says how to get it") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    const Cubin cubin = compile_cuda(small_kernel, NvrtcOptions{});
    if (find_tool(Tool::Nvdisasm)) {
      CHECK(disassemble(cubin).find("EXIT") != std::string::npos);
    } else {
      CHECK_THROWS_WITH_AS(disassemble(cubin), doctest::Contains("nvidia-cuda-nvdisasm"), MachineError);
    }
  }

  TEST_CASE("the disk cache gives back what was put in, and only for the same key") {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("tilewright-cache-" + std::to_string(getpid()));
    const ScopedVariable variable("TILEWRIGHT_CACHE", folder.string());
    const std::string key = cache_key({"text", "sm_90a"});
    CHECK(key != cache_key({"tex", "tsm_90a"}));
    CHECK(!find_cached(key));
    const Cubin cubin{{'\0', 'E', 'L', 'F', '\n'}, "a log", {{"k<16>", "_Z1kILi16EEvv"}}};
    keep_cached(key, cubin);
    const auto found = find_cached(key);
    REQUIRE(found.has_value());
    CHECK(found->bytes == cubin.bytes);
    CHECK(found->log == cubin.log);
    CHECK(found->entries == cubin.entries);
    CHECK(!find_cached(cache_key({"text", "sm_80"})));
    for (const auto& entry : std::filesystem::directory_iterator(folder)) std::ofstream(entry.path()) << "broken";
    CHECK(!find_cached(key));
    {
      const ScopedVariable off("TILEWRIGHT_CACHE", "off");
      keep_cached(key, cubin);
      CHECK(!find_cached(key));
    }
    std::filesystem::remove_all(folder);
  }

  TEST_CASE("a program's output, errors and status are taken; one that does not exist is an error") {
    const ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
    CHECK(result.output == "out\n");
    CHECK(result.errors == "err\n");
    CHECK(result.status == 3);
    CHECK_THROWS_AS(run_process({"/nonexistent/program"}), MachineError);
  }
}

}  // namespace tilewright
