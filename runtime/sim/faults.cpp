// The sentences of the simulator's faults.
#include "runtime/sim/faults.h"

#include <fmt/format.h>

#include <bit>
#include <set>

#include "ir/diagnostic.h"
#include "runtime/sim/mbarriers.h"

namespace tilewright {

void FaultLog::add(const Warp& warp, const WarpOp& op, FaultKind kind, LaneMask lanes, const std::function<std::string(int lane)>& sentence) {
  if (lanes == 0) return;
  Entry& entry = entries_[Key{&op, kind, 0}];
  if (entry.count == 0) {
    entry.text = sentence(std::countr_zero(lanes));
    // Races name the lines of both accesses.
    if (kind != FaultKind::Race && kind != FaultKind::Unfenced) entry.text = fmt::format("{}: {}", place_text(*warp.block->program, op.statement), entry.text);
  }
  entry.count += std::popcount(lanes);
}

void FaultLog::add(FaultKind kind, std::string sentence) {
  entries_[Key{nullptr, kind, entries_.size()}] = Entry{std::move(sentence), 1};
}

void FaultLog::merge(const FaultLog& other) {
  for (const auto& [key, entry] : other.entries_) {
    if (key.op == nullptr) {
      add(key.kind, entry.text);
      continue;
    }
    Entry& own = entries_[key];
    if (own.count == 0) own.text = entry.text;
    own.count += entry.count;
  }
}

std::vector<std::string> FaultLog::sentences(std::size_t most) const {
  std::vector<std::string> result;
  // Those of the kernel as a whole have no step and stand last.
  std::set<std::string_view> known;  // an operand that stands in a statement several times is a step each time
  const auto collect = [&](bool of_steps) {
    for (const auto& [key, entry] : entries_) {
      if ((key.op != nullptr) != of_steps || !known.insert(entry.text).second) continue;
      if (result.size() < most) result.push_back(entry.count > 1 ? fmt::format("{} ({} times in all)", entry.text, entry.count) : entry.text);
    }
  };
  collect(true);
  collect(false);
  if (entries_.size() > most) result.push_back(fmt::format("and {} more faults of other statements", entries_.size() - most));
  return result;
}

namespace {

std::string coordinates(const std::array<std::int64_t, 3>& position, int rank) {
  if (rank <= 1) return fmt::format("{}", position[0]);
  if (rank == 2) return fmt::format("({}, {})", position[0], position[1]);
  return fmt::format("({}, {}, {})", position[0], position[1], position[2]);
}

std::string thread_position(const Warp& warp, int lane) {
  const KernelProgram& program = *warp.block->program;
  const std::int64_t linear = static_cast<std::int64_t>(warp.index) * lane_count + lane;
  return coordinates({linear % program.block[0], linear / program.block[0] % program.block[1], linear / (program.block[0] * program.block[1])},
                     program.block_rank);
}

std::string elements_text(std::int64_t elements) { return elements == 1 ? "1 element" : fmt::format("{} elements", elements); }

}  // namespace

std::string block_text(const SimBlock& block) { return "block " + coordinates(block.position, block.program->grid_rank); }

std::string thread_text(const Warp& warp, int lane) {
  return fmt::format("thread {} of {}", thread_position(warp, lane), block_text(*warp.block));
}

std::string threads_text(const Warp& warp, LaneMask lanes) {
  const int first = std::countr_zero(lanes);
  const int last = lane_count - 1 - std::countl_zero(lanes);
  if (first == last) return "thread " + thread_position(warp, first);
  const bool has_gaps = std::popcount(lanes) != last - first + 1;
  return fmt::format("{}threads {} to {}", has_gaps ? fmt::format("{} of ", std::popcount(lanes)) : "", thread_position(warp, first),
                     thread_position(warp, last));
}

std::string place_text(const KernelProgram& program, std::uint32_t statement) {
  const StatementInfo& info = program.statements[statement];
  const std::string ir_line = info.ir_line > 0 ? fmt::format("IR line {}", info.ir_line) : "";
  if (!info.span.is_known()) return ir_line.empty() ? fmt::format("kernel `{}`", program.name) : ir_line;
  return fmt::format("line {}{}{}", info.span.line, ir_line.empty() ? "" : ", ", ir_line);
}

std::string indices_text(const Warp& warp, const std::vector<Operand>& index, int lane) {
  std::string text = "[";
  for (const Operand& operand : index) {
    if (text.size() > 1) text += ", ";
    text += fmt::format("{}", read_lane(warp, operand, lane).i);
  }
  return text + "]";
}

namespace {

// `As[i*16 + k]` with its indices where they are no plain numbers.
std::string where_text(const Warp& warp, const std::string& text, const std::string& name, const std::vector<Operand>& index, int lane) {
  const std::string place = name + indices_text(warp, index, lane);
  if (index.empty()) return fmt::format("`{}`", name);
  return place == text ? fmt::format("`{}`", text) : fmt::format("`{}`, which is `{}`", place, text);
}

}  // namespace

void report_outside(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask lanes, bool is_store) {
  warp.block->core->faults->add(warp, op, FaultKind::OutOfRange, lanes, [&](int lane) {
    return fmt::format("{} {} {}, outside `{}` of {}", thread_text(warp, lane), is_store ? "writes" : "reads",
                       where_text(warp, site.text, site.name, site.index, lane), site.name, elements_text(site.elements));
  });
}

void report_unwritten(Warp& warp, const WarpOp& op, const MemorySite& site, LaneMask lanes) {
  warp.block->core->faults->add(warp, op, FaultKind::Unwritten, lanes, [&](int lane) {
    return fmt::format("{} reads {}, and nothing has been written there", thread_text(warp, lane), where_text(warp, site.text, site.name, site.index, lane));
  });
}

void report_outside(Warp& warp, const WarpOp& op, const RegisterSite& site, LaneMask lanes, bool is_store) {
  warp.block->core->faults->add(warp, op, FaultKind::OutOfRange, lanes, [&](int lane) {
    return fmt::format("{} {} {}, outside `{}` of {}", thread_text(warp, lane), is_store ? "writes" : "reads",
                       where_text(warp, site.text, site.name, site.index, lane), site.name, elements_text(site.elements));
  });
}

void report_unwritten(Warp& warp, const WarpOp& op, const RegisterSite& site, LaneMask lanes) {
  warp.block->core->faults->add(warp, op, FaultKind::Unwritten, lanes, [&](int lane) {
    return fmt::format("{} reads {}, and has not written it", thread_text(warp, lane), where_text(warp, site.text, site.name, site.index, lane));
  });
}

void report_misaligned(Warp& warp, const WarpOp& op, const VectorSite& site, LaneMask lanes, bool is_store) {
  warp.block->core->faults->add(warp, op, FaultKind::Misaligned, lanes, [&](int lane) {
    const int bytes = site.width * bytes_of(site.memory.dtype);
    const std::int64_t at = read_lane(warp, op.a, Dtype::Index, (op.uniform & 1) != 0, lane).i * bytes_of(site.memory.dtype) + site.memory.offset;
    return fmt::format("{} {} {} at byte {}, and one access of {} bytes needs a multiple of {}", thread_text(warp, lane), is_store ? "writes" : "reads",
                       where_text(warp, site.memory.text, site.memory.name, site.memory.index, lane), at, bytes, bytes);
  });
}

namespace {

std::string wait_text(const Warp& warp) {
  const KernelProgram& program = *warp.block->program;
  std::string text = fmt::format("{} at `{}`", std::popcount(warp.mask) == 1 ? "waits" : "wait", program.statements[warp.waits_at->statement].text);
  if (warp.waits == Waits::Mbarrier) text += " for " + missing_text(warp, *warp.waits_at);
  if (warp.waits == Waits::Registers) text += fmt::format(" for registers, of which {} are free", warp.block->free_registers);
  return text;
}

}  // namespace

void report_deadlock(FaultLog& faults, const SimBlock& block) {
  const KernelProgram& program = *block.program;
  const Warp* first = nullptr;
  int waiting = 0;
  for (const Warp& warp : block.warps) {
    if (warp.state == WarpState::Waiting && first == nullptr) first = &warp;
    waiting += warp.state == WarpState::Waiting ? 1 : 0;
  }
  if (first == nullptr) internal_error("a block without a warp that runs or waits");
  // One group of warps that stands elsewhere, and one that has ended.
  const Warp* other = nullptr;
  const Warp* ended = nullptr;
  for (const Warp& warp : block.warps) {
    if (warp.state == WarpState::Done && ended == nullptr) ended = &warp;
    if (warp.state == WarpState::Waiting && warp.waits_at != first->waits_at && other == nullptr) other = &warp;
  }
  std::string others;
  if (other != nullptr) others = fmt::format("; {} {} of {}", threads_text(*other, other->mask), wait_text(*other), place_text(program, other->waits_at->statement));
  if (ended != nullptr && first->waits == Waits::Barrier) others += fmt::format("; {} ended without it", threads_text(*ended, ended->all));
  if (others.empty()) others = "; no other thread comes by";
  faults.add(*first, *first->waits_at, FaultKind::Deadlock, 1, [&](int) {
    return fmt::format("deadlock: {} of {} {} for ever ({} of {} warps){}", threads_text(*first, first->mask), block_text(block), wait_text(*first), waiting,
                       block.warps.size(), others);
  });
}

void report_divergent(Warp& warp, const WarpOp& op) {
  warp.block->core->faults->add(warp, op, FaultKind::Divergent, warp.mask, [&](int) {
    return fmt::format("`{}` is reached by {} of {} while {} of the same warp do not come by", warp.block->program->statements[op.statement].text,
                       threads_text(warp, warp.mask), block_text(*warp.block), threads_text(warp, warp.all & ~warp.mask));
  });
}

}  // namespace tilewright
