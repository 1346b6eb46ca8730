// Runs of neighbours in the list of passes, compared.
#include "runtime/library/verify_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "ir/diagnostic.h"
#include "passes/affine.h"
#include "runtime/instruments.h"

namespace tilewright {

namespace {

// A plan that can be run, and the passes that lead to it from the one before in the list.
struct Stop {
  std::string passes;
  NumericClass numeric = NumericClass::Exact;
  Plan plan;
};

constexpr std::uint64_t data_seed = 1;
constexpr std::uint64_t orders_of_simulator = 3;

NumericClass weaker(NumericClass a, NumericClass b) { return std::max(a, b); }

// Behind `expand` a kernel is code of threads, and lacks its barriers up to `fence`.
std::vector<Stop> finishing_stops(const Plan& plan, const Target& target) {
  std::vector<std::pair<std::string, Plan>> after;
  finish(plan, target, &after);
  std::vector<Stop> stops;
  Stop next;
  bool is_ordered = false;
  for (std::size_t n = 0; n < after.size(); ++n) {
    const FinishingPass& pass = finishing_passes()[n];
    next.passes += (next.passes.empty() ? "" : ", ") + std::string(pass.name);
    next.numeric = weaker(next.numeric, pass.numeric);
    is_ordered |= pass.name == "fence";
    if (is_thread_stage(after[n].second) && !is_ordered && n + 1 < after.size()) continue;
    next.plan = after[n].second;
    stops.push_back(std::exchange(next, {}));
  }
  return stops;
}

std::string sizes_text(const DimMap& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

struct Outcome {
  std::string broken;  // promises
  std::map<std::string, HostTensor> outputs;
};

Outcome run(const Plan& plan, const std::map<std::string, HostTensor>& inputs, const DimMap& dims, std::uint64_t seed) {
  Arguments arguments = bind_arguments(plan, inputs, dims);
  RunReport report;
  if (is_thread_stage(plan)) {
    SimulatorOptions options;
    options.seed = seed;
    options.names_ir_lines = true;
    report = simulate(plan, arguments, options);
  } else {
    InterpreterOptions options;
    options.order = static_cast<LoopOrder>((seed - 1) % 3);
    report = interpret(plan, arguments, options);
  }
  Outcome outcome;
  for (const std::string& fault : report.faults) outcome.broken += (outcome.broken.empty() ? "" : "; ") + fault;
  for (const Param& param : plan.params)
    if (param.kind != ParamKind::In) outcome.outputs[param.name] = arguments.tensors.at(param.name);
  return outcome;
}

[[noreturn]] void fail(const Stop& before, const Stop& after, const DimMap& dims, std::uint64_t seed, const std::string& what, const VerifyOptions& options) {
  std::string files;
  std::string word = after.passes.substr(0, after.passes.find_first_of(" ,"));
  for (const auto& [side, plan] : {std::pair<std::string, const Plan*>{"before", &before.plan}, {"after", &after.plan}}) {
    const std::filesystem::path path = std::filesystem::path(options.folder) / fmt::format("verify-{}-{}.ir", word, side);
    std::ofstream(path) << print(*plan);
    files += fmt::format("\n  tilewright run {} --device {} --set {} --seed {}", path.string(), is_thread_stage(*plan) ? "sim" : "interpreter", sizes_text(dims), seed);
  }
  internal_error(fmt::format("pass `{}` changes the result at {}: {}\nto see it again:{}\n--- before\n{}\n--- after\n{}", after.passes, sizes_text(dims), what, files, print(before.plan), print(after.plan)));
}

// What is wrong with the outputs of `after`, or nothing.
std::string difference(const TensorFn& fn, const Stop& after, const std::map<std::string, HostTensor>& inputs, const DimMap& dims, const Outcome& expected, const Outcome& got) {
  if (!got.broken.empty()) return got.broken;
  if (after.numeric == NumericClass::Exact || fn.statements.empty()) {
    for (const auto& [name, tensor] : got.outputs)
      if (const Comparison comparison = compare(expected.outputs.at(name), tensor, name); !comparison.is_right()) return comparison.text;
    return {};
  }
  const Expectation expectation = expect(fn, Instrument::Random, bind_arguments(signature_plan(fn), inputs, dims));
  for (const OracleTensor& output : expectation.oracle.outputs)
    if (const Comparison comparison = compare(output, got.outputs.at(output.name), expectation.rule); !comparison.is_right()) return comparison.text;
  return {};
}

}  // namespace

std::vector<DimMap> edge_shapes(const TensorFn& fn, const Plan& plan, double most_operations) {
  const Divisors divisors = divisors_of(plan.facts);
  std::map<std::string, std::int64_t> tiles;
  std::int64_t slots = 1;
  for (const Kernel* kernel : kernels_of(plan)) {
    walk(kernel->body, [&](const Stmt& stmt) {
      if (const Pipe* pipe = as<Pipe>(stmt)) slots = std::max<std::int64_t>(slots, pipe->slots);
      if (const Loop* loop = as<Loop>(stmt))
        for (const Axis& axis : loop->axes)
          if (const Call* trips = as<Call>(axis.hi); trips && trips->function == "ceildiv")
            if (const Var* dim = as<Var>(trips->arguments[0]))
              if (const auto extent = integer_value(trips->arguments[1])) tiles[dim->name] = std::max(tiles[dim->name], *extent);
      return true;
    });
  }
  const std::vector<std::string> dims = [&] {
    std::vector<std::string> names;
    for (const Dim& dim : signature_plan(fn).dims)
      if (!dim.value) names.push_back(dim.name);
    return names;
  }();
  const auto rounded = [&](const std::string& name, std::int64_t size) {
    const auto multiple = divisors.find(name);
    return multiple == divisors.end() ? size : (size + multiple->second - 1) / multiple->second * multiple->second;
  };
  DimMap smallest;
  DimMap largest;
  for (const std::string& name : dims) {
    smallest[name] = rounded(name, 3);
    const auto tile = tiles.find(name);
    const std::int64_t extent = tile == tiles.end() ? 8 : tile->second;
    largest[name] = rounded(name, extent * (slots > 1 ? slots : 1) + 1);
    if (slots > 1) largest[name] = std::max(largest[name], rounded(name, extent + 1));
  }
  std::vector<DimMap> shapes = {smallest};
  for (const std::string& name : dims) {
    shapes.push_back(smallest);
    shapes.back()[name] = largest.at(name);
  }
  shapes.push_back(largest);
  std::set<DimMap> seen;
  std::erase_if(shapes, [&](const DimMap& shape) {
    double operations = 1;
    for (const auto& [name, size] : shape) operations *= static_cast<double>(size);
    return operations > most_operations || !seen.insert(shape).second;
  });
  return shapes;
}

VerifyResult verify_passes(const TensorFn& fn, const std::vector<Rung>& rungs, const Target& target, const VerifyOptions& options) {
  VerifyResult result;
  const auto compare_all = [&](const std::vector<Stop>& stops) {
    for (const DimMap& dims : edge_shapes(fn, stops.back().plan, options.most_operations)) {
      const std::map<std::string, HostTensor> inputs = instrument_inputs(Instrument::Random, fn, dims, data_seed);
      Outcome before = run(stops.front().plan, inputs, dims, 1);
      if (!before.broken.empty()) fail(stops.front(), stops.front(), dims, 1, before.broken, options);
      for (std::size_t n = 1; n < stops.size(); ++n) {
        Outcome after;
        for (std::uint64_t seed = 1; seed <= orders_of_simulator; ++seed) {
          after = run(stops[n].plan, inputs, dims, seed);
          ++result.runs;
          if (const std::string what = difference(fn, stops[n], inputs, dims, before, after); !what.empty()) fail(stops[n - 1], stops[n], dims, seed, what, options);
        }
        before = std::move(after);
      }
    }
    result.passes += static_cast<int>(stops.size()) - 1;
  };
  std::vector<Stop> lines;
  for (const Rung& rung : rungs) lines.push_back({rung.line.empty() ? "lower" : rung.line, rung.numeric, rung.plan});
  if (is_thread_stage(rungs.front().plan)) return result;  // a file of the last stage: no pass made it
  if (lines.size() > 1) compare_all(lines);
  for (std::size_t n = options.finishes_every_rung ? 0 : rungs.size() - 1; n < rungs.size(); ++n) {
    std::vector<Stop> stops = {lines[n]};
    for (Stop& stop : finishing_stops(rungs[n].plan, target)) stops.push_back(std::move(stop));
    compare_all(stops);
  }
  return result;
}

}  // namespace tilewright
