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

std::map<std::string, std::int64_t> dims_of_text(const std::string& text) {
  std::map<std::string, std::int64_t> dims;
  std::string line = text.substr(0, text.find('\n'));
  REQUIRE_MESSAGE(line.starts_with("// run "), line);
  for (char& c : line)
    if (c == ',' || c == '=') c = ' ';
  std::istringstream words(line.substr(7));
  std::string name;
  for (std::int64_t value = 0; words >> name >> value;) dims[name] = value;
  return dims;
}

std::map<std::string, HostTensor> exact_inputs(const Plan& plan, const std::map<std::string, std::int64_t>& dims) {
  const std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  std::map<std::string, HostTensor> inputs;
  std::int64_t seed = 1;
  for (const Param& param : plan.params) {
    if (param.kind == ParamKind::Out) continue;
    HostTensor tensor = exact_tensor(param.dtype, shape_of(param.shape, names), seed);
    if (!is_float(param.dtype))
      for (std::int64_t element = 0; element < tensor.elements(); ++element) write_integer(tensor, element, read_integer(tensor, element) + 2);
    inputs[param.name] = std::move(tensor);
    seed += 2;
  }
  return inputs;
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
