// What tests/sim/sim.h declares.
#include "tests/sim/sim.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "ir/diagnostic.h"
#include "tests/locations.h"

namespace tilewright {

Plan plan_of(const std::string& text) {
  try {
    return read_plan(text);
  } catch (const UserError& error) {
    FAIL(render(error.diagnostics(), {{"test", text}}));
  }
  return {};
}

Plan ladder_plan(const std::string& file) {
  std::ifstream stream(source_root() / "tests/ir/ladder" / file);
  std::ostringstream text;
  text << stream.rdbuf();
  return plan_of(text.str());
}

HostTensor exact_tensor(Dtype dtype, std::vector<std::int64_t> shape, std::int64_t seed) {
  HostTensor tensor = make_tensor(dtype, std::move(shape));
  for (std::int64_t element = 0; element < tensor.elements(); ++element) write_integer(tensor, element, (element * 7 + seed) % 5 - 2);
  return tensor;
}

Arguments run_without_faults(const Plan& plan, std::map<std::string, HostTensor> inputs, const std::map<std::string, std::int64_t>& given,
                             const SimulatorOptions& options) {
  Arguments arguments = bind_arguments(plan, std::move(inputs), given);
  const RunReport report = simulate(plan, arguments, options);
  for (const std::string& fault : report.faults) CHECK_MESSAGE(false, fault);
  return arguments;
}

std::string faults_of(const Plan& plan, std::map<std::string, HostTensor> inputs, const std::map<std::string, std::int64_t>& given,
                      const SimulatorOptions& options) {
  Arguments arguments = bind_arguments(plan, std::move(inputs), given);
  const RunReport report = simulate(plan, arguments, options);
  std::string text;
  for (const std::string& fault : report.faults) text += fault + "\n";
  return text;
}

}  // namespace tilewright
