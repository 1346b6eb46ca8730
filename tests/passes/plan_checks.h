// Running plans on small random inputs, and checks of every plan that a test of the passes meets.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "passes/affine.h"
#include "passes/pass.h"
#include "runtime/execute.h"

namespace tilewright {

using Sizes = std::map<std::string, std::int64_t>;

// Sizes that meet the plan's facts of the kind `N % 4 == 0`: nothing, one, primes, and one behind a tile.
inline std::vector<Sizes> usual_sizes(const Plan& plan) {
  Divisors divisors = divisors_of(plan.facts);
  std::vector<Sizes> result;
  for (const std::vector<std::int64_t>& pattern :
       std::vector<std::vector<std::int64_t>>{{0}, {1}, {7, 19, 5}, {33, 17, 20}}) {
    Sizes sizes;
    std::size_t n = 0;
    for (const Dim& dim : plan.dims) {
      if (dim.value) continue;
      auto found = divisors.find(dim.name);
      std::int64_t multiple = found == divisors.end() ? 1 : found->second;
      sizes[dim.name] = (pattern[n++ % pattern.size()] + multiple - 1) / multiple * multiple;
    }
    result.push_back(std::move(sizes));
  }
  return result;
}

// What the results of two plans have in common: all bits on any data, or on data whose sums are exact in any order.
enum class Agreement : std::uint8_t { AnyData, ExactData };

inline std::map<std::string, HostTensor> random_inputs(const Plan& plan, const Sizes& sizes, Agreement agreement) {
  std::mt19937 random(7);
  std::map<std::string, HostTensor> result;
  std::vector<std::pair<std::string, std::int64_t>> dims(sizes.begin(), sizes.end());
  for (const Param& param : plan.params) {
    if (param.kind == ParamKind::Out) continue;
    HostTensor tensor = make_tensor(param.dtype, shape_of(param.shape, dims));
    for (std::int64_t n = 0; n < tensor.elements(); ++n) {
      if (is_float(param.dtype) && agreement == Agreement::ExactData)
        write_real(tensor, n, static_cast<double>(random() % 3) - 1.0);
      else if (is_float(param.dtype))
        write_real(tensor, n, static_cast<double>(random() % 2001) / 500.0 - 2.0);
      else
        write_integer(tensor, n, static_cast<std::int64_t>(random() % 5));
    }
    result.emplace(param.name, std::move(tensor));
  }
  return result;
}

enum class Device : std::uint8_t { Interpreter, Simulator };

inline std::string in_text(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += name + " " + std::to_string(size) + " ";
  return text;
}

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
