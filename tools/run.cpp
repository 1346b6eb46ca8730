// run: compile, launch, and show or save the results.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "ir/diagnostic.h"
#include "runtime/driver.h"
#include "runtime/library/ladder/parts.h"
#include "runtime/library/verdict.h"
#include "runtime/library/verify_passes.h"
#include "tools/compile_timings.h"
#include "tools/options.h"
#include "tools/recording.h"

namespace tilewright {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

std::string element_text(const HostTensor& tensor, std::int64_t element) {
  if (tensor.dtype == Dtype::U64) return fmt::format("{}", static_cast<std::uint64_t>(read_integer(tensor, element)));
  if (is_float(tensor.dtype)) return fmt::format("{:.6g}", read_real(tensor, element));
  return fmt::format("{}", read_integer(tensor, element));
}

// At most 8 rows and columns of the last two axes of the first slice.
std::string preview(const std::string& name, const HostTensor& tensor) {
  std::string shape;
  for (std::int64_t extent : tensor.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  std::string out = fmt::format("{}: {}{}", name, info(tensor.dtype).name, tensor.shape.empty() ? "" : "[" + shape + "]");
  if (tensor.elements() == 0) return out + " (no elements)\n";
  if (tensor.shape.empty()) return out + " = " + element_text(tensor, 0) + "\n";
  constexpr std::int64_t most = 8;
  std::int64_t columns = tensor.shape.back();
  std::int64_t rows = tensor.shape.size() > 1 ? tensor.shape[tensor.shape.size() - 2] : 1;
  out += "\n";
  for (std::int64_t r = 0; r < std::min(rows, most); ++r) {
    out += " ";
    for (std::int64_t c = 0; c < std::min(columns, most); ++c) out += fmt::format(" {:>10}", element_text(tensor, r * columns + c));
    out += columns > most ? "  …\n" : "\n";
  }
  if (rows > most || tensor.elements() > rows * columns) out += "  …\n";
  return out;
}

struct NameAndFile {
  std::string name;
  std::string file;
};

std::vector<NameAndFile> output_files(const Options& options, const std::vector<Param>& params) {
  std::vector<NameAndFile> result;
  auto check = [&](const std::string& name) {
    std::string known;
    for (const Param& param : params) {
      if (param.kind == ParamKind::In) continue;
      if (param.name == name) return;
      known += (known.empty() ? "" : ", ") + param.name;
    }
    throw UserError({}, fmt::format("there is no result `{}`", name), "the results are " + known);
  };
  for (const std::string& text : options.outputs) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw UserError({}, fmt::format("`--out {}` is no NAME=FILE", text));
    result.push_back({text.substr(0, equals), text.substr(equals + 1)});
    check(result.back().name);
    // A path that cannot be written is said before the work. The probe's name is this process' own: no file is lost by it.
    if (std::filesystem::is_directory(result.back().file)) throw UserError({}, fmt::format("cannot write `{}`: it is a folder", result.back().file));
    std::string beside = fmt::format("{}.{}.part", result.back().file, getpid());
    std::ofstream probe(beside, std::ios::binary);
    if (!probe) throw UserError({}, fmt::format("cannot write `{}`: {}", result.back().file, std::strerror(errno)));
    probe.close();
    std::remove(beside.c_str());
  }
  for (const std::string& name : options.prints) check(name);
  return result;
}

void show_results(const Options& options, const std::vector<Param>& params, const std::vector<NameAndFile>& files, const Arguments& arguments) {
  for (const NameAndFile& output : files) write_tensor_file(output.file, arguments.tensors.at(output.name));
  for (const Param& param : params) {
    if (param.kind == ParamKind::In || options.json) continue;
    bool asked = options.prints.empty() && files.empty();
    for (const std::string& name : options.prints) asked |= name == param.name;
    if (asked) std::cout << preview(param.name, arguments.tensors.at(param.name));
  }
}

void report_faults(const Plan& plan, const RunReport& report) {
  if (report.error) throw UserError({}, describe(plan, *report.error));
  if (report.faults.empty()) return;
  std::string all;
  for (std::size_t n = 0; n < report.faults.size() && n < 10; ++n) all += (n ? "\n  " : "") + report.faults[n];
  if (report.faults.size() > 10) all += fmt::format("\n  and {} more", report.faults.size() - 10);
  throw UserError({}, "the run broke a promise of its plan: " + all);
}

// One run as a ladder of one row, for a record.
Ladder ladder_of_run(const Options& options, const LoadedProgram& loaded, const PreparedCall& call, const RunReport& report, const std::optional<Verdict>& verdict) {
  Ladder ladder;
  ladder.verb = "run";
  ladder.fn = call.fn->name;
  ladder.schedule = call.selection.made_by_rules ? "by rules" : call.selection.schedule;
  ladder.program = loaded.sources.empty() ? "" : loaded.sources.front().text;
  ladder.program_file = options.file;
  ladder.dims = call.dims;
  ladder.device = name_of(call.settings.execution.device);
  ladder.arch = call.settings.execution.arch;
  if (call.settings.execution.device == DeviceKind::Cuda) {
    const std::vector<GpuInfo> gpus = list_gpus();
    if (!gpus.empty()) ladder.device = gpus[0].name, ladder.driver = gpus[0].driver;
  }
  const Work work = work_of(*call.fn, call.dims);
  ladder.work_operations = work.operations;
  ladder.compulsory_bytes = work.bytes;
  LadderRow row;
  row.name = ladder.schedule.empty() ? "(lowered)" : "\"" + ladder.schedule + "\"";
  row.backend = call.settings.execution.device == DeviceKind::Cuda ? options.backend : std::string(name_of(call.settings.execution.device));
  Timing timing;
  timing.median_ms = timing.lowest_ms = timing.highest_ms = report.milliseconds;
  timing.launches = 1;
  row.timing = timing;
  row.kernels = static_cast<int>(kernels_of(call.rungs.back().plan).size());
  row.check = verdict ? verdict->text : "not checked";
  row.is_wrong = verdict && !verdict->is_right();
  ladder.rows.push_back(std::move(row));
  return ladder;
}

}  // namespace

ExitCode run_verb(const Options& options) {
  prepare_recording(options);
  std::optional<TimedCompilations> compilations;
  if (options.timings && choose_device(options.device) == DeviceKind::Cuda)
    compilations = time_compilations(options, load(options).sources.front().text);
  Clock::time_point start = Clock::now();
  LoadedProgram loaded = load(options);
  double parse_ms = since(start);
  start = Clock::now();
  PreparedCall call = prepare(options, loaded);
  double schedule_ms = since(start);
  const Plan& plan = call.rungs.back().plan;
  if (options.check && call.fn->statements.empty())
    throw UserError({}, "a plan file says no definition that its results could be checked by", "give the fn by -e");
  if (options.verify) {
    const VerifyResult verified = verify_passes(*call.fn, call.rungs, target_for(call.settings.execution.arch));
    if (!options.json) announce(fmt::format("{} passes keep the result, by {} runs on small shapes", verified.passes, verified.runs));
  }
  std::vector<NameAndFile> files = output_files(options, call.fn->params);
  Arguments arguments = bind_arguments(plan, make_inputs(*call.fn, call.dims, call.settings.inputs), call.dims);

  DeviceKind& device = call.settings.execution.device;
  const std::vector<const Kernel*> kernels = kernels_of(plan);
  const bool has_threads = !kernels.empty() && kernels[0]->stage == Stage::Thread;
  if (options.device == "auto" && has_threads && device == DeviceKind::Cpu) device = DeviceKind::Sim;
  if (!options.json) {
    std::string schedule = call.selection.made_by_rules ? "a schedule by rules" : call.selection.schedule.empty() ? "no schedule" : "schedule \"" + call.selection.schedule + '"';
    announce(fmt::format("{}: {}, on {}", call.fn->name, schedule, name_of(device)));
  }
  double operations = estimated_operations(call.rungs.front().plan, call.dims);
  double rate = device == DeviceKind::Cuda ? 1e12 : device == DeviceKind::Cpu ? 5e8 : device == DeviceKind::Sim ? 1e8 : 2e7;
  if (operations / rate > 10) announce(fmt::format("this takes about {:.0f} s on {}: {:.3g} operations", operations / rate, name_of(device), operations));

  start = Clock::now();
  std::map<std::string, HostTensor> inputs;
  if (options.check)
    for (const Param& param : call.fn->params)
      if (param.kind != ParamKind::Out) inputs[param.name] = arguments.tensors.at(param.name);
  RunReport report = execute(plan, arguments, call.settings.execution);
  double run_ms = since(start);
  report_faults(plan, report);
  show_results(options, call.fn->params, files, arguments);

  std::optional<Verdict> verdict;
  if (options.check) verdict = judge(reference_of(*call.fn, inputs, call.dims, options.bound == "worst"), plan, arguments);
  if (options.json) {
    nlohmann::json out;
    out["fn"] = call.fn->name;
    out["schedule"] = call.selection.schedule;
    out["device"] = name_of(device);
    for (const auto& [name, value] : call.dims) out["dims"][name] = value;
    out["milliseconds"] = report.milliseconds;
    out["timings"] = {{"parse_ms", parse_ms}, {"schedule_ms", schedule_ms}, {"compile_and_run_ms", run_ms}};
    if (compilations)
      out["compilation"] = {{"context_ms", compilations->context}, {"first_ms", compilations->first.total()}, {"again_ms", compilations->again.total()},
                            {"from_cache", compilations->again.is_from_cache}};
    if (verdict) out["check"] = {{"right", verdict->is_right()}, {"error_over_bound", verdict->worst_ratio}, {"text", verdict->text}};
    std::cout << out.dump(2) << "\n";
  } else {
    if (compilations) std::cerr << text_of(*compilations);
    if (options.timings) announce(fmt::format("parse {:.2f} ms, schedule {:.2f} ms, compile and run {:.2f} ms, kernels {:.3f} ms", parse_ms, schedule_ms, run_ms, report.milliseconds));
    if (verdict) std::cout << verdict->text << "\n";
  }
  if (!options.record.empty()) keep_record(options, loaded, {ladder_of_run(options, loaded, call, report, verdict)});
  return !verdict || verdict->is_right() ? ExitCode::Success : ExitCode::WrongResult;
}

}  // namespace tilewright
