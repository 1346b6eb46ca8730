// Tables of cards and architectures; see cards.h. Each row names where its figures come from.
#include "runtime/library/ladder/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

// Rates of L2 stand only where they were measured or NVIDIA gives them.
constexpr auto cards = std::to_array<Card>({
    {"h200", "NVIDIA H200", "sm_90a", 132, 1.980, 4.60, 4650, 1, 128, 64, 989, 494, 1979,
     "SMs, clock, DRAM (read, 96 % of the datasheet's 4.8) and L2 measured on one; tensor cores: NVIDIA H200 datasheet, dense"},
    {"h100", "NVIDIA H100", "sm_90a", 132, 1.980, 3.35, 0, 1, 128, 64, 989, 494, 1979, "NVIDIA H100 datasheet (SXM), dense; clock as measured on an H200"},
    {"a100", "NVIDIA A100", "sm_80", 108, 1.410, 2.039, 5120, 1, 64, 32, 312, 156, 624, "NVIDIA A100 datasheet (SXM, 80 GB), dense; L2: A100 whitepaper, 5120 bytes a clock"},
    {"a10", "NVIDIA A10", "sm_86", 72, 1.695, 0.600, 0, 1, 128, 2, 125, 62.5, 250, "NVIDIA A10 datasheet, dense"},
    {"l4", "NVIDIA L4", "sm_89", 58, 2.040, 0.300, 0, 1, 128, 2, 121, 60, 242, "NVIDIA L4 datasheet, half of its figures with sparsity"},
    {"l40s", "NVIDIA L40S", "sm_89", 142, 2.520, 0.864, 0, 1, 128, 2, 362, 183, 733, "NVIDIA L40S datasheet, dense"},
    {"t4", "Tesla T4", "sm_75", 40, 1.590, 0.320, 0, 0.5, 64, 2, 65, 0, 130, "NVIDIA T4 datasheet; Turing whitepaper: 64 lanes and 16 load/store units an SM; bf16 is not among its types"},
    {"rtx3090", "NVIDIA GeForce RTX 3090", "sm_86", 82, 1.695, 0.936, 0, 1, 128, 2, 71, 35.6, 284, "GA102 whitepaper, dense, sums in f32"},
    {"rtx4090", "NVIDIA GeForce RTX 4090", "sm_89", 128, 2.520, 1.008, 0, 1, 128, 2, 165.2, 82.6, 660.6, "Ada whitepaper, dense, sums in f32"},
});

// CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability"; allocation units: CUDA
// Occupancy Calculator. From sm_80 on the system keeps 1 KB of shared memory a block.
struct ArchLimits {
  std::string_view arch;
  int most_threads;
  int most_blocks;
  std::int64_t shared_kib;
  int shared_unit;
  std::int64_t shared_reserved;
};
constexpr auto limits = std::to_array<ArchLimits>({
    {"sm_75", 1024, 16, 64, 256, 0},
    {"sm_80", 2048, 32, 164, 128, 1024},
    {"sm_86", 1536, 16, 100, 128, 1024},
    {"sm_87", 1536, 16, 164, 128, 1024},
    {"sm_89", 1536, 24, 100, 128, 1024},
    {"sm_90", 2048, 32, 228, 128, 1024},
    {"sm_90a", 2048, 32, 228, 128, 1024},
    {"sm_100a", 2048, 32, 228, 128, 1024},
    {"sm_120a", 1536, 24, 100, 128, 1024},
});
constexpr int registers_of_sm = 65536;
constexpr int register_unit = 256;  // of a warp
constexpr int partitions = 4;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::span<const Card> all_cards() { return cards; }

const Card& card_by_name(const std::string& name) {
  std::string known;
  for (const Card& card : cards) {
    if (card.name == name) return card;
    known += (known.empty() ? "" : ", ") + std::string(card.name);
  }
  throw UserError({}, fmt::format("no card is called `{}`", name), "known are " + known);
}

const Card* card_of_gpu(const std::string& gpu_name, const std::string& arch) {
  const Card* found = nullptr;
  for (const Card& card : cards)
    if (gpu_name.starts_with(card.title) && (found == nullptr || card.title.size() > found->title.size())) found = &card;
  if (found != nullptr) return found;
  const auto of_arch = std::find_if(cards.begin(), cards.end(), [&](const Card& card) { return card.arch == arch; });
  return gpu_name.empty() && of_arch != cards.end() ? &*of_arch : nullptr;
}

double tensor_rate(const Card& card, Dtype dtype) {
  const bool is_turing = card.arch == "sm_75";
  const std::string_view name = info(dtype).name;
  if (name == "f16" || (name == "bf16" && !is_turing)) return card.tensor_16 * 1e12;
  if (name == "f32") return card.tensor_tf32 * 1e12;
  if (name == "i8" || name == "u8" || name == "e4m3" || name == "e5m2") return card.tensor_8 * 1e12;
  return 0;
}

std::optional<Occupancy> occupancy_of(const std::string& arch, int threads, int registers, std::int64_t shared_bytes) {
  const auto row = std::find_if(limits.begin(), limits.end(), [&](const ArchLimits& each) { return each.arch == arch; });
  if (row == limits.end() || threads <= 0) return std::nullopt;
  const int warps = (threads + 31) / 32;
  const int most_warps = row->most_threads / 32;
  struct Limit {
    std::string_view name;
    std::int64_t blocks;
  };
  std::int64_t by_registers = row->most_threads;  // more than there can be
  if (registers > 0) by_registers = registers_of_sm / partitions / round_up(std::int64_t{registers} * 32, register_unit) * partitions / warps;
  std::int64_t by_shared = row->most_threads;
  if (shared_bytes > 0) by_shared = row->shared_kib * 1024 / round_up(shared_bytes + row->shared_reserved, row->shared_unit);
  const std::array<Limit, 4> all = {{{"threads", most_warps / warps}, {"registers", by_registers}, {"shared memory", by_shared}, {"blocks", row->most_blocks}}};
  const Limit least = *std::min_element(all.begin(), all.end(), [](const Limit& a, const Limit& b) { return a.blocks < b.blocks; });
  if (least.blocks <= 0) return std::nullopt;
  return Occupancy{static_cast<int>(least.blocks), static_cast<int>(least.blocks) * warps, most_warps, std::string(least.name)};
}

}  // namespace tilewright
