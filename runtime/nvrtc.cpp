// NVRTC, opened at run time; see nvrtc.h. The few functions used are declared here, so no CUDA header is needed.
#include "runtime/nvrtc.h"

#include <fmt/format.h>

#include <utility>

#include "ir/diagnostic.h"
#include "runtime/save_source.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

using Program = void*;

struct Nvrtc {
  SharedLibrary library{Tool::Nvrtc};
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*add_name)(Program, const char*);
  int (*lowered_name)(Program, const char*, const char**);
  int (*version)(int*, int*);
  const char* (*error_string)(int);

  Nvrtc() {
    library.bind(create, "nvrtcCreateProgram");
    library.bind(destroy, "nvrtcDestroyProgram");
    library.bind(compile, "nvrtcCompileProgram");
    library.bind(log_size, "nvrtcGetProgramLogSize");
    library.bind(log, "nvrtcGetProgramLog");
    library.bind(cubin_size, "nvrtcGetCUBINSize");
    library.bind(cubin, "nvrtcGetCUBIN");
    library.bind(ptx_size, "nvrtcGetPTXSize");
    library.bind(ptx, "nvrtcGetPTX");
    library.bind(add_name, "nvrtcAddNameExpression");
    library.bind(lowered_name, "nvrtcGetLoweredName");
    library.bind(version, "nvrtcVersion");
    library.bind(error_string, "nvrtcGetErrorString");
  }

  // Of its version.
  std::pair<int, int> numbers() const {
    std::pair<int, int> found;
    check(version(&found.first, &found.second), "nvrtcVersion");
    return found;
  }

  void check(int code, const char* call) const {
    if (code != 0) throw MachineError(fmt::format("NVRTC: {} failed: {}", call, error_string(code)));
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc loaded;
  return loaded;
}

// One program from creation to destruction, compiled on construction.
class CompiledProgram {
 public:
  CompiledProgram(const std::string& text, const NvrtcOptions& options) {
    nvrtc().check(nvrtc().create(&program_, text.c_str(), options.file_name.c_str(), 0, nullptr, nullptr),
                  "nvrtcCreateProgram");
    for (const std::string& name : options.name_expressions) {
      nvrtc().check(nvrtc().add_name(program_, name.c_str()), "nvrtcAddNameExpression");
    }
    const std::vector<std::string> arguments = nvrtc_arguments(options);
    std::vector<const char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
    // NVRTC 13 keeps results in the driver's cache too, and a time of compilation would be that of a look-up.
    if (nvrtc().numbers().first >= 13) pointers.push_back("--no-cache");
    const int code = nvrtc().compile(program_, static_cast<int>(pointers.size()), pointers.data());
    if (code == 0) return;
    const std::string saved = save_source(text, ".cu");
    const std::string message =
        fmt::format("NVRTC: {} for {}\n{}\nthe source was saved as {}\nto repeat: nvcc -cubin {} {}",
                    nvrtc().error_string(code), options.arch, log(), saved, fmt::join(arguments, " "), saved);
    nvrtc().destroy(&program_);
    throw MachineError(message);
  }
  ~CompiledProgram() { nvrtc().destroy(&program_); }
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;

  std::string log() const {
    std::size_t size = 0;
    if (nvrtc().log_size(program_, &size) != 0 || size <= 1) return "";
    std::string text(size, '\0');
    if (nvrtc().log(program_, text.data()) != 0) return "";
    text.resize(size - 1);
    return text;
  }
  std::vector<char> cubin() const {
    std::size_t size = 0;
    nvrtc().check(nvrtc().cubin_size(program_, &size), "nvrtcGetCUBINSize");
    std::vector<char> bytes(size);
    nvrtc().check(nvrtc().cubin(program_, bytes.data()), "nvrtcGetCUBIN");
    return bytes;
  }
  std::string ptx() const {
    std::size_t size = 0;
    nvrtc().check(nvrtc().ptx_size(program_, &size), "nvrtcGetPTXSize");
    std::string text(size, '\0');
    nvrtc().check(nvrtc().ptx(program_, text.data()), "nvrtcGetPTX");
    text.resize(size > 0 ? size - 1 : 0);
    return text;
  }
  std::string lowered_name(const std::string& expression) const {
    const char* name = nullptr;
    nvrtc().check(nvrtc().lowered_name(program_, expression.c_str(), &name), "nvrtcGetLoweredName");
    return name;
  }

 private:
  Program program_ = nullptr;
};

}  // namespace

std::vector<std::string> nvrtc_arguments(const NvrtcOptions& options) {
  std::vector<std::string> arguments = {"--gpu-architecture=" + options.arch, "--std=c++17", "--ptxas-options=-v"};
  if (options.exact) {
    // 177: a `let` that nothing reads; the compiler drops it.
    for (const char* flag :
         {"--diag-suppress=177", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"})
      arguments.emplace_back(flag);
  }
  if (options.line_info) arguments.emplace_back("-lineinfo");
  for (const std::string& folder : options.include_folders) arguments.push_back("--include-path=" + folder);
  return arguments;
}

std::string nvrtc_version() {
  const auto [major, minor] = nvrtc().numbers();
  return fmt::format("NVRTC {}.{}", major, minor);
}

Cubin compile_cuda(const std::string& text, const NvrtcOptions& options) {
  const CompiledProgram program(text, options);
  Cubin result{program.cubin(), program.log(), {}};
  for (const std::string& name : options.name_expressions) result.entries.emplace(name, program.lowered_name(name));
  return result;
}

std::string cuda_to_ptx(const std::string& text, const NvrtcOptions& options, std::map<std::string, std::string>* entries) {
  const CompiledProgram program(text, options);
  if (entries)
    for (const std::string& name : options.name_expressions) entries->emplace(name, program.lowered_name(name));
  return program.ptx();
}

}  // namespace tilewright
