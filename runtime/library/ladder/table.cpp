// The ladder for a terminal: a line a row, and below what each line of the schedule did.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/library/ladder/ladder.h"

namespace tilewright {

namespace {

std::string row_sizes(const Sizes& dims) {
  std::string text;
  for (const auto& [name, value] : dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string shortened(const std::string& text, std::size_t width) { return text.size() <= width ? text : text.substr(0, width - 2) + ".."; }

std::string gain_text(double before, double now) { return before > 0 && now > 0 ? fmt::format("{:.2f}x", before / now) : ""; }

std::string compile_text(const LadderRow& row) {
  std::string text;
  for (const CompileTime& one : row.compile) text += fmt::format("{}{:.0f}", text.empty() ? "" : "/", one.generate_ms + one.compile_ms);
  return text.empty() ? "" : text + " ms";
}

std::string check_text(const LadderRow& row) {
  std::string text = row.same_code ? "same code" : first_line(row.check);
  if (row.timing && row.timing->is_single) text += text.empty() ? "timed once" : "; timed once";
  if (row.timing && row.timing->share < 1) text += fmt::format("{}timed over {:.2g} % of it", text.empty() ? "" : "; ", 100 * row.timing->share);
  if (!row.note.empty()) text += (text.empty() ? "" : "; ") + first_line(row.note);
  return text;
}

// Where bursts were taken: every round of each row with its clock, the burst, and how the library stands to it.
std::string rounds_of(const Ladder& ladder) {
  const LadderRow* library = nullptr;
  for (const LadderRow& row : ladder.rows)
    if (row.kind == RowKind::Library && row.timing) library = &row;
  std::string out;
  for (const LadderRow& row : ladder.rows) {
    if (!row.timing || row.timing->burst_ms == 0) continue;
    const Timing& timing = *row.timing;
    out += fmt::format("\n{} {}\n  rounds {:.4f} ms", row.name, row.backend, fmt::join(timing.round_ms, " "));
    if (!timing.round_mhz.empty()) out += fmt::format(", SM clock {} MHz", fmt::join(timing.round_mhz, " "));
    out += fmt::format("\n  burst of 8 {:.4f} ms", timing.burst_ms);
    if (library != nullptr && library != &row)
      out += fmt::format("\n  {} / this: {:.3f}, in bursts {:.3f}", library->name, library->timing->median_ms / timing.median_ms, library->timing->burst_ms / timing.burst_ms);
  }
  return out.empty() ? out : out + "\n";
}

// Of a comparison: how often the code of each row holds each instruction that matters.
std::string instructions_beside(const Ladder& ladder) {
  std::vector<const LadderRow*> rows;
  std::vector<std::string> names;
  for (const LadderRow& row : ladder.rows) {
    if (row.instructions.empty()) continue;
    rows.push_back(&row);
    for (const auto& [name, count] : row.instructions)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (rows.size() < 2) return "";
  std::string out = fmt::format("\n{:<18}", "SASS");
  for (const LadderRow* row : rows) out += fmt::format(" {:>22}", shortened(row->name + " " + row->backend, 22));
  for (const std::string& name : names) {
    out += fmt::format("\n{:<18}", name);
    for (const LadderRow* row : rows) {
      const auto found = std::find_if(row->instructions.begin(), row->instructions.end(), [&](const auto& each) { return each.first == name; });
      out += fmt::format(" {:>22}", found == row->instructions.end() ? 0 : found->second);
    }
  }
  return out + "\n";
}

std::string parts_text(const LadderRow& row) {
  std::vector<Part> parts = row.parts;
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.least_ms > b.least_ms; });
  std::string text;
  for (const Part& part : parts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", part.name, milliseconds_text(part.least_ms));
    if (row.timing && row.timing->median_ms > 0) text += fmt::format(" ({:.0f} %)", 100 * part.least_ms / row.timing->median_ms);
  }
  return text;
}

std::string details_of(const LadderRow& row) {
  std::string out = fmt::format("\n{} {}\n", row.name, row.kind == RowKind::Rung ? "" : "(" + row.backend + ")");
  if (!row.instructions.empty()) {
    std::string text;
    for (const auto& [name, count] : row.instructions) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
    out += "  SASS      " + text + "\n";
  }
  if (!row.parts.empty()) out += "  at least  " + parts_text(row) + "\n";
  for (const std::string& missing : row.not_counted) out += "  open      " + missing + "\n";
  for (const AccessRow& access : row.accesses)
    if (!access.remark.empty()) out += fmt::format("  access    {}{}: {}\n", access.text, access.line > 0 ? fmt::format(" (line {})", access.line) : "", access.remark);
  if (!row.verdict.empty()) out += "  " + row.verdict + "\n";
  if (!row.next.empty()) out += "  next      " + row.next + "\n";
  return out;
}

}  // namespace

std::string table_of(const Ladder& ladder) {
  std::string out = fmt::format("{}{}{} on {} ({}), {}\n", ladder.fn, ladder.schedule.empty() ? "" : " \"" + ladder.schedule + '"', ladder.bench.empty() ? "" : ", bench " + ladder.bench, ladder.device, ladder.arch,
                                row_sizes(ladder.dims));
  if (!ladder.card.empty()) out += fmt::format("least times are for the rates of {} (--gpu {})\n", ladder.card_title, ladder.card);
  const bool is_timed = std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.timing && row.kind != RowKind::Loops; });
  out += fmt::format("\n{:<44} {:<7} {:>11} {:>7} {:>13} {:>7} {:>7} {:>4} {:>6} {:>7} {:>5} {:<17} {:>12}  {}\n", "line", "by", is_timed ? "ms" : "at least ms", "spread", "rate", "gain", "in all", "regs", "spills", "shared",
                     "warps", "busiest part", "compile", ladder.check_dims.empty() ? "check" : "check on the simulator, " + row_sizes(ladder.check_dims));
  double first = 0, before = 0;
  for (const LadderRow& row : ladder.rows) {
    std::string ms = "-", spread, gain, in_all, busiest;
    const bool is_rung = row.kind == RowKind::Rung;
    double now = row.timing ? row.timing->median_ms : 0;
    if (row.timing) {
      ms = now >= 10000 ? fmt::format("{:.0f} s", now / 1000) : fmt::format("{:.4f}", now);
      if (!is_timed) ms = milliseconds_text(now);  // of this host, between least times of a card
      if (!row.timing->is_single && row.timing->launches > 1) spread = fmt::format("{:.1f}%", 100 * (row.timing->highest_ms - row.timing->lowest_ms) / std::max(1e-9, now));
    } else if (!is_timed && row.least_ms > 0) {
      now = row.least_ms;
      ms = fmt::format("{:.4f}", now);
    }
    if (is_rung && row.timing) {
      if (!row.same_code) gain = gain_text(before, now);
      in_all = gain_text(first, now);
      if (first == 0) first = now;
      before = now;
    }
    if (!row.busiest.empty()) busiest = row.busiest + (row.timing && now > 0 ? fmt::format(" {:.0f} %", 100 * row.least_ms / now) : "");
    const bool has_code = row.kind == RowKind::Rung || row.kind == RowKind::Hand;
    const std::string occupancy = row.occupancy ? fmt::format("{}/{}", row.occupancy->warps, row.occupancy->most_warps) : "";
    out += fmt::format("{:<44} {:<7} {:>11} {:>7} {:>13} {:>7} {:>7} {:>4} {:>6} {:>7} {:>5} {:<17} {:>12}  {}\n", shortened(row.name, 44), row.backend, ms, spread, rate_text(ladder, row), gain, in_all,
                       has_code ? fmt::format("{}", row.registers) : "", has_code ? fmt::format("{}", row.spill_bytes) : "", has_code ? fmt::format("{}", row.shared_bytes) : "", occupancy, busiest, compile_text(row),
                       check_text(row));
  }
  out += rounds_of(ladder);
  if (ladder.verb == "compare") out += instructions_beside(ladder);
  if (ladder.verb == "ladder")
    for (const LadderRow& row : ladder.rows)
      if ((row.kind == RowKind::Rung || row.kind == RowKind::Hand) && !row.same_code) out += details_of(row);
  for (const LadderRow& row : ladder.rows)
    if (row.is_wrong) out += fmt::format("\n{}: {}\n", row.name, row.check);
  return out;
}

}  // namespace tilewright
