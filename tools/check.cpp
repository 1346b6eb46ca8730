// check: a fn against its definition, by exact, random and special data at boundary shapes.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/diagnostic.h"
#include "runtime/instruments.h"
#include "runtime/library/hands.h"
#include "runtime/library/verdict.h"
#include "tools/options.h"

namespace tilewright {

namespace {

std::string_view name_of(Instrument instrument) {
  switch (instrument) {
    case Instrument::Exact: return "exact";
    case Instrument::Random: return "random";
    case Instrument::Special: return "special";
  }
  return "";
}

// All sizes alike, but what `--set` gives; rounded up to what a schedule wants.
DimMap boundary_dims(const TensorFn& fn, const std::vector<Fact>& facts, const std::map<std::string, std::string>& values, std::int64_t size) {
  DimMap dims, fixed;
  for (const std::string& dim : fn.dims) {
    dims[dim] = size;
    if (const auto given = values.find(dim); given != values.end()) fixed[dim] = std::stoll(given->second);
  }
  return fitting_dims(fn, facts, dims, fixed);
}

std::string text_of(const DimMap& dims) {
  std::string text;
  for (const auto& [name, value] : dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

// The hand kernels of the fn on the PTX machine, size by size; on `--device sim`.
class HandChecks {
 public:
  HandChecks(const Options& options, const LoadedProgram& loaded, const TensorFn& fn, const std::string& arch) : options_(options), loaded_(loaded), fn_(fn), arch_(arch) {}

  // Each with the three instruments at these sizes; the number of wrong ones.
  int run(const DimMap& dims, nlohmann::json& rows) {
    int wrong = 0;
    for (const HandProgram& hand : hand_programs(loaded_.program, fn_, loaded_.folder, dims)) {
      if (refused_.count(hand.name) != 0) continue;
      try {
        const auto known = compiled_.find(hand.name);
        const HandPtx& ptx = known != compiled_.end() ? known->second : compiled_.emplace(hand.name, compile_hand_to_ptx(hand, arch_, !options_.no_cache)).first->second;
        const HandVerdict verdict = check_hand(ptx, fn_, signature_plan(fn_), dims, options_.seed, options_.bound == "worst");
        ++done;
        if (!verdict.printed.empty()) announce(fmt::format("printed by \"{}\":\n{}", hand.name, verdict.printed));
        if (options_.json) rows.push_back({{"dims", dims}, {"hand", hand.name}, {"right", verdict.is_right}, {"error_over_bound", verdict.worst_ratio}, {"text", verdict.text}});
        else if (!verdict.is_right) std::cout << fmt::format("wrong at {}, hand kernel \"{}\" {}\n", text_of(dims), hand.name, verdict.text);
        wrong += verdict.is_right ? 0 : 1;
      } catch (const MachineError& missing) {
        refused_.insert(hand.name);
        announce(fmt::format("hand kernel \"{}\" is not checked: {}", hand.name, missing.what()));
      }
    }
    return wrong;
  }
  int done = 0;

 private:
  const Options& options_;
  const LoadedProgram& loaded_;
  const TensorFn& fn_;
  const std::string& arch_;
  std::map<std::string, HandPtx> compiled_;
  std::set<std::string> refused_;
};

}  // namespace

ExitCode check_verb(const Options& options) {
  LoadedProgram loaded = load(options);
  const TensorFn& fn = choose_fn(loaded.program, options.fn);
  Settings settings = settings_of(options, loaded.program, fn);
  if (!options.inputs.empty()) throw UserError({}, "`check` makes its own inputs", "`run --check` takes yours");
  constexpr std::int64_t sizes[] = {0, 1, 2, 7, 15, 16, 17, 31, 33, 64, 67};
  if (fn.statements.empty()) throw UserError({}, "a plan file says no definition that its results could be checked by", "give the fn by -e");
  std::vector<Fact> when;
  if (loaded.plan) when = loaded.plan->facts;
  if (!options.schedule.empty() && options.schedule != "none") {
    bool found = false;
    for (const Schedule& schedule : loaded.program.schedules)
      if (schedule.fn == fn.name && schedule.name.rfind(options.schedule, 0) == 0) when = schedule.when, found = true;
    if (!found) select_schedule(loaded.program, fn, boundary_dims(fn, {}, settings.inputs.values, 16), settings.schedule);  // says which there are
  }
  nlohmann::json rows = nlohmann::json::array();
  int wrong = 0;
  int done = 0;
  HandChecks hands(options, loaded, fn, settings.execution.arch);
  for (std::int64_t size : sizes) {
    DimMap dims = boundary_dims(fn, when, settings.inputs.values, size);
    Settings of_size = settings;
    for (const auto& [name, value] : dims) of_size.inputs.values[name] = std::to_string(value);
    const PreparedCall call = prepare_with(loaded, fn, of_size);
    const Plan& plan = call.rungs.back().plan;
    for (Instrument instrument : {Instrument::Exact, Instrument::Random, Instrument::Special}) {
      Arguments arguments = bind_arguments(plan, instrument_inputs(instrument, fn, dims, options.seed), dims);
      Expectation expected = expect(fn, instrument, arguments, {}, options.bound == "worst");
      RunReport report = execute(plan, arguments, settings.execution);
      std::string text;
      if (report.error && !expected.oracle.error) text = describe(plan, *report.error);
      for (const std::string& fault : report.faults) text += (text.empty() ? "" : "\n") + fault;
      double ratio = 0;
      for (const OracleTensor& output : expected.oracle.outputs) {
        Comparison comparison = compare(output, arguments.tensors.at(output.name), expected.rule);
        ratio = std::max(ratio, comparison.worst_ratio);
        if (!comparison.is_right()) text += (text.empty() ? "" : "\n") + comparison.text;
      }
      ++done;
      if (!text.empty()) ++wrong;
      const std::string place = text_of(dims);
      if (options.json) rows.push_back({{"dims", dims}, {"instrument", name_of(instrument)}, {"schedule", call.selection.schedule}, {"right", text.empty()}, {"error_over_bound", ratio}, {"text", text}});
      else if (!text.empty()) std::cout << fmt::format("wrong at {} on {} data, schedule \"{}\":\n{}\n", place, name_of(instrument), call.selection.schedule, text);
    }
    if (settings.execution.device == DeviceKind::Sim) wrong += hands.run(dims, rows);
  }
  if (options.json) std::cout << nlohmann::json{{"fn", fn.name}, {"checks", rows}, {"wrong", wrong}}.dump(2) << "\n";
  else std::cout << fmt::format("{}: {} checks on {}{}, {} wrong\n", fn.name, done, name_of(settings.execution.device), hands.done > 0 ? fmt::format(", {} of hand kernels", hands.done) : "", wrong);
  return wrong == 0 ? ExitCode::Success : ExitCode::WrongResult;
}

}  // namespace tilewright
