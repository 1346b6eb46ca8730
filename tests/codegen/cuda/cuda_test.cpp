// print_cuda: golden texts, and every text compiled by NVRTC for every listed architecture.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"
#include "runtime/nvrtc.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string print_all(const std::filesystem::path& path) {
  const std::string text = read(path);
  try {
    const Plan plan = parse_plan(text);
    std::string all;
    for (const Kernel* kernel : kernels_of(plan)) all += print_cuda(plan, *kernel).text;
    return all;
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{path.string(), text}}));
  }
  return "";
}

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "tests/codegen/cuda"))
    if (entry.path().extension() == ".ir") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("CUDA C of a thread-stage kernel is the expected text") {
    for (const std::filesystem::path& path : cases()) {
      CAPTURE(path);
      const std::string text = print_all(path);
      std::filesystem::path expected = path;
      expected.replace_extension(".cu");
      if (updates_expectations()) std::ofstream(expected) << text;
      CHECK(text == read(expected));
    }
  }

  TEST_CASE("NVRTC compiles every printed kernel for every listed architecture") {
    if (!find_tool(Tool::Nvrtc)) TILEWRIGHT_SKIP("NVRTC was not found");
    for (const std::filesystem::path& path : cases()) {
      CAPTURE(path);
      const std::string text = print_all(path);
      for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
        NvrtcOptions options;
        options.arch = arch;
        const Cubin cubin = compile_cuda(text, options);
        CHECK(!cubin.bytes.empty());
        CHECK_MESSAGE(cubin.log.find("warning") == std::string::npos, cubin.log);
      }
    }
  }
}

}  // namespace tilewright
