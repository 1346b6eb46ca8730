// Sentences come from the counts alone. A cure is a change to the schedule that was tried: the changed schedule is built, run
// and counted, and named only where it is better.
#include "runtime/library/access_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "passes/pass.h"
#include "runtime/library/rungs.h"

namespace tilewright {

namespace {

// ---- Words.
// `12`, `12.5`: a count a request.
std::string each(std::int64_t all, std::int64_t requests) {
  if (requests == 0) return "0";
  return all % requests == 0 ? fmt::format("{}", all / requests) : fmt::format("{:.1f}", static_cast<double>(all) / static_cast<double>(requests));
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 10 << 10) return fmt::format("{} bytes", bytes);
  if (bytes < 10 << 20) return fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1024 * 1024));
}

// The part of a program that a span covers.
std::string covered(const Span& span, const std::vector<SourceFile>& sources) {
  if (!span.is_known() || static_cast<std::size_t>(span.file) >= sources.size()) return "";
  const std::string& text = sources[static_cast<std::size_t>(span.file)].text;
  const auto at = [&](int line, int column) {
    std::size_t start = 0;
    for (int n = 1; n < line && start < text.size(); ++n) start = std::min(text.find('\n', start), text.size() - 1) + 1;
    return std::min(text.size(), start + static_cast<std::size_t>(std::max(column, 1)) - 1);
  };
  const std::size_t first = at(span.line, span.column);
  const std::size_t end = at(span.end_line, span.end_column);
  return end > first ? text.substr(first, end - first) : "";
}

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// `A[i, k]` at this place of a text: a name and its subscripts; empty where none stands there.
std::string access_at(const std::string& text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_name_letter(text[end])) ++end;
  if (end == at || end >= text.size() || text[end] != '[') return "";
  int depth = 0;
  for (; end < text.size(); ++end) {
    depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
    if (depth == 0) return text.substr(at, end + 1 - at);
  }
  return "";
}

// How the program writes an access: where its own place is known what stands there, else the only access of the buffer in the
// statement; empty where there are several or none.
std::string source_text(const AccessCounts& counts, const std::vector<SourceFile>& sources) {
  const std::string own = covered(counts.span, sources);
  if (const std::string access = access_at(own, 0); !access.empty() && access.size() == own.size()) return access;
  const std::string statement = covered(counts.statement, sources);
  std::set<std::string> found;
  for (std::size_t at = statement.find(counts.buffer); at != std::string::npos; at = statement.find(counts.buffer, at + 1)) {
    if (at > 0 && is_name_letter(statement[at - 1])) continue;
    if (const std::string access = access_at(statement, at); access.starts_with(counts.buffer + "[")) found.insert(access);
  }
  return found.size() == 1 ? *found.begin() : "";
}

// The name that alone makes up the last subscript of `B[k, j]`, else nothing.
std::string last_index(const std::string& access) {
  const std::size_t open = access.find('[');
  if (open == std::string::npos) return "";
  std::size_t comma = access.rfind(',');
  if (comma == std::string::npos || comma < open) comma = open;
  std::string name = access.substr(comma + 1, access.size() - comma - 2);
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), is_name_letter);
  return is_name ? name : "";
}

// More than a quarter. A few elements that all lanes share may lie in as many sectors.
bool wastes_sectors(const AccessCounts& counts) {
  if (counts.is_shared || (counts.lane_stride == 0 && counts.sectors < 8 * counts.requests)) return false;
  return counts.sectors * 4 > counts.needed_sectors * 5;
}
bool has_conflicts(const AccessCounts& counts) { return counts.is_shared && counts.wavefronts * 4 > counts.ideal_wavefronts * 5; }
bool meets_on_one(const AccessCounts& counts) { return counts.kind == AccessKind::Atomic && counts.most_on_one >= counts.requests * 4; }

std::string where_the_lanes_are(const AccessCounts& counts, std::int64_t row) {
  if (!counts.lane_stride) return "the lanes' elements are scattered";
  const std::int64_t stride = *counts.lane_stride < 0 ? -*counts.lane_stride : *counts.lane_stride;
  if (row > 1 && stride == row) return "the lanes walk rows";
  if (stride > counts.width) return fmt::format("the lanes stand {} elements apart", stride);
  return "its rows begin or end inside a sector";
}

std::string sentence_of(const AccessNote& note, std::int64_t row) {
  const AccessCounts& counts = note.counts;
  if (counts.requests == 0) return "";
  const std::string lanes = each(counts.threads, counts.requests);
  if (meets_on_one(counts))
    return fmt::format("`{}`: of a warp's {} updates {} meet on one element and wait for each other", note.text, lanes, each(counts.most_on_one, counts.requests));
  if (wastes_sectors(counts)) {
    const bool is_box = counts.kind == AccessKind::BoxLoad || counts.kind == AccessKind::BoxStore;
    return fmt::format("`{}`: {} {} {} sectors, {} would do: {}", note.text, is_box ? "a box" : lanes + " lanes", counts.kind == AccessKind::Atomic ? "update" : counts.kind == AccessKind::Store ? "write" : "read", each(counts.sectors, counts.requests),
                       each(counts.needed_sectors, counts.requests), is_box ? "its rows begin or end inside a sector" : where_the_lanes_are(counts, row));
  }
  if (has_conflicts(counts))
    return fmt::format("`{}` in `{}`: a warp takes {} passes over the banks, {} would do", note.text, counts.buffer, each(counts.wavefronts, counts.requests), each(counts.ideal_wavefronts, counts.requests));
  return "";
}

// ---- Cures.
struct Cost {
  std::int64_t sectors = 0;  // more than needed
  std::int64_t fetched = 0;  // all sectors of the tensor
  std::int64_t passes = 0;   // more than ideal
};

Cost cost_of(const std::vector<KernelCounts>& kernels, const std::string& tensor) {
  Cost cost;
  for (const KernelCounts& kernel : kernels)
    for (const AccessCounts& access : kernel.accesses) {
      cost.sectors += access.sectors - access.needed_sectors;
      cost.passes += access.wavefronts - access.ideal_wavefronts;
      if (access.buffer == tensor) cost.fetched += access.sectors;
    }
  return cost;
}

class Cures {
 public:
  Cures(const std::map<std::string, HostTensor>& inputs, const AccessRequest& request, const std::vector<KernelCounts>& before)
      : inputs_(inputs), request_(request), before_(before) {}

  std::string find(const AccessNote& note) {
    if (request_.selection == nullptr) return "";
    if (has_conflicts(note.counts))
      return first_better(conflict_changes(), note.counts.buffer, [](const Cost& now, const Cost& then) { return now.passes * 2 <= then.passes && now.sectors <= then.sectors; });
    if (!wastes_sectors(note.counts)) return "";
    std::vector<Change> changes = bind_changes(last_index(note.text));
    for (Change& change : stage_changes(note.counts.buffer, last_index(note.text))) changes.push_back(std::move(change));
    return first_better(changes, note.counts.buffer, [](const Cost& now, const Cost& then) { return now.sectors * 2 <= then.sectors; });
  }

  // Of a tensor whose elements are asked for again and again.
  std::string find_reuse(const std::string& tensor) {
    if (request_.selection == nullptr) return "";
    return first_better(stage_changes(tensor, ""), tensor, [](const Cost& now, const Cost& then) { return now.fetched * 2 <= then.fetched; });
  }

 private:
  // Lines that replace the schedule's own of the same word and target, or stand behind its `bind` where it has none.
  struct Change {
    std::vector<std::string> lines;
  };

  // `bind` with another index on thread.x and what was there in its place; the contiguous one first.
  std::vector<Change> bind_changes(const std::string& contiguous) const {
    std::vector<Change> changes;
    for (const ScheduleLine& line : request_.selection->lines) {
      if (line.word != "bind") continue;
      std::vector<std::pair<std::string, std::string>> places;  // index, place
      for (std::size_t n = 0; n + 1 < line.tokens.size(); n += 3) places.emplace_back(line.tokens[n].text, line.tokens[n + 1].text);
      const auto first = std::find_if(places.begin(), places.end(), [](const auto& place) { return place.second == "thread.x"; });
      if (first == places.end()) continue;
      for (std::size_t n = 0; n < places.size(); ++n) {
        if (places[n].second == "thread.x") continue;
        std::vector<std::pair<std::string, std::string>> swapped = places;
        std::swap(swapped[n].second, swapped[static_cast<std::size_t>(first - places.begin())].second);
        std::string text;
        for (const auto& [index, place] : swapped) text += fmt::format("{} {} {}", text.empty() ? "bind" : ",", index, place);
        changes.insert(places[n].first == contiguous ? changes.begin() : changes.end(), Change{{text}});
      }
    }
    return changes;
  }

  // A tile of the tensor in shared memory, at the loop of its contiguous index first; reduced indices that have no tile get one.
  std::vector<Change> stage_changes(const std::string& tensor, const std::string& contiguous) const {
    std::vector<Change> changes;
    const auto add = [&](const std::string& index, std::vector<std::string> lines) {
      lines.push_back(fmt::format("stage {} in shared at {}.block", tensor, index));
      changes.insert(index == contiguous ? changes.begin() : changes.end(), Change{std::move(lines)});
    };
    for (const ScheduleLine& line : request_.selection->lines) {
      if (line.word != "tile" || line.tokens.empty() || line.tokens[0].text != "block") continue;
      std::set<std::string> tiled;
      for (std::size_t n = 1; n < line.tokens.size(); ++n)
        if (line.tokens[n].kind == ScheduleToken::Kind::Name) tiled.insert(line.tokens[n].text), add(line.tokens[n].text, {});
      for (const std::string& index : reduced_indices())
        if (!tiled.contains(index)) add(index, {fmt::format("{}, {} 16", line.text, index)});
    }
    return changes;
  }

  std::vector<std::string> reduced_indices() const {
    std::vector<std::string> names;
    for (const TensorStmt& stmt : request_.fn->statements)
      walk(stmt.value, [&](const Expr& node) {
        if (const Reduce* reduction = as<Reduce>(node))
          for (const Axis& axis : reduction->axes) names.push_back(axis.name);
        return true;
      });
    return names;
  }

  // Rows that are longer, or lie the other way round.
  std::vector<Change> conflict_changes() const {
    std::vector<Change> changes;
    for (const char* more : {" pad 1", " transposed", " pad 4", " pad 1 transposed"})
      for (const ScheduleLine& line : request_.selection->lines)
        if (line.word == "stage" && line.text.find(" pad ") == std::string::npos && line.text.find("transposed") == std::string::npos && line.text.find("swizzle") == std::string::npos)
          changes.push_back({{line.text + more}});
    return changes;
  }

  std::vector<ScheduleLine> changed(const Change& change) const {
    std::vector<ScheduleLine> lines = request_.selection->lines;
    for (const std::string& text : change.lines) {
      const ScheduleLine made = tokenize_line(text);
      const auto replaced = std::find_if(lines.begin(), lines.end(), [&](const ScheduleLine& line) {
        return line.word == made.word && (made.word == "stage" ? text.starts_with(line.text) : true);
      });
      const auto bind = std::find_if(lines.begin(), lines.end(), [](const ScheduleLine& line) { return line.word == "bind" || line.word == "warps"; });
      if (replaced != lines.end()) *replaced = made;
      else lines.insert(bind == lines.end() ? bind : bind + 1, made);
    }
    return lines;
  }

  // The lines of the first change that the call was counted with and that is better; empty: none.
  std::string first_better(const std::vector<Change>& changes, const std::string& tensor, const std::function<bool(const Cost& now, const Cost& then)>& accepts) {
    for (const Change& change : changes) {
      std::string text;
      for (const std::string& line : change.lines) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", line);
      const auto [known, is_new] = tried_.try_emplace(text);
      if (is_new) known->second = counts_with(change);
      if (!known->second.empty() && accepts(cost_of(known->second, tensor), cost_of(before_, tensor))) return text;
    }
    return "";
  }

  // Empty: the schedule refuses the change.
  std::vector<KernelCounts> counts_with(const Change& change) const {
    std::vector<KernelCounts> counts;
    try {
      Selection selection = *request_.selection;
      selection.lines = changed(change);
      const Plan plan = rungs_of(*request_.fn, selection, request_.dims, request_.arch).back().plan;
      Arguments arguments = bind_arguments(plan, inputs_, request_.dims);
      SimulatorOptions options;
      options.checks = false;
      options.seed = request_.seed;
      options.counts = &counts;
      simulate(thread_stage(plan, target_for(request_.arch)), arguments, options);
    } catch (const UserError&) {
      counts.clear();
    }
    return counts;
  }

  const std::map<std::string, HostTensor>& inputs_;
  const AccessRequest& request_;
  const std::vector<KernelCounts>& before_;
  std::map<std::string, std::vector<KernelCounts>> tried_;
};

std::vector<std::string> sentences_of(const KernelCounts& kernel, Cures& cures) {
  std::vector<std::string> sentences;
  for (const TensorCounts& tensor : kernel.tensors) {
    if (tensor.compulsory_bytes == 0 || tensor.thread_bytes < 8 * tensor.compulsory_bytes) continue;
    const std::string cure = cures.find_reuse(tensor.name);
    sentences.push_back(fmt::format("`{}`: every element is asked for {:.0f} times on average, and L1 has to answer {} in sectors for {}{}", tensor.name,
                                    static_cast<double>(tensor.thread_bytes) / static_cast<double>(tensor.compulsory_bytes), bytes_text(tensor.sector_bytes), bytes_text(tensor.compulsory_bytes),
                                    cure.empty() ? "" : "; " + cure));
  }
  for (const BranchCounts& branch : kernel.branches)
    if (branch.divergent * 10 > branch.executed)
      sentences.push_back(fmt::format("`{}` (IR line {}): {} of {} warps go both ways", branch.text, branch.ir_line, branch.divergent, branch.executed));
  return sentences;
}

}  // namespace

std::vector<KernelNote> access_report(const Plan& plan, const std::map<std::string, HostTensor>& inputs, const AccessRequest& request) {
  std::vector<KernelCounts> kernels;
  Arguments arguments = bind_arguments(plan, inputs, request.dims);
  SimulatorOptions options;
  options.checks = false;
  options.seed = request.seed;
  options.counts = &kernels;
  const RunReport run = simulate(thread_stage(plan, target_for(request.arch)), arguments, options);
  if (!run.faults.empty()) throw UserError({}, "the run that was to be counted broke a promise of its plan: " + run.faults.front());
  Cures cures(inputs, request, kernels);
  std::vector<KernelNote> report;
  for (const KernelCounts& kernel : kernels) {
    KernelNote note{kernel, {}, {}};
    for (const AccessCounts& counts : kernel.accesses) {
      if (counts.requests == 0) continue;
      AccessNote access{counts, source_text(counts, request.sources), counts.statement.line, "", ""};
      if (access.text.empty()) access.text = counts.text;
      const auto tensor = arguments.tensors.find(counts.buffer);
      access.sentence = sentence_of(access, tensor == arguments.tensors.end() || tensor->second.shape.empty() ? 0 : tensor->second.shape.back());
      if (!access.sentence.empty()) access.cure = cures.find(access);
      note.accesses.push_back(std::move(access));
    }
    note.sentences = sentences_of(kernel, cures);
    report.push_back(std::move(note));
  }
  return report;
}

std::string text_of(const std::vector<KernelNote>& report) {
  std::string out;
  for (const KernelNote& kernel : report) {
    out += fmt::format("{}kernel {}\n", out.empty() ? "" : "\n", kernel.counts.kernel);
    constexpr std::size_t width = 30;
    const auto cut = [](const std::string& text) { return text.size() <= width ? text : text.substr(0, width - 3) + "..."; };
    out += fmt::format("{:<{}} {:>5} {:>7}  {:<14} {:<9} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "access", width, "line", "IR line", "memory", "kind", "bytes", "requests", "threads", "sectors", "needed", "passes", "ideal");
    for (const AccessNote& access : kernel.accesses) {
      const AccessCounts& counts = access.counts;
      const auto figure = [&](std::int64_t all, bool is_meant) { return is_meant ? each(all, counts.requests) : std::string("-"); };
      out += fmt::format("{:<{}} {:>5} {:>7}  {:<14} {:<9} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}\n", cut(access.text), width, access.line > 0 ? std::to_string(access.line) : "-", counts.ir_line,
                         counts.is_shared ? counts.buffer + " shared" : counts.buffer, name_of(counts.kind), counts.bytes, counts.requests, each(counts.threads, counts.requests),
                         figure(counts.sectors, !counts.is_shared), figure(counts.needed_sectors, !counts.is_shared), figure(counts.wavefronts, counts.is_shared), figure(counts.ideal_wavefronts, counts.is_shared));
    }
    for (const TensorCounts& tensor : kernel.counts.tensors)
      out += fmt::format("{}: {} asked for by threads, {} in sectors, {} compulsory\n", tensor.name, bytes_text(tensor.thread_bytes), bytes_text(tensor.sector_bytes), bytes_text(tensor.compulsory_bytes));
    std::int64_t branches = 0, divergent = 0;
    for (const BranchCounts& branch : kernel.counts.branches) branches += branch.executed, divergent += branch.divergent;
    out += fmt::format("{} warp instructions of the IR with {} threads each; {} of {} branches divergent\n", kernel.counts.warp_instructions(),
                       each(kernel.counts.thread_instructions(), kernel.counts.warp_instructions()), divergent, branches);
    std::set<std::string> said;
    for (const AccessNote& access : kernel.accesses)
      if (!access.sentence.empty() && said.insert(access.sentence).second) out += access.sentence + (access.cure.empty() ? "" : "; " + access.cure) + "\n";
    for (const std::string& sentence : kernel.sentences) out += sentence + "\n";
  }
  return out;
}

}  // namespace tilewright
