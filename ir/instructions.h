// The table of thread-stage instructions: one row each, read by printer, parser, verifier, generators and sim.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/dtype.h"

namespace tilewright {

// What an instruction does to memory, as far as ordering goes.
enum class Effect : std::uint8_t { None, Reads, Writes, ReadsWrites, Orders };
// Who must reach it together.
enum class Convergence : std::uint8_t { None, Warp, Warpgroup, Cta };

struct InstrInfo {
  std::string_view name;      // "barrier.block", "load.v4"
  int min_operands;
  int max_operands;
  std::optional<Dtype> result; // none: a statement; Index stands for "of its operands"
  Effect effect;
  Convergence convergence;
  std::string_view ptx;       // text of the instruction, %0 … its operands, empty where the generators build it themselves
  std::string_view meaning;   // one sentence
};

const InstrInfo* find_instruction(std::string_view name);
std::span<const InstrInfo> all_instructions();

// wgmma.m64n{n}k16.{dtype}: 64 rows by n columns, 16 steps of k.
struct WgmmaForm {
  int n = 0;
  Dtype dtype = Dtype::BF16;  // of A and B; the sum is f32
};
std::optional<WgmmaForm> wgmma_form(std::string_view name);

}  // namespace tilewright
