// explain: what a call compiles to and why; the ledger of shared memory and registers after each line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "passes/finish/ledger.h"
#include "runtime/library/access_report.h"
#include "runtime/library/call_class.h"
#include "tools/options.h"
#include "tools/ranges.h"

namespace tilewright {

namespace {

nlohmann::json json_of(const KernelNote& kernel) {
  nlohmann::json accesses = nlohmann::json::array(), branches = nlohmann::json::array(), instructions = nlohmann::json::array(), tensors = nlohmann::json::array();
  for (const AccessNote& access : kernel.accesses) {
    const AccessCounts& counts = access.counts;
    nlohmann::json row = {{"text", access.text}, {"line", access.line}, {"ir_line", counts.ir_line}, {"ir_text", counts.text}, {"buffer", counts.buffer}, {"memory", counts.is_shared ? "shared" : "global"},
                          {"kind", name_of(counts.kind)}, {"bytes", counts.bytes}, {"width", counts.width}, {"requests", counts.requests}, {"threads", counts.threads}};
    if (counts.is_shared) row["wavefronts"] = counts.wavefronts, row["ideal_wavefronts"] = counts.ideal_wavefronts;
    else row["sectors"] = counts.sectors, row["needed_sectors"] = counts.needed_sectors;
    if (counts.kind == AccessKind::Atomic) row["most_on_one"] = counts.most_on_one;
    if (counts.lane_stride) row["lane_stride"] = *counts.lane_stride;
    if (!access.sentence.empty()) row["sentence"] = access.sentence;
    if (!access.cure.empty()) row["cure"] = access.cure;
    accesses.push_back(row);
  }
  for (const BranchCounts& branch : kernel.counts.branches)
    branches.push_back({{"line", branch.span.line}, {"ir_line", branch.ir_line}, {"text", branch.text}, {"executed", branch.executed}, {"divergent", branch.divergent}});
  for (const InstructionCounts& kind : kernel.counts.instructions) instructions.push_back({{"kind", kind.kind}, {"warps", kind.warps}, {"threads", kind.threads}});
  for (const TensorCounts& tensor : kernel.counts.tensors)
    tensors.push_back({{"name", tensor.name}, {"thread_bytes", tensor.thread_bytes}, {"sector_bytes", tensor.sector_bytes}, {"compulsory_bytes", tensor.compulsory_bytes}});
  return {{"kernel", kernel.counts.kernel}, {"accesses", accesses}, {"branches", branches}, {"instructions", instructions}, {"tensors", tensors}, {"sentences", kernel.sentences}};
}

// `explain --access`: the last rung at these sizes.
ExitCode explain_access(const Options& options, const LoadedProgram& loaded, const PreparedCall& call) {
  AccessRequest request;
  request.fn = call.fn;
  if (!loaded.plan) request.selection = &call.selection;
  request.dims = call.dims;
  request.arch = call.settings.execution.arch;
  request.seed = options.seed;
  if (!loaded.plan) request.sources = loaded.sources;  // the places in a plan are its own
  const double operations = estimated_operations(call.rungs.front().plan, call.dims);
  constexpr double rate = 1e8;
  if (operations / rate > 10) announce(fmt::format("counting takes about {:.0f} s: {:.3g} operations", operations / rate, operations));
  const std::vector<KernelNote> report = access_report(call.rungs.back().plan, make_inputs(*call.fn, call.dims, call.settings.inputs), request);
  if (!options.json) {
    std::cout << text_of(report);
    return ExitCode::Success;
  }
  nlohmann::json out;
  out["fn"] = call.fn->name;
  out["schedule"] = call.selection.schedule;
  for (const auto& [name, value] : call.dims) out["dims"][name] = value;
  for (const KernelNote& kernel : report) out["kernels"].push_back(json_of(kernel));
  std::cout << out.dump(2) << "\n";
  return ExitCode::Success;
}

// Why a schedule is not the one of this call.
std::string why_not(const Schedule& schedule, const std::vector<std::string>& against, const PreparedCall& call, const LoadedProgram& loaded) {
  if (!against.empty()) return fmt::format("{}", fmt::join(against, "; "));
  try {
    Settings own = call.settings;
    own.schedule.schedule = schedule.name;
    own.schedule.then.clear();
    prepare_with(loaded, *call.fn, own);
  } catch (const UserError& error) {
    return "its `when` holds, but a line is refused: " + error.diagnostics().front().message;
  }
  if (!call.settings.schedule.schedule.empty()) return "fits, but --schedule names another";
  return fmt::format("fits, but \"{}\" does too and stands behind it", call.selection.schedule);
}

}  // namespace

ExitCode explain_verb(const Options& given) {
  Options options = given;
  if (options.device == "auto") options.device = "cpu";  // nothing is launched
  LoadedProgram loaded = load(options);
  if (options.access) return explain_access(options, loaded, prepare(options, loaded));
  const TensorFn& fn = choose_fn(loaded.program, options.fn);
  Settings settings = settings_of(options, loaded.program, fn);
  settings.schedule.arch_matters = true;
  DimMap dims = dims_of_request(fn, settings.inputs);
  auto weighed = weigh_schedules(loaded.program, fn, dims, settings.schedule);
  PreparedCall call = prepare_with(loaded, fn, settings);
  const DimMap values = class_values(fn, dims, settings.inputs);
  CallClass call_class = class_of(fn, {values.begin(), values.end()});
  std::vector<Ledger> ledgers;
  for (const Rung& rung : call.rungs) ledgers.push_back(ledger_of(rung.plan, target_for(settings.execution.arch)));

  if (options.json) {
    nlohmann::json out;
    out["fn"] = fn.name;
    for (const auto& [name, value] : dims) out["dims"][name] = value;
    for (const RangeNote& note : range_notes(fn)) out["ranges"].push_back({{"target", note.target}, {"index", note.index}, {"range", note.range}, {"from", note.accesses}});
    out["schedule"] = call.selection.schedule;
    out["by_rules"] = call.selection.made_by_rules;
    out["index_bits"] = call_class.index_bits;
    out["long_sums"] = call_class.long_sums;
    for (const auto& [schedule, against] : weighed)
      out["schedules"].push_back({{"name", schedule->name}, {"against", against}, {"why_not", schedule->name == call.selection.schedule ? "" : why_not(*schedule, against, call, loaded)}});
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
  std::string target;
  for (const RangeNote& note : range_notes(fn)) {
    const std::string head = note.target == target ? "" : note.target;
    target = note.target;
    std::cout << fmt::format("ranges      {:<8} {} in {:<16} {}\n", head, note.index, note.range, note.accesses.empty() ? "as written" : fmt::format("from {}", fmt::join(note.accesses, ", ")));
  }
  std::string sizes;
  for (const auto& [name, value] : dims) sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, value);
  std::cout << fmt::format("sizes       {}\n", sizes.empty() ? "none" : sizes);
  std::cout << fmt::format("class       {}-bit indices{}\n", call_class.index_bits, call_class.long_sums ? ", long sums in two levels" : "");
  if (call.selection.made_by_rules) std::cout << "schedule    none in the program; the compiler's rules make this one, to paste and edit:\n";
  for (const auto& [schedule, against] : weighed) {
    bool taken = schedule->name == call.selection.schedule;
    std::cout << fmt::format("schedule    {} \"{}\"{}\n", taken ? "->" : "  ", schedule->name, taken ? "" : ": " + why_not(*schedule, against, call, loaded));
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
