// Running plans on small random inputs, and checks of every plan that a test of the passes meets.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/passes/plan_runs.h"

namespace tilewright {

enum class Device : std::uint8_t { Interpreter, Simulator };

using Results = std::map<std::string, HostTensor>;

inline Results run_plan(const Plan& plan, const Sizes& sizes, Device device, LoopOrder order, Agreement agreement) {
  Arguments arguments = bind_arguments(plan, random_inputs(plan, sizes, agreement), sizes);
  InterpreterOptions options;
  options.order = order;
  RunReport report =
      device == Device::Interpreter ? interpret(plan, arguments, options) : simulate(plan, arguments, {});
  for (const std::string& fault : report.faults) FAIL_CHECK(fault);
  Results result;
  for (const Param& param : plan.params)
    if (param.kind != ParamKind::In) result.emplace(param.name, arguments.tensors.at(param.name));
  return result;
}

// Cases share the first lines of their schedules: the same plan on the same inputs runs once.
inline const Results& results_of(const Plan& plan, const Sizes& sizes, Device device, LoopOrder order, Agreement agreement) {
  static std::map<std::string, Results> known;
  std::string key = in_text(sizes) + std::to_string(static_cast<int>(device)) + std::to_string(static_cast<int>(order)) +
                    std::to_string(static_cast<int>(agreement)) + print(plan);
  auto found = known.find(key);
  if (found == known.end()) found = known.emplace(std::move(key), run_plan(plan, sizes, device, order, agreement)).first;
  return found->second;
}

// Bit for bit in the interpreter, whatever the order of parallel loops, or in the simulator. No sizes: the usual ones.
inline void check_same_results(const Plan& before, const Plan& after, const std::vector<Sizes>& all_sizes,
                               Device device, Agreement agreement = Agreement::AnyData) {
  for (const Sizes& sizes : all_sizes.empty() ? usual_sizes(before) : all_sizes) {
    INFO("sizes ", in_text(sizes));
    const Results& expected = results_of(before, sizes, Device::Interpreter, LoopOrder::Forwards, agreement);
    for (LoopOrder order : {LoopOrder::Forwards, LoopOrder::Backwards, LoopOrder::Shuffled}) {
      if (device == Device::Simulator && order != LoopOrder::Forwards) continue;
      for (const auto& result : results_of(after, sizes, device, order, agreement)) {
        const std::string& name = result.first;  // clang captures no structured binding
        bool same = result.second.data == expected.at(name).data;
        CHECK_MESSAGE(same, name, " differs");
      }
    }
  }
}

inline void check_plan(const Plan& plan) {
  for (const std::string& fault : verify(plan)) FAIL_CHECK(fault);
  bool comes_back = parse_plan(print(plan)) == plan;
  CHECK_MESSAGE(comes_back, "another plan comes back from the text\n", print(plan));
}

// What a line of this word keeps.
inline NumericClass numeric_class(const std::string& word) {
  for (const SchedulePass& pass : schedule_passes())
    if (pass.word == word) return pass.numeric;
  return NumericClass::ChangesPrecision;
}

}  // namespace tilewright
