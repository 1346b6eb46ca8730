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
#include "runtime/library/shrink_failure.h"

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
  bool has_error = false;
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
  outcome.has_error = report.error.has_value();
  for (const Param& param : plan.params)
    if (param.kind != ParamKind::In) outcome.outputs[param.name] = arguments.tensors.at(param.name);
  return outcome;
}

// What is wrong with the outputs of `after`, or nothing.
std::string difference(const TensorFn& fn, const Stop& after, const std::map<std::string, HostTensor>& inputs, const DimMap& dims, const Outcome& expected, const Outcome& got) {
  if (!got.broken.empty()) return got.broken;
  if (got.has_error != expected.has_error) return got.has_error ? "an access outside its tensor is reported, and was not before" : "no access outside its tensor is reported, and one was before";
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

namespace {

// Neighbours whose results differ.
struct Difference {
  Stop before;
  Stop after;
  DimMap dims;
  std::uint64_t seed = 1;
  std::string what;
};

class Verifier {
 public:
  Verifier(const TensorFn& fn, const Target& target, const VerifyOptions& options) : fn_(fn), target_(target), options_(options) {}

  // All passes; the first difference, or nothing.
  std::optional<Difference> check(const std::vector<Rung>& rungs) {
    if (is_thread_stage(rungs.front().plan)) return std::nullopt;  // a file of the last stage: no pass made it
    std::vector<Stop> lines;
    for (const Rung& rung : rungs) lines.push_back({rung.line.empty() ? "lower" : rung.line, rung.numeric, rung.plan});
    if (lines.size() > 1)
      if (auto found = compare_all(lines, {})) return found;
    for (std::size_t n = options_.finishes_every_rung ? 0 : rungs.size() - 1; n < rungs.size(); ++n) {
      std::vector<Stop> stops = {lines[n]};
      for (Stop& stop : finishing_stops(rungs[n].plan, target_)) stops.push_back(std::move(stop));
      if (auto found = compare_all(stops, {})) return found;
    }
    return std::nullopt;
  }

  // The difference at a pass of this name, for one shape.
  std::optional<Difference> check_pass(const std::vector<Rung>& rungs, const std::string& passes, const DimMap& dims) {
    std::vector<Stop> stops;
    for (const Rung& rung : rungs) stops.push_back({rung.line.empty() ? "lower" : rung.line, rung.numeric, rung.plan});
    if (stops.back().passes != passes) {
      std::vector<Stop> finished = finishing_stops(rungs.back().plan, target_);
      stops = {stops.back()};
      stops.insert(stops.end(), std::make_move_iterator(finished.begin()), std::make_move_iterator(finished.end()));
    }
    const auto at = std::find_if(stops.begin(), stops.end(), [&](const Stop& stop) { return stop.passes == passes; });
    if (at == stops.begin() || at == stops.end()) return std::nullopt;
    return compare_all({*(at - 1), *at}, {dims});
  }

  VerifyResult result;

 private:
  std::optional<Difference> compare_all(const std::vector<Stop>& stops, std::vector<DimMap> shapes) {
    if (shapes.empty()) shapes = edge_shapes(fn_, stops.back().plan, options_.most_operations);
    for (const DimMap& dims : shapes) {
      const std::map<std::string, HostTensor> inputs = instrument_inputs(Instrument::Random, fn_, dims, data_seed);
      Outcome before = run(stops.front().plan, inputs, dims, 1);
      if (!before.broken.empty()) return Difference{stops.front(), stops.front(), dims, 1, before.broken};
      for (std::size_t n = 1; n < stops.size(); ++n) {
        Outcome after;
        for (std::uint64_t seed = 1; seed <= orders_of_simulator; ++seed) {
          after = run(stops[n].plan, inputs, dims, seed);
          ++result.runs;
          if (std::string what = difference(fn_, stops[n], inputs, dims, before, after); !what.empty()) return Difference{stops[n - 1], stops[n], dims, seed, std::move(what)};
        }
        before = std::move(after);
      }
    }
    result.passes += static_cast<int>(stops.size()) - 1;
    return std::nullopt;
  }

  const TensorFn& fn_;
  const Target& target_;
  const VerifyOptions& options_;
};

// What `smaller` calls of a case that fails at the same pass; nothing where it does not, or is refused.
std::optional<Difference> difference_of(const FailingCase& failing, const Target& target, const VerifyOptions& options) {
  try {
    if (!verify(failing.fn).empty() || !failed_conditions(failing.fn, failing.when, failing.dims).empty()) return std::nullopt;
    const std::vector<Rung> rungs = build_rungs(failing.fn, failing.schedule, failing.arch, failing.when, failing.lines, target, failing.call_class);
    return Verifier(failing.fn, target, options).check_pass(rungs, failing.pass, failing.dims);
  } catch (const std::exception&) {  // another fault than the one that is looked for
    return std::nullopt;
  }
}

[[noreturn]] void fail(const Difference& found, const VerifyOptions& options) {
  std::string files;
  const std::string word = found.after.passes.substr(0, found.after.passes.find_first_of(" ,:"));
  for (const auto& [side, plan] : {std::pair<std::string, const Plan*>{"before", &found.before.plan}, {"after", &found.after.plan}}) {
    const std::filesystem::path path = std::filesystem::path(options.folder) / fmt::format("verify-{}-{}.ir", word, side);
    std::ofstream(path) << print(*plan);
    files += fmt::format("\n  tilewright run {} --device {}{} --seed {}", path.string(), is_thread_stage(*plan) ? "sim" : "interpreter",
                         found.dims.empty() ? "" : " --set " + sizes_text(found.dims), found.seed);
  }
  internal_error(fmt::format("pass `{}` changes the result at {}: {}\nto see it again:{}\n--- before\n{}\n--- after\n{}", found.after.passes, sizes_text(found.dims), found.what, files,
                             print(found.before.plan), print(found.after.plan)));
}

}  // namespace

VerifyResult verify_passes(const TensorFn& fn, const std::vector<Rung>& rungs, const Target& target, const VerifyOptions& options) {
  Verifier verifier(fn, target, options);
  std::optional<Difference> found = verifier.check(rungs);
  if (!found) return verifier.result;
  const Plan& lowered = rungs.front().plan;
  FailingCase failing{fn, lowered.schedule, lowered.arch, lowered.facts, {}, {false, lowered.index_bits}, found->dims, found->after.passes};
  for (const Rung& rung : rungs)
    if (!rung.line.empty()) failing.lines.push_back(tokenize_line(rung.line));
  // Plans that were not made by these lines stay as they are.
  std::optional<Difference> smallest;
  const auto still_fails = [&](const FailingCase& candidate) {
    std::optional<Difference> difference = difference_of(candidate, target, options);
    if (difference) smallest = std::move(difference);
    return smallest && difference.has_value();
  };
  if (still_fails(failing)) shrink_failure(failing, still_fails);
  fail(smallest ? *smallest : *found, options);
}

}  // namespace tilewright
