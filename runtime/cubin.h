// Machine code of one text, and what the assembler said about it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct Cubin {
  std::vector<char> bytes;
  std::string log;                             // ptxas' report, and warnings
  std::map<std::string, std::string> entries;  // name expression -> mangled name, of templates
};

// What a kernel takes of the machine.
struct KernelResources {
  int registers = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;
  int shared_bytes = 0;  // static
};

// Reads ptxas' report (-v) for one entry; nothing where the log does not speak of it.
std::optional<KernelResources> read_resources(const std::string& log, const std::string& entry);

}  // namespace tilewright
