// What the simulator's tests share: plans from text, exact data, runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/execute.h"

namespace tilewright {

// Parses; a fault in the text fails the test with its place.
Plan plan_of(const std::string& text);
// A file of tests/ir/ladder.
Plan ladder_plan(const std::string& file);

// Small integers, so that sums are exact: element e is (e*7 + seed) % 5 - 2.
HostTensor exact_tensor(Dtype dtype, std::vector<std::int64_t> shape, std::int64_t seed);

// The dims in the first line of an IR text, `// run M = 32, N = 32`.
std::map<std::string, std::int64_t> dims_of_text(const std::string& text);
// Exact data for every input of the plan, of the shapes that these dims give; integers that may be indices start at 0.
std::map<std::string, HostTensor> exact_inputs(const Plan& plan, const std::map<std::string, std::int64_t>& dims);

// `plan` on these inputs; the report's faults are expected to be none.
Arguments run_without_faults(const Plan& plan, std::map<std::string, HostTensor> inputs, const std::map<std::string, std::int64_t>& given = {},
                             const SimulatorOptions& options = {});
// The faults of a run, a line each.
std::string faults_of(const Plan& plan, std::map<std::string, HostTensor> inputs, const std::map<std::string, std::int64_t>& given = {},
                      const SimulatorOptions& options = {});

}  // namespace tilewright
