// Counting requests; see counts.h.
#include "runtime/ptx/counts.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tilewright::ptx {

namespace {

constexpr int sector_bits = 5;
constexpr int line_bits = 7;
constexpr int bank_count = 32;

int divided_up(std::int64_t value, std::int64_t unit) { return static_cast<int>((value + unit - 1) / unit); }

// Distinct values of address >> bits, over all bytes of all lanes.
int distinct(const std::uint64_t* addresses, LaneMask lanes, int bytes, int bits, std::vector<std::uint64_t>* all = nullptr) {
  std::array<std::uint64_t, std::size_t{5} * lane_count> seen;  // 16 bytes are up to five words, where they are not aligned
  int count = 0;
  for_lanes(lanes, [&](int lane) {
    for (std::uint64_t at = addresses[lane] >> bits; at <= (addresses[lane] + static_cast<std::uint64_t>(bytes) - 1) >> bits; ++at) seen[static_cast<std::size_t>(count++)] = at;
  });
  std::sort(seen.begin(), seen.begin() + count);
  const auto end = std::unique(seen.begin(), seen.begin() + count);
  if (all != nullptr) all->insert(all->end(), seen.begin(), end);
  return static_cast<int>(end - seen.begin());
}

// Lanes n and n ^ step of the mask have one address, whichever of them are there.
bool is_paired(const std::uint64_t* addresses, LaneMask lanes, int step) {
  bool same = true;
  for_lanes(lanes, [&](int lane) { same &= (lanes >> (lane ^ step) & 1) == 0 || addresses[lane] == addresses[lane ^ step]; });
  return same;
}

// For the registers that are filled or emptied.
int register_passes(const std::uint64_t* addresses, LaneMask lanes, int bytes) {
  const int registers = divided_up(bytes, 4);
  return registers > 1 && (is_paired(addresses, lanes, 1) || is_paired(addresses, lanes, 2)) ? registers / 2 : registers;
}

// The most words that one bank has to give.
int bank_passes(const std::uint64_t* addresses, LaneMask lanes, int bytes) {
  std::array<std::uint64_t, std::size_t{5} * lane_count> words;
  int count = 0;
  for_lanes(lanes, [&](int lane) {
    for (std::uint64_t at = addresses[lane] >> 2; at <= (addresses[lane] + static_cast<std::uint64_t>(bytes) - 1) >> 2; ++at) words[static_cast<std::size_t>(count++)] = at;
  });
  std::sort(words.begin(), words.begin() + count);
  const auto end = std::unique(words.begin(), words.begin() + count);
  std::array<int, bank_count> of_bank{};
  for (auto word = words.begin(); word != end; ++word) ++of_bank[*word % bank_count];
  return *std::max_element(of_bank.begin(), of_bank.end());
}

// Updates of one element go one after the other: in each pass an address is there once, and its sectors count.
int update_sectors(const std::uint64_t* addresses, LaneMask lanes, int bytes) {
  int sectors = 0;
  while (lanes != 0) {
    LaneMask pass = 0;
    for_lanes(lanes, [&](int lane) {
      bool is_first = true;
      for_lanes(pass, [&](int other) { is_first &= addresses[other] != addresses[lane]; });
      if (is_first) pass |= LaneMask{1} << lane;
    });
    sectors += distinct(addresses, pass, bytes, sector_bits);
    lanes &= ~pass;
  }
  return sectors;
}

}  // namespace

int passes_of(const std::uint64_t* addresses, LaneMask lanes, int bytes, bool is_shared) {
  if (lanes == 0) return 0;
  const int registers = register_passes(addresses, lanes, bytes);
  const int places = is_shared ? bank_passes(addresses, lanes, bytes) : distinct(addresses, lanes, bytes, line_bits);
  return std::max(registers, places);
}

std::vector<std::uint8_t> merged_loads(const KernelProgram& program) {
  const std::vector<Op>& code = program.code;
  std::vector<std::uint8_t> result(code.size(), 1);
  std::vector<bool> is_target(code.size());
  for (const Op& op : code)
    if ((op.step == Step::Branch || op.step == Step::Call) && op.target < code.size()) is_target[op.target] = true;
  std::vector<std::uint32_t> open;  // loads of words since the last place that nothing may be moved across
  const auto close = [&] {
    std::sort(open.begin(), open.end(), [&](std::uint32_t a, std::uint32_t b) { return std::pair(code[a].a, code[a].access->offset) < std::pair(code[b].a, code[b].access->offset); });
    for (std::size_t n = 0; n < open.size();) {
      const Op& first = code[open[n]];
      std::size_t count = 1;
      while (n + count < open.size() && count < 4 && code[open[n + count]].a == first.a && code[open[n + count]].access->offset == first.access->offset + static_cast<std::int64_t>(4 * count)) ++count;
      const std::size_t wide = count == 4 && first.access->offset % 16 == 0 ? 4 : count >= 2 && first.access->offset % 8 == 0 ? 2 : 1;
      result[open[n]] = static_cast<std::uint8_t>(wide);
      for (std::size_t other = 1; other < wide; ++other) result[open[n + other]] = 0;
      n += wide;
    }
    open.clear();
  };
  for (std::uint32_t pc = 0; pc < code.size(); ++pc) {
    const Op& op = code[pc];
    const bool is_word = op.access != nullptr && op.access_kind == AccessKind::Load && op.access->space == Space::Shared && op.access_bytes == 4 && op.guard == 0;
    const bool writes_memory = op.access != nullptr && op.access_kind != AccessKind::Load;
    bool changes_base = false;  // a row that an open load starts from gets another value
    for (const std::uint32_t load : open) {
      changes_base |= op.dst != 0 && op.dst == code[load].a;
      if (op.access != nullptr) changes_base |= std::find(op.access->rows.begin(), op.access->rows.end(), code[load].a) != op.access->rows.end();
    }
    if (is_target[pc] || op.step != Step::Plain || writes_memory || changes_base) close();
    if (is_word) open.push_back(pc);
  }
  close();
  return result;
}

void Counter::note_access(Warp& warp, const Op& op, LaneMask lanes, int words) {
  const auto& site = *op.access;
  std::array<std::uint64_t, lane_count> addresses{};
  const auto fill = [&](Row base, std::int64_t offset) {
    for_lanes(lanes, [&](int lane) { addresses[static_cast<std::size_t>(lane)] = warp.row<std::uint64_t>(base)[lane] + static_cast<std::uint64_t>(offset); });
  };
  if (op.access_kind == AccessKind::AsyncCopy) {  // reads global memory and writes shared memory
    fill(op.b, site.source_offset);
    note_request(warp, op, addresses.data(), lanes, site.source_space, site.bytes, false, false);
    return;
  }
  fill(op.a, site.offset);
  if (words > 1) {
    const int bytes = 4 * words;
    bool is_aligned = true;
    for_lanes(lanes, [&](int lane) { is_aligned &= addresses[static_cast<std::size_t>(lane)] % static_cast<std::uint64_t>(bytes) == 0; });
    if (is_aligned) return note_request(warp, op, addresses.data(), lanes, site.space, bytes, false, false);
    for (int word = 0; word < words; ++word) {
      note_request(warp, op, addresses.data(), lanes, site.space, 4, false, false);
      for_lanes(lanes, [&](int lane) { addresses[static_cast<std::size_t>(lane)] += 4; });
    }
    return;
  }
  const int bytes = op.access_bytes;
  note_request(warp, op, addresses.data(), lanes, site.space, bytes, op.access_kind != AccessKind::Load, op.access_kind == AccessKind::Atomic);
}

void Counter::note_request(Warp& warp, const Op& op, const std::uint64_t* addresses, LaneMask lanes, Space space, int bytes, bool is_store, bool is_atomic) {
  const int first = std::countr_zero(lanes);
  if (space == Space::Generic) space = window_of(addresses[first]) == shared_window ? Space::Shared : window_of(addresses[first]) == local_window ? Space::Local : Space::Global;
  if (space != Space::Global && space != Space::Shared) return;  // parameters and constants are served by a cache of their own
  AccessCounts& counts = counts_.accesses[op.instruction];
  const bool is_shared = space == Space::Shared;
  if (counts.requests == 0) {
    counts.space = space;
    counts.is_store = is_store;
    counts.is_atomic = is_atomic;
    counts.bytes = bytes;
    if (!is_shared)
      if (const Region* region = warp.core->memory->find(addresses[first])) counts.region = region->name;
  }
  const int lane_total = std::popcount(lanes);
  const int words = distinct(addresses, lanes, bytes, 2);  // lanes that want one word share it
  ++counts.requests;
  counts.lanes += lane_total;
  counts.passes += passes_of(addresses, lanes, bytes, is_shared);
  counts.passes_needed += std::max(register_passes(addresses, lanes, bytes), divided_up(std::int64_t{4} * words, 128));
  if (is_shared) return;
  const std::size_t before = loaded_.size();
  const int sectors = is_atomic ? update_sectors(addresses, lanes, bytes) : distinct(addresses, lanes, bytes, sector_bits, is_store ? nullptr : &loaded_);
  counts.sectors += sectors;
  counts.sectors_needed += std::max(1, divided_up(std::int64_t{std::min(4, bytes)} * words, 32));
  if (is_store) counts_.sectors_stored += sectors;
  else if (before < next_cleaning_ && loaded_.size() >= next_cleaning_) forget_repeats();
}

void Counter::forget_repeats() {
  std::sort(loaded_.begin(), loaded_.end());
  loaded_.erase(std::unique(loaded_.begin(), loaded_.end()), loaded_.end());
  next_cleaning_ = std::max<std::size_t>(1u << 20, 2 * loaded_.size());
}

Counts Counter::result() {
  forget_repeats();
  counts_.sectors_loaded = static_cast<std::int64_t>(loaded_.size());
  std::uint32_t last = ~0u;  // an instruction may be several operations of the machine: the first one counts
  for (std::uint32_t pc = 0; pc < executions_.size(); ++pc) {
    const std::uint32_t instruction = program_->code[pc].instruction;
    if (instruction == last) continue;
    last = instruction;
    if (executions_[pc] == 0) continue;
    counts_.warp_instructions += executions_[pc];
    counts_.lane_instructions += lanes_[pc];
    counts_.by_text[program_->places[instruction].text] += executions_[pc];
  }
  return std::move(counts_);
}

}  // namespace tilewright::ptx
