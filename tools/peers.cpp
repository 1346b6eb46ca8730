// Rows that other programs were measured to take, beside ours.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "tools/measure.h"

namespace tilewright {

void add_peers(Ladder& ladder, const std::string& file) {
  const std::string text = read_whole_file(file);
  nlohmann::json in;
  try {
    in = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception&) {
    throw UserError({}, fmt::format("`{}` is no JSON, or it was cut off", file));
  }
  const auto rows = in.find("rows");
  if (!in.is_object() || rows == in.end() || !rows->is_array()) throw UserError({}, fmt::format("`{}` has no list `rows` of peers", file), "peers.py --json FILE writes such a file");
  const std::string device = in.value("device", "");
  int found = 0;
  for (const nlohmann::json& each : *rows) {
    if (!each.is_object() || !each.contains("name") || !each.contains("peer") || !each.contains("ms") || !each["ms"].is_number() || !each["name"].is_string() || !each["peer"].is_string())
      throw UserError({}, fmt::format("a row of `{}` has no `name`, `peer` and `ms`", file));
    if (ladder.bench.empty() || each["name"].get<std::string>() != ladder.bench) continue;
    LadderRow row;
    row.kind = RowKind::Peer;
    row.name = each["peer"].get<std::string>();
    row.backend = "peer";
    Timing timing;
    timing.median_ms = timing.lowest_ms = timing.highest_ms = each["ms"].get<double>();
    timing.launches = 1;
    row.timing = timing;
    row.check = "not checked";
    if (!device.empty() && device != ladder.device) row.note = fmt::format("measured on {}", device);
    ladder.rows.push_back(std::move(row));
    ++found;
  }
  if (found > 0) return;
  LadderRow row;
  row.kind = RowKind::Peer;
  row.name = "peers";
  row.backend = "peer";
  row.note = fmt::format("absent: `{}` has no row `{}`", file, ladder.bench);
  ladder.rows.push_back(std::move(row));
}

}  // namespace tilewright
