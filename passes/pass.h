// Passes: pure functions from plan to plan, listed in one registry that reads as the compiler.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "ir/schedule.h"
#include "ir/tensor.h"

namespace tilewright {

// What passes may know of the machine that is compiled for.
struct Target {
  std::string arch = "sm_90a";
  std::int64_t shared_bytes = 232448;     // most a block may have
  std::int64_t registers_per_block = 65536;
  std::int64_t most_threads = 1024;
};
// Throws UserError that lists the known architectures.
Target target_for(const std::string& arch);
std::span<const std::string_view> known_architectures();

// Exact: not a bit of a result changes. Reassociates: sums in another order. ChangesPrecision: other functions or types.
enum class NumericClass : std::uint8_t { Exact, Reassociates, ChangesPrecision };

// A pass that belongs to a schedule line; it reads the line's tokens itself (passes/line_reader.h) and throws UserError
// at the token with the failed condition and the numbers.
struct SchedulePass {
  std::string_view word;     // "tile"
  std::string_view syntax;   // "tile block i 16, j 16"
  std::string_view summary;  // one sentence
  NumericClass numeric;
  Plan (*run)(const Plan& plan, const ScheduleLine& line, const Target& target);
};

// A pass of the fixed list that completes any prefix of a schedule.
struct FinishingPass {
  std::string_view name;
  std::string_view summary;
  NumericClass numeric;
  Plan (*run)(const Plan& plan, const Target& target);
};

std::span<const SchedulePass> schedule_passes();
std::span<const FinishingPass> finishing_passes();

// Tensor IR to the naive plan: a kernel a statement, one thread an output element, serial reductions. `long_sums`: a
// reduction may exceed 65,536 terms, so that a sum of f32 is made in two levels.
Plan lower(const TensorFn& fn, bool long_sums = false);

// Runs one line (verifies the result). Throws UserError for a word that is unknown, with the nearest known one.
Plan apply_line(const Plan& plan, const ScheduleLine& line, const Target& target);

// Runs the finishing passes: the thread stage of a tile-stage plan. `after` (may be null) gets each pass' result.
Plan finish(const Plan& plan, const Target& target, std::vector<std::pair<std::string, Plan>>* after = nullptr);

// The compiler's own schedule for a plan without one, in the syntax of the language.
std::vector<ScheduleLine> default_schedule(const Plan& plan, const Target& target);

}  // namespace tilewright
