// From options to a call: program, sizes, schedule, rungs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/library/call_class.h"
#include "tools/options.h"

namespace tilewright {

namespace {

// The program's text, and behind it those of `--then`.
void remember(const Options& options, std::vector<SourceFile> sources) {
  for (const std::string& line : options.then) sources.push_back({"--then", line});
  remember_sources(sources);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw UserError({}, fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  return text.str();
}

// The fn that a plan computes, without what it says.
TensorFn signature_of(const Plan& plan) {
  TensorFn fn;
  fn.name = plan.name;
  for (const Dim& dim : plan.dims)
    if (!dim.value) fn.dims.push_back(dim.name);
  fn.params = plan.params;
  return fn;
}

void check_signature(const Plan& plan, const TensorFn& fn, const std::string& path) {
  const std::vector<std::string> sizes = signature_of(plan).dims;  // in whatever order
  if (fn.params != plan.params || !std::is_permutation(fn.dims.begin(), fn.dims.end(), sizes.begin(), sizes.end()))
    throw UserError(fn.span, fmt::format("`{}` has other parameters than plan `{}` of `{}`", fn.name, plan.name, path));
}

LoadedProgram load_plan(const Options& options) {
  LoadedProgram result;
  result.sources = {SourceFile{options.file, read_text(options.file)}};
  remember(options, result.sources);
  result.plan = read_plan(result.sources[0].text);
  if (options.expression.empty()) {
    result.program.fns = {signature_of(*result.plan)};
    return result;
  }
  result.sources = {SourceFile{"-e", options.expression}};
  remember(options, result.sources);
  result.program.fns = {choose_fn(parse_program(options.expression, "-e"), options.fn)};
  check_signature(*result.plan, result.program.fns[0], options.file);
  return result;
}

}  // namespace

LoadedProgram load(const Options& options) {
  if (is_plan_file(options.file)) return load_plan(options);
  LoadedProgram result;
  if (!options.expression.empty()) {
    if (!options.file.empty()) throw UserError({}, "both a file and -e are given; one is needed");
    result.sources = {SourceFile{"-e", options.expression}};
    result.folder = ".";
    remember(options, result.sources);
    result.program = parse_program(options.expression, "-e");
    return result;
  }
  if (options.file.empty()) throw UserError({}, "no program is given", "name a .tw file, or write the program behind -e");
  result.folder = std::filesystem::path(options.file).parent_path().string();
  if (result.folder.empty()) result.folder = ".";
  try {
    result.program = load_program(options.file, &result.sources);
  } catch (const UserError&) {
    remember(options, result.sources);
    throw;
  }
  remember(options, result.sources);
  return result;
}

bool is_plan_file(const std::string& path) { return std::filesystem::path(path).extension() == ".ir"; }

LoadedProgram load_plan_for(const std::string& path, const TensorFn& fn) {
  LoadedProgram result;
  result.sources = {SourceFile{path, read_text(path)}};
  remember_sources(result.sources);
  result.plan = read_plan(result.sources[0].text);
  result.program.fns = {fn};
  check_signature(*result.plan, fn, path);
  return result;
}

ExecutionRequest execution_of(const Options& options) {
  ExecutionRequest execution;
  execution.device = choose_device(options.device);
  execution.backend = options.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc;
  execution.arch = choose_arch(options.arch);
  execution.threads = options.threads;
  execution.seed = options.seed;
  execution.use_cache = !options.no_cache;
  return execution;
}

Settings settings_of(const Options& options, const Program& program, const TensorFn& fn) {
  Settings settings;
  settings.execution = execution_of(options);
  settings.inputs.inputs = options.inputs;
  settings.inputs.seed = options.seed;
  settings.schedule.schedule = options.schedule;
  settings.schedule.then = options.then;
  settings.schedule.arch = settings.execution.arch;
  settings.schedule.arch_matters = settings.execution.device == DeviceKind::Cuda || !options.arch.empty();
  std::vector<std::string> texts;
  for (const std::string& set : options.sets) {
    std::size_t start = 0;
    while (start <= set.size()) {
      std::size_t comma = set.find(',', start);
      texts.push_back(set.substr(start, comma == std::string::npos ? std::string::npos : comma - start));
      if (comma == std::string::npos) break;
      start = comma + 1;
    }
  }
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UserError({}, fmt::format("`--set {}` is no NAME=VALUE", text), "write --set M=64,N=32");
    std::string name = text.substr(0, equals);
    std::string value = text.substr(equals + 1);
    bool is_parameter = false;
    for (const Schedule& schedule : program.schedules)
      for (const ScheduleParameter& parameter : schedule.parameters) is_parameter |= schedule.fn == fn.name && parameter.name == name;
    bool is_dim = std::find(fn.dims.begin(), fn.dims.end(), name) != fn.dims.end();
    if (is_parameter && !is_dim) {
      char* end = nullptr;
      long long number = std::strtoll(value.c_str(), &end, 10);
      if (*end != '\0') throw UserError({}, fmt::format("`--set {}` is no integer", text));
      settings.schedule.parameters[name] = number;
    } else {
      settings.inputs.values[name] = value;
    }
  }
  return settings;
}

namespace {

// The plan file as the one rung of a call.
void take_plan(const Plan& plan, const TensorFn& fn, PreparedCall& call) {
  call.selection.schedule = plan.schedule;
  call.selection.arch = plan.arch;
  call.selection.when = plan.facts;
  if (std::vector<std::string> failed = failed_conditions(fn, plan.facts, call.dims); !failed.empty())
    throw UserError({}, fmt::format("plan `{}` does not fit this call: {}", plan.name, fmt::join(failed, "; ")));
  const DimMap values = class_values(fn, call.dims, call.settings.inputs);
  if (class_of(fn, {values.begin(), values.end()}).index_bits > plan.index_bits)
    throw UserError({}, fmt::format("plan `{}` counts in 32 bits, and this call has a tensor of 2^31 elements or more, or a scalar that makes indices so large", plan.name), "`class index 64` in the plan");
  call.rungs = {Rung{"", NumericClass::Exact, plan}};
}

}  // namespace

PreparedCall prepare_with(const LoadedProgram& loaded, const TensorFn& fn, Settings settings) {
  PreparedCall call;
  call.fn = &fn;
  call.settings = std::move(settings);
  call.dims = dims_of_request(fn, call.settings.inputs);
  if (loaded.plan) {
    take_plan(*loaded.plan, fn, call);
    return call;
  }
  call.selection = select_schedule(loaded.program, fn, call.dims, call.settings.schedule);
  call.rungs = rungs_of(fn, call.selection, class_values(fn, call.dims, call.settings.inputs), call.settings.execution.arch);
  return call;
}

PreparedCall prepare(const Options& options, const LoadedProgram& loaded) {
  const TensorFn& fn = choose_fn(loaded.program, options.fn);
  return prepare_with(loaded, fn, settings_of(options, loaded.program, fn));
}

void announce(const std::string& text) { std::cerr << text << std::endl; }

double estimated_operations(const Plan& plan, const DimMap& dims) {
  std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  auto trips = [&](const Axis& axis) {
    try {
      double lo = axis.lo ? static_cast<double>(evaluate_index(axis.lo, names)) : 0.0;
      double step = axis.step ? static_cast<double>(evaluate_index(axis.step, names)) : 1.0;
      return std::max(0.0, std::ceil((static_cast<double>(evaluate_index(axis.hi, names)) - lo) / step));
    } catch (const UserError&) {
      return 16.0;  // a bound that only the run knows
    }
  };
  std::function<double(const Block&)> count = [&](const Block& body) {
    double total = 0;
    for (const Stmt& stmt : body) {
      if (const Loop* loop = as<Loop>(stmt)) {
        double product = 1;
        for (const Axis& axis : loop->axes) product *= trips(axis);
        total += product * count(loop->body);
      } else if (const If* branch = as<If>(stmt)) {
        total += std::max(count(branch->then_body), count(branch->else_body));
      } else {
        total += 1;
      }
    }
    return total;
  };
  double total = 0;
  for (const Kernel* kernel : kernels_of(plan)) total += count(kernel->body);
  return total;
}

}  // namespace tilewright
