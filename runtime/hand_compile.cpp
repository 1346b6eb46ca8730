// Compiling hand kernels; see hand.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "ir/diagnostic.h"
#include "runtime/cache.h"
#include "runtime/hand.h"
#include "runtime/nvrtc.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

std::string plain_name(const std::string& instance) { return instance.substr(0, instance.find('<')); }

const HandKernel& kernel_of_launch(const HandSource& source, const HandLaunch& launch, const std::string& file) {
  const std::string wanted = plain_name(launch.kernel);
  for (const HandKernel& kernel : source.kernels)
    if (kernel.name == wanted) return kernel;
  std::string known;
  for (const HandKernel& kernel : source.kernels) known += (known.empty() ? "`" : ", `") + kernel.name + "`";
  throw UserError(launch.span, fmt::format("`{}` has no kernel `{}`", file, wanted),
                  known.empty() ? "the file has no __global__ function" : "the file has " + known);
}

void check_launch(const HandKernel& kernel, const HandLaunch& launch) {
  if (kernel.parameters.size() != launch.arguments.size()) {
    throw UserError(launch.span, fmt::format("kernel `{}` has {} parameters, and the launch gives {}", kernel.name,
                                             kernel.parameters.size(), launch.arguments.size()));
  }
  const bool is_instance = launch.kernel.find('<') != std::string::npos;
  if (kernel.is_template && !is_instance) {
    throw UserError(launch.span,
                    fmt::format("kernel `{}` is a template, and the launch names no instance", kernel.name),
                    fmt::format("write the arguments: `{}<16>`", kernel.name));
  }
}

// The options, and every instance and constant that the steps name, checked against the file.
NvrtcOptions options_for(const HandProgram& program, const HandSource& source, const std::string& arch, bool line_info) {
  NvrtcOptions options;
  options.arch = arch;
  options.line_info = line_info;
  options.exact = false;
  options.file_name = std::filesystem::path(program.file_name).filename().string();
  if (options.file_name.empty()) options.file_name = "hand.cu";
  const auto add_name = [&](const std::string& expression) {
    if (std::find(options.name_expressions.begin(), options.name_expressions.end(), expression) ==
        options.name_expressions.end()) {
      options.name_expressions.push_back(expression);
    }
  };
  for (const HandStep& step : program.steps) {
    if (const auto* launch = std::get_if<HandLaunch>(&step)) {
      const HandKernel& kernel = kernel_of_launch(source, *launch, program.file_name);
      check_launch(kernel, *launch);
      if (!kernel.is_extern_c) add_name(launch->kernel);
    }
    if (const auto* constant = std::get_if<HandConstant>(&step)) add_name("&" + constant->symbol);
  }
  const std::filesystem::path folder = std::filesystem::path(program.file_name).parent_path();
  if (source.text.find("#include") != std::string::npos) {
    options.include_folders.push_back(folder.empty() ? "." : folder.string());
    if (const auto header = find_tool(Tool::Headers)) {
      options.include_folders.push_back(header->parent_path().string());
      options.include_folders.push_back((header->parent_path() / "cccl").string());
    }
  }
  return options;
}

}  // namespace

namespace {

HandSource source_of(const HandProgram& program) {
  const std::string file_name = std::filesystem::path(program.file_name).filename().string();
  return read_hand_source(program.text, file_name.empty() ? "hand.cu" : file_name);
}

// Through the disk cache. `what` tells PTX from machine code.
template <class Compile>
Cubin compiled(const std::string& text, const NvrtcOptions& options, bool use_cache, const char* what, Compile&& compile) {
  // What a local header holds is not in the key: such a file is compiled each time.
  const bool may_cache = use_cache && options.include_folders.empty();
  std::string key;
  if (may_cache) {
    std::vector<std::string> parts = nvrtc_arguments(options);
    parts.push_back(nvrtc_version());
    parts.insert(parts.end(), options.name_expressions.begin(), options.name_expressions.end());
    parts.push_back(text);
    parts.push_back(what);
    key = cache_key(parts);
  }
  auto cached = may_cache ? find_cached(key) : std::nullopt;
  Cubin cubin = cached ? std::move(*cached) : compile();
  if (may_cache && !cached) keep_cached(key, cubin);
  return cubin;
}

double milliseconds_from(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(); }

}  // namespace

CompiledHand compile_hand(const HandProgram& program, const std::string& arch, bool use_cache, bool line_info) {
  CompiledHand hand;
  hand.program = program;
  hand.source = source_of(program);
  const NvrtcOptions options = options_for(program, hand.source, arch, line_info);

  const auto start = std::chrono::steady_clock::now();
  hand.cubin = compiled(hand.source.text, options, use_cache, "machine code", [&] { return compile_cuda(hand.source.text, options); });
  hand.compile_ms =  milliseconds_from(start);

  for (const HandStep& step : program.steps) {
    const auto* launch = std::get_if<HandLaunch>(&step);
    if (!launch) continue;
    const auto entry = hand.cubin.entries.find(launch->kernel);
    const auto resources =
        read_resources(hand.cubin.log, entry == hand.cubin.entries.end() ? launch->kernel : entry->second);
    if (resources) hand.resources.emplace_back(launch->kernel, *resources);
  }
  return hand;
}

HandPtx compile_hand_to_ptx(const HandProgram& program, const std::string& arch, bool use_cache) {
  HandPtx hand;
  hand.program = program;
  hand.source = source_of(program);
  const NvrtcOptions options = options_for(program, hand.source, arch, true);
  const auto start = std::chrono::steady_clock::now();
  const Cubin code = compiled(hand.source.text, options, use_cache, "PTX", [&] {
    Cubin result;
    const std::string text = cuda_to_ptx(hand.source.text, options, &result.entries);
    result.bytes.assign(text.begin(), text.end());
    return result;
  });
  hand.text.assign(code.bytes.begin(), code.bytes.end());
  hand.entries = code.entries;
  hand.compile_ms =  milliseconds_from(start);
  return hand;
}

}  // namespace tilewright
