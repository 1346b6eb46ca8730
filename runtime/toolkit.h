// The CUDA tools of this machine: where they are, which version, how to get those that are missing. Nothing is linked
// against them; libraries are opened at first use, so the program starts without a GPU and without a toolkit.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

enum class Tool : std::uint8_t { Driver, Nvrtc, NvJitLink, Libdevice, Ptxas, Nvdisasm, Headers, Cublas };

// The first place where a tool was found: the folder that TILEWRIGHT_CUDA names, a folder `cuda` beside the binary or
// beside its folder, CUDA_HOME, /usr/local/cuda, the Python packages of a `python3` on the PATH, the PATH (programs).
// Libraries that only the loader knows have no path here: SharedLibrary opens them by name.
std::optional<std::filesystem::path> find_tool(Tool tool);

struct ToolReport {
  std::string name;     // "NVRTC"
  std::string purpose;  // "compiles CUDA C"
  bool is_found = false;
  std::string path;     // "" where the loader found it by name
  std::string version;  // "13.0", empty where it does not tell
  std::string cure;     // the command that gets it, where it is missing
};
// Every tool, in the order of the enumeration. Opens the libraries.
std::vector<ToolReport> report_tools();

// How to get a missing tool, as error messages say it.
std::string cure_of(Tool tool);

// One of the libraries, opened on construction and never closed (drivers do not like to be unloaded). Throws
// MachineError with what was looked for, where, and the command that gets it.
class SharedLibrary {
 public:
  explicit SharedLibrary(Tool tool);
  // The address of a function; throws MachineError where the library is too old to have it.
  void* symbol(const char* name) const;
  bool has_symbol(const char* name) const;
  const std::string& path() const { return path_; }

  template <class Function>
  void bind(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* handle_ = nullptr;
  std::string path_;
};

// The folder that holds the running program.
std::filesystem::path program_directory();

}  // namespace tilewright
