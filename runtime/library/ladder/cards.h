// Cards by name and the rates of their parts, and what an SM of each architecture holds.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/dtype.h"
#include "runtime/library/ladder/ladder.h"

namespace tilewright {

struct Card {
  std::string_view name;   // "h200"
  std::string_view title;  // as the driver names it, or begins to
  std::string_view arch;
  int sms = 0;
  double clock_ghz = 0;          // the highest under load
  double dram_tb = 0;            // TB/s
  double l2_bytes_a_clock = 0;   // of the whole card; 0: not known
  double passes_a_clock = 1;     // of the pipe of L1 and shared memory, an SM
  int f32_lanes = 128;           // an SM
  int f64_lanes = 0;
  double tensor_16 = 0;          // TFLOP/s, dense, f16 and bf16 with sums in f32
  double tensor_tf32 = 0;
  double tensor_8 = 0;           // i8, fp8
  std::string_view source;
};
std::span<const Card> all_cards();
// Throws UserError that lists the cards.
const Card& card_by_name(const std::string& name);
// The card that the driver's name means, or the first of the architecture; null where there is none.
const Card* card_of_gpu(const std::string& gpu_name, const std::string& arch);
// The tensor cores' rate for operands of this dtype, operations a second; 0: they have none.
double tensor_rate(const Card& card, Dtype dtype);

// Blocks of this kind that an SM holds; nothing for an architecture that is not in the table or a block that does not fit.
std::optional<Occupancy> occupancy_of(const std::string& arch, int threads, int registers, std::int64_t shared_bytes);

}  // namespace tilewright
