// ladder, compare and bench: rungs and rivals of one job in one table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "tools/measure.h"

namespace tilewright {

namespace {

bool has_wrong_row(const Measurement& measurement) {
  return std::any_of(measurement.rows.begin(), measurement.rows.end(), [](const MeasuredRow& row) { return row.is_wrong; });
}

ExitCode show(const Options& options, const Measurement& measurement) {
  if (options.json) std::cout << json_of(measurement) << "\n";
  else std::cout << table_of(measurement);
  return has_wrong_row(measurement) ? ExitCode::WrongResult : ExitCode::Success;
}

MeasureRequest request_of(const Options& options) {
  MeasureRequest request;
  request.timing.rounds = options.rounds;
  request.timing.lead_in_ms = 200;  // a rung's clock is its own, not that of the rung before
  request.timing.once = options.once;
  return request;
}

// A few rivals, compared to the percent: long enough for the power state to settle, and from an idle GPU too.
void settle(TimingOptions& timing) {
  timing.settle_ms = 2000;
  timing.lead_in_ms = 250;
  timing.round_ms = 200;
  timing.pause_ms = 300;
}

}  // namespace

ExitCode ladder_verb(const Options& options) {
  LoadedProgram loaded = load(options);
  MeasureRequest request = request_of(options);
  request.backends = {options.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc};
  request.hand = true;
  request.library = true;
  return show(options, measure(options, loaded, request));
}

ExitCode compare_verb(const Options& options) {
  LoadedProgram loaded = load(options);
  MeasureRequest request = request_of(options);
  request.every_rung = false;
  if (options.others.empty()) request.backends = {Backend::Nvrtc, Backend::Llvm};
  else request.backends = {options.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc};
  settle(request.timing);
  request.hand = true;
  request.hand_file = options.hand_file;
  request.others = options.others;
  request.library = true;
  return show(options, measure(options, loaded, request));
}

ExitCode bench_verb(const Options& options) {
  LoadedProgram loaded = load(options);
  MeasureRequest request = request_of(options);
  request.every_rung = false;
  request.backends = {Backend::Nvrtc, Backend::Llvm};
  settle(request.timing);
  request.library = true;
  ExitCode code = ExitCode::Success;
  std::vector<std::string> objects;  // --json gives one array
  bool any = false;
  for (const BenchItem& bench : loaded.program.benches) {
    if (!options.bench.empty() && bench.name != options.bench) continue;
    any = true;
    Options one = options;
    one.bench = bench.name;
    one.fn = bench.fn;
    Measurement measurement = measure(one, loaded, request);
    if (has_wrong_row(measurement)) code = ExitCode::WrongResult;
    if (options.json) objects.push_back(json_of(measurement));
    else std::cout << table_of(measurement) << std::endl;
  }
  if (!any) throw UserError({}, options.bench.empty() ? "the program has no bench" : fmt::format("there is no bench \"{}\"", options.bench), "write `bench \"name\" = fn(M = 4096)`");
  if (options.json) std::cout << fmt::format("[{}]\n", fmt::join(objects, ",\n"));
  return code;
}

}  // namespace tilewright
