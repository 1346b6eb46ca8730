// Times of compilation; see compile_timings.h.
#include "tools/compile_timings.h"

#include <fmt/format.h>

#include <chrono>

#include "runtime/driver.h"

namespace tilewright {

namespace {

using Clock = std::chrono::steady_clock;

// Milliseconds since the last call, or since it was made.
class Lap {
 public:
  double next() {
    const Clock::time_point now = Clock::now();
    const double passed = std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
    return passed;
  }

 private:
  Clock::time_point start_ = Clock::now();
};

CompileTimings time_one(const Options& options, const std::string& text) {
  CompileTimings result;
  Lap lap;
  LoadedProgram loaded;
  if (is_plan_file(options.file))
    loaded = load(options);
  else
    loaded.program = parse_program(text, options.file);
  result.parse = lap.next();
  const PreparedCall call = prepare(options, loaded);
  result.schedule = lap.next();
  const ExecutionRequest& execution = call.settings.execution;
  const Plan finished = thread_stage(call.rungs.back().plan, target_for(execution.arch));
  result.finish = lap.next();
  CompileOptions compile;
  compile.backend = execution.backend;
  compile.arch = execution.arch;
  compile.use_cache = execution.use_cache;
  const CompiledPlan compiled = compile_plan(finished, compile);
  for (const CompiledKernel& kernel : compiled.kernels) {
    result.generate += kernel.generate_ms;
    result.is_from_cache |= kernel.is_from_cache;
  }
  result.compile = lap.next() - result.generate;
  std::vector<Module> modules;
  for (const CompiledKernel& kernel : compiled.kernels) {
    modules.emplace_back(kernel.cubin.bytes);
    modules.back().function(kernel.source.kernel);
  }
  result.load = lap.next();
  return result;
}

}  // namespace

TimedCompilations time_compilations(const Options& options, const std::string& program_text) {
  TimedCompilations result;
  Lap lap;
  use_gpu();
  const Stream stream;
  result.context = lap.next();
  result.first = time_one(options, program_text);
  Options other;
  other.device = options.device;
  other.backend = options.backend;
  other.arch = options.arch;
  other.no_cache = options.no_cache;
  time_one(other, "fn other(X: f32[N]) -> Y: f32[N] { Y[i] = X[i] + 1.0 }");
  result.again = time_one(options, program_text);
  return result;
}

std::string text_of(const TimedCompilations& timings) {
  const auto row = [](const char* name, const CompileTimings& t) {
    return fmt::format("{:<12} {:8.2f} {:8.2f} {:8.2f} {:8.2f} {:9.2f} {:8.2f} {:9.2f}{}\n", name, t.parse, t.schedule, t.finish, t.generate,
                       t.compile, t.load, t.total(), t.is_from_cache ? "  (machine code from the disk cache)" : "");
  };
  return fmt::format("context {:.1f} ms; from the text to a loaded module, in ms:\n{:<12} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9}\n{}{}",
                     timings.context, "", "parse", "schedule", "finish", "generate", "compile", "load", "total",
                     row("first ever", timings.first), row("again", timings.again));
}

}  // namespace tilewright
