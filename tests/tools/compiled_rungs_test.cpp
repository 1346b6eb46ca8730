// Every schedule of every example through both generators without a GPU: the machine code is made, and kernels of the
// tensor cores keep their promises. A normal run takes the last rung of each, the architectures in turn; --full takes
// all rungs for all architectures.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>

#include "ir/diagnostic.h"
#include "runtime/compile.h"
#include "runtime/library/session.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"

namespace tilewright {

namespace {

constexpr auto architectures = std::to_array<std::string_view>(
    {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"});

std::vector<std::filesystem::path> programs() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_root() / "examples"))
    if (entry.path().extension() == ".tw") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

bool uses(const Kernel& kernel, std::string_view instructions) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& stmt) {
    const Instr* instr = as<Instr>(stmt);
    found = found || (instr && instr->op.starts_with(instructions));
    return !found;
  });
  return found;
}

void check_compiles(const Plan& plan, const std::string& arch) {
  Plan threads;
  try {
    threads = thread_stage(plan, target_for(arch));
  } catch (const UserError& error) {
    WARN_MESSAGE(false, error.what());  // a line that this version cannot finish yet, which run and ladder say too
    return;
  }
  for (const Backend backend : {Backend::Nvrtc, Backend::Llvm})
    for (const Kernel* kernel : kernels_of(threads)) {
      INFO("kernel ", kernel->name, " by ", std::string(backend == Backend::Nvrtc ? "NVRTC" : "LLVM"), " for ", arch);
      CompileOptions options;
      options.backend = backend;
      options.arch = arch;
      options.use_cache = false;
      const CompiledKernel compiled = compile_kernel(threads, *kernel, options);
      CHECK_FALSE(compiled.cubin.bytes.empty());
      REQUIRE(compiled.resources);
      if (uses(*kernel, "wgmma.")) CHECK_MESSAGE(!std::regex_search(compiled.cubin.log, std::regex("C75[0-9][0-9]")), compiled.cubin.log);
      // A pipeline leaves the registers to the accumulators; copies by the computing threads themselves may not.
      const int spilled = compiled.resources->spill_store_bytes + compiled.resources->spill_load_bytes;
      if (uses(*kernel, "tma.")) CHECK(spilled == 0);
    }
}

// The rungs for an architecture; none where a line needs more than it has.
std::vector<Rung> rungs_for(const Program& program, const Schedule& schedule, const std::string& arch) {
  try {
    return build_rungs(choose_fn(program, schedule.fn), schedule.name, schedule.arch, schedule.when, schedule.lines,
                       target_for(arch), CallClass{});
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

TEST_SUITE("codegen") {
  TEST_CASE("the last rung of every schedule compiles by both generators") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::NvJitLink)) TILEWRIGHT_SKIP("NVRTC or nvJitLink was not found");
    std::size_t turn = 0;
    for (const std::filesystem::path& path : programs()) {
      const Program program = load_program(path.string());
      for (const Schedule& schedule : program.schedules) {
        const std::string of_turn(architectures[turn++ % architectures.size()]);
        std::string arch = schedule.arch.empty() ? of_turn : schedule.arch;
        INFO(path, " \"", schedule.name, "\"");
        std::vector<Rung> rungs = rungs_for(program, schedule, arch);
        if (rungs.empty()) rungs = rungs_for(program, schedule, arch = "sm_90a");
        REQUIRE_FALSE(rungs.empty());
        check_compiles(rungs.back().plan, arch);
      }
    }
  }
}

TEST_SUITE("codegen full") {
  TEST_CASE("every rung of every schedule compiles by both generators for every architecture") {
    if (!find_tool(Tool::Nvrtc) || !find_tool(Tool::NvJitLink)) TILEWRIGHT_SKIP("NVRTC or nvJitLink was not found");
    for (const std::filesystem::path& path : programs()) {
      const Program program = load_program(path.string());
      for (const Schedule& schedule : program.schedules)
        for (const std::string_view arch : architectures) {
          if (!schedule.arch.empty() && schedule.arch != arch) continue;
          INFO(path, " \"", schedule.name, "\"");
          for (const Rung& rung : rungs_for(program, schedule, std::string(arch))) {
            INFO("line ", rung.line);
            check_compiles(rung.plan, std::string(arch));
          }
        }
    }
  }
}

}  // namespace tilewright
