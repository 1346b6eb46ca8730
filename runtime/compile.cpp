// Plan to machine code through the disk cache; see compile.h.
#include "runtime/compile.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "ir/diagnostic.h"
#include "runtime/cache.h"
#include "runtime/nvjitlink.h"
#include "runtime/nvrtc.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Tells one build of a tool from another without opening it: a hit in the cache must not cost the loading of 100 MB.
std::string identity_of(Tool tool) {
  const auto path = find_tool(tool);
  if (!path) return tool == Tool::Nvrtc ? nvrtc_version() : nvjitlink_version();
  std::error_code failed;
  const auto real = std::filesystem::canonical(*path, failed);
  const auto size = std::filesystem::file_size(real, failed);
  const auto time = std::filesystem::last_write_time(real, failed).time_since_epoch().count();
  return fmt::format("{} {} {}", real.filename().string(), size, time);
}

std::string libdevice_path() {
  const auto path = find_tool(Tool::Libdevice);
  return path ? path->string() : "";
}

Cubin machine_code(const std::string& text, const CompileOptions& options, bool& is_from_cache) {
  const bool by_nvrtc = options.backend == Backend::Nvrtc;
  NvrtcOptions nvrtc;
  nvrtc.arch = options.arch;
  nvrtc.line_info = options.line_info;
  const NvJitLinkOptions nvjitlink{options.arch, options.line_info};
  std::vector<std::string> parts = by_nvrtc ? nvrtc_arguments(nvrtc) : nvjitlink_arguments(nvjitlink);
  std::string key;
  if (options.use_cache) {
    parts.push_back(identity_of(by_nvrtc ? Tool::Nvrtc : Tool::NvJitLink));
    parts.push_back(text);
    key = cache_key(parts);
    if (auto cached = find_cached(key)) {
      is_from_cache = true;
      return *cached;
    }
  }
  Cubin cubin = by_nvrtc ? compile_cuda(text, nvrtc) : assemble_ptx(text, nvjitlink);
  if (options.use_cache) keep_cached(key, cubin);
  return cubin;
}

}  // namespace

CompiledKernel compile_kernel(const Plan& plan, const Kernel& kernel, const CompileOptions& options) {
  CompiledKernel result;
  result.name = kernel.name;
  const auto start = Clock::now();
  result.source = options.backend == Backend::Nvrtc ? print_cuda(plan, kernel)
                                                    : print_ptx(plan, kernel, options.arch, libdevice_path());
  result.generate_ms = milliseconds_since(start);
  const auto compile_start = Clock::now();
  result.cubin = machine_code(result.source.text, options, result.is_from_cache);
  result.compile_ms = milliseconds_since(compile_start);
  result.resources = read_resources(result.cubin.log, result.source.kernel);
  return result;
}

CompiledPlan compile_plan(const Plan& plan, const CompileOptions& options) {
  CompiledPlan result{plan, options, {}};
  for (const Kernel* kernel : kernels_of(plan)) result.kernels.push_back(compile_kernel(plan, *kernel, options));
  return result;
}

std::string ptx_of(const Plan& plan, const Kernel& kernel, const CompileOptions& options) {
  if (options.backend == Backend::Llvm) return print_ptx(plan, kernel, options.arch, libdevice_path()).text;
  NvrtcOptions nvrtc;
  nvrtc.arch = options.arch;
  nvrtc.line_info = options.line_info;
  return cuda_to_ptx(print_cuda(plan, kernel).text, nvrtc);
}

}  // namespace tilewright
