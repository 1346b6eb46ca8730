// Blocks in their order, one at a time; a block that waits long gets company, for it may wait for a later one.
#include "runtime/ptx/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>

#include "runtime/ptx/access.h"
#include "runtime/ptx/warp.h"

namespace tilewright::ptx {

namespace {

constexpr std::int64_t warp_slice = 16384;     // operations
constexpr std::int64_t block_slice = 50'000;
constexpr std::size_t most_resident = 32;

std::uint32_t special_value(SpecialRow special, const Launch& launch, const Block& block, int warp, int lane) {
  const auto linear = static_cast<std::uint32_t>(warp * lane_count + lane);
  const auto bit = 1u << lane;
  switch (special) {
    case SpecialRow::TidX: return linear % launch.block[0];
    case SpecialRow::TidY: return linear / launch.block[0] % launch.block[1];
    case SpecialRow::TidZ: return linear / (launch.block[0] * launch.block[1]);
    case SpecialRow::NtidX: return launch.block[0];
    case SpecialRow::NtidY: return launch.block[1];
    case SpecialRow::NtidZ: return launch.block[2];
    case SpecialRow::CtaidX: return block.position[0];
    case SpecialRow::CtaidY: return block.position[1];
    case SpecialRow::CtaidZ: return block.position[2];
    case SpecialRow::NctaidX: return launch.grid[0];
    case SpecialRow::NctaidY: return launch.grid[1];
    case SpecialRow::NctaidZ: return launch.grid[2];
    case SpecialRow::Lane: return static_cast<std::uint32_t>(lane);
    case SpecialRow::WarpIndex: return static_cast<std::uint32_t>(warp);
    case SpecialRow::Warps: return static_cast<std::uint32_t>(block.warps.size());
    case SpecialRow::LanemaskEq: return bit;
    case SpecialRow::LanemaskLt: return bit - 1;
    case SpecialRow::LanemaskLe: return bit | (bit - 1);
    case SpecialRow::LanemaskGt: return ~(bit | (bit - 1));
    case SpecialRow::LanemaskGe: return ~(bit - 1);
    case SpecialRow::Zero: return 0;
    case SpecialRow::One: return 1;
    case SpecialRow::DynamicShared: return launch.dynamic_shared_bytes;
    case SpecialRow::TotalShared: return static_cast<std::uint32_t>(launch.program->static_bytes) + launch.dynamic_shared_bytes;
  }
  return 0;
}

class Machine {
 public:
  Machine(const Launch& launch, Core& core) : launch_(launch), program_(*launch.program), core_(core) {
    if (launch.only) next_ = *launch.only;
    blocks_left_ = launch.only ? *launch.only + 1 : std::uint64_t{1} * launch.grid[0] * launch.grid[1] * launch.grid[2];
  }

  void run() {
    while (next_ < blocks_left_ || !resident_.empty()) {
      if (resident_.empty()) open();
      for (std::size_t n = 0; n < resident_.size();) {
        if (run_block(*resident_[n])) {
          ++n;
          continue;
        }
        spare_.push_back(std::move(resident_[n]));
        resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(n));
      }
      // Those that are still here have had a long turn.
      if (!resident_.empty() && resident_.size() < most_resident && next_ < blocks_left_) open();
    }
  }

 private:
  std::unique_ptr<Block> make() {
    auto block = std::make_unique<Block>();
    block->core = &core_;
    block->shared.resize(static_cast<std::size_t>(program_.shared_bytes) + launch_.dynamic_shared_bytes);
    block->written.resize(block->shared.size());
    const int threads = launch_.threads();
    const auto warps = static_cast<std::size_t>((threads + lane_count - 1) / lane_count);
    block->warps.resize(warps);
    block->file.resize(program_.file_bytes * warps + row_unit);
    const auto start = reinterpret_cast<std::uintptr_t>(block->file.data());
    std::byte* rows = block->file.data() + (start + row_unit - 1) / row_unit * row_unit - start;
    for (std::size_t n = 0; n < warps; ++n) {
      Warp& warp = block->warps[n];
      warp.block = block.get();
      warp.core = &core_;
      warp.index = static_cast<int>(n);
      warp.rows = rows + n * program_.file_bytes;
      std::memcpy(warp.rows, program_.image.data(), program_.image.size());
      const int left = threads - static_cast<int>(n) * lane_count;
      warp.all = left >= lane_count ? every_lane : (1u << left) - 1;
      warp.undefined.resize(program_.file_bytes / row_unit);
      warp.origin.resize(warp.undefined.size());
      warp.local.resize(static_cast<std::size_t>(program_.local_bytes) * lane_count);
      warp.local_written.resize(warp.local.size());
    }
    return block;
  }

  void open() {
    if (spare_.empty()) spare_.push_back(make());
    std::unique_ptr<Block> block = std::move(spare_.back());
    spare_.pop_back();
    const std::uint64_t number = next_++;
    block->position = {static_cast<unsigned>(number % launch_.grid[0]), static_cast<unsigned>(number / launch_.grid[0] % launch_.grid[1]),
                       static_cast<unsigned>(number / launch_.grid[0] / launch_.grid[1])};
    block->live_threads = launch_.threads();
    block->barriers.fill({});
    // What nobody wrote is no zero.
    std::memset(block->shared.data(), 0xa5, block->shared.size());
    std::memset(block->written.data(), byte_of_nobody, block->written.size());
    for (const SharedVariable& variable : program_.shared) std::memset(block->written.data() + variable.begin, byte_unwritten, static_cast<std::size_t>(variable.bytes));
    std::memset(block->written.data() + program_.shared_bytes, byte_unwritten, launch_.dynamic_shared_bytes);
    for (Warp& warp : block->warps) start(*block, warp);
    resident_.push_back(std::move(block));
  }

  void start(const Block& block, Warp& warp) {
    warp.alive = warp.all;
    warp.blocked = warp.arrived = 0;
    warp.served = 0;
    warp.carry = 0;
    warp.pc.fill(program_.entry);
    warp.copy_group.fill(0);
    warp.copies.clear();
    warp.origins.resize(1);
    for (const Row row : program_.registers) warp.mark(row, every_lane, every_lane, 0);
    std::memset(warp.local_written.data(), byte_unwritten, warp.local_written.size());
    for (const auto& [special, row] : program_.specials)
      for (int lane = 0; lane < lane_count; ++lane) warp.row<std::uint32_t>(row)[lane] = special_value(special, launch_, block, warp.index, lane);
  }

  // False where the block is done.
  bool run_block(Block& block) {
    for (std::int64_t done = 0; done < block_slice;) {
      std::int64_t now = 0;
      for (Warp& warp : block.warps) {
        if (warp.alive == 0) continue;
        const std::int64_t steps = run_warp(warp, warp_slice);
        now += steps;
        core_.clock += static_cast<std::uint64_t>(steps);
        if ((core_.steps_left -= steps) <= 0) stop_endless(warp);
      }
      if (block.live_threads == 0) return false;
      if (now == 0 && !release_barriers(block)) stop_deadlock(block);
      done += now;
    }
    return true;
  }

  [[noreturn]] void stop_endless(Warp& warp) {
    const LaneMask lanes = warp.alive != 0 ? warp.alive : 1;
    const Op& op = program_.code[warp.pc[static_cast<std::size_t>(std::countr_zero(lanes))]];
    core_.faults->add(warp, op, FaultKind::Deadlock, 1, [&](int) {
      return fmt::format("{} of {} are still here after {} operations of warps, which is where this machine stops: does the loop end?", threads_text(warp, lanes), block_text(*warp.block), core_.clock);
    });
    throw Stopped{};
  }

  [[noreturn]] void stop_deadlock(Block& block) {
    const auto text_of = [&](const Op& op) { return fmt::format("`{}` of {}", program_.places[op.instruction].text, place_text(program_, op)); };
    const Warp* first = nullptr;
    std::uint32_t pc = 0;
    std::string others;
    for (const Warp& warp : block.warps) {
      for (int lane = 0; lane < lane_count; ++lane) {
        if ((warp.all >> lane & 1) == 0) continue;
        const bool is_alive = (warp.alive >> lane & 1) != 0;
        const std::uint32_t its = warp.pc[static_cast<std::size_t>(lane)];
        if (first == nullptr && is_alive) first = &warp, pc = its;
        if (!others.empty() || first == nullptr || (is_alive && its == pc)) continue;
        LaneMask alike = 0;
        for_lanes(is_alive ? warp.alive : warp.all & ~warp.alive, [&](int other) { alike |= !is_alive || warp.pc[static_cast<std::size_t>(other)] == its ? 1u << other : 0u; });
        others = is_alive ? fmt::format("{} wait at {}", threads_text(warp, alike), text_of(program_.code[its])) : fmt::format("{} ended without it", threads_text(warp, alike));
      }
    }
    LaneMask here = 0;
    for_lanes(first->alive, [&](int lane) { here |= first->pc[static_cast<std::size_t>(lane)] == pc ? 1u << lane : 0u; });
    const Op& op = program_.code[pc];
    core_.faults->add(*first, op, FaultKind::Deadlock, 1, [&](int) {
      return fmt::format("deadlock: {} of {} wait at `{}` for ever; {}", threads_text(*first, here), block_text(block), program_.places[op.instruction].text, others.empty() ? "no other thread comes by" : others);
    });
    throw Stopped{};
  }

  const Launch& launch_;
  const KernelProgram& program_;
  Core& core_;
  std::vector<std::unique_ptr<Block>> resident_, spare_;
  std::uint64_t next_ = 0;
  std::uint64_t blocks_left_ = 0;
};

}  // namespace

LaunchResult execute(const Launch& launch, Memory& memory, FaultLog& faults, std::int64_t most_steps, Counter* counter) {
  LaunchResult result;
  Core core;
  core.launch = &launch;
  core.memory = &memory;
  core.faults = &faults;
  core.printed = &result.printed;
  core.steps_left = most_steps;
  core.counter = counter;
  try {
    Machine(launch, core).run();
  } catch (const Stopped&) {
  }
  result.steps = most_steps - core.steps_left;
  return result;
}

}  // namespace tilewright::ptx
