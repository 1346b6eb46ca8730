// Choice of fn, schedule and device.
#include "runtime/library/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/cuda_device.h"
#include "runtime/driver.h"
#include "runtime/host_device.h"

namespace tilewright {

Program load_program(const std::string& path, std::vector<SourceFile>* sources) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) throw UserError({}, fmt::format("`{}` is a folder; a program file is needed", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError({}, fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad()) throw UserError({}, fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  if (sources) *sources = {SourceFile{path, text.str()}};
  return parse_program(text.str(), path);
}

const TensorFn& choose_fn(const Program& program, const std::string& name) {
  if (program.fns.empty()) throw UserError({}, "the program has no fn that could run", "a fn has a tensor or a number as its result: `fn f(X: f32[N]) -> Y: f32[N] { … }`");
  std::vector<std::string> names;
  for (const TensorFn& fn : program.fns) names.push_back(fn.name);
  if (!name.empty()) {
    for (const TensorFn& fn : program.fns)
      if (fn.name == name) return fn;
    throw UserError({}, fmt::format("there is no fn `{}`", name), fmt::format("the program has {}", fmt::join(names, ", ")));
  }
  for (auto fn = program.fns.rbegin(); fn != program.fns.rend(); ++fn)
    for (const Param& param : fn->params)
      if (!param.shape.empty()) return *fn;
  return program.fns.back();
}

namespace {

std::vector<std::pair<std::string, std::int64_t>> as_names(const DimMap& dims) { return {dims.begin(), dims.end()}; }

}  // namespace

namespace {

// ": `K % 4` is 2": of a comparison, what its sides come to where they are no literals.
std::string sides_of(const Expr& condition, const std::vector<std::pair<std::string, std::int64_t>>& dims) {
  const Binary* comparison = as<Binary>(condition);
  if (comparison == nullptr || condition->dtype != Dtype::Bool) return "";
  std::string text;
  for (const Expr& side : {comparison->lhs, comparison->rhs})
    if (!integer_value(side) && side->dtype != Dtype::Bool) text += fmt::format("{}`{}` is {}", text.empty() ? ": " : ", ", print(side), evaluate_index(side, dims));
  return text;
}

}  // namespace

std::vector<std::string> failed_conditions(const TensorFn& fn, const std::vector<Fact>& when, const DimMap& dims) {
  std::vector<std::string> failed;
  for (const Fact& fact : when) {
    switch (fact.kind) {
      case Fact::Kind::Contiguous: break;  // every tensor of a call is
      case Fact::Kind::Condition:
        if (evaluate_index(fact.condition, as_names(dims)) == 0) failed.push_back(fmt::format("`{}` does not hold{}", print(fact.condition), sides_of(fact.condition, as_names(dims))));
        break;
      case Fact::Kind::Aligned:
        for (const Param& param : fn.params) {
          if (param.shape.size() < 2) continue;
          std::int64_t row_bytes = evaluate_index(param.shape.back(), as_names(dims)) * bytes_of(param.dtype);
          if (row_bytes % fact.alignment != 0)
            failed.push_back(fmt::format("`aligned {}` does not hold: a row of `{}` has {} bytes", fact.alignment, param.name, row_bytes));
        }
        break;
    }
  }
  return failed;
}

DimMap fitting_dims(const TensorFn& fn, const std::vector<Fact>& when, const DimMap& proposed, const DimMap& fixed) {
  DimMap wanted = proposed;
  for (const Fact& fact : when) {  // `D >= 4096`
    const Binary* bound = fact.kind == Fact::Kind::Condition ? as<Binary>(fact.condition) : nullptr;
    const Var* dim = bound && bound->op == BinaryOp::Ge ? as<Var>(bound->lhs) : nullptr;
    const auto least = dim ? integer_value(bound->rhs) : std::nullopt;
    if (least && wanted.count(dim->name)) wanted[dim->name] = std::max(wanted[dim->name], *least);
  }
  for (std::int64_t multiple = 1; multiple <= 64; multiple *= 2) {
    DimMap dims;
    for (const auto& [name, value] : wanted) dims[name] = fixed.count(name) ? fixed.at(name) : (value + multiple - 1) / multiple * multiple;
    if (failed_conditions(fn, when, dims).empty()) return dims;
  }
  DimMap dims = wanted;
  for (const auto& [name, value] : fixed) dims[name] = value;
  return dims;
}

std::vector<std::pair<const Schedule*, std::vector<std::string>>> weigh_schedules(const Program& program, const TensorFn& fn, const DimMap& dims,
                                                                                 const SelectionRequest& request) {
  std::vector<std::pair<const Schedule*, std::vector<std::string>>> result;
  for (const Schedule& schedule : program.schedules) {
    if (schedule.fn != fn.name) continue;
    std::vector<std::string> against;
    if (request.arch_matters && !schedule.arch.empty() && schedule.arch != request.arch)
      against.push_back(fmt::format("it is for {}, not {}", schedule.arch, request.arch));
    for (std::string& condition : failed_conditions(fn, schedule.when, dims)) against.push_back(std::move(condition));
    result.emplace_back(&schedule, std::move(against));
  }
  return result;
}

namespace {

const Schedule& schedule_by_name(const Program& program, const TensorFn& fn, const std::string& name) {
  std::vector<const Schedule*> found;
  std::vector<std::string> names;
  for (const Schedule& schedule : program.schedules) {
    if (schedule.fn != fn.name) continue;
    names.push_back('"' + schedule.name + '"');
    if (schedule.name == name) return schedule;
    if (schedule.name.rfind(name, 0) == 0) found.push_back(&schedule);
  }
  if (found.size() == 1) return *found[0];
  std::string known = names.empty() ? fmt::format("`{}` has no schedule", fn.name) : fmt::format("`{}` has {}", fn.name, fmt::join(names, ", "));
  if (found.empty()) throw UserError({}, fmt::format("there is no schedule \"{}\"", name), known);
  throw UserError({}, fmt::format("\"{}\" is the beginning of several schedules", name), known);
}

}  // namespace

Selection select_schedule(const Program& program, const TensorFn& fn, const DimMap& dims, const SelectionRequest& request) {
  Selection selection;
  const Schedule* chosen = nullptr;
  auto weighed = weigh_schedules(program, fn, dims, request);
  if (request.schedule == "none") {
    selection.schedule = "";
  } else if (!request.schedule.empty()) {
    chosen = &schedule_by_name(program, fn, request.schedule);
  } else if (!weighed.empty()) {
    for (const auto& [schedule, against] : weighed)
      if (against.empty()) chosen = schedule;
    if (!chosen) {
      Diagnostic none{{}, fmt::format("no schedule of `{}` fits this call", fn.name), {}, "`--schedule none` runs it without one"};
      for (const auto& [schedule, against] : weighed) none.notes.push_back(Note{schedule->span, fmt::format("\"{}\": {}", schedule->name, fmt::join(against, "; "))});
      throw UserError(std::vector<Diagnostic>{std::move(none)});
    }
  } else {
    selection.made_by_rules = true;
    Target target = target_for(request.arch);
    selection.lines = default_schedule(lower(fn, class_of(fn, as_names(dims)).long_sums), target);
  }
  if (chosen) {
    Schedule schedule = instantiate(program, *chosen, request.parameters);
    selection.schedule = schedule.name;
    selection.arch = schedule.arch;
    selection.when = schedule.when;
    selection.lines = schedule.lines;
    if (std::vector<std::string> failed = failed_conditions(fn, schedule.when, dims); !failed.empty())
      throw UserError(schedule.span, fmt::format("schedule \"{}\" does not fit this call: {}", schedule.name, fmt::join(failed, "; ")));
  }
  for (std::size_t n = 0; n < request.then.size(); ++n)
    for (ScheduleLine& line : parse_schedule_lines(request.then[n], static_cast<int>(n) + 1)) selection.lines.push_back(std::move(line));
  return selection;
}

std::vector<Rung> rungs_of(const TensorFn& fn, const Selection& selection, const DimMap& values, const std::string& arch) {
  return build_rungs(fn, selection.schedule, selection.arch, selection.when, selection.lines, target_for(arch), class_of(fn, as_names(values)));
}

std::string_view name_of(DeviceKind device) {
  switch (device) {
    case DeviceKind::Cuda: return "cuda";
    case DeviceKind::Cpu: return "cpu";
    case DeviceKind::Sim: return "sim";
    case DeviceKind::Interpreter: return "interpreter";
  }
  return "";
}

RunReport execute(const Plan& plan, Arguments& arguments, const ExecutionRequest& request) {
  require_elements(plan, arguments);
  bool threads = is_thread_stage(plan);
  auto threads_of = [&] { return thread_stage(plan, target_for(request.arch)); };
  switch (request.device) {
    case DeviceKind::Cuda: {
      CompileOptions options;
      options.backend = request.backend;
      options.arch = request.arch;
      options.use_cache = request.use_cache;
      return run_on_cuda(compile_plan(threads_of(), options), arguments);
    }
    case DeviceKind::Sim: {
      SimulatorOptions options;
      options.seed = request.seed;
      options.names_ir_lines = !threads;  // of a plan that was finished here
      return simulate(threads_of(), arguments, options);
    }
    case DeviceKind::Cpu:
      if (threads) throw UserError({}, "a thread-stage plan does not run on cpu", "take --device sim, or a file of the tile stage");
      return run_on_host(plan, arguments, HostOptions{request.threads});
    case DeviceKind::Interpreter: {
      if (threads) throw UserError({}, "a thread-stage plan does not run in the tile interpreter", "take --device sim");
      InterpreterOptions options;
      options.seed = request.seed;
      return interpret(plan, arguments, options);
    }
  }
  internal_error("a device without a case");
}

DeviceKind choose_device(const std::string& name) {
  if (name == "auto") return list_gpus().empty() ? DeviceKind::Cpu : DeviceKind::Cuda;
  for (DeviceKind device : {DeviceKind::Cuda, DeviceKind::Cpu, DeviceKind::Sim, DeviceKind::Interpreter})
    if (name_of(device) == name) {
      std::string why;
      if (device == DeviceKind::Cuda && list_gpus(&why).empty())
        throw MachineError(fmt::format("there is no GPU to run on: {}. `--device cpu` or `--device sim` runs here; `tilewright info` tells more", why));
      return device;
    }
  throw UserError({}, fmt::format("unknown device `{}`", name), "known are auto, cuda, cpu, sim, interpreter");
}

std::string choose_arch(const std::string& asked) {
  if (!asked.empty()) return target_for(asked).arch;
  std::vector<GpuInfo> gpus = list_gpus();
  if (gpus.empty()) return "sm_90a";
  for (std::string_view known : known_architectures())
    if (known == gpus[0].arch) return gpus[0].arch;
  throw UserError({}, fmt::format("the GPU here is {}, which this version does not know", gpus[0].arch), "choose one of `tilewright info` by --arch");
}

std::string describe(const Plan& plan, const ErrorHit& hit) {
  for (const ErrorSite& site : plan.errors)
    if (site.id == hit.site) return fmt::format("`{}` left its tensor: an index or a bound was {}", print(site.access), hit.value);
  return fmt::format("checked access {} left its tensor: an index or a bound was {}", hit.site, hit.value);
}

}  // namespace tilewright
