// nvdisasm as a program, and the little of ELF that tells where a kernel's instructions are; see disassemble.h.
#include "runtime/disassemble.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "ir/diagnostic.h"
#include "runtime/process.h"
#include "runtime/save_source.h"
#include "runtime/toolkit.h"

namespace tilewright {

std::string disassemble(const Cubin& cubin, bool line_info) {
  const auto program = find_tool(Tool::Nvdisasm);
  if (!program)
    throw MachineError(
        fmt::format("nvdisasm was not found, so there is no SASS text\nhelp: {}", cure_of(Tool::Nvdisasm)));
  const std::string file = save_source({cubin.bytes.data(), cubin.bytes.size()}, ".cubin");
  std::vector<std::string> command = {program->string(), "-c", line_info ? "-gi" : "-plr"};
  command.push_back(file);
  const ProcessResult result = run_process(command);
  if (result.status != 0) {
    throw MachineError(fmt::format("nvdisasm failed with status {}\n{}\nto repeat: {}", result.status, result.errors,
                                   fmt::join(command, " ")));
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return result.output;
}

std::string instruction_bytes(const Cubin& cubin, const std::string& entry) {
  const std::vector<char>& bytes = cubin.bytes;
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return "";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return "";
  const auto section = [&](std::size_t index) {
    Elf64_Shdr row{};
    const std::size_t at = header.e_shoff + index * sizeof row;
    if (at <= bytes.size() && sizeof row <= bytes.size() - at) std::memcpy(&row, bytes.data() + at, sizeof row);
    return row;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  const std::string wanted = ".text." + entry;
  for (std::size_t index = 0; index < header.e_shnum; ++index) {
    const Elf64_Shdr row = section(index);
    const std::size_t name = names.sh_offset + row.sh_name;
    if (name >= bytes.size() ||
        std::string_view(bytes.data() + name, strnlen(bytes.data() + name, bytes.size() - name)) != wanted)
      continue;
    if (row.sh_offset > bytes.size() || row.sh_size > bytes.size() - row.sh_offset) return "";
    return {bytes.data() + row.sh_offset, row.sh_size};
  }
  return "";
}

}  // namespace tilewright
