// A page of documentation from records: what was asked, the rungs, what each bought, and what stands beside them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "runtime/files.h"
#include "runtime/library/ladder/record.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string cell(const std::string& text) {
  std::string out;
  for (const char letter : text.substr(0, text.find('\n'))) out += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return out;
}

std::string sizes_of(const Ladder& ladder) {
  std::string text;
  for (const auto& [name, value] : ladder.dims) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

double measured_ms(const LadderRow& row) { return row.timing ? row.timing->median_ms : 0; }
bool is_timed(const Ladder& ladder) {
  return std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return row.kind == RowKind::Rung && row.timing; });
}

std::string spread_of(const LadderRow& row) {
  if (!row.timing || row.timing->round_ms.size() < 2) return "";
  return fmt::format("{:.1f} %", 100 * (row.timing->highest_ms - row.timing->lowest_ms) / std::max(1e-9, row.timing->median_ms));
}

std::string bound_of(const LadderRow& row) {
  if (row.least_ms <= 0) return "";
  return row.busiest + " " + milliseconds_text(row.least_ms) + (row.timing ? fmt::format(", {:.0f} %", 100 * row.least_ms / row.timing->median_ms) : "");
}

std::string rungs_table(const Ladder& ladder) {
  std::string out = "| rung | time | spread | rate | gain | needs at least | registers | shared bytes | warps an SM |\n|---|---|---|---|---|---|---|---|---|\n";
  double before = 0;
  int number = 0;
  for (const LadderRow& row : ladder.rows) {
    if (row.kind != RowKind::Rung) continue;
    const double now = measured_ms(row);
    const std::string gain = row.same_code ? "same code" : before > 0 && now > 0 ? fmt::format("{:.2f}x", before / now) : "";
    out += fmt::format("| {} `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n", number++, cell(row.name), now > 0 ? milliseconds_text(now) : cell(row.note), spread_of(row), rate_text(ladder, row), gain, bound_of(row), row.registers,
                       row.shared_bytes, row.occupancy ? fmt::format("{} of {}", row.occupancy->warps, row.occupancy->most_warps) : "");
    if (now > 0) before = now;
  }
  return out;
}

// Hand kernels, libraries and plain loops, held against the fastest rung.
std::string rivals_table(const Ladder& ladder) {
  double best = 0;
  for (const LadderRow& row : ladder.rows)
    if (row.kind == RowKind::Rung && measured_ms(row) > 0 && (best == 0 || measured_ms(row) < best)) best = measured_ms(row);
  std::string out;
  for (const LadderRow& row : ladder.rows) {
    if (row.kind == RowKind::Rung) continue;
    const double now = measured_ms(row);
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(row.name), name_of(row.kind), now > 0 ? milliseconds_text(now) : cell(row.note), spread_of(row), rate_text(ladder, row),
                       now <= 0 || best <= 0 ? "" : now < 100 * best ? fmt::format("{:.2f}", now / best) : number_text(now / best), bound_of(row));
  }
  return out.empty() ? out : "| beside it | kind | time | spread | rate | of the fastest rung's time | needs at least |\n|---|---|---|---|---|---|---|\n" + out;
}

std::string parts_line(const LadderRow& row) {
  std::vector<Part> parts = row.parts;
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.least_ms > b.least_ms; });
  std::string text;
  for (const Part& part : parts) text += fmt::format("{}{} {} ({} {})", text.empty() ? "" : ", ", part.name, milliseconds_text(part.least_ms), number_text(part.amount), part.unit);
  return text;
}

std::string rung_text(const LadderRow& row, int number) {
  std::string out = fmt::format("\n### {}. {}\n\n", number, row.name == "(lowered)" ? "As it is lowered" : "`" + row.name + "`");
  if (!row.lines.empty() && row.lines.back() != row.name) out += fmt::format("```\n{}\n```\n\n", fmt::join(row.lines, "\n"));
  std::istringstream verdict(row.verdict);
  for (std::string line; std::getline(verdict, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    line = line.substr(first);
    for (const char* word : {"paid", "cost", "no change", "not why", "now", "same code", "open"})
      if (line.starts_with(word)) {
        const std::size_t rest = line.find_first_not_of(' ', std::string(word).size());
        line = fmt::format("*{}:* {}", word, rest == std::string::npos ? "" : line.substr(rest));
        break;
      }
    out += "- " + line + "\n";
  }
  if (!row.same_code && !row.parts.empty()) out += "- *at least:* " + parts_line(row) + "\n";
  for (const std::string& missing : row.not_counted) out += "- *open:* " + missing + "\n";
  if (!row.same_code && !row.instructions.empty()) {
    out += "- *SASS:* ";
    for (std::size_t n = 0; n < row.instructions.size(); ++n) out += fmt::format("{}{} {}", n ? ", " : "", row.instructions[n].second, row.instructions[n].first);
    out += "\n";
  }
  std::vector<std::string> said;
  for (const AccessRow& access : row.accesses) {
    const std::string sentence = fmt::format("- *access:* {}{}: {}\n", access.text, access.tensor.empty() ? "" : " of `" + access.tensor + "`", access.remark);
    if (!access.remark.empty() && std::find(said.begin(), said.end(), sentence) == said.end()) said.push_back(sentence);
  }
  for (const std::string& sentence : said) out += sentence;
  if (!row.next.empty()) out += "- *next:* " + row.next + "\n";
  return out;
}

// What a person wrote under a heading of the record's notes.
std::string written_under(const std::string& notes, const std::string& heading) {
  const std::size_t at = notes.find("\n## " + heading + "\n");
  if (at == std::string::npos) return "";
  const std::size_t start = at + heading.size() + 5;
  std::string text = notes.substr(start, notes.find("\n## ", start) - start);
  while (!text.empty() && text.front() == '\n') text.erase(0, 1);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string protocol_text(const Ladder& ladder) {
  if (!ladder.protocol) return "";
  const TimingOptions& protocol = *ladder.protocol;
  if (protocol.once) return "one launch each";
  return fmt::format("all candidates in turn for {:g} s, then {} rounds there and back, in each {:g} ms of a candidate's own launches before {:g} ms that count; medians", protocol.settle_ms / 1e3, protocol.rounds, protocol.lead_in_ms, protocol.round_ms);
}

std::string record_text(const Record& record, const Ladder& ladder, const std::string& notes, const std::string& picture) {
  std::string out = fmt::format("## {}{}{}\n\n", ladder.fn, ladder.schedule.empty() ? "" : " \"" + ladder.schedule + '"', ladder.bench.empty() ? "" : ", " + ladder.bench);
  out += fmt::format("{} on {}{}, {}, {}; {}{}.", sizes_of(ladder), ladder.device, ladder.driver.empty() ? "" : ", driver " + ladder.driver, ladder.arch, record.when.substr(0, 10), record.program_version,
                     record.nvrtc.empty() ? "" : ", " + record.nvrtc);
  if (record.power_limit_watts > 0) out += fmt::format(" Power limit {} W.", record.power_limit_watts);
  if (!ladder.card_title.empty()) out += fmt::format(" Least times: at the rates of {}.", ladder.card_title);
  if (!is_timed(ladder)) out += " Nothing was timed on a GPU.";
  const std::string protocol = protocol_text(ladder);
  if (!protocol.empty()) out += " Timed: " + protocol + ".";
  out += fmt::format("\n\n```\ntilewright {}\n```\n\n", command_words(record));
  if (!record.question.empty()) out += fmt::format("**Asked:** {}\n\n", record.question);
  if (!record.prediction.empty()) out += fmt::format("**Expected:** {}\n\n", record.prediction);
  out += fmt::format("![The ladder as bars]({})\n\n", picture);
  out += rungs_table(ladder);
  const std::string rivals = rivals_table(ladder);
  if (!rivals.empty()) out += "\n" + rivals;
  for (const char* heading : {"Surprise", "Lesson", "Still open"})
    if (const std::string text = written_under(notes, heading); !text.empty()) out += fmt::format("\n**{}:** {}\n", heading, text);
  int number = 0;
  for (const LadderRow& row : ladder.rows)
    if (row.kind == RowKind::Rung) out += rung_text(row, number++);
  return out;
}

// The sentences as this version makes them, where the record says what its rungs stand for.
void retell(Ladder& ladder) {
  const bool has_lines = std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return !row.lines.empty(); });
  const bool has_sentences = std::any_of(ladder.rows.begin(), ladder.rows.end(), [](const LadderRow& row) { return !row.verdict.empty(); });
  if (!has_lines || !has_sentences) return;  // of a sweep there are none
  for (LadderRow& row : ladder.rows) row.verdict.clear(), row.next.clear();
  add_verdicts(ladder);
}

}  // namespace

std::string documentation_page(const std::vector<std::string>& folders, const std::string& page_folder) {
  std::string out, names, command = "tilewright journal page";
  for (const std::string& folder : folders) {
    Record record = read_record(folder);
    const fs::path notes = fs::path(folder) / "record.md";
    const std::string written = fs::exists(notes) ? read_whole_file(notes.string()) : "";
    command += " " + folder;
    for (std::size_t n = 0; n < record.ladders.size(); ++n) {
      retell(record.ladders[n]);
      const fs::path picture = fs::path(folder) / (n == 0 ? "ladder.svg" : fmt::format("ladder-{}.svg", n + 1));
      const std::string name = record.ladders[n].fn + (record.ladders[n].schedule.empty() ? "" : " \"" + record.ladders[n].schedule + '"');
      names += (names.empty() ? "" : ", ") + name;
      out += "\n" + record_text(record, record.ladders[n], written, picture.lexically_normal().lexically_relative(fs::path(page_folder).lexically_normal()).generic_string());
    }
  }
  return fmt::format("<!-- {} -->\n# Measured: {}\n\nMade from the records of the runs by the command in the first line of this text.\n{}", command, names, out);
}

}  // namespace tilewright
