// From a number to a case, and through all checks.
#include "tests/fuzz/fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "runtime/library/call_class.h"
#include "tests/fuzz/draw_program.h"
#include "tests/fuzz/draw_schedule.h"

namespace tilewright::fuzz {

namespace {

constexpr double most_operations = 30'000;

// Sizes: nothing, one, primes, and one around a tile.
DimMap draw_dims(Random& random, const TensorFn& fn, const Plan& plan, const std::vector<Fact>& when) {
  std::set<std::int64_t> tiles;
  for (const Kernel* kernel : kernels_of(plan))
    walk(kernel->body, [&](const Stmt& stmt) {
      if (const Loop* loop = as<Loop>(stmt))
        for (const Axis& axis : loop->axes)
          if (const auto extent = integer_value(axis.hi); extent && *extent > 1) tiles.insert(*extent);
      return true;
    });
  const std::vector<std::int64_t> sizes(tiles.begin(), tiles.end());
  for (int attempt = 0; attempt < 8; ++attempt) {
    DimMap dims;
    double operations = 1;
    for (const std::string& dim : fn.dims) {
      std::int64_t size = random.pick<std::int64_t>({0, 1, 2, 3, 5, 7, 13, 17, 4, 8});
      if (!sizes.empty() && random.chance(50)) {
        const std::int64_t tile = random.pick(sizes);
        size = random.pick<std::int64_t>({tile - 1, tile, tile + 1, 2 * tile + 1});
      }
      dims[dim] = size;
      operations *= static_cast<double>(std::max<std::int64_t>(size, 1));
    }
    if (operations > most_operations * (attempt + 1)) continue;
    dims = fitting_dims(fn, when, dims);
    for (auto& [name, size] : dims)
      if (!failed_conditions(fn, when, dims).empty()) size = (size + 23) / 24 * 24;
    if (failed_conditions(fn, when, dims).empty()) return dims;
  }
  DimMap none;
  for (const std::string& dim : fn.dims) none[dim] = 0;
  return none;
}

// The thread stages of the last rung, and of one on the way.
void finish_some(Compiled& compiled, const std::vector<Run>& runs, Tally& tally) {
  const std::size_t last = compiled.rungs.size() - 1;
  std::set<std::size_t> finishes = {last};
  if (last > 0 && !runs.empty()) finishes.insert(static_cast<std::size_t>(runs.front().seed) % last);
  for (const std::size_t n : finishes) {
    std::string why;
    std::optional<Plan> finished = finished_plan(compiled.rungs[n].plan, &why);
    tally.count("finished", finished ? "a thread stage" : "refused");
    if (finished) compiled.finished[n] = std::move(*finished);
    else tally.count("finishing refusal", kind_of_refusal(why));
  }
}

// What a run's scalars need: large ones make indices of 64 bits.
int index_bits_of_run(const TensorFn& fn, const Run& run) {
  const DimMap values = class_values(fn, run.dims, make_data(run.data, fn, run.dims, run.seed));
  return class_of(fn, {values.begin(), values.end()}).index_bits;
}

}  // namespace

std::optional<Finding> check_text(const std::string& text, const Devices& devices, Tally& tally, std::string* refusal) {
  try {
    const Runs runs = read_runs(text);
    std::string why_refused;
    std::optional<Compiled> compiled = compile(text, runs.index_bits, &why_refused);
    if (refusal) *refusal = why_refused;
    if (!compiled) return std::nullopt;
    for (const Run& run : runs.runs)
      if (!failed_conditions(compiled->fn, compiled->rungs.front().plan.facts, run.dims).empty()) {  // no call of this schedule
        if (refusal) *refusal = "a run does not satisfy the schedule";
        return std::nullopt;
      }
    finish_some(*compiled, runs.runs, tally);
    std::optional<Compiled> wide;
    for (const Run& run : runs.runs) {
      const bool needs_wide = index_bits_of_run(compiled->fn, run) > compiled->rungs.front().plan.index_bits;
      if (needs_wide && !wide) {
        wide = compile(text, 64);
        if (wide) finish_some(*wide, runs.runs, tally);
      }
      if (needs_wide && !wide) {
        tally.count("undecided", "schedules that are refused for 64 bits");
        continue;
      }
      tally.count("data", name_of(run.data));
      tally.count("index", needs_wide ? "64 bits by a scalar" : fmt::format("{} bits", compiled->rungs.front().plan.index_bits));
      if (!check_run(needs_wide ? *wide : *compiled, run, devices, tally)) tally.count("undecided", "runs that take too many steps");
    }
    return std::nullopt;
  } catch (const Finding& finding) {
    return finding;
  } catch (const UserError& error) {
    return Finding{"a run is refused", error.diagnostics().front().message};
  } catch (const std::exception& error) {
    return Finding{"exception", error.what()};
  }
}

std::optional<Finding> check_case(const Case& drawn, const Devices& devices, Tally& tally) { return check_text(to_text(drawn), devices, tally); }

std::string to_text(const Case& drawn) {
  std::string text;
  for (const Run& run : drawn.runs) {
    std::string sizes;
    for (const auto& [name, size] : run.dims) sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ",", name, size);
    text += fmt::format("// run: {} data {} seed {}\n", sizes.empty() ? "-" : sizes, name_of(run.data), run.seed);
  }
  if (drawn.index_bits != 32) text += fmt::format("// index: {}\n", drawn.index_bits);
  return text + print(drawn.program);
}

Runs read_runs(const std::string& text) {
  Runs result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("// index: 64")) result.index_bits = 64;
    if (!line.starts_with("// run: ")) continue;
    std::istringstream words(line.substr(8));
    Run run;
    std::string sizes, data, kind, seed;
    words >> sizes >> data >> kind >> seed >> run.seed;
    bool is_known = false;
    for (const Data each : {Data::Exact, Data::Random, Data::Special, Data::Extreme})
      if (kind == name_of(each)) {
        run.data = each;
        is_known = true;
      }
    std::replace(sizes.begin(), sizes.end(), ',', ' ');
    std::istringstream pairs(sizes);
    for (std::string pair; pairs >> pair;)
      if (const std::size_t equals = pair.find('='); equals != std::string::npos) run.dims[pair.substr(0, equals)] = std::stoll(pair.substr(equals + 1));
    if (!words || !is_known) throw UserError({}, fmt::format("`{}` is no run of a case", line), "write `// run: M=3,N=5 data special seed 7`");
    result.runs.push_back(std::move(run));
  }
  return result;
}

Devices devices_for(const std::string& kind) {
  Devices devices;
  devices.cpu = kind.find("cpu") != std::string::npos;
  devices.ptx = kind.find("PTX") != std::string::npos;
  devices.cuda = kind.find("cuda") != std::string::npos;
  devices.sim = kind.find("sim") != std::string::npos;
  devices.sim_orders = 4;
  return devices;
}

Case draw_case(std::uint64_t seed, std::uint64_t number, Tally& tally, std::optional<Finding>* finding) {
  Random random(seed_of(seed, number));
  Case drawn;
  const auto fail = [&](Finding found) {
    if (finding) *finding = std::move(found);
    return drawn;
  };
  DrawnSchedule schedule;
  try {
    const bool for_tensor_cores = random.chance(14);
    drawn.program = draw_program(random, for_tensor_cores || random.chance(15));
    drawn.index_bits = random.chance(10) ? 64 : 32;
    std::string refusal;
    std::optional<Compiled> compiled = compile(print(drawn.program), drawn.index_bits, &refusal);
    if (!compiled) {
      tally.count("program", "refused by the frontend");
      tally.count("frontend refusal", kind_of_refusal(refusal));
      return {};
    }
    tally.count("program", "accepted");
    tally.count(drawn.program);
    drawn.program.facts = draw_facts(random, compiled->fn.dims, for_tensor_cores);
    const Program program = parse_program(print(drawn.program), "case.tw");
    Plan plan = compiled->rungs.front().plan;
    if (!program.schedules.empty()) plan.facts = program.schedules.front().when;
    plan = draw_schedule(random, plan, for_tensor_cores, tally, schedule);
    drawn.program.lines = schedule.lines;
    tally.count("schedule", schedule.lines.size() > 8 ? "9 lines or more" : fmt::format("{} lines", schedule.lines.size()));
    for (std::size_t n = 1 + random.below(2); n > 0; --n) {
      Run run;
      run.dims = draw_dims(random, compiled->fn, plan, plan.facts);
      run.data = static_cast<Data>(random.below(4));
      run.seed = random.below(1000) + 1;
      drawn.runs.push_back(std::move(run));
    }
    return drawn;
  } catch (const Finding& found) {
    return fail(found);
  } catch (const InternalError& error) {
    drawn.program.lines = schedule.lines;
    drawn.program.lines.push_back(schedule.tried);
    return fail(Finding{"internal error in a schedule line", error.what()});
  } catch (const std::exception& error) {
    drawn.program.lines = schedule.lines;
    drawn.program.lines.push_back(schedule.tried);
    return fail(Finding{"exception in a schedule line", error.what()});
  }
}

Devices share_of(const Devices& devices, std::uint64_t seed, std::uint64_t number) {
  Random random(seed_of(seed + 1, number));
  Devices share = devices;
  share.ptx = devices.ptx && random.chance(4);
  share.cpu = devices.cpu && random.chance(60);
  return share;
}

std::optional<Finding> draw_and_check_refusal(std::uint64_t seed, std::uint64_t number, const std::vector<RefusalCase>& cases, Tally& tally) {
  Random random(seed_of(seed + 2, number));
  const RefusalCase& drawn = cases[number % cases.size()];
  return random.chance(33) ? draw_changed_refusal(random, drawn, tally) : draw_refusal(drawn, tally);
}

std::optional<FailedCase> draw_and_check(std::uint64_t seed, std::uint64_t number, const Devices& devices, Tally& tally) {
  std::optional<Finding> finding;
  Case drawn = draw_case(seed, number, tally, &finding);
  if (!finding && !drawn.runs.empty()) finding = check_case(drawn, share_of(devices, seed, number), tally);
  if (!finding) return std::nullopt;
  return FailedCase{std::move(drawn), *finding};
}

}  // namespace tilewright::fuzz
