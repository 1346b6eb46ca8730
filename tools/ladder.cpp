// ladder, compare and bench: rungs and rivals of one job in one table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "ir/diagnostic.h"
#include "runtime/driver.h"
#include "runtime/files.h"
#include "runtime/library/ladder/cards.h"
#include "tools/line_pairs.h"
#include "tools/measure.h"
#include "tools/page.h"
#include "tools/recording.h"

namespace tilewright {

namespace {

bool has_wrong_row(const Ladder& ladder) {
  return std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.is_wrong; });
}

ExitCode show(const Options& options, const Ladder& ladder) {
  keep_record(options, load(options), {ladder});
  if (options.json) std::cout << json_of(ladder) << "\n";
  else std::cout << table_of(ladder);
  return has_wrong_row(ladder) ? ExitCode::WrongResult : ExitCode::Success;
}

// All verbs time alike, so that a ladder agrees with a bench: long enough for the power state to settle, then rounds there and
// back, in which each candidate has the clock to itself before its launches count.
MeasureRequest request_of(const Options& options, const char* verb) {
  MeasureRequest request;
  request.verb = verb;
  request.timing.rounds = options.rounds;
  request.timing.settle_ms = 2000;
  request.timing.lead_in_ms = options.lead_in_ms;
  request.timing.round_ms = 200;
  request.timing.once = options.once;
  return request;
}

// For a few rivals: from an idle GPU too, where no power limit holds them.
void add_bursts(TimingOptions& timing) { timing.pause_ms = 300; }

Sweep read_sweep(const Options& options, const LoadedProgram& loaded) {
  Sweep sweep;
  const std::string& text = options.sweep;
  const std::size_t equals = text.find('=');
  const auto refuse = [&](const std::string& why, const std::string& help) { return UserError({}, fmt::format("`--sweep {}` {}", text, why), help); };
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) throw refuse("is no NAME=VALUE,VALUE", "write --sweep T=8,16,32");
  sweep.name = text.substr(0, equals);
  for (std::size_t start = equals + 1; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string value = text.substr(start, comma - start);
    if (value.empty()) throw refuse("has an empty value", "write --sweep T=8,16,32");
    char* end = nullptr;
    sweep.values.push_back(std::strtoll(value.c_str(), &end, 10));
    if (*end != '\0') throw refuse(fmt::format("has the value `{}`, which is no integer", value), "write --sweep T=8,16,32");
    start = comma + 1;
  }
  const TensorFn& fn = choose_fn(loaded.program, options.fn);
  std::string known;
  for (const Schedule& schedule : loaded.program.schedules)
    for (const ScheduleParameter& parameter : schedule.parameters) {
      if (schedule.fn != fn.name) continue;
      if (parameter.name == sweep.name) return sweep;
      known += fmt::format("{}{} of \"{}\"", known.empty() ? "" : ", ", parameter.name, schedule.name);
    }
  throw refuse(fmt::format("names no parameter of a schedule of `{}`", fn.name), known.empty() ? "write one: schedule … \"name\" (T = 16) { … }" : "parameters are " + known);
}

}  // namespace

Ladder ladder_of(const Options& given, bool with_code) {
  Options options = given;
  if (!options.gpu.empty()) {
    const Card& card = card_by_name(options.gpu);
    if (options.arch.empty() && list_gpus().empty()) options.arch = card.arch;  // what that card would run
  }
  LoadedProgram loaded = load(options);
  MeasureRequest request = request_of(options, "ladder");
  request.backends = {options.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc};
  request.both_compile_times = true;
  request.loops = !options.once;
  request.hand = true;
  request.with_library = true;
  request.parts = true;
  request.code = with_code;
  if (options.each_schedule) {
    if (!options.sweep.empty() || !options.schedule.empty() || !options.then.empty()) throw UserError({}, "--each-schedule takes every schedule of the fn, and --schedule, --then and --sweep name one", "leave one of them out");
    if (loaded.plan) throw UserError({}, "--each-schedule needs a program, and a plan file has no schedules");
    request.every_schedule = true;
  }
  if (!options.sweep.empty()) request.sweep = read_sweep(options, loaded);
  request.loops &= !request.sweep;  // once is enough, in a ladder of lines
  Ladder ladder = measure(options, loaded, request);
  if (!options.peers.empty()) add_peers(ladder, options.peers);
  return ladder;
}

ExitCode ladder_verb(const Options& options) {
  if (options.code && !options.json) throw UserError({}, "--code adds texts to --json, which is not given", "write --json --code, or take `report`");
  prepare_recording(options);
  Ladder ladder = ladder_of(options, options.code || !options.record.empty());
  return show(options, ladder);
}

ExitCode compare_verb(const Options& options) {
  prepare_recording(options);
  LoadedProgram loaded = load(options);
  MeasureRequest request = request_of(options, "compare");
  request.code = !options.record.empty() || options.code || !options.folder.empty();
  request.instructions = true;
  request.parts = request.code;
  request.every_rung = false;
  if (!options.folder.empty()) require_writable(options.folder);  // before the work
  if (options.others.empty()) request.backends = {Backend::Nvrtc, Backend::Llvm};
  else request.backends = {options.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc};
  add_bursts(request.timing);
  request.hand = true;
  request.hand_file = options.hand_file;
  request.others = options.others;
  request.with_library = true;
  Ladder ladder = measure(options, loaded, request);
  if (!options.peers.empty()) add_peers(ladder, options.peers);
  if (!options.folder.empty()) replace_file(options.folder, {}, page_of(ladder, nullptr));
  const ExitCode code = show(options, ladder);
  if (options.code && !options.json) std::cout << sass_columns(ladder);
  return code;
}

ExitCode bench_verb(const Options& options) {
  prepare_recording(options);
  LoadedProgram loaded = load(options);
  MeasureRequest request = request_of(options, "bench");
  request.code = !options.record.empty();
  request.every_rung = false;
  request.backends = {Backend::Nvrtc, Backend::Llvm};
  add_bursts(request.timing);
  request.with_library = true;
  ExitCode code = ExitCode::Success;
  std::vector<std::string> objects;  // --json gives one array
  std::vector<Ladder> ladders;
  bool any = false;
  for (const BenchItem& bench : loaded.program.benches) {
    if (!options.bench.empty() && bench.name != options.bench) continue;
    any = true;
    Options one = options;
    one.bench = bench.name;
    one.fn = bench.fn;
    Ladder ladder = measure(one, loaded, request);
    if (!options.peers.empty()) add_peers(ladder, options.peers);
    if (has_wrong_row(ladder)) code = ExitCode::WrongResult;
    if (options.json) objects.push_back(json_of(ladder));
    else std::cout << table_of(ladder) << std::endl;
    ladders.push_back(std::move(ladder));
  }
  if (!any) throw UserError({}, options.bench.empty() ? "the program has no bench" : fmt::format("there is no bench \"{}\"", options.bench), "write `bench \"name\" = fn(M = 4096)`");
  keep_record(options, loaded, std::move(ladders));
  if (options.json) std::cout << fmt::format("[{}]\n", fmt::join(objects, ",\n"));
  return code;
}

}  // namespace tilewright
