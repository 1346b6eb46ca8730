// Rungs: lowering, then line after line.
#include "runtime/library/rungs.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "runtime/tensor.h"

namespace tilewright {

namespace {

NumericClass numeric_class_of(const std::string& word) {
  for (const SchedulePass& pass : schedule_passes())
    if (pass.word == word) return pass.numeric;
  return NumericClass::Exact;
}

// A schedule that tiles a reduced index sets its own levels.
bool tiles_a_reduction(const TensorFn& fn, const std::vector<ScheduleLine>& lines) {
  bool found = false;
  for (const TensorStmt& stmt : fn.statements)
    walk(stmt.value, [&](const Expr& node) {
      if (const Reduce* reduction = as<Reduce>(node))
        for (const Axis& axis : reduction->axes)
          for (const ScheduleLine& line : lines)
            for (const ScheduleToken& token : line.tokens) found |= line.word == "tile" && token.text == axis.name;
      return !found;
    });
  return found;
}

}  // namespace

std::vector<Rung> build_rungs(const TensorFn& fn, const std::string& schedule_name, const std::string& arch, const std::vector<Fact>& when,
                              const std::vector<ScheduleLine>& lines, const Target& target, const CallClass& call_class) {
  std::vector<Rung> rungs;
  Plan plan = lower(fn, call_class.long_sums && !tiles_a_reduction(fn, lines));
  plan.schedule = schedule_name;
  plan.arch = arch;
  plan.facts = when;
  plan.index_bits = call_class.index_bits;
  rungs.push_back(Rung{"", NumericClass::Exact, plan});
  for (const ScheduleLine& line : lines) {
    plan = apply_line(plan, line, target);
    rungs.push_back(Rung{line.text, numeric_class_of(line.word), plan});
  }
  return rungs;
}

Plan thread_stage(const Plan& plan, const Target& target) {
  const std::vector<const Kernel*> kernels = kernels_of(plan);
  return !kernels.empty() && kernels[0]->stage == Stage::Thread ? plan : finish(plan, target);
}

std::string rung_file_name(const std::vector<Rung>& rungs, std::size_t n) {
  std::string word = "lowered";
  if (n > 0) {
    word = rungs[n].line.substr(0, rungs[n].line.find_first_of(" \t"));
    if (std::size_t colon = word.find(':'); colon != std::string::npos) {  // a target stands before the word
      std::string rest = rungs[n].line.substr(rungs[n].line.find(':') + 1);
      rest.erase(0, rest.find_first_not_of(' '));
      word = rest.substr(0, rest.find_first_of(" \t"));
    }
  }
  return fmt::format("{:02}-{}", n, word);
}

}  // namespace tilewright
