// explain: what a call compiles to and why; the ledger of shared memory and registers after each line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "passes/finish/ledger.h"
#include "tools/options.h"

namespace tilewright {

ExitCode explain_verb(const Options& given) {
  Options options = given;
  if (options.device == "auto") options.device = "cpu";  // nothing is launched
  LoadedProgram loaded = load(options);
  const TensorFn& fn = choose_fn(loaded.program, options.fn);
  Settings settings = settings_of(options, loaded.program, fn);
  settings.schedule.arch_matters = true;
  DimMap dims = dims_of_request(fn, settings.inputs);
  auto weighed = weigh_schedules(loaded.program, fn, dims, settings.schedule);
  PreparedCall call = prepare_with(loaded, fn, settings);
  std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  CallClass call_class = class_of(fn, names);
  std::vector<Ledger> ledgers;
  for (const Rung& rung : call.rungs) ledgers.push_back(ledger_of(rung.plan, target_for(settings.execution.arch)));

  if (options.json) {
    nlohmann::json out;
    out["fn"] = fn.name;
    for (const auto& [name, value] : dims) out["dims"][name] = value;
    out["schedule"] = call.selection.schedule;
    out["by_rules"] = call.selection.made_by_rules;
    out["index_bits"] = call_class.index_bits;
    out["long_sums"] = call_class.long_sums;
    for (const auto& [schedule, against] : weighed) out["schedules"].push_back({{"name", schedule->name}, {"against", against}});
    for (std::size_t n = 0; n < call.rungs.size(); ++n) {
      nlohmann::json kernels = nlohmann::json::array();
      for (const KernelLedger& kernel : ledgers[n].kernels)
        kernels.push_back({{"name", kernel.name}, {"threads", kernel.threads}, {"shared_bytes", kernel.shared_bytes}, {"buffer_registers", kernel.registers}, {"most_registers", kernel.share}});
      out["rungs"].push_back({{"line", call.rungs[n].line}, {"kernels", kernels}});
    }
    std::cout << out.dump(2) << "\n";
    return ExitCode::Success;
  }
  std::cout << print(fn) << "\n";
  std::string sizes;
  for (const auto& [name, value] : dims) sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, value);
  std::cout << fmt::format("sizes       {}\n", sizes.empty() ? "none" : sizes);
  std::cout << fmt::format("class       {}-bit indices{}\n", call_class.index_bits, call_class.long_sums ? ", long sums in two levels" : "");
  if (call.selection.made_by_rules) std::cout << "schedule    none in the program; the compiler's rules make this one, to paste and edit:\n";
  for (const auto& [schedule, against] : weighed) {
    bool taken = schedule->name == call.selection.schedule;
    std::cout << fmt::format("schedule    {} \"{}\"{}\n", taken ? "->" : "  ", schedule->name, against.empty() ? (taken ? "" : ": fits, but a later one does too") : ": " + fmt::format("{}", fmt::join(against, "; ")));
  }
  std::size_t width = 20;
  for (const Rung& rung : call.rungs) width = std::max(width, rung.line.size());
  std::cout << fmt::format("\n{:<{}} {:<12} {:>8} {:>9} {:>10} {:>5}\n", "line", width, "kernel", "threads", "shared", "registers", "of");
  for (std::size_t n = 0; n < call.rungs.size(); ++n)
    for (std::size_t k = 0; k < ledgers[n].kernels.size(); ++k) {
      const KernelLedger& kernel = ledgers[n].kernels[k];
      std::cout << fmt::format("{:<{}} {:<12} {:>8} {:>9} {:>10} {:>5}\n", k ? "" : n ? call.rungs[n].line : "(lowered)", width, kernel.name, kernel.threads, kernel.shared_bytes, kernel.registers, kernel.share);
    }
  std::cout << "registers: what register buffers take of a thread that computes, and what it has at most; the assembler adds addresses and temporaries\n";
  return ExitCode::Success;
}

}  // namespace tilewright
