// The readers behind one signature.
#include "tests/fuzz/readers/readers.h"

#include <sys/mman.h>
#include <unistd.h>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "runtime/npy.h"

namespace tilewright::fuzz {

std::string message_of(const UserError& error, const std::string& bytes) {
  if (error.diagnostics().empty() || render(error.diagnostics(), {SourceFile{"input", bytes}}).empty()) internal_error("a refusal that says nothing");
  const std::string& message = error.diagnostics().front().message;
  return message.empty() ? "(no message)" : message;
}

namespace {

// A file that lies in memory; its path is open as long as this is.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : file_(memfd_create("input", 0)) {
    if (file_ < 0 || write(file_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) throw MachineError("no file in memory");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace

std::string read_as_program(const std::string& bytes) {
  try {
    const Program program = parse_program(bytes, "input");
    for (const TensorFn& fn : program.fns)
      if (const auto faults = verify(fn); !faults.empty()) internal_error(faults.front());
  } catch (const UserError& error) {
    return message_of(error, bytes);
  }
  return {};
}

std::string read_as_ir(const std::string& bytes) {
  try {
    const Plan plan = read_plan(bytes);
    if (parse_plan(print(plan)) != plan) internal_error("another plan comes back from the text\n" + print(plan));
  } catch (const UserError& error) {
    return message_of(error, bytes);
  }
  return {};
}

std::string read_as_npy(const std::string& bytes) {
  const MemoryFile file(bytes);
  try {
    const HostTensor tensor = read_npy(file.path());
    if (tensor.data.size() != static_cast<std::size_t>(tensor.elements() * bytes_of(tensor.dtype))) internal_error("a tensor of another size than its shape");
  } catch (const UserError& error) {
    return message_of(error, bytes);
  }
  return {};
}

}  // namespace tilewright::fuzz
