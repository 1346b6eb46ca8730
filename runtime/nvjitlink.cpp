// nvJitLink, opened at run time; see nvjitlink.h.
#include "runtime/nvjitlink.h"

#include <fmt/format.h>

#include <array>

#include "ir/diagnostic.h"
#include "runtime/save_source.h"
#include "runtime/toolkit.h"

namespace tilewright {

namespace {

using Handle = void*;
constexpr int input_ptx = 2;

struct NvJitLink {
  SharedLibrary library{Tool::NvJitLink};
  int (*create)(Handle*, std::uint32_t, const char**);
  int (*destroy)(Handle*);
  int (*add_data)(Handle, int, const void*, std::size_t, const char*);
  int (*complete)(Handle);
  int (*cubin_size)(Handle, std::size_t*);
  int (*cubin)(Handle, void*);
  int (*error_log_size)(Handle, std::size_t*);
  int (*error_log)(Handle, char*);
  int (*info_log_size)(Handle, std::size_t*);
  int (*info_log)(Handle, char*);
  int (*version)(unsigned*, unsigned*);

  NvJitLink() {
    library.bind(create, "nvJitLinkCreate");
    library.bind(destroy, "nvJitLinkDestroy");
    library.bind(add_data, "nvJitLinkAddData");
    library.bind(complete, "nvJitLinkComplete");
    library.bind(cubin_size, "nvJitLinkGetLinkedCubinSize");
    library.bind(cubin, "nvJitLinkGetLinkedCubin");
    library.bind(error_log_size, "nvJitLinkGetErrorLogSize");
    library.bind(error_log, "nvJitLinkGetErrorLog");
    library.bind(info_log_size, "nvJitLinkGetInfoLogSize");
    library.bind(info_log, "nvJitLinkGetInfoLog");
    library.bind(version, "nvJitLinkVersion");
  }
};

const NvJitLink& nvjitlink() {
  static const NvJitLink loaded;
  return loaded;
}

std::string error_words(int code) {
  static constexpr std::array<const char*, 19> words = {"success",
                                                        "an option is not known",
                                                        "no -arch was given",
                                                        "invalid input",
                                                        "the PTX does not compile",
                                                        "the NVVM IR does not compile",
                                                        "internal error",
                                                        "thread pool failed",
                                                        "the input is not recognised",
                                                        "finalizer error",
                                                        "no input",
                                                        "options do not fit together",
                                                        "the input is of another type",
                                                        "the architectures differ",
                                                        "the library is too old for this input",
                                                        "missing fatbin",
                                                        "the architecture is not known",
                                                        "the architecture is not supported",
                                                        "-lto is required"};
  return code >= 0 && static_cast<std::size_t>(code) < words.size() ? words[static_cast<std::size_t>(code)]
                                                                    : fmt::format("error {}", code);
}

class Link {
 public:
  explicit Link(const std::vector<std::string>& arguments) {
    std::vector<const char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
    code_ = nvjitlink().create(&handle_, static_cast<std::uint32_t>(pointers.size()), pointers.data());
  }
  ~Link() {
    if (handle_) nvjitlink().destroy(&handle_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int assemble(const std::string& ptx) {
    // PTX ends with a zero byte that counts.
    if (code_ == 0) code_ = nvjitlink().add_data(handle_, input_ptx, ptx.c_str(), ptx.size() + 1, "kernel.ptx");
    if (code_ == 0) code_ = nvjitlink().complete(handle_);
    return code_;
  }
  std::vector<char> cubin() const {
    std::size_t size = 0;
    if (nvjitlink().cubin_size(handle_, &size) != 0)
      throw MachineError("nvJitLink: it gave no size for the machine code");
    std::vector<char> bytes(size);
    if (nvjitlink().cubin(handle_, bytes.data()) != 0) throw MachineError("nvJitLink: it gave no machine code");
    return bytes;
  }
  std::string error_log() const { return read_log(nvjitlink().error_log_size, nvjitlink().error_log); }
  std::string info_log() const { return read_log(nvjitlink().info_log_size, nvjitlink().info_log); }

 private:
  template <class Size, class Read>
  std::string read_log(Size size_of, Read read) const {
    std::size_t size = 0;
    if (!handle_ || size_of(handle_, &size) != 0 || size <= 1) return "";
    std::string text(size, '\0');
    if (read(handle_, text.data()) != 0) return "";
    text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
    return text;
  }

  Handle handle_ = nullptr;
  int code_ = 0;
};

}  // namespace

std::vector<std::string> nvjitlink_arguments(const NvJitLinkOptions& options) {
  std::vector<std::string> arguments = {"-arch=" + options.arch, "-verbose", "-Xptxas=-v", "-no-cache"};
  if (options.line_info) arguments.emplace_back("-lineinfo");
  return arguments;
}

std::string nvjitlink_version() {
  unsigned major = 0;
  unsigned minor = 0;
  nvjitlink().version(&major, &minor);
  return fmt::format("nvJitLink {}.{}", major, minor);
}

Cubin assemble_ptx(const std::string& ptx, const NvJitLinkOptions& options) {
  const std::vector<std::string> arguments = nvjitlink_arguments(options);
  Link link(arguments);
  if (const int code = link.assemble(ptx); code != 0) {
    const std::string saved = save_source(ptx, ".ptx");
    throw MachineError(fmt::format(
        "nvJitLink: {} ({}) for {}\n{}{}\nthe PTX was saved as {}\nto repeat: ptxas -arch={} {}", error_words(code),
        code, options.arch, link.error_log(), link.info_log(), saved, options.arch, saved));
  }
  return Cubin{link.cubin(), link.info_log(), {}};
}

}  // namespace tilewright
