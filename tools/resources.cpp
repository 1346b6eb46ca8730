// Rows from assemblers' reports and disassembly; see resources.h.
#include "tools/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/diagnostic.h"
#include "runtime/disassemble.h"
#include "runtime/library/ladder/cards.h"
#include "runtime/library/ladder/sass.h"

namespace tilewright {

namespace {

void keep_fewest_warps(LadderRow& row, const std::optional<Occupancy>& occupancy) {
  if (occupancy && (!row.occupancy || occupancy->warps < row.occupancy->warps)) row.occupancy = occupancy;
}

void add_instructions(LadderRow& row, const std::string& sass, const std::string& entry) {
  for (const auto& [name, count] : instructions_of(sass, entry)) {
    const auto known = std::find_if(row.instructions.begin(), row.instructions.end(), [&name = name](const auto& each) { return each.first == name; });
    if (known == row.instructions.end()) row.instructions.emplace_back(name, count);
    else known->second += count;
  }
}

std::string sass_of(LadderRow& row, const Cubin& cubin) {
  try {
    return disassemble(cubin);
  } catch (const MachineError& error) {
    row.not_counted.push_back(fmt::format("SASS: {}", error.what()));
    return "";
  }
}

void add_resources(LadderRow& row, const KernelResources& resources, const std::string& arch, int threads, std::int64_t shared_bytes) {
  row.registers = std::max(row.registers, resources.registers);
  row.spill_bytes += resources.spill_store_bytes + resources.spill_load_bytes;
  row.shared_bytes = std::max(row.shared_bytes, shared_bytes);
  row.threads = std::max(row.threads, threads);
  if (resources.registers > 0) keep_fewest_warps(row, occupancy_of(arch, threads, resources.registers, shared_bytes));
}

}  // namespace

void describe_plan(LadderRow& row, const CompiledPlan& compiled, const std::string& arch, bool wants_sass) {
  const std::vector<const Kernel*> kernels = kernels_of(compiled.plan);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    int threads = 1;
    for (const std::int64_t extent : kernels[k]->launch.block) threads *= static_cast<int>(extent);
    add_resources(row, compiled.kernels[k].resources.value_or(KernelResources{}), arch, threads, kernels[k]->launch.shared_bytes);
    if (wants_sass) add_instructions(row, sass_of(row, compiled.kernels[k].cubin), compiled.kernels[k].source.kernel);
  }
  row.kernels = static_cast<int>(kernels.size());
}

void describe_hand(LadderRow& row, const CompiledHand& hand, const std::string& arch, const DimMap& dims, bool wants_sass) {
  const std::vector<std::pair<std::string, std::int64_t>> names(dims.begin(), dims.end());
  const std::string sass = wants_sass ? sass_of(row, hand.cubin) : "";
  std::set<std::string> described;
  for (const HandStep& step : hand.program.steps) {
    const auto* launch = std::get_if<HandLaunch>(&step);
    if (launch == nullptr) continue;
    std::int64_t threads = 1;
    for (const Expr& extent : launch->block) threads *= evaluate_index(extent, names);
    const std::int64_t dynamic_bytes = launch->shared_bytes ? evaluate_index(launch->shared_bytes, names) : 0;
    const auto resources = std::find_if(hand.resources.begin(), hand.resources.end(), [&](const auto& each) { return each.first == launch->kernel; });
    KernelResources own = resources == hand.resources.end() ? KernelResources{} : resources->second;
    if (!described.insert(launch->kernel).second) own.spill_store_bytes = own.spill_load_bytes = 0;  // of its code, not of its launches
    else if (const auto entry = hand.cubin.entries.find(launch->kernel); wants_sass) add_instructions(row, sass, entry == hand.cubin.entries.end() ? launch->kernel : entry->second);
    add_resources(row, own, arch, static_cast<int>(threads), own.shared_bytes + dynamic_bytes);
  }
  row.kernels = static_cast<int>(described.size());
}

void keep_resources(LadderRow& row, const LadderRow& of) {
  row.registers = of.registers, row.spill_bytes = of.spill_bytes, row.shared_bytes = of.shared_bytes, row.threads = of.threads;
  row.occupancy = of.occupancy, row.instructions = of.instructions;
}

std::vector<NoteRow> notes_of(const std::vector<KernelNote>& report) {
  std::vector<NoteRow> notes;
  for (const KernelNote& kernel : report)
    for (const AccessNote& access : kernel.accesses) {
      const AccessCounts& counts = access.counts;
      NoteRow note{access.line, counts.ir_line, access.text, counts.is_shared ? "shared" : "global", std::string(name_of(counts.kind)), static_cast<double>(counts.requests),
                   static_cast<double>(counts.is_shared ? counts.wavefronts : counts.sectors), static_cast<double>(counts.is_shared ? counts.ideal_wavefronts : counts.needed_sectors), access.sentence, access.cure};
      const auto like = std::find_if(notes.begin(), notes.end(), [&](const NoteRow& each) { return each.line == note.line && each.thread_line == note.thread_line && each.text == note.text && each.space == note.space && each.kind == note.kind; });
      if (like == notes.end()) {
        notes.push_back(std::move(note));
        continue;
      }
      like->requests += note.requests, like->asked += note.asked, like->needed += note.needed;
      if (like->sentence.empty()) like->sentence = note.sentence, like->cure = note.cure;
    }
  return notes;
}

}  // namespace tilewright
