// The ladder as JSON and back. Each field is named once, in a function that both directions use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/diagnostic.h"
#include "runtime/library/ladder/record.h"

namespace tilewright {

namespace {

using Json = nlohmann::ordered_json;

// Visits every field of a struct with its name; a Writer puts them into JSON, a Reader takes them out.
template <class Fields>
void fields(Fields& f, CompileTime& x) { f("backend", x.backend), f("generate_ms", x.generate_ms), f("compile_ms", x.compile_ms); }
template <class Fields>
void fields(Fields& f, Occupancy& x) { f("blocks", x.blocks), f("warps", x.warps), f("most_warps", x.most_warps), f("limit", x.limit); }
template <class Fields>
void fields(Fields& f, Part& x) { f("name", x.name), f("amount", x.amount), f("unit", x.unit), f("rate", x.rate), f("least_ms", x.least_ms), f("how", x.how); }
template <class Fields>
void fields(Fields& f, AccessRow& x) {
  f("line", x.line), f("text", x.text), f("space", x.space), f("tensor", x.tensor), f("is_store", x.is_store), f("bytes", x.bytes), f("requests", x.requests), f("sectors", x.sectors);
  f("sectors_needed", x.sectors_needed), f("passes", x.passes), f("passes_needed", x.passes_needed), f("remark", x.remark);
}
template <class Fields>
void fields(Fields& f, NoteRow& x) {
  f("line", x.line), f("thread_line", x.thread_line), f("text", x.text), f("space", x.space), f("kind", x.kind), f("requests", x.requests), f("asked", x.asked), f("needed", x.needed);
  f("sentence", x.sentence), f("cure", x.cure);
}
template <class Fields>
void fields(Fields& f, Form& x) { f("name", x.name), f("above", x.above), f("text", x.text), f("origin", x.origin); }
template <class Fields>
void fields(Fields& f, TimingOptions& x) {
  f("rounds", x.rounds), f("settle_ms", x.settle_ms), f("lead_in_ms", x.lead_in_ms), f("round_ms", x.round_ms), f("pause_ms", x.pause_ms), f("once", x.once);
}
template <class Fields>
void fields(Fields& f, Timing& x) {
  f("median_ms", x.median_ms), f("lowest_ms", x.lowest_ms), f("highest_ms", x.highest_ms), f("launches", x.launches), f("by_graph", x.by_graph), f("single", x.is_single), f("share", x.share);
  f("round_ms", x.round_ms), f("round_mhz", x.round_mhz), f("burst_ms", x.burst_ms);
}
template <class Fields>
void fields(Fields& f, LadderRow& x) {
  f("kind", x.kind), f("name", x.name), f("backend", x.backend), f("timing", x.timing), f("compile", x.compile), f("registers", x.registers), f("spill_bytes", x.spill_bytes);
  f("shared_bytes", x.shared_bytes), f("threads", x.threads), f("kernels", x.kernels), f("same_code", x.same_code), f("occupancy", x.occupancy), f("instructions", x.instructions);
  f("parts", x.parts), f("busiest", x.busiest), f("least_ms", x.least_ms), f("not_counted", x.not_counted), f("accesses", x.accesses), f("forms", x.forms), f("check", x.check);
  f("wrong", x.is_wrong), f("note", x.note), f("verdict", x.verdict), f("next", x.next);
  f.since(2, "lines", x.lines), f.since(3, "notes", x.notes);
}
template <class Fields>
void fields(Fields& f, Ladder& x) {
  f("verb", x.verb), f("fn", x.fn), f("schedule", x.schedule), f("bench", x.bench), f("program", x.program), f("program_file", x.program_file), f("dims", x.dims), f("device", x.device);
  f("driver", x.driver), f("arch", x.arch), f("card", x.card), f("card_title", x.card_title), f("check_dims", x.check_dims), f("work_operations", x.work_operations);
  f("compulsory_bytes", x.compulsory_bytes), f("rows", x.rows);
  f.since(2, "protocol", x.protocol), f.since(3, "note_dims", x.note_dims);
}

template <class Fields>
void fields(Fields& f, Record& x) {
  f("when", x.when), f("question", x.question), f("prediction", x.prediction), f("command", x.command), f("seed", x.seed), f("program_version", x.program_version), f("nvrtc", x.nvrtc);
  f("power_limit_watts", x.power_limit_watts), f("other_processes", x.other_processes), f("files", x.files), f("ladders", x.ladders);
}

struct Writer {
  Json& out;

  template <class T>
  void operator()(const char* name, T& value) { out[name] = json(value); }
  template <class T>
  void since(int, const char* name, T& value) { out[name] = json(value); }

  static Json json(const std::string& value) { return value; }
  static Json json(bool value) { return value; }
  static Json json(int value) { return value; }
  static Json json(std::int64_t value) { return value; }
  static Json json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
  static Json json(RowKind value) { return std::string(name_of(value)); }
  static Json json(const Sizes& value) {
    Json object = Json::object();
    for (const auto& [name, size] : value) object[name] = size;
    return object;
  }
  static Json json(const std::vector<std::pair<std::string, std::string>>& value) {
    Json object = Json::object();
    for (const auto& [name, text] : value) object[name] = text;
    return object;
  }
  static Json json(const std::vector<std::pair<std::string, int>>& value) {
    Json object = Json::object();
    for (const auto& [name, count] : value) object[name] = count;
    return object;
  }
  template <class T>
  static Json json(const std::vector<T>& value) {
    Json array = Json::array();
    for (const T& each : value) array.push_back(json(each));
    return array;
  }
  template <class T>
  static Json json(const std::optional<T>& value) { return value ? json(*value) : Json(nullptr); }
  template <class T>
  static Json json(const T& value) {
    Json object = Json::object();
    Writer writer{object};
    fields(writer, const_cast<T&>(value));
    return object;
  }
};

struct Reader {
  const Json& in;
  int version;  // of the file: what came later keeps its value

  template <class T>
  void since(int first, const char* name, T& value) {
    if (version >= first) (*this)(name, value);
  }

  template <class T>
  void operator()(const char* name, T& value) {
    const auto found = in.find(name);
    if (found == in.end()) throw UserError({}, fmt::format("the field `{}` is missing", name));
    try {
      take(*found, value);
    } catch (const nlohmann::json::exception&) {
      throw UserError({}, fmt::format("the field `{}` has the wrong type", name));
    }
  }

  void take(const Json& json, std::string& value) const { value = json.get<std::string>(); }
  void take(const Json& json, bool& value) const { value = json.get<bool>(); }
  void take(const Json& json, int& value) const { value = json.get<int>(); }
  void take(const Json& json, std::int64_t& value) const { value = json.get<std::int64_t>(); }
  void take(const Json& json, double& value) const { value = json.is_null() ? 0 : json.get<double>(); }
  void take(const Json& json, RowKind& value) const {
    for (const RowKind kind : {RowKind::Loops, RowKind::Rung, RowKind::Hand, RowKind::Library, RowKind::Peer})
      if (json.get<std::string>() == name_of(kind)) {
        value = kind;
        return;
      }
    throw UserError({}, fmt::format("no row is of the kind `{}`", json.get<std::string>()));
  }
  void take(const Json& json, Sizes& value) const {
    for (const auto& [name, size] : json.items()) value[name] = size.get<std::int64_t>();
  }
  void take(const Json& json, std::vector<std::pair<std::string, std::string>>& value) const {
    for (const auto& [name, text] : json.items()) value.emplace_back(name, text.get<std::string>());
  }
  void take(const Json& json, std::vector<std::pair<std::string, int>>& value) const {
    for (const auto& [name, count] : json.items()) value.emplace_back(name, count.get<int>());
  }
  template <class T>
  void take(const Json& json, std::vector<T>& value) const {
    if (!json.is_array()) throw UserError({}, "a list is needed where there is none");
    for (const Json& each : json) take(each, value.emplace_back());
  }
  template <class T>
  void take(const Json& json, std::optional<T>& value) const {
    if (!json.is_null()) take(json, value.emplace());
  }
  template <class T>
  void take(const Json& json, T& value) const {
    Reader reader{json, version};
    fields(reader, value);
  }
};

// What fits on a line, and lists of numbers however long, stand on one.
void print_json(const Json& json, std::string indent, std::string& out) {
  const bool is_flat = json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& each) { return each.is_number(); });
  const std::string line = json.is_structured() && !is_flat && json.size() > 12 ? "" : json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!json.is_structured() || is_flat || (!line.empty() && line.size() <= 160)) {
    out += line;
    return;
  }
  indent += ' ';
  const char* separator = "\n";
  out += json.is_array() ? '[' : '{';
  for (const auto& [name, each] : json.items()) {
    out += separator + indent;
    if (json.is_object()) out += Json(name).dump() + ": ";
    print_json(each, indent, out);
    separator = ",\n";
  }
  indent.pop_back();
  out += "\n" + indent + (json.is_array() ? "]" : "}");
}

template <class T>
std::string versioned_json(const char* kind, int version, const T& value) {
  Json out;
  out[kind] = version;
  Writer writer{out};
  fields(writer, const_cast<T&>(value));
  std::string text;
  print_json(out, "", text);
  return text;
}

// `what` is what the text should be, for people.
template <class T>
T read_versioned(const char* kind, const char* what, int known_version, const std::string& text, const std::string& where) {
  const auto refuse = [&](const std::string& why, const std::string& help = "") -> UserError { return UserError({}, fmt::format("`{}` cannot be read: {}", where, why), help); };
  Json in;
  try {
    in = Json::parse(text);
  } catch (const nlohmann::json::exception&) {
    throw refuse("it is no JSON, or it was cut off");
  }
  if (!in.is_object() || !in.contains(kind) || !in[kind].is_number_integer()) throw refuse(fmt::format("it is no {} of Tilewright", what));
  const int version = in[kind].get<int>();
  if (version > known_version) throw refuse(fmt::format("it is of version {}, and this program reads up to {}", version, known_version), "take a later Tilewright");
  T value;
  try {
    Reader reader{in, version};
    fields(reader, value);
  } catch (const UserError& error) {
    throw refuse(error.diagnostics().front().message);
  }
  return value;
}

}  // namespace

std::string json_of(const Ladder& ladder) { return versioned_json("tilewright_ladder", ladder_version, ladder); }
std::string json_of(const Record& record) { return versioned_json("tilewright_record", record_version, record); }
Ladder ladder_of_json(const std::string& text, const std::string& where) { return read_versioned<Ladder>("tilewright_ladder", "ladder", ladder_version, text, where); }
Record record_of_json(const std::string& text, const std::string& where) { return read_versioned<Record>("tilewright_record", "record", record_version, text, where); }

}  // namespace tilewright
