// Cases, and what running one of them says.
#include "tests/plant/cases.h"

#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "frontend/program.h"
#include "runtime/library/verify_passes.h"
#include "tests/passes/golden_case.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

constexpr double most_operations = 2e4;  // of a shape, by the product of its dims
constexpr std::uint64_t orders_of_simulator = 2;

std::map<std::string, HostTensor> outputs_of(const Plan& plan, const Arguments& arguments) {
  Outputs result;
  for (const Param& param : plan.params)
    if (param.kind != ParamKind::In) result.emplace(param.name, arguments.tensors.at(param.name));
  return result;
}

bool is_close(const HostTensor& expected, const HostTensor& got) {
  for (std::int64_t n = 0; n < expected.elements(); ++n) {
    const double a = read_real(expected, n);
    const double b = read_real(got, n);
    if (std::isnan(a) != std::isnan(b) || std::abs(a - b) > 1e-3 * (1 + std::abs(a))) return false;
  }
  return true;
}

// The name of an output that differs; empty for none.
std::string difference(const PlantCase& test, const Outputs& expected, const Outputs& got) {
  for (const auto& [name, tensor] : expected) {
    const bool same = test.is_approximate && is_float(tensor.dtype) ? is_close(tensor, got.at(name)) : tensor.data == got.at(name).data;
    if (!same) return name;
  }
  return {};
}

std::string joined(const Sizes& sizes) { return sizes.empty() ? "no dims" : in_text(sizes); }

// What a run says of itself, or else where its results differ; empty where all is well.
std::string verdict(const PlantCase& test, const Plan& plan, const Sizes& sizes, const Arguments& arguments, const Outputs& expected, const RunReport& report, const std::string& who, const std::string& where) {
  if (!report.faults.empty()) return who + ": " + report.faults.front();
  const std::string wrong = difference(test, expected, outputs_of(plan, arguments));
  return wrong.empty() ? wrong : "wrong result, " + where + ": " + wrong + " at " + joined(sizes);
}

// The tile stage, as the interpreter runs it in an order.
std::string check_tile_stage(const PlantCase& test, const Plan& plan, const Sizes& sizes, const Outputs& expected, LoopOrder order) {
  Arguments arguments = bind_arguments(plan, random_inputs(plan, sizes, test.agreement), sizes);
  InterpreterOptions options;
  options.order = order;
  const RunReport report = interpret(plan, arguments, options);
  return verdict(test, plan, sizes, arguments, expected, report, "interpreter", "tile stage");
}

std::string check_thread_stage(const PlantCase& test, const Plan& plan, const Sizes& sizes, const Outputs& expected, std::uint64_t seed) {
  Arguments arguments = bind_arguments(plan, random_inputs(plan, sizes, test.agreement), sizes);
  SimulatorOptions options;
  options.seed = seed;
  const RunReport report = simulate(plan, arguments, options);
  return verdict(test, plan, sizes, arguments, expected, report, "sim", "sim");
}

// What the passes may do to a plan in front of the first line that is not exact.
void note_classes(PlantCase& test) {
  for (const std::string& word : test.words)
    for (const SchedulePass& pass : schedule_passes()) {
      if (pass.word != word) continue;
      if (pass.numeric != NumericClass::Exact) test.agreement = Agreement::ExactData;
      test.is_approximate |= word == "math";
    }
}

void add_golden_cases(const fs::path& folder, std::vector<PlantCase>& cases) {
  for (const fs::path& path : golden_cases(folder)) {
    const GoldenCase golden = read_golden_case(path);
    if (golden.name.starts_with("fail_") || !golden.runs) continue;
    PlantCase test;
    test.name = path.parent_path().filename().string() + "/" + golden.name;
    for (const ScheduleLine& line : golden.lines) test.words.push_back(line.word);
    test.first = parse_plan(golden.text);
    if (kernels_of(test.first).empty() || is_thread_stage(test.first)) continue;
    test.last = [first = test.first, golden] {
      Plan plan = first;
      for (const ScheduleLine& line : golden.lines) plan = apply_line(plan, line, golden.target);
      return plan;
    };
    test.finishes = golden.finishes;
    test.target = golden.target;
    note_classes(test);
    std::vector<Sizes> sizes = golden.sizes.empty() ? usual_sizes(test.first) : golden.sizes;
    for (const Sizes& each : sizes) test.expected.emplace_back(each, Outputs{});
    cases.push_back(std::move(test));
  }
}

void add_examples(const fs::path& root, std::vector<PlantCase>& cases) {
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "examples"))
    if (entry.path().extension() == ".tw") files.insert(entry.path());
  for (const fs::path& path : files) {
    const Program program = parse_program(read_file(path), path.filename().string());
    for (const Schedule& schedule : program.schedules)
      for (const TensorFn& fn : program.fns) {
        if (fn.name != schedule.fn) continue;
        PlantCase test;
        test.name = path.filename().string() + " \"" + schedule.name + "\"";
        for (const ScheduleLine& line : schedule.lines) test.words.push_back(line.word);
        test.target = schedule.arch.empty() ? Target{} : target_for(schedule.arch);
        const Target target = test.target;
        const auto rungs = [fn, schedule, target] {
          return build_rungs(fn, schedule.name, schedule.arch, schedule.when, schedule.lines, target, {});
        };
        const std::vector<Rung> right = rungs();
        test.first = right.front().plan;
        test.last = [rungs] { return rungs().back().plan; };
        note_classes(test);
        for (const DimMap& dims : edge_shapes(fn, right.back().plan, most_operations))
          test.expected.emplace_back(Sizes(dims.begin(), dims.end()), Outputs{});
        cases.push_back(std::move(test));
      }
  }
}

std::string check_plans(const PlantCase& test, const Plan& last, const Plan* finished) {
  const bool runs_tile_stage = !test.is_ready || !(last == test.right_last);
  for (const auto& [sizes, expected] : test.expected)
    for (const LoopOrder order : {LoopOrder::Forwards, LoopOrder::Shuffled})
      if (std::string found = runs_tile_stage ? check_tile_stage(test, last, sizes, expected, order) : std::string(); !found.empty()) return found;
  if (!finished) return {};
  for (const auto& [sizes, expected] : test.expected)
    for (std::uint64_t seed = 1; seed <= orders_of_simulator; ++seed)
      if (std::string found = check_thread_stage(test, *finished, sizes, expected, seed); !found.empty()) return found;
  return {};
}

// Before the first check: what the plan gives in front of its lines, and that no check finds anything in the right plans.
void prepare(PlantCase& test) {
  if (test.is_ready) return;
  for (auto& [sizes, expected] : test.expected) {
    Arguments arguments = bind_arguments(test.first, random_inputs(test.first, sizes, test.agreement), sizes);
    interpret(test.first, arguments);
    expected = outputs_of(test.first, arguments);
  }
  if (const std::string wrong = check_plans(test, test.right_last, test.finishes ? &test.right_finished : nullptr); !wrong.empty())
    internal_error(test.name + " fails without a fault: " + wrong);
  test.is_ready = true;
}

}  // namespace

std::vector<PlantCase> plant_cases(const std::string& source_root) {
  std::vector<PlantCase> all;
  add_golden_cases(fs::path(source_root) / "tests/plant/cases", all);
  for (const SchedulePass& pass : schedule_passes()) add_golden_cases(fs::path(source_root) / "tests/passes" / std::string(pass.word), all);
  add_golden_cases(fs::path(source_root) / "tests/passes/finish", all);
  add_examples(source_root, all);
  for (PlantCase& test : all) {
    test.right_last = test.last();
    try {
      if (test.finishes) test.right_finished = finish(test.right_last, test.target);
    } catch (const UserError&) {
      test.finishes = false;  // a case of what has no thread stage yet
    }
  }
  return all;
}

CaseOutcome run_case(PlantCase& test) {
  CaseOutcome outcome;
  try {
    const Plan last = test.last();
    std::optional<Plan> finished;
    try {
      if (test.finishes) finished = finish(last, test.target);
    } catch (const UserError& error) {
      outcome.refused = error.what();
    }
    if (last == test.right_last && (!test.finishes || finished == test.right_finished)) return {};
    outcome.changes_plan = true;
    prepare(test);
    outcome.found = check_plans(test, last, finished ? &*finished : nullptr);
  } catch (const UserError& error) {
    outcome.changes_plan = true;
    outcome.refused = error.what();
  } catch (const InternalError& error) {
    const std::string text = error.what();
    if (text.find("without a fault") != std::string::npos) throw;
    outcome.changes_plan = true;
    outcome.found = "verifier: " + text.substr(0, text.find('\n'));
  }
  return outcome;
}

}  // namespace tilewright
