// Words of the ladder that every text of it shares; see ladder.h.
#include "runtime/library/ladder/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright {

std::string_view name_of(RowKind kind) {
  switch (kind) {
    case RowKind::Loops: return "loops";
    case RowKind::Rung: return "rung";
    case RowKind::Hand: return "hand";
    case RowKind::Library: return "library";
    case RowKind::Peer: return "peer";
  }
  return "";
}

const Part* LadderRow::part(std::string_view wanted) const {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& each) { return each.name == wanted; });
  return found == parts.end() ? nullptr : &*found;
}

std::string number_text(double value) {
  const struct {
    double unit;
    const char* letter;
  } units[] = {{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& [unit, letter] : units)
    if (std::abs(value) >= unit) return fmt::format("{:.3g}{}", value / unit, letter);
  return fmt::format("{:.3g}", value);
}

std::string milliseconds_text(double ms) {
  if (ms >= 10000) return fmt::format("{:.0f} s", ms / 1000);
  if (ms >= 100) return fmt::format("{:.1f} ms", ms);
  if (ms >= 1) return fmt::format("{:.2f} ms", ms);
  return fmt::format("{:.4f} ms", ms);
}

std::string rate_text(const Ladder& ladder, const LadderRow& row) {
  if (!row.timing || row.timing->median_ms <= 0) return "";
  const double seconds = row.timing->median_ms / 1e3;
  // Where each byte serves many operations, the operations tell more.
  const bool by_operations = ladder.work_operations > 8 * ladder.compulsory_bytes;
  const double rate = (by_operations ? ladder.work_operations : ladder.compulsory_bytes) / seconds;
  if (rate <= 0) return "";
  if (by_operations) return rate >= 1e12 ? fmt::format("{:.3g} TFLOP/s", rate / 1e12) : fmt::format("{:.3g} GFLOP/s", rate / 1e9);
  return rate >= 1e12 ? fmt::format("{:.2f} TB/s", rate / 1e12) : fmt::format("{:.3g} GB/s", rate / 1e9);
}

}  // namespace tilewright
