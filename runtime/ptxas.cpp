// The program ptxas; see ptxas.h.
#include "runtime/ptxas.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/diagnostic.h"
#include "runtime/process.h"
#include "runtime/save_source.h"
#include "runtime/toolkit.h"

namespace tilewright {

std::vector<std::string> ptxas_arguments(const PtxasOptions& options) {
  std::vector<std::string> arguments = {"-arch=" + options.arch, "-v"};
  if (options.line_info) arguments.emplace_back("-lineinfo");
  return arguments;
}

Cubin assemble_whole(const std::string& ptx, const PtxasOptions& options) {
  const auto program = find_tool(Tool::Ptxas);
  if (!program)
    throw MachineError(fmt::format("ptxas was not found, and a kernel whose warps trade registers needs it\nhelp: {}",
                                   cure_of(Tool::Ptxas)));
  const std::string source = save_source(ptx, ".ptx");
  const std::string target = save_source("", ".cubin");
  std::vector<std::string> command = {program->string()};
  for (const std::string& argument : ptxas_arguments(options)) command.push_back(argument);
  command.insert(command.end(), {"-o", target, source});
  const ProcessResult result = run_process(command);
  if (result.status != 0) {
    throw MachineError(fmt::format("ptxas failed with status {} for {}\n{}{}\nthe PTX was saved as {}\nto repeat: {}",
                                   result.status, options.arch, result.output, result.errors, source,
                                   fmt::join(command, " ")));
  }
  std::ifstream file(target, std::ios::binary);
  Cubin cubin{{std::istreambuf_iterator<char>(file), {}}, result.output + result.errors, {}};
  std::error_code ignored;
  std::filesystem::remove(source, ignored);
  std::filesystem::remove(target, ignored);
  if (cubin.bytes.empty()) throw MachineError(fmt::format("ptxas left no machine code in {}", target));
  return cubin;
}

}  // namespace tilewright
