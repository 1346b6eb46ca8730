// Reading ptxas' report; see cubin.h.
#include "runtime/cubin.h"

#include <charconv>
#include <sstream>
#include <string_view>

namespace tilewright {

namespace {

// The number that stands right before ` word` in a line, 0 where there is none.
int number_before(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos || at == 0) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

}  // namespace

// ptxas info    : Compiling entry function 'k' for 'sm_90a'
// ptxas info    : Function properties for k
//     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// ptxas info    : Used 32 registers, used 1 barriers, 2048 bytes smem, 380 bytes cmem[0]
std::optional<KernelResources> read_resources(const std::string& log, const std::string& entry) {
  std::istringstream lines(log);
  bool is_entry = false;
  KernelResources resources;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Compiling entry function '") != std::string::npos)
      is_entry = line.find("'" + entry + "'") != std::string::npos;
    if (!is_entry) continue;
    if (line.find("bytes stack frame") != std::string::npos) {
      resources.stack_bytes = number_before(line, " bytes stack frame");
      resources.spill_store_bytes = number_before(line, " bytes spill stores");
      resources.spill_load_bytes = number_before(line, " bytes spill loads");
    }
    if (line.find(" registers") != std::string::npos) {
      resources.registers = number_before(line, " registers");
      resources.shared_bytes = number_before(line, " bytes smem");
      return resources;
    }
  }
  return std::nullopt;
}

}  // namespace tilewright
