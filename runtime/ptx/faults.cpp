// The sentences of the PTX machine's faults.
#include "runtime/ptx/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "ir/dtype.h"

namespace tilewright::ptx {

void FaultLog::add(const Warp& warp, const Op& op, FaultKind kind, LaneMask lanes, const std::function<std::string(int lane)>& sentence) {
  if (lanes == 0) return;
  Entry& entry = entries_[{op.instruction, kind}];
  if (entry.count == 0) entry.text = fmt::format("{}: {}", place_text(*warp.core->launch->program, op), sentence(std::countr_zero(lanes)));
  entry.count += std::popcount(lanes);
}

std::vector<std::string> FaultLog::sentences(std::size_t most) const {
  std::vector<std::string> result;
  for (const auto& [key, entry] : entries_) {
    if (result.size() == most) {
      result.push_back(fmt::format("and {} more faults of other instructions", entries_.size() - most));
      break;
    }
    result.push_back(entry.count > 1 ? fmt::format("{} ({} times in all)", entry.text, entry.count) : entry.text);
  }
  return result;
}

namespace {

std::string coordinates(const std::array<unsigned, 3>& position, const std::array<unsigned, 3>& extents) {
  if (extents[2] > 1) return fmt::format("({}, {}, {})", position[0], position[1], position[2]);
  if (extents[1] > 1) return fmt::format("({}, {})", position[0], position[1]);
  return fmt::format("{}", position[0]);
}

std::string thread_position(const Warp& warp, int lane) {
  const std::array<unsigned, 3>& block = warp.core->launch->block;
  const auto linear = static_cast<unsigned>(warp.index * lane_count + lane);
  return coordinates({linear % block[0], linear / block[0] % block[1], linear / (block[0] * block[1])}, block);
}

// `element 1030 of `A`, outside its 1024 elements (f32[32, 32])`
std::string region_place(const Region& region, std::uint64_t address, int bytes) {
  const auto at = static_cast<std::int64_t>(address - region.begin);
  if (!region.is_tensor) return fmt::format("{} bytes at byte {} of `{}`, which has {}", bytes, at, region.name, region.bytes);
  const std::int64_t size = tilewright::bytes_of(region.dtype);
  const std::int64_t element = at >= 0 ? at / size : -((-at + size - 1) / size);
  std::string extents;
  for (const std::int64_t extent : region.shape) extents += fmt::format("{}{}", extents.empty() ? "" : ", ", extent);
  return fmt::format("{}element {} of `{}`, outside its {} elements ({}[{}])", bytes > size ? fmt::format("{} bytes from ", bytes) : "", element, region.name,
                     region.bytes / static_cast<std::uint64_t>(size), info(region.dtype).name, extents);
}

std::string element_place(const Region& region, std::uint64_t address) {
  const auto at = static_cast<std::int64_t>(address - region.begin);
  if (!region.is_tensor) return fmt::format("byte {} of `{}`", at, region.name);
  std::int64_t element = at / tilewright::bytes_of(region.dtype);
  std::string index;
  for (std::size_t axis = region.shape.size(); axis-- > 0; element /= region.shape[axis]) index = fmt::format("{}{}{}", element % region.shape[axis], index.empty() ? "" : ", ", index);
  return fmt::format("`{}[{}]`", region.name, index);
}

// The name of a shared array in the source: mangled names of local ones end in their own name.
std::string plain_name(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;
  const std::size_t end_of_scope = mangled.rfind('E');
  if (end_of_scope == std::string::npos) return mangled;
  std::size_t at = end_of_scope + 1;
  while (at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9') ++at;
  return at < mangled.size() && at > end_of_scope + 1 ? mangled.substr(at) : mangled;
}

// The shared variable that an offset is in, or nearest in front of it.
std::string shared_place(const Warp& warp, std::int64_t at) {
  const KernelProgram& program = *warp.core->launch->program;
  const SharedVariable* nearest = nullptr;
  for (const SharedVariable& variable : program.shared)
    if (variable.begin <= at || nearest == nullptr) nearest = &variable;
  if (warp.core->launch->dynamic_shared_bytes > 0 && (at >= program.dynamic_begin || nearest == nullptr))
    return fmt::format("byte {} of the {} bytes of dynamic shared memory", at - program.dynamic_begin, warp.core->launch->dynamic_shared_bytes);
  if (nearest == nullptr) return fmt::format("byte {} of shared memory, of which the launch has none", at);
  return fmt::format("byte {} of the {} bytes of shared `{}`", at - nearest->begin, nearest->bytes, plain_name(nearest->name));
}

std::string memory_place(const Warp& warp, Space space, std::uint64_t address) {
  if (space == Space::Generic && window_of(address) == shared_window) space = Space::Shared, address -= window_begin(shared_window);
  if (space == Space::Generic && window_of(address) == local_window) space = Space::Local, address -= window_begin(local_window);
  if (space == Space::Shared) return shared_place(warp, static_cast<std::int64_t>(address));
  if (space == Space::Local) return fmt::format("byte {} of the {} bytes of its local memory", static_cast<std::int64_t>(address), warp.core->launch->program->local_bytes);
  if (const Region* region = warp.core->memory->find(address)) return element_place(*region, address);
  return fmt::format("address 0x{:x}", address);
}

}  // namespace

std::string place_text(const KernelProgram& program, const Op& op) {
  const InstructionPlace& place = program.places[op.instruction];
  const auto file = static_cast<std::size_t>(place.source.file);
  if (place.source.line > 0 && file < program.files.size()) return fmt::format("{} line {}", program.files[file], place.source.line);
  return fmt::format("kernel `{}`, line {} of its PTX", program.name, place.line);
}

std::string block_text(const Block& block) { return "block " + coordinates(block.position, block.core->launch->grid); }

std::string thread_text(const Warp& warp, int lane) { return fmt::format("thread {} of {}", thread_position(warp, lane), block_text(*warp.block)); }

std::string threads_text(const Warp& warp, LaneMask lanes) {
  const int first = std::countr_zero(lanes);
  const int last = lane_count - 1 - std::countl_zero(lanes);
  if (first == last) return "thread " + thread_position(warp, first);
  const bool has_gaps = std::popcount(lanes) != last - first + 1;
  return fmt::format("{}threads {} to {}", has_gaps ? fmt::format("{} of ", std::popcount(lanes)) : "", thread_position(warp, first), thread_position(warp, last));
}

std::string origin_text(const Warp& warp, Row row) {
  const Origin& origin = warp.origins[warp.origin[row / row_unit] < warp.origins.size() ? warp.origin[row / row_unit] : 0];
  const KernelProgram& program = *warp.core->launch->program;
  if (origin.op == nullptr) return "a variable that was never set";
  const std::string place = place_text(program, *origin.op);
  if (origin.space == Space::Register) return fmt::format("what `{}` at {} leaves open", program.places[origin.op->instruction].text, place);
  return fmt::format("{}, read at {}, and nothing has been written there", memory_place(warp, origin.space, origin.address), place);
}

void report_outside(Warp& warp, const Op& op, Space space, std::uint64_t address, int bytes, int lane, bool is_store) {
  warp.core->faults->add(warp, op, FaultKind::OutOfRange, 1u << lane, [&](int) {
    const std::string who = fmt::format("{} {}", thread_text(warp, lane), is_store ? "writes" : "reads");
    if (space != Space::Shared && space != Space::Local) {
      if (const Region* region = warp.core->memory->find(address)) return fmt::format("{} {}", who, region_place(*region, address, bytes));
      const std::uint64_t window = window_of(address);
      if (space != Space::Generic || (window != shared_window && window != local_window))
        return fmt::format("{} address 0x{:x}, where no tensor is{}", who, address, address < 65536 ? " (a null pointer and an offset)" : "");
    }
    return fmt::format("{} {}, {} bytes, which is outside", who, memory_place(warp, space, address), bytes);
  });
}

void report_not_writable(Warp& warp, const Op& op, const Region& region, int lane) {
  warp.core->faults->add(warp, op, FaultKind::NotWritable, 1u << lane, [&](int) {
    return fmt::format("{} writes `{}`, which is {}", thread_text(warp, lane), region.name, region.is_tensor ? "an input" : "constant");
  });
}

void report_misaligned(Warp& warp, const Op& op, Space space, std::uint64_t address, int bytes, int lane, bool is_store) {
  warp.core->faults->add(warp, op, FaultKind::Misaligned, 1u << lane, [&](int) {
    return fmt::format("{} {} {}, and one access of {} bytes needs an address that is a multiple of {}", thread_text(warp, lane), is_store ? "writes" : "reads",
                       memory_place(warp, space, address), bytes, bytes);
  });
}

void report_undefined(Warp& warp, const Op& op, Row row, LaneMask lanes, const std::string& what) {
  warp.core->faults->add(warp, op, FaultKind::Undefined, lanes, [&](int lane) {
    return fmt::format("{}: {} depends on {}", thread_text(warp, lane), what, origin_text(warp, row));
  });
}

}  // namespace tilewright::ptx
