// Records on disk, and as Markdown, HTML and SVG; see record.h.
#include "runtime/library/ladder/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ir/diagnostic.h"
#include "runtime/files.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string sizes_line(const Ladder& ladder) {
  std::string text;
  for (const auto& [name, value] : ladder.dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

// A word of a command as a shell reads it.
std::string quoted_word(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+") == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::string command_line_text(const Record& record) { return "tilewright " + command_words(record); }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '&') out += "&amp;";
    else if (letter == '<') out += "&lt;";
    else if (letter == '>') out += "&gt;";
    else if (letter == '"') out += "&quot;";
    else out += letter;
  }
  return out;
}

// In a table of Markdown.
std::string cell_text(std::string text) {
  text = text.substr(0, text.find('\n'));
  std::string out;
  for (const char letter : text) out += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return out;
}

double shown_time(const LadderRow& row, bool is_timed) { return row.timing ? row.timing->median_ms : is_timed ? 0 : row.least_ms; }

bool has_times(const Ladder& ladder) {
  return std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.timing && row.kind != RowKind::Loops; });
}

std::string time_cell(const LadderRow& row, bool is_timed) {
  const double time = shown_time(row, is_timed);
  if (time <= 0) return "";
  return (row.timing ? "" : "≥ ") + milliseconds_text(time);
}

std::string result_table(const Ladder& ladder) {
  const bool is_timed = has_times(ladder);
  std::string out = fmt::format("| row | by | {} | rate | busiest part | registers | spills | shared | check |\n|---|---|---|---|---|---|---|---|---|\n", is_timed ? "time" : "least time");
  for (const LadderRow& row : ladder.rows) {
    const bool has_code = row.kind == RowKind::Rung || row.kind == RowKind::Hand;
    const std::string share = row.timing && row.least_ms > 0 ? fmt::format(" {:.0f} %", 100 * row.least_ms / row.timing->median_ms) : "";
    std::string check = row.same_code ? "same code" : row.check;
    if (!row.note.empty()) check += (check.empty() ? "" : "; ") + row.note;
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell_text(row.name), row.backend, time_cell(row, is_timed), rate_text(ladder, row), row.busiest.empty() ? "" : row.busiest + share,
                       has_code ? fmt::format("{}", row.registers) : "", has_code ? fmt::format("{}", row.spill_bytes) : "", has_code ? fmt::format("{}", row.shared_bytes) : "", cell_text(check));
  }
  return out;
}

std::string title_of(const Record& record) {
  if (record.ladders.empty()) return "no result";
  const Ladder& ladder = record.ladders.front();
  return fmt::format("{} {}{}", ladder.verb, ladder.fn, ladder.schedule.empty() ? "" : " \"" + ladder.schedule + '"');
}

// The fastest row of ours, in a few words.
std::string outcome_of(const Record& record) {
  const LadderRow* best = nullptr;
  const Ladder* of = nullptr;
  for (const Ladder& ladder : record.ladders)
    for (const LadderRow& row : ladder.rows)
      if (row.kind == RowKind::Rung && shown_time(row, has_times(ladder)) > 0 && (best == nullptr || shown_time(row, has_times(ladder)) < shown_time(*best, has_times(*of)))) best = &row, of = &ladder;
  if (best == nullptr) return "";
  return fmt::format("{} {}: {}", of->device, best->name, time_cell(*best, has_times(*of)));
}

std::string row_key(const LadderRow& row) { return fmt::format("{} {} {}", name_of(row.kind), row.name, row.backend); }

}  // namespace

std::string command_words(const Record& record) {
  std::vector<std::string> words;
  for (const std::string& word : record.command) words.push_back(quoted_word(word));
  return fmt::format("{}", fmt::join(words, " "));
}

void prepare_record_folder(const std::string& folder) {
  std::error_code failure;
  if (fs::exists(fs::path(folder) / "record.json", failure)) throw UserError({}, fmt::format("`{}` holds a record already", folder), "name another folder; `journal repeat` makes one beside it");
  fs::create_directories(folder, failure);
  if (failure) throw UserError({}, fmt::format("cannot make the folder `{}`: {}", folder, failure.message()));
  const std::string probe = (fs::path(folder) / "record.json").string();
  replace_file(probe, {}, "");  // says why, where nothing can be written
  fs::remove(probe, failure);
}

void write_record(const std::string& folder, const Record& record) {
  const fs::path path(folder);
  for (std::size_t n = 0; n < record.ladders.size(); ++n) replace_file((path / (n == 0 ? "ladder.svg" : fmt::format("ladder-{}.svg", n + 1))).string(), {}, svg_of(record.ladders[n]));
  const std::string notes = (path / "record.md").string();
  std::error_code failure;
  const std::string before = fs::exists(notes, failure) ? read_whole_file(notes) + "\n" : "";
  replace_file(notes, before, markdown_of(record));
  replace_file((path / "record.json").string(), {}, json_of(record));  // last: a folder with it is complete
}

Record read_record(const std::string& folder) {
  const std::string file = fs::is_directory(folder) ? (fs::path(folder) / "record.json").string() : folder;
  return record_of_json(read_whole_file(file), file);
}

std::string markdown_of(const Record& record) {
  std::string out = fmt::format("# {}, {}\n\n## Question\n\n{}\n\n## Prediction\n\n{}\n\n## Set-up\n\n", title_of(record), record.when.substr(0, 10), record.question.empty() ? "(none was written)" : record.question,
                                record.prediction.empty() ? "(none was written)" : record.prediction);
  out += fmt::format("```\n{}\n```\n\n", command_line_text(record));
  for (const Ladder& ladder : record.ladders) {
    out += fmt::format("- {}{} on {}{}, {}{}\n", ladder.bench.empty() ? ladder.fn : ladder.bench, ladder.dims.empty() ? "" : ": " + sizes_line(ladder), ladder.device, ladder.driver.empty() ? "" : ", driver " + ladder.driver,
                       ladder.arch, ladder.card.empty() ? "" : fmt::format(", least times at the rates of {}", ladder.card_title));
  }
  out += fmt::format("- {}{}, seed {}\n", record.program_version, record.nvrtc.empty() ? "" : ", " + record.nvrtc, record.seed);
  if (record.power_limit_watts > 0) out += fmt::format("- power limit {} W\n", record.power_limit_watts);
  if (record.other_processes >= 0) out += fmt::format("- {} other process{} on the GPU\n", record.other_processes, record.other_processes == 1 ? "" : "es");
  out += "\n## Result\n\n";
  for (const Ladder& ladder : record.ladders) {
    out += result_table(ladder) + "\n";
    for (const LadderRow& row : ladder.rows) {
      if (row.verdict.empty() || row.same_code) continue;
      out += fmt::format("- `{}`\n", row.name);
      for (std::size_t start = 0; start < row.verdict.size();) {
        const std::size_t end = std::min(row.verdict.find('\n', start), row.verdict.size());
        const std::string line = row.verdict.substr(start, end - start);
        out += fmt::format("  {}  \n", line.substr(std::min(line.find_first_not_of(' '), line.size())));
        start = end + 1;
      }
    }
    out += "\n";
  }
  return out + "## Surprise\n\n\n## Lesson\n\n\n## Still open\n\n";
}

std::string svg_of(const Ladder& ladder) {
  const bool is_timed = has_times(ladder);
  double least = 0, most = 0;
  for (const LadderRow& row : ladder.rows) {
    const double time = shown_time(row, is_timed);
    if (time <= 0) continue;
    least = least == 0 ? time : std::min(least, time);
    most = std::max(most, time);
  }
  constexpr int row_height = 26, label_width = 360, bar_width = 360, width = 860;
  const int height = 56 + row_height * static_cast<int>(ladder.rows.size());
  std::string out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-labelledby=\"t\">\n", width, height);
  out += fmt::format("<title id=\"t\">The ladder of {}</title>\n", escaped(ladder.fn));
  out += "<style>svg{background:#fff}text{fill:#1b1f24}.b{fill:#5b8def}.h{fill:none;stroke:#5b8def;stroke-dasharray:4 3}.q{fill:#57606a}"
         "@media (prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.q{fill:#9da7b3}}</style>\n";
  out += fmt::format("<text x=\"10\" y=\"20\" font-weight=\"bold\">{}</text>\n", escaped(fmt::format("{}{}, {}", ladder.fn, ladder.schedule.empty() ? "" : " \"" + ladder.schedule + '"', sizes_line(ladder))));
  out += fmt::format("<text class=\"q\" x=\"10\" y=\"38\">{}</text>\n",
                     escaped(fmt::format("{}, {}; bars are logarithmic", ladder.device, is_timed ? "times" : "nothing was timed on a GPU: least times at the rates of " + ladder.card_title)));
  int y = 50;
  for (const LadderRow& row : ladder.rows) {
    const double time = shown_time(row, is_timed);
    const std::string name = row.name.size() > 52 ? row.name.substr(0, 50) + ".." : row.name;
    out += fmt::format("<text x=\"10\" y=\"{}\">{}</text>\n", y + 16, escaped(name));
    if (time > 0) {
      const double length = most > least ? 20 + (bar_width - 20) * std::log(time / least) / std::log(most / least) : bar_width;
      out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"14\"/>\n", row.timing ? "b" : "h", label_width, y + 5, length);
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}{}</text>\n", label_width + length + 8, y + 16, escaped(time_cell(row, is_timed)), row.same_code ? ", same code" : "");
    } else {
      out += fmt::format("<text class=\"q\" x=\"{}\" y=\"{}\">{}</text>\n", label_width, y + 16, escaped(row.note.empty() ? "no time" : row.note.substr(0, 60)));
    }
    y += row_height;
  }
  return out + "</svg>\n";
}

std::vector<JournalEntry> journal_of(const std::string& folder) {
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) throw UserError({}, fmt::format("there is no folder `{}`", folder), "--record FOLDER on run, ladder, compare or bench makes records");
  std::vector<JournalEntry> entries;
  const auto add = [&](const fs::path& path) {
    if (!fs::exists(path / "record.json", failure)) return;
    JournalEntry entry;
    entry.folder = path.string();
    try {
      entry.record = read_record(entry.folder);
    } catch (const UserError& error) {
      entry.fault = error.diagnostics().front().message;
    }
    entries.push_back(std::move(entry));
  };
  add(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, failure))
    if (entry.is_directory(failure)) add(entry.path());
  std::sort(entries.begin(), entries.end(), [](const JournalEntry& a, const JournalEntry& b) { return std::tie(b.record.when, a.folder) < std::tie(a.record.when, b.folder); });
  return entries;
}

std::string journal_markdown(const std::vector<JournalEntry>& entries) {
  std::string out = "| when | record | question | prediction | outcome |\n|---|---|---|---|---|\n";
  for (const JournalEntry& entry : entries) {
    if (!entry.fault.empty()) out += fmt::format("| | {} | | | {} |\n", entry.folder, cell_text(entry.fault));
    else out += fmt::format("| {} | [{}]({}/record.md) | {} | {} | {} |\n", entry.record.when, cell_text(title_of(entry.record)), entry.folder, cell_text(entry.record.question), cell_text(entry.record.prediction),
                            cell_text(outcome_of(entry.record)));
  }
  return out;
}

std::string journal_html(const std::vector<JournalEntry>& entries) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Journal</title>\n"
                    "<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:0 auto;padding:16px}article{border-top:1px solid #8888;padding:8px 0}"
                    "h2{font-size:17px;margin:0}p{margin:2px 0;overflow-wrap:anywhere}img{max-width:100%}</style></head><body>\n<h1>Journal</h1>\n";
  for (const JournalEntry& entry : entries) {
    if (!entry.fault.empty()) {
      out += fmt::format("<article><h2>{}</h2><p>{}</p></article>\n", escaped(entry.folder), escaped(entry.fault));
      continue;
    }
    out += fmt::format("<article><h2><a href=\"{}/record.md\">{}</a></h2><p>{}</p>", escaped(entry.folder), escaped(title_of(entry.record)), escaped(entry.record.when));
    if (!entry.record.question.empty()) out += fmt::format("<p>Question: {}</p>", escaped(entry.record.question));
    if (!entry.record.prediction.empty()) out += fmt::format("<p>Prediction: {}</p>", escaped(entry.record.prediction));
    out += fmt::format("<p>{}</p>", escaped(outcome_of(entry.record)));
    if (!entry.record.ladders.empty()) out += svg_of(entry.record.ladders.front());
    out += "</article>\n";
  }
  return out + "</body></html>\n";
}

std::string record_difference(const Record& a, const std::string& a_name, const Record& b, const std::string& b_name) {
  std::string out = fmt::format("a  {}  {}\nb  {}  {}\n", a_name, a.when, b_name, b.when);
  const auto compare = [&](const char* what, const std::string& one, const std::string& other) {
    if (one != other) out += fmt::format("{}: {} | {}\n", what, one.empty() ? "(none)" : one, other.empty() ? "(none)" : other);
  };
  compare("command", command_line_text(a), command_line_text(b));
  compare("version", a.program_version, b.program_version);
  compare("compiler", a.nvrtc, b.nvrtc);
  compare("power limit", fmt::format("{} W", a.power_limit_watts), fmt::format("{} W", b.power_limit_watts));
  if (a.ladders.size() != b.ladders.size()) out += fmt::format("results: {} | {}\n", a.ladders.size(), b.ladders.size());
  for (std::size_t n = 0; n < std::min(a.ladders.size(), b.ladders.size()); ++n) {
    const Ladder &one = a.ladders[n], &other = b.ladders[n];
    compare("device", one.device, other.device);
    compare("driver", one.driver, other.driver);
    compare("architecture", one.arch, other.arch);
    compare("sizes", sizes_line(one), sizes_line(other));
    if (one.program != other.program) out += "program: the texts differ\n";
    out += fmt::format("\n{:<48} {:<7} {:>12} {:>12} {:>7}  {}\n", "row", "by", "a", "b", "a / b", "what else");
    for (const LadderRow& row : one.rows) {
      const auto match = std::find_if(other.rows.begin(), other.rows.end(), [&](const LadderRow& each) { return row_key(each) == row_key(row); });
      const std::string name = row.name.substr(0, 48);
      if (match == other.rows.end()) {
        out += fmt::format("{:<48} {:<7} {:>12} {:>12} {:>7}  only in a\n", name, row.backend, time_cell(row, has_times(one)), "", "");
        continue;
      }
      std::string what;
      const auto note = [&](const std::string& text) { what += (what.empty() ? "" : ", ") + text; };
      if (row.registers != match->registers) note(fmt::format("registers {} | {}", row.registers, match->registers));
      if (row.spill_bytes != match->spill_bytes) note(fmt::format("spills {} | {}", row.spill_bytes, match->spill_bytes));
      if (row.shared_bytes != match->shared_bytes) note(fmt::format("shared {} | {}", row.shared_bytes, match->shared_bytes));
      if (row.instructions != match->instructions) note("other SASS");
      if (row.is_wrong != match->is_wrong) note(row.is_wrong ? "wrong | right" : "right | wrong");
      const double before = shown_time(row, has_times(one)), now = shown_time(*match, has_times(other));
      out += fmt::format("{:<48} {:<7} {:>12} {:>12} {:>7}  {}\n", name, row.backend, before > 0 ? milliseconds_text(before) : "", now > 0 ? milliseconds_text(now) : "", before > 0 && now > 0 ? fmt::format("{:.3f}", before / now) : "", what);
    }
    for (const LadderRow& row : other.rows)
      if (std::none_of(one.rows.begin(), one.rows.end(), [&](const LadderRow& each) { return row_key(each) == row_key(row); }))
        out += fmt::format("{:<48} {:<7} {:>12} {:>12} {:>7}  only in b\n", row.name.substr(0, 48), row.backend, "", time_cell(row, has_times(other)), "");
  }
  return out;
}

}  // namespace tilewright
