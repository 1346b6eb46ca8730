// The journal: records are whole, a person's notes stay, and what is broken is told.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/library/ladder/record.h"
#include "runtime/toolkit.h"
#include "tests/locations.h"
#include "tools/options.h"
#include "tools/page.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

struct Scratch {
  fs::path path = fs::temp_directory_path() / fmt::format("tilewright-journal-{}", getpid());
  Scratch() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Scratch() { fs::remove_all(path); }
  std::string at(const char* name) const { return (path / name).string(); }
};

Record record_of_two_rungs(const char* when, double second_ms) {
  Ladder ladder;
  ladder.verb = "ladder";
  ladder.fn = "matmul";
  ladder.schedule = "ch5 tiled";
  ladder.dims = {{"M", 64}};
  ladder.device = "NVIDIA H200";
  ladder.arch = "sm_90a";
  for (const double ms : {4.0, second_ms}) {
    LadderRow row;
    row.name = ms == 4.0 ? "(lowered)" : "stage A | B in shared <b>";
    row.backend = "nvrtc";
    row.timing = Timing{};
    row.timing->median_ms = ms;
    row.registers = 32;
    ladder.rows.push_back(row);
  }
  add_verdicts(ladder);
  Record record;
  record.when = when;
  record.question = "Does the tile pay?";
  record.prediction = "twice as fast";
  record.command = {"ladder", "it's here.tw"};
  record.seed = "1";
  record.program_version = "tilewright 0.1.0";
  record.ladders = {ladder};
  return record;
}

int call(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"tilewright"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return command_line(static_cast<int>(argv.size()), argv.data());
}

// What a verb says of its fault, and its exit code.
std::string refusal_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("journal: a record holds everything, and a person's notes stay") {
    const Scratch scratch;
    const std::string folder = scratch.at("one");
    prepare_record_folder(folder);
    std::ofstream(fs::path(folder) / "record.md") << "My own words.\n";
    const Record record = record_of_two_rungs("2026-12-01T01:00:00Z", 2.0);
    write_record(folder, record);
    const std::string notes = read_whole_file(scratch.at("one/record.md"));
    CHECK(notes.starts_with("My own words.\n"));
    for (const char* part : {"Does the tile pay?", "twice as fast", "tilewright ladder 'it'\\''s here.tw'", "stage A \\| B in shared <b>", "the time fell 2.00x", "## Surprise", "## Lesson", "## Still open"})
      CHECK_MESSAGE(notes.find(part) != std::string::npos, part);
    CHECK(json_of(read_record(folder)) == json_of(record));
    const std::string svg = read_whole_file(scratch.at("one/ladder.svg"));
    CHECK(svg.find("stage A | B in shared &lt;b&gt;") != std::string::npos);
    CHECK(svg.find("2.00 ms") != std::string::npos);
    CHECK(refusal_of([&] { prepare_record_folder(folder); }).find("holds a record already") != std::string::npos);
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 3);
  }

  TEST_CASE("journal: newest first, and records that cannot be read with their reason") {
    const Scratch scratch;
    write_record((fs::create_directories(scratch.path / "a"), scratch.at("a")), record_of_two_rungs("2026-11-01T00:00:00Z", 2.0));
    write_record((fs::create_directories(scratch.path / "b"), scratch.at("b")), record_of_two_rungs("2026-12-01T00:00:00Z", 1.0));
    fs::create_directories(scratch.path / "cut");
    fs::create_directories(scratch.path / "later");
    const std::string whole = json_of(record_of_two_rungs("2026-12-02T00:00:00Z", 1.0));
    std::ofstream(scratch.path / "cut" / "record.json") << whole.substr(0, whole.size() / 2);
    std::string later = whole;
    later.replace(later.find("\"tilewright_record\": 3"), 22, "\"tilewright_record\": 7");
    std::ofstream(scratch.path / "later" / "record.json") << later;
    const std::vector<JournalEntry> entries = journal_of(scratch.path.string());
    REQUIRE(entries.size() == 4);
    CHECK(entries[0].record.when == "2026-12-01T00:00:00Z");
    CHECK(entries[1].record.when == "2026-11-01T00:00:00Z");
    const std::string list = journal_markdown(entries);
    CHECK(list.find("it is no JSON, or it was cut off") != std::string::npos);
    CHECK(list.find("it is of version 7, and this program reads up to 3") != std::string::npos);
    CHECK(list.find("stage A \\| B in shared <b>: 1.00 ms") != std::string::npos);
    CHECK(journal_html(entries).find("stage A | B in shared &lt;b&gt;") != std::string::npos);
    CHECK(call({"journal", scratch.path.string()}) == 1);
    CHECK(call({"journal", scratch.at("a")}) == 0);
    CHECK(call({"journal", scratch.at("none")}) == 1);
    CHECK(call({"journal", "diff", scratch.at("a"), scratch.at("b")}) == 0);
    CHECK(call({"journal", "diff", scratch.at("a")}) == 1);
    CHECK(call({"journal", "diff", scratch.at("a"), scratch.at("cut")}) == 1);
    CHECK(call({"journal", "repeat", scratch.at("later")}) == 1);
    const std::string difference = record_difference(entries[1].record, "a", entries[0].record, "b");
    CHECK(difference.find("      4.00 ms      4.00 ms   1.000") != std::string::npos);
    CHECK(difference.find("      2.00 ms      1.00 ms   2.000") != std::string::npos);
  }

  TEST_CASE("journal: a page of documentation tells what was asked, each rung, and what a person wrote") {
    const Scratch scratch;
    Record record = record_of_two_rungs("2026-12-01T01:00:00Z", 2.0);
    LadderRow& rung = record.ladders[0].rows[1];
    rung.lines = {"tile block i 16", "stage A in shared"};
    rung.parts = {{"DRAM", 1e9, "bytes", 4e12, 1.5, "inputs once"}};
    rung.busiest = "DRAM", rung.least_ms = 1.5;
    rung.accesses = {{16, "ld.global.f32", "global", "A", false, 4, 10, 20, 10, 10, 10, "twice the sectors"}};
    LadderRow& peer = record.ladders[0].rows.emplace_back();
    peer.kind = RowKind::Library, peer.name = "cuBLAS", peer.timing = Timing{}, peer.timing->median_ms = 1.0;
    record.ladders[0].protocol = TimingOptions{};
    write_record((fs::create_directories(scratch.path / "records/one"), scratch.at("records/one")), record);
    std::string notes = read_whole_file(scratch.at("records/one/record.md"));
    notes.replace(notes.find("## Lesson\n") + 10, 0, "\nMeasure first.\n");
    std::ofstream(scratch.path / "records/one/record.md") << notes;
    const std::string page = documentation_page({scratch.at("records/one")}, scratch.at("pages"));
    for (const char* part : {"**Asked:** Does the tile pay?", "**Expected:** twice as fast", "![The ladder as bars](../records/one/ladder.svg)", "| 1 `stage A \\| B in shared <b>` | 2.00 ms |", "| 2.00x | DRAM 1.50 ms, 75 % |",
                             "| cuBLAS | library | 1.00 ms |", "| 0.50 |", "**Lesson:** Measure first.", "- *paid:* the time fell 2.00x", "- *access:* ld.global.f32 of `A`: twice the sectors", "tile block i 16\nstage A in shared\n",
                             "in each 0 ms of a candidate's own launches"})
      CHECK_MESSAGE(page.find(part) != std::string::npos, part << " is not in\n" << page);
    CHECK(page.find("**Surprise:**") == std::string::npos);
    CHECK(call({"journal", "page"}) == 1);
    CHECK(call({"journal", "page", scratch.at("none")}) == 1);
  }

  TEST_CASE("docs: the pages of ladders are what their records say") {
    const fs::path folder = source_root() / "docs/ladders";
    if (!has_source_tree()) TILEWRIGHT_SKIP("no source tree here");
    int pages = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".md") continue;
      CAPTURE(entry.path().string());
      const std::string text = read_whole_file(entry.path().string());
      std::istringstream words(text.substr(0, text.find('\n')));
      std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
      REQUIRE(command.size() >= 6);  // <!-- tilewright journal page A… -->
      const fs::path before = fs::current_path();
      fs::current_path(source_root());
      const std::string made = documentation_page({command.begin() + 4, command.end() - 1}, "docs/ladders");
      fs::current_path(before);
      if (updates_expectations()) std::ofstream(entry.path(), std::ios::binary) << made;
      else CHECK(made == text);
      ++pages;
    }
    CHECK(pages > 0);
  }

  TEST_CASE("journal: a folder that cannot be written is told before the work") {
    const Scratch scratch;
    std::ofstream(scratch.path / "file") << "x";
    CHECK(refusal_of([&] { prepare_record_folder(scratch.at("file/inside")); }).find("cannot make the folder") != std::string::npos);
    CHECK(call({"run", "-e", "fn f(X: f32[N]) -> Y: f32[N] { Y[i] = X[i] }", "--device", "cpu", "--record", scratch.at("file/inside")}) == 1);
    CHECK(call({"run", "-e", "fn f(X: f32[N]) -> Y: f32[N] { Y[i] = X[i] }", "--device", "cpu", "--question", "?"}) == 1);
    if (geteuid() != 0) {
      fs::permissions(scratch.path, fs::perms::owner_read | fs::perms::owner_exec);
      CHECK_FALSE(refusal_of([&] { prepare_record_folder(scratch.at("new")); }).empty());
      fs::permissions(scratch.path, fs::perms::owner_all);
    }
  }

  TEST_CASE("journal: run is recorded and repeated, on the program as it was") {
    const Scratch scratch;
    const std::string program = scratch.at("p.tw");
    std::ofstream(program) << "fn twice(X: f32[N]) -> Y: f32[N] { Y[i] = 2.0 * X[i] }\n";
    CHECK(call({"run", program, "--device", "cpu", "--set", "N=5", "--check", "--record", scratch.at("r"), "--question", "how long?", "--predict=short"}) == 0);
    const Record record = read_record(scratch.at("r"));
    CHECK(record.question == "how long?");
    CHECK(record.prediction == "short");
    CHECK(record.command == std::vector<std::string>{"run", program, "--device", "cpu", "--set", "N=5", "--check"});
    REQUIRE(record.ladders.size() == 1);
    CHECK(record.ladders[0].rows.at(0).timing);
    CHECK(record.ladders[0].rows.at(0).check.find("right") != std::string::npos);
    std::ofstream(program) << "fn twice(X: f32[N]) -> Y: f32[N] { this is no program any more\n";
    CHECK(call({"journal", "repeat", scratch.at("r")}) == 0);
    CHECK(read_record(scratch.at("r-2")).ladders.at(0).program == record.ladders[0].program);
    CHECK(call({"journal", "repeat", scratch.at("r")}) == 0);
    CHECK(fs::exists(scratch.path / "r-3" / "record.json"));
  }

  TEST_CASE("report: a page from a record, and from what is none") {
    const Scratch scratch;
    Record record = record_of_two_rungs("2026-12-01T01:00:00Z", 2.0);
    record.ladders[0].program = "fn f() {} // </script><script>alert(1)</script>\n";
    fs::create_directories(scratch.path / "a");
    write_record(scratch.at("a"), record);
    CHECK(call({"report", scratch.at("a"), "-o", scratch.at("page.html")}) == 0);
    const std::string page = read_whole_file(scratch.at("page.html"));
    CHECK(page.find("Does the tile pay?") != std::string::npos);
    CHECK(page.find("</script><script>alert") == std::string::npos);
    CHECK(page.find("http://") == std::string::npos);  // nothing is fetched
    CHECK(page.find("https://") == std::string::npos);
    CHECK(page.find("@DATA@") == std::string::npos);
    std::ofstream(scratch.path / "no.json") << "{}";
    CHECK(call({"report", scratch.at("no.json"), "-o", scratch.at("other.html")}) == 1);
    CHECK(call({"report", scratch.at("a"), "-o", scratch.at("none/page.html")}) == 1);
    CHECK(call({"report", scratch.at("a")}) == 1);
    CHECK_FALSE(fs::exists(scratch.path / "other.html"));
  }
}

}  // namespace tilewright
