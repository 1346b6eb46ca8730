// Checks of the tile interpreter.
#include "runtime/interpreter_machine.h"

#include <fmt/format.h>

#include "ir/diagnostic.h"

namespace tilewright {

std::string element_name(const Memory& memory, std::int64_t element) {
  if (memory.extents.empty()) return fmt::format("`{}`", memory.name);
  std::vector<std::int64_t> index;
  for (const std::int64_t stride : memory.strides) {
    index.push_back(stride == 0 ? 0 : element / stride);
    if (stride != 0) element %= stride;
  }
  return fmt::format("`{}[{}]`", memory.name, fmt::join(index, ", "));
}

void InterpreterMachine::fault(const void* where, int kind, const std::string& text) {
  constexpr std::size_t most = 20;
  if (report->faults.size() >= most || !reported.emplace(where, kind).second) return;
  report->faults.push_back(fmt::format("kernel `{}`: {}", kernel, text));
}

void InterpreterMachine::stop_too_long() const {
  throw UserError({}, fmt::format("the interpreter has executed {} statements and stops there", steps), "take smaller sizes: --set");
}

void InterpreterMachine::check_read(const void* where, CheckedMemory& memory, std::int64_t element) {
  const auto at = static_cast<std::size_t>(element);
  if (!memory.is_written.empty() && memory.is_written[at] == 0)
    fault(where, 0, fmt::format("{} is read before it is written", element_name(memory, element)));
  if (memory.writers.empty()) return;
  if (is_parallel(memory.writers[at]))
    fault(where, 1, fmt::format("{} is read by one iteration of a parallel loop and written by another", element_name(memory, element)));
  if (memory.readers.empty()) return;
  const Stamp mine = current() << 1;
  Stamp& first = memory.readers[2 * at];
  if (first == mine) return;
  if (is_parallel(first)) memory.readers[2 * at + 1] = mine;
  else first = mine;
}

void InterpreterMachine::check_write(const void* where, CheckedMemory& memory, std::int64_t element, bool is_atomic) {
  const auto at = static_cast<std::size_t>(element);
  if (!memory.is_written.empty()) {
    if (is_atomic && memory.is_written[at] == 0)
      fault(where, 0, fmt::format("{} is updated before it is written", element_name(memory, element)));
    memory.is_written[at] = 1;
  }
  if (memory.writers.empty()) return;
  Stamp& writer = memory.writers[at];
  const bool is_combining = is_atomic && (writer & 1) != 0;
  if (!is_combining && is_parallel(writer))
    fault(where, 2, fmt::format("{} is written by two iterations of a parallel loop", element_name(memory, element)));
  if (!memory.readers.empty() && (is_parallel(memory.readers[2 * at]) || is_parallel(memory.readers[2 * at + 1])))
    fault(where, 1, fmt::format("{} is read by one iteration of a parallel loop and written by another", element_name(memory, element)));
  writer = current() << 1 | (is_atomic ? 1 : 0);
}

}  // namespace tilewright
