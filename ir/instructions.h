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
  // Text of the instruction, empty where the generators build it themselves: `%0` … its operands, `%r` its result, `#0` …
  // operands that must be constants. A whole array stands for the list of its registers; one that the text does not
  // name is only announced: its registers may change there.
  std::string_view ptx;
  std::string_view meaning;   // one sentence
};

const InstrInfo* find_instruction(std::string_view name);
std::span<const InstrInfo> all_instructions();
// Whether the row's text wants a constant there.
bool takes_constant(const InstrInfo& row, std::size_t operand);
// Whether a register is an operand because it is written: of ldmatrix, and of mma, which adds to it.
bool sets_register(const InstrInfo& row, std::size_t operand);

// wgmma.m64n{n}k16.{dtype}: 64 rows by n columns, 16 steps of k.
struct WgmmaForm {
  int n = 0;
  Dtype dtype = Dtype::BF16;  // of A and B; the sum is f32
};
std::optional<WgmmaForm> wgmma_form(std::string_view name);

}  // namespace tilewright
