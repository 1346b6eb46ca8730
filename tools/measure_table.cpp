// Measurements as a table and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/measure.h"

namespace tilewright {

namespace {

std::string dims_text(const DimMap& dims) {
  std::string text;
  for (const auto& [name, value] : dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

// The first line of a verdict; what follows is printed under the table.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Cut to a width in characters, an ellipsis at the end.
std::string shortened(const std::string& text, std::size_t width) { return text.size() <= width ? text : text.substr(0, width - 2) + ".."; }

std::string json_kind(RowKind kind) {
  switch (kind) {
    case RowKind::Rung: return "rung";
    case RowKind::Hand: return "hand";
    case RowKind::Library: return "library";
  }
  return "";
}

// Where bursts were taken: every round of each row with its clock, the burst, and how the library stands to it.
std::string rounds_of(const Measurement& measurement) {
  const MeasuredRow* library = nullptr;
  for (const MeasuredRow& row : measurement.rows)
    if (row.kind == RowKind::Library && row.timing) library = &row;
  std::string out;
  for (const MeasuredRow& row : measurement.rows) {
    if (!row.timing || row.timing->burst_ms == 0) continue;
    const Timing& timing = *row.timing;
    out += fmt::format("\n{} {}\n  rounds {:.4f} ms", row.name, row.backend, fmt::join(timing.round_ms, " "));
    if (!timing.round_mhz.empty()) out += fmt::format(", SM clock {} MHz", fmt::join(timing.round_mhz, " "));
    out += fmt::format("\n  burst of 8 {:.4f} ms", timing.burst_ms);
    if (library != nullptr && library != &row)
      out += fmt::format("\n  {} / this: {:.3f}, in bursts {:.3f}", library->name, library->timing->median_ms / timing.median_ms,
                         library->timing->burst_ms / timing.burst_ms);
  }
  return out.empty() ? out : out + "\n";
}

}  // namespace

std::string table_of(const Measurement& measurement) {
  std::string out = fmt::format("{}{}{} on {} ({}), {}\n\n", measurement.fn, measurement.schedule.empty() ? "" : " \"" + measurement.schedule + '"',
                                measurement.bench.empty() ? "" : ", bench " + measurement.bench, measurement.device, measurement.arch, dims_text(measurement.dims));
  bool timed = false;
  for (const MeasuredRow& row : measurement.rows) timed |= row.timing.has_value();
  out += fmt::format("{:<48} {:<7}{} {:>5} {:>6} {:>7} {:>9}  {}\n", "line", "by", timed ? fmt::format(" {:>10} {:>7} {:>8}", "ms", "spread", "gain") : "", "regs", "spills", "shared", "compile",
                     measurement.check_dims.empty() ? "check" : "check on the simulator, " + dims_text(measurement.check_dims));
  double before = 0;
  for (const MeasuredRow& row : measurement.rows) {
    std::string time;
    if (timed && row.timing) {
      std::string gain = before > 0 && row.kind == RowKind::Rung && !row.same_code ? fmt::format("{:.2f}x", before / row.timing->median_ms) : "";
      time = fmt::format(" {:>10.4f} {:>6.1f}% {:>8}", row.timing->median_ms, 100 * (row.timing->highest_ms - row.timing->lowest_ms) / std::max(1e-9, row.timing->median_ms), gain);
      before = row.timing->median_ms;
    } else if (timed) {
      time = fmt::format(" {:>10} {:>7} {:>8}", "-", "", "");
    }
    std::string check = row.same_code ? "same code" : first_line(row.check);
    if (!row.note.empty()) check += (check.empty() ? "" : "; ") + row.note;
    if (row.kind == RowKind::Library)
      out += fmt::format("{:<48} {:<7}{} {:>5} {:>6} {:>7} {:>9}  {}\n", row.name, row.backend, time, "", "", "", "", check);
    else
      out += fmt::format("{:<48} {:<7}{} {:>5} {:>6} {:>7} {:>6.0f} ms  {}\n", shortened(row.name, 48), row.backend, time, row.registers, row.spill_bytes, row.shared_bytes, row.generate_ms + row.compile_ms, check);
  }
  out += rounds_of(measurement);
  for (const MeasuredRow& row : measurement.rows)
    if (row.is_wrong) out += fmt::format("\n{}: {}\n", row.name, row.check);
  return out;
}

std::string json_of(const Measurement& measurement) {
  nlohmann::json out;
  out["fn"] = measurement.fn;
  out["schedule"] = measurement.schedule;
  out["bench"] = measurement.bench;
  out["device"] = measurement.device;
  out["arch"] = measurement.arch;
  for (const auto& [name, value] : measurement.dims) out["dims"][name] = value;
  for (const auto& [name, value] : measurement.check_dims) out["check_dims"][name] = value;
  out["rows"] = nlohmann::json::array();
  for (const MeasuredRow& row : measurement.rows) {
    nlohmann::json item = {{"kind", json_kind(row.kind)}, {"name", row.name}, {"backend", row.backend}, {"registers", row.registers}, {"spill_bytes", row.spill_bytes},
                           {"shared_bytes", row.shared_bytes}, {"kernels", row.kernels}, {"generate_ms", row.generate_ms}, {"compile_ms", row.compile_ms},
                           {"same_code", row.same_code}, {"check", row.check}, {"wrong", row.is_wrong}, {"note", row.note}};
    if (row.timing)
      item["timing"] = {{"median_ms", row.timing->median_ms}, {"lowest_ms", row.timing->lowest_ms}, {"highest_ms", row.timing->highest_ms}, {"launches", row.timing->launches}, {"by_graph", row.timing->by_graph},
                        {"round_ms", row.timing->round_ms}, {"round_mhz", row.timing->round_mhz}, {"burst_ms", row.timing->burst_ms}};
    out["rows"].push_back(std::move(item));
  }
  return out.dump(2);
}

}  // namespace tilewright
