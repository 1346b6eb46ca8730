// Plan to machine code through the disk cache; see compile.h.
#include "runtime/compile.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "ir/diagnostic.h"
#include "runtime/cache.h"
#include "runtime/nvjitlink.h"
#include "runtime/nvrtc.h"
#include "runtime/ptxas.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string identity_of_file(const std::filesystem::path& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  const auto size = std::filesystem::file_size(real, failed);
  const auto time = std::filesystem::last_write_time(real, failed).time_since_epoch().count();
  return fmt::format("{} {} {}", real.filename().string(), size, time);
}

// Tells one build of a tool from another without opening it: a hit in the cache must not cost the loading of 100 MB.
std::string identity_of(Tool tool) {
  const auto path = find_tool(tool);
  if (!path) return tool == Tool::Nvrtc ? nvrtc_version() : nvjitlink_version();
  return identity_of_file(*path);
}

std::string libdevice_path() {
  const auto path = find_tool(Tool::Libdevice);
  return path ? path->string() : "";
}

// How a text becomes machine code.
struct Assembler {
  Tool tool;
  std::vector<std::string> arguments;
  std::function<Cubin(const std::string&)> run;
};

Assembler assembler_of(const std::string& text, const CompileOptions& options) {
  if (options.backend == Backend::Nvrtc) {
    NvrtcOptions nvrtc;
    nvrtc.arch = options.arch;
    nvrtc.line_info = options.line_info;
    return {Tool::Nvrtc, nvrtc_arguments(nvrtc), [=](const std::string& cuda) { return compile_cuda(cuda, nvrtc); }};
  }
  if (text.find("setmaxnreg") != std::string::npos) {  // see runtime/ptxas.h
    const PtxasOptions ptxas{options.arch, options.line_info};
    return {Tool::Ptxas, ptxas_arguments(ptxas), [=](const std::string& ptx) { return assemble_whole(ptx, ptxas); }};
  }
  const NvJitLinkOptions nvjitlink{options.arch, options.line_info};
  return {Tool::NvJitLink, nvjitlink_arguments(nvjitlink),
          [=](const std::string& ptx) { return assemble_ptx(ptx, nvjitlink); }};
}

Cubin machine_code(const std::string& text, const CompileOptions& options, bool& is_from_cache) {
  const Assembler assembler = assembler_of(text, options);
  if (!options.use_cache) return assembler.run(text);
  std::vector<std::string> parts = assembler.arguments;
  parts.push_back(identity_of(assembler.tool));
  parts.push_back(text);
  const std::string key = cache_key(parts);
  if (auto cached = find_cached(key)) {
    is_from_cache = true;
    return *cached;
  }
  const Cubin cubin = assembler.run(text);
  keep_cached(key, cubin);
  return cubin;
}

// LLVM takes longer than a hit in the cache may, so its text is kept too, by everything that it follows from: the plan,
// this program, libdevice.
KernelText cached_ptx(const Plan& plan, const Kernel& kernel, const CompileOptions& options) {
  const std::string libdevice = libdevice_path();
  if (!options.use_cache || options.line_info) return print_ptx(plan, kernel, options.arch, libdevice);
  const std::string key = cache_key({"ptx", options.arch, identity_of_file("/proc/self/exe"),
                                     libdevice.empty() ? "" : identity_of_file(libdevice), kernel.name, print(plan)});
  if (const auto cached = find_cached(key)) {
    return {c_name(kernel.name), {cached->bytes.begin(), cached->bytes.end()}, {}};
  }
  KernelText made = print_ptx(plan, kernel, options.arch, libdevice);
  keep_cached(key, Cubin{{made.text.begin(), made.text.end()}, "", {}});
  made.lines.clear();  // with and without the cache the same
  return made;
}

// PTX in which each instruction says its own line, so that the assembler's line table names lines of the PTX.
std::string with_line_marks(const std::string& ptx) {
  std::string marked;
  marked.reserve(2 * ptx.size());
  bool is_statement_over = true;  // an instruction may go over several lines
  int line = 0;
  for (std::size_t start = 0; start < ptx.size();) {
    const std::size_t end = std::min(ptx.find('\n', start), ptx.size());
    const std::string text = ptx.substr(start, end - start);
    start = end + 1;
    ++line;
    const std::string code = text.substr(0, text.find("//"));
    const std::size_t first = code.find_first_not_of(" \t"), last = code.find_last_not_of(" \t");
    if (first != std::string::npos) {
      const bool is_instruction = code[last] == ';' && code[first] != '.' && code[first] != '}' && code[first] != ')';
      if (is_instruction && is_statement_over) marked += fmt::format("\t.loc\t1 {} 0\n", line);
      is_statement_over = std::string_view(";:{}").find(code[last]) != std::string_view::npos;
    }
    marked += text + "\n";
  }
  return marked + "\t.file\t1 \"kernel.ptx\"\n";
}

}  // namespace

CompiledKernel compile_kernel(const Plan& plan, const Kernel& kernel, const CompileOptions& options) {
  CompiledKernel result;
  result.name = kernel.name;
  const auto start = Clock::now();
  result.source = options.backend == Backend::Nvrtc ? print_cuda(plan, kernel)
                                                    : cached_ptx(plan, kernel, options);
  result.generate_ms = milliseconds_since(start);
  const auto compile_start = Clock::now();
  const bool needs_marks = options.line_info && options.backend == Backend::Llvm;
  result.cubin = machine_code(needs_marks ? with_line_marks(result.source.text) : result.source.text, options, result.is_from_cache);
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
