// Each request is looked at by itself: its threads' bytes are sorted and counted by sectors, or by words and banks.
#include "runtime/sim/counter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "runtime/sim/boxes.h"

namespace tilewright {

namespace {

constexpr std::int64_t sector_bytes = 32;
constexpr std::int64_t bank_bytes = 4;
constexpr std::int64_t bank_count = 32;
constexpr int wavefront_bytes = 128;

bool is_written_by(AccessKind kind) { return kind == AccessKind::Store || kind == AccessKind::Atomic || kind == AccessKind::BoxStore; }
bool is_read_by(AccessKind kind) { return kind != AccessKind::Store && kind != AccessKind::BoxStore; }

}  // namespace

std::string_view name_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::Load: return "load";
    case AccessKind::Store: return "store";
    case AccessKind::Atomic: return "atomic";
    case AccessKind::ElementCopy: return "cp.async";
    case AccessKind::BoxLoad: return "box load";
    case AccessKind::BoxStore: return "box store";
  }
  return "";
}

std::int64_t KernelCounts::warp_instructions() const {
  std::int64_t all = 0;
  for (const InstructionCounts& kind : instructions) all += kind.warps;
  return all;
}
std::int64_t KernelCounts::thread_instructions() const {
  std::int64_t all = 0;
  for (const InstructionCounts& kind : instructions) all += kind.threads;
  return all;
}

SectorCount sectors_of(std::vector<ByteRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
  SectorCount count;
  std::int64_t bytes = 0;
  std::int64_t end = -1;     // of the bytes so far
  std::int64_t sector = -1;  // the last one counted
  for (const ByteRange& range : ranges) {
    bytes += std::max<std::int64_t>(0, range.end - std::max(end, range.first));
    end = std::max(end, range.end);
    const std::int64_t last = (range.end - 1) / sector_bytes;
    const std::int64_t first = std::max(range.first / sector_bytes, sector + 1);
    count.sectors += std::max<std::int64_t>(0, last - first + 1);
    sector = std::max(sector, last);
  }
  count.needed = (bytes + sector_bytes - 1) / sector_bytes;
  return count;
}

std::int64_t sectors_of_updates(std::vector<ByteRange> rest) {
  std::sort(rest.begin(), rest.end(), [](const ByteRange& a, const ByteRange& b) { return a.first < b.first; });
  std::vector<ByteRange> pass, later;
  std::int64_t sectors = 0;
  for (; !rest.empty(); rest.swap(later)) {
    pass.clear(), later.clear();
    for (const ByteRange& range : rest) (pass.empty() || pass.back().first != range.first ? pass : later).push_back(range);
    sectors += sectors_of(pass).sectors;
  }
  return sectors;
}

std::int64_t wavefronts_of(std::vector<std::int64_t>& words) {
  std::sort(words.begin(), words.end());
  std::array<std::int64_t, bank_count> of_bank{};
  std::int64_t last = -1;
  for (const std::int64_t word : words)
    if (word != last) ++of_bank[static_cast<std::size_t>((last = word) % bank_count)];
  return *std::max_element(of_bank.begin(), of_bank.end());
}

void Counter::Stride::see(std::int64_t distance) {
  if (state == State::Unknown) *this = {State::Same, distance};
  else if (distance != elements) state = State::Differs;
}
void Counter::Stride::merge(const Stride& other) {
  if (other.state == State::Same) see(other.elements);
  else if (other.state == State::Differs) state = State::Differs;
}

Counter::Counter(const KernelProgram& program) : program_(program), steps_(program.code.size()), tallies_(program.accesses.size()) {
  for (std::size_t n = 0; n < program.accesses.size(); ++n) {
    const CountedAccess& access = program.accesses[n];
    steps_[access.step].access = static_cast<std::int32_t>(n);
    if (access.map != nullptr) tallies_[n].tensor = tensor_number(access.map->tensor->name, access.map->tensor->dtype, access.map->tensor->elements);
    else if (!access.memory->is_shared) tallies_[n].tensor = tensor_number(access.memory->name, access.memory->dtype, access.memory->elements);
  }
}

std::size_t Counter::tensor_number(const std::string& name, Dtype dtype, std::int64_t elements) {
  for (std::size_t n = 0; n < tensors_.size(); ++n)
    if (tensors_[n].name == name) return n;
  tensors_.push_back({name, bytes_of(dtype), 0, 0, std::vector<std::uint8_t>(static_cast<std::size_t>(elements))});
  return tensors_.size() - 1;
}

void Counter::before(const WarpOp& op, const Warp& warp) {
  Step& step = steps_[static_cast<std::size_t>(&op - program_.code.data())];
  ++step.warps;
  step.threads += std::popcount(warp.mask);
  if (step.access < 0) return;
  const CountedAccess& place = program_.accesses[static_cast<std::size_t>(step.access)];
  Tally& tally = tallies_[static_cast<std::size_t>(step.access)];
  if (place.map != nullptr) box(op, warp, place, tally);
  else access(op, warp, place, tally);
}

void Counter::behind(const WarpOp& op, const Warp& warp, LaneMask mask, const WarpOp* next) {
  Step& step = steps_[static_cast<std::size_t>(&op - program_.code.data())];
  if (warp.mask != mask) ++step.divergent;  // asked for branches only
  if (next != &op || warp.state != WarpState::Waiting) return;
  --step.warps;  // it will come again
  step.threads -= std::popcount(mask);
}

void Counter::access(const WarpOp& op, const Warp& warp, const CountedAccess& access, Tally& tally) {
  const MemorySite& site = *access.memory;
  const bool is_copy = access.kind == AccessKind::ElementCopy;
  const Operand index{is_copy ? op.b : op.a, Dtype::Index, (op.uniform & (is_copy ? 2 : 1)) != 0};
  const std::int64_t element_bytes = bytes_of(site.dtype);
  const std::int64_t bytes = element_bytes * access.width;
  // cp.async.fill reads fewer bytes, or none.
  const InstrSite* copy = is_copy ? static_cast<const InstrSite*>(op.object) : nullptr;
  const bool has_count = copy != nullptr && !copy->operands.empty();
  std::array<std::int64_t, lane_count> elements{};
  std::vector<ByteRange>& ranges = ranges_;
  ranges.clear();
  LaneMask active = 0;
  each_lane(warp.mask, [&](int lane) {
    const std::int64_t element = elements[static_cast<std::size_t>(lane)] = read_lane(warp, index, lane).i;
    const std::int64_t read = has_count ? read_lane(warp, copy->operands[0], lane).i : bytes;
    if (element < 0 || element * element_bytes + read > site.elements * element_bytes || read <= 0) return;
    active |= 1u << lane;
    ranges.push_back({site.offset + element * element_bytes, site.offset + element * element_bytes + read});
  });
  if (active == 0) return;
  ++tally.requests;
  tally.threads += std::popcount(active);
  for (int lane = 0; lane < lane_count; lane += 2)
    if ((active >> lane & 3) == 3) tally.stride.see(elements[static_cast<std::size_t>(lane + 1)] - elements[static_cast<std::size_t>(lane)]);
  if (access.kind == AccessKind::Atomic) {
    std::array<std::int64_t, lane_count> sorted{};
    std::size_t count = 0;
    each_lane(active, [&](int lane) { sorted[count++] = elements[static_cast<std::size_t>(lane)]; });
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
    std::int64_t most = 0;
    for (std::size_t n = 0, run = 0; n < count; ++n) most = std::max(most, static_cast<std::int64_t>(run = n > 0 && sorted[n] == sorted[n - 1] ? run + 1 : 1));
    tally.most_on_one += most;
  }
  if (site.is_shared) {
    // In groups whose threads move 128 bytes.
    const int group = bytes <= bank_bytes ? lane_count : std::max(1, wavefront_bytes / static_cast<int>(bytes));
    std::vector<std::int64_t>& words = words_;
    words.clear();
    std::size_t range = 0;
    for (int lane = 0; lane < lane_count; ++lane) {
      if ((active >> lane & 1) != 0) {
        for (std::int64_t word = ranges[range].first / bank_bytes; word * bank_bytes < ranges[range].end; ++word) words.push_back(word);
        ++range;
      }
      if ((lane + 1) % group != 0 || words.empty()) continue;
      tally.wavefronts += wavefronts_of(words);
      ++tally.ideal_wavefronts;
      words.clear();
    }
    return;
  }
  Tensor& tensor = tensors_[tally.tensor];
  for (const ByteRange& range : ranges) {
    tensor.thread_bytes += range.end - range.first;
    for (std::int64_t element = range.first / element_bytes; element * element_bytes < range.end; ++element)
      tensor.touched[static_cast<std::size_t>(element)] |= static_cast<std::uint8_t>((is_read_by(access.kind) ? 1 : 0) | (is_written_by(access.kind) ? 2 : 0));
  }
  const SectorCount count = sectors_of(ranges);
  tally.needed_sectors += count.needed;
  const std::int64_t sectors = access.kind == AccessKind::Atomic ? sectors_of_updates(ranges) : count.sectors;
  tally.sectors += sectors;
  tensor.sector_bytes += sectors * sector_bytes;
}

void Counter::box(const WarpOp& op, const Warp& warp, const CountedAccess& access, Tally& tally) {
  const InstrSite& site = *static_cast<const InstrSite*>(op.object);
  const MapInfo& map = *access.map;
  if (map.tensor->elements == 0) return;
  const std::int64_t bytes = bytes_of(map.tensor->dtype);
  Tensor& tensor = tensors_[tally.tensor];
  each_lane(warp.mask, [&](int lane) {
    ++tally.requests;
    ++tally.threads;
    std::array<std::int64_t, 5> at{};
    for (int axis = 0; axis < map.rank; ++axis) at[static_cast<std::size_t>(axis)] = read_lane(warp, site.operands[static_cast<std::size_t>(axis)], lane).i;
    std::vector<ByteRange>& ranges = ranges_;
    ranges.clear();
    each_box_row(map, at, [&](std::int64_t byte, std::int64_t first, std::int64_t end) {
      if (end > first) ranges.push_back({byte + first * bytes, byte + end * bytes});
      for (std::int64_t n = first; n < end; ++n)
        tensor.touched[static_cast<std::size_t>(byte / bytes + n)] |= static_cast<std::uint8_t>(access.kind == AccessKind::BoxStore ? 2 : 1);
    });
    for (const ByteRange& range : ranges) tensor.thread_bytes += range.end - range.first;
    const SectorCount count = sectors_of(ranges);
    tally.sectors += count.sectors;
    tally.needed_sectors += count.needed;
    tensor.sector_bytes += count.sectors * sector_bytes;
  });
}

void Counter::merge(const Counter& other) {
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    steps_[n].warps += other.steps_[n].warps;
    steps_[n].threads += other.steps_[n].threads;
    steps_[n].divergent += other.steps_[n].divergent;
  }
  for (std::size_t n = 0; n < tallies_.size(); ++n) {
    Tally& own = tallies_[n];
    const Tally& more = other.tallies_[n];
    own.requests += more.requests;
    own.threads += more.threads;
    own.sectors += more.sectors;
    own.needed_sectors += more.needed_sectors;
    own.wavefronts += more.wavefronts;
    own.ideal_wavefronts += more.ideal_wavefronts;
    own.most_on_one += more.most_on_one;
    own.stride.merge(more.stride);
  }
  for (std::size_t n = 0; n < tensors_.size(); ++n) {
    tensors_[n].thread_bytes += other.tensors_[n].thread_bytes;
    tensors_[n].sector_bytes += other.tensors_[n].sector_bytes;
    for (std::size_t element = 0; element < tensors_[n].touched.size(); ++element) tensors_[n].touched[element] |= other.tensors_[n].touched[element];
  }
}

KernelCounts Counter::counts() const {
  KernelCounts result;
  result.kernel = program_.name;
  const auto line_of = [&](std::size_t step) { return program_.statements[program_.code[step].statement].ir_line; };
  for (std::size_t n = 0; n < tallies_.size(); ++n) {
    const CountedAccess& access = program_.accesses[n];
    const Tally& tally = tallies_[n];
    AccessCounts counts;
    counts.kind = access.kind;
    counts.is_shared = access.map == nullptr && access.memory->is_shared;
    counts.buffer = access.map != nullptr ? access.map->tensor->name : access.memory->name;
    counts.text = access.map != nullptr ? access.map->name : access.memory->text;
    counts.span = access.span;
    counts.statement = program_.statements[program_.code[access.step].statement].span;
    counts.ir_line = line_of(access.step);
    counts.width = access.width;
    counts.bytes = access.width * bytes_of(access.memory->dtype);
    counts.requests = tally.requests;
    counts.threads = tally.threads;
    counts.sectors = tally.sectors;
    counts.needed_sectors = tally.needed_sectors;
    counts.wavefronts = tally.wavefronts;
    counts.ideal_wavefronts = tally.ideal_wavefronts;
    counts.most_on_one = tally.most_on_one;
    if (tally.stride.state == Stride::State::Same) counts.lane_stride = tally.stride.elements;
    result.accesses.push_back(std::move(counts));
  }
  for (const CountedBranch& branch : program_.branches) {
    const Step& step = steps_[branch.step];
    result.branches.push_back({program_.statements[program_.code[branch.step].statement].span, line_of(branch.step), branch.text, step.warps, step.divergent});
  }
  std::map<std::string, InstructionCounts> kinds;
  for (const CountedInstruction& instruction : program_.instructions) {
    InstructionCounts& kind = kinds[instruction.kind];
    kind.kind = instruction.kind;
    kind.warps += steps_[instruction.step].warps;
    kind.threads += steps_[instruction.step].threads;
  }
  for (const auto& [name, kind] : kinds)
    if (kind.warps > 0) result.instructions.push_back(kind);
  for (const Tensor& tensor : tensors_) {
    std::int64_t compulsory = 0;
    for (const std::uint8_t touched : tensor.touched) compulsory += std::popcount(touched) * tensor.element_bytes;
    result.tensors.push_back({tensor.name, tensor.thread_bytes, tensor.sector_bytes, compulsory});
  }
  return result;
}

}  // namespace tilewright
