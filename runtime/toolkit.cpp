// The search for CUDA's tools; see toolkit.h.
#include "runtime/toolkit.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ir/diagnostic.h"
#include "runtime/process.h"

namespace tilewright {

namespace fs = std::filesystem;

namespace {

// One row a tool. `files` are tried in turn in each folder of `folders` below a root; `sonames` by the loader.
struct Row {
  Tool tool;
  const char* name;
  const char* purpose;
  std::vector<const char*> folders;
  std::vector<const char*> files;
  std::vector<const char*> needs;  // libraries of the same folder that it opens by name: opened first, with their path
  const char* package;             // of NVIDIA's Python wheels
};

const std::vector<const char*> library_folders = {"lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {Tool::Driver, "CUDA driver", "runs kernels on the GPU", {}, {"libcuda.so.1"}, {}, ""},
      {Tool::Nvrtc,
       "NVRTC",
       "compiles CUDA C",
       library_folders,
       {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
       {"libnvrtc-builtins.so"},
       "nvidia-cuda-nvrtc"},
      {Tool::NvJitLink,
       "nvJitLink",
       "assembles PTX",
       library_folders,
       {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"},
       {},
       "nvidia-nvjitlink"},
      {Tool::Libdevice,
       "libdevice",
       "math functions for the LLVM generator",
       {"nvvm/libdevice"},
       {"libdevice.10.bc"},
       {},
       "nvidia-nvvm"},
      {Tool::Ptxas, "ptxas", "assembles kernels whose warps trade registers", {"bin"}, {"ptxas"}, {}, "nvidia-cuda-nvcc"},
      {Tool::Nvdisasm, "nvdisasm", "prints SASS", {"bin"}, {"nvdisasm"}, {}, "nvidia-cuda-nvdisasm"},
      {Tool::Headers,
       "CUDA headers",
       "for hand kernels that include them",
       {"include", "targets/x86_64-linux/include"},
       {"cuda_fp16.h"},
       {},
       "nvidia-cuda-runtime"},
      {Tool::Cublas,
       "cuBLAS",
       "the peer of matmul in `compare`",
       library_folders,
       {"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
       {"libcublasLt.so"},
       "nvidia-cublas"},
  };
  return rows;
}

const Row& row_of(Tool tool) {
  for (const Row& row : table())
    if (row.tool == tool) return row;
  internal_error("toolkit: a tool without a row");
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<fs::path> search_path() {
  std::vector<fs::path> folders;
  const std::string path = environment("PATH");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

// Roots that the wheels of a Python installation make: site-packages/nvidia/cu13, or nvidia/<package> (older layout).
std::vector<fs::path> python_roots() {
  std::vector<fs::path> roots;
  std::error_code ignored;
  for (const fs::path& folder : search_path()) {
    fs::path program = folder / "python3";
    // A virtual environment's python3 is itself a link out of it, and something on the PATH may link to that one.
    for (int link = 0; link < 4 && fs::exists(program, ignored); ++link) {
      const fs::path libraries = program.parent_path().parent_path() / "lib";
      for (const auto& version : fs::directory_iterator(libraries, ignored)) {
        if (!version.path().filename().string().starts_with("python3")) continue;
        const fs::path nvidia = version.path() / "site-packages" / "nvidia";
        for (const auto& package : fs::directory_iterator(nvidia, ignored)) roots.push_back(package.path());
      }
      if (!fs::is_symlink(program, ignored)) break;
      const fs::path target = fs::read_symlink(program, ignored);
      program = target.is_absolute() ? target : program.parent_path() / target;
    }
  }
  std::sort(roots.begin(), roots.end());
  return roots;
}

const std::vector<fs::path>& roots() {
  static const std::vector<fs::path> all = [] {
    std::vector<fs::path> list;
    const auto add = [&](const fs::path& root) {
      std::error_code ignored;
      if (!root.empty() && fs::is_directory(root, ignored)) list.push_back(root);
    };
    add(environment("TILEWRIGHT_CUDA"));
    add(program_directory() / "cuda");
    add(program_directory().parent_path() / "cuda");
    add(environment("CUDA_HOME"));
    add("/usr/local/cuda");
    for (const fs::path& root : python_roots()) add(root);
    return list;
  }();
  return all;
}

bool is_library(Tool tool) {
  return tool == Tool::Driver || tool == Tool::Nvrtc || tool == Tool::NvJitLink || tool == Tool::Cublas;
}

// "13.0" out of "…release 13.0, V13.0.88".
std::string program_version(const fs::path& program) {
  const ProcessResult result = run_process({program.string(), "--version"});
  const std::size_t at = result.output.find("release ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + 8;
  return result.output.substr(begin, result.output.find_first_of(",\n", begin) - begin);
}

std::string library_version(const SharedLibrary& library, Tool tool) {
  int major = 0;
  int minor = 0;
  if (tool == Tool::Nvrtc) reinterpret_cast<int (*)(int*, int*)>(library.symbol("nvrtcVersion"))(&major, &minor);
  if (tool == Tool::NvJitLink) {
    unsigned wide[2] = {0, 0};
    reinterpret_cast<int (*)(unsigned*, unsigned*)>(library.symbol("nvJitLinkVersion"))(&wide[0], &wide[1]);
    major = static_cast<int>(wide[0]);
    minor = static_cast<int>(wide[1]);
  }
  if (tool == Tool::Driver) {
    int version = 0;
    reinterpret_cast<int (*)(int*)>(library.symbol("cuDriverGetVersion"))(&version);
    major = version / 1000;
    minor = version % 1000 / 10;
  }
  if (tool == Tool::Cublas) {
    const auto property = reinterpret_cast<int (*)(int, int*)>(library.symbol("cublasGetProperty"));
    property(0, &major);
    property(1, &minor);
  }
  return fmt::format("{}.{}", major, minor);
}

}  // namespace

fs::path program_directory() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  return failed ? fs::current_path() : program.parent_path();
}

std::optional<fs::path> find_tool(Tool tool) {
  const Row& row = row_of(tool);
  std::error_code ignored;
  for (const fs::path& root : roots())
    for (const char* folder : row.folders)
      for (const char* file : row.files) {
        const fs::path path = root / folder / file;
        if (fs::exists(path, ignored)) return path;
      }
  if (tool == Tool::Ptxas || tool == Tool::Nvdisasm) {
    for (const fs::path& folder : search_path())
      if (fs::exists(folder / row.files[0], ignored)) return folder / row.files[0];
  }
  return std::nullopt;
}

std::string cure_of(Tool tool) {
  const Row& row = row_of(tool);
  if (tool == Tool::Driver)
    return "install NVIDIA's driver; without a GPU use --device cpu or --device sim, or --arch to compile only";
  return fmt::format(
      "run scripts/setup, or install CUDA 12.8 or later, or `pip install {}` and point TILEWRIGHT_CUDA to its folder",
      row.package);
}

SharedLibrary::SharedLibrary(Tool tool) {
  const Row& row = row_of(tool);
  std::string reason;
  if (const auto found = find_tool(tool)) {
    std::error_code ignored;
    for (const char* needed : row.needs)
      for (const auto& entry : fs::directory_iterator(found->parent_path(), ignored)) {
        const std::string file = entry.path().filename().string();
        if (file.starts_with(needed) && file.find(".alt.") == std::string::npos)
          dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
      }
    handle_ = dlopen(found->c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_)
      path_ = found->string();
    else
      reason = dlerror();
  }
  for (std::size_t file = 0; !handle_ && file < row.files.size(); ++file) {
    handle_ = dlopen(row.files[file], RTLD_NOW | RTLD_LOCAL);
    if (!handle_ && reason.empty()) reason = dlerror();
  }
  if (!handle_)
    throw MachineError(
        fmt::format("{} ({}) was not found: {}\nhelp: {}", row.name, row.files[0], reason, cure_of(tool)));
}

bool SharedLibrary::has_symbol(const char* name) const { return dlsym(handle_, name) != nullptr; }

void* SharedLibrary::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (!address)
    throw MachineError(
        fmt::format("{} has no function `{}`: it is too old", path_.empty() ? "the library" : path_, name));
  return address;
}

std::vector<ToolReport> report_tools() {
  std::vector<ToolReport> reports;
  for (const Row& row : table()) {
    ToolReport report;
    report.name = row.name;
    report.purpose = row.purpose;
    const auto found = find_tool(row.tool);
    if (is_library(row.tool)) {
      try {
        const SharedLibrary library(row.tool);
        report.is_found = true;
        report.path = library.path();
        report.version = library_version(library, row.tool);
      } catch (const MachineError&) {
        report.is_found = false;
      }
    } else if (found) {
      report.is_found = true;
      report.path = found->string();
      if (row.tool == Tool::Ptxas || row.tool == Tool::Nvdisasm) report.version = program_version(*found);
    }
    if (!report.is_found) report.cure = cure_of(row.tool);
    reports.push_back(report);
  }
  return reports;
}

}  // namespace tilewright
