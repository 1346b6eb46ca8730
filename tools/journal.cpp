// --record, and the verb journal: records listed, compared, repeated, and made into a page of documentation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <iostream>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/nvml.h"
#include "runtime/nvrtc.h"
#include "tools/recording.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

std::string time_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// The words of the command without what says where to keep it.
std::vector<std::string> words_to_repeat(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (std::size_t n = 0; n < command.size(); ++n) {
    const bool is_ours = command[n] == "--record" || command[n] == "--question" || command[n] == "--predict";
    if (is_ours) ++n;
    else if (!command[n].starts_with("--record=") && !command[n].starts_with("--question=") && !command[n].starts_with("--predict=")) words.push_back(command[n]);
  }
  return words;
}

// Files that the command reads: the program, its hand kernels, peers. Each by the path that the command or the program uses.
void keep_files(Record& record, const Options& options, const LoadedProgram& loaded) {
  const auto keep = [&](const std::string& name, const fs::path& path) {
    std::error_code failure;
    if (fs::is_regular_file(path, failure)) record.files.emplace_back(name, read_whole_file(path.string()));
  };
  if (!options.file.empty()) keep(options.file, options.file);
  std::vector<std::string> seen;
  for (const HandItem& hand : loaded.program.hands) {
    const std::string path = (fs::path(loaded.folder) / hand.file).string();
    if (std::find(seen.begin(), seen.end(), path) != seen.end()) continue;
    seen.push_back(path);
    keep(path, path);
  }
  if (!options.hand_file.empty()) keep(options.hand_file, options.hand_file);
  if (!options.peers.empty()) keep(options.peers, options.peers);
}

int run_words(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"tilewright"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return command_line(static_cast<int>(argv.size()), argv.data());
}

ExitCode list_journal(const Options& options, const std::string& folder) {
  const std::vector<JournalEntry> entries = journal_of(folder);
  const std::string text = options.html ? journal_html(entries) : journal_markdown(entries);
  if (options.folder.empty()) std::cout << text;
  else replace_file(options.folder, {}, text);
  const bool has_fault = std::any_of(entries.begin(), entries.end(), [](const JournalEntry& entry) { return !entry.fault.empty(); });
  return has_fault ? ExitCode::WrongResult : ExitCode::Success;
}

// The command again, on the files as the record holds them, in a folder beside it.
ExitCode repeat_record(const std::string& folder) {
  const Record record = read_record(folder);
  std::string target = fs::path(folder).lexically_normal().string();
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  std::string next;
  for (int n = 2; next.empty() || fs::exists(next); ++n) next = fmt::format("{}-{}", target, n);
  const fs::path files = fs::path(next) / "files";
  std::vector<std::string> words = record.command;
  for (const auto& [name, text] : record.files) {
    // One folder for all: a program finds its hand kernels beside it, wherever they lay.
    fs::path path = fs::path(name).is_absolute() ? fs::path(name).relative_path() : fs::path(name).lexically_normal();
    std::string inside;
    for (const fs::path& part : path) inside += (inside.empty() ? "" : "/") + (part == ".." ? std::string("up") : part.string());
    path = files / inside;
    std::error_code failure;
    fs::create_directories(path.parent_path(), failure);
    if (failure) throw UserError({}, fmt::format("cannot make the folder `{}`: {}", path.parent_path().string(), failure.message()));
    replace_file(path.string(), {}, text);
    for (std::string& word : words)
      if (word == name) word = path.string();
  }
  words.insert(words.end(), {"--record", next});
  if (!record.question.empty()) words.insert(words.end(), {"--question", record.question});
  if (!record.prediction.empty()) words.insert(words.end(), {"--predict", record.prediction});
  const int code = run_words(words);
  if (code != 0 && !fs::exists(fs::path(next) / "record.json")) return static_cast<ExitCode>(code);
  std::cout << "\n" << record_difference(record, folder, read_record(next), next);
  return static_cast<ExitCode>(code);
}

}  // namespace

void prepare_recording(const Options& options) {
  if (options.record.empty()) {
    if (!options.question.empty() || !options.prediction.empty()) throw UserError({}, "--question and --predict belong to a record", "name its folder: --record FOLDER");
    return;
  }
  prepare_record_folder(options.record);
}

void keep_record(const Options& options, const LoadedProgram& loaded, std::vector<Ladder> ladders) {
  if (options.record.empty()) return;
  Record record;
  record.when = time_now();
  record.question = options.question;
  record.prediction = options.prediction;
  record.command = words_to_repeat(options.command);
  record.seed = fmt::format("{}", options.seed);
  record.program_version = program_version;
  try {
    record.nvrtc = nvrtc_version();
  } catch (const MachineError&) {  // none here
  }
  const GpuState state = gpu_state();
  record.power_limit_watts = state.power_limit_watts;
  record.other_processes = state.other_processes;
  keep_files(record, options, loaded);
  record.ladders = std::move(ladders);
  write_record(options.record, record);
  announce("record: " + options.record);
}

ExitCode journal_verb(const Options& options) {
  const std::vector<std::string>& words = options.words;
  if (words.empty()) throw UserError({}, "no journal is named", "write journal FOLDER, journal diff A B, journal repeat A, or journal page A");
  if (words[0] == "diff") {
    if (words.size() != 3) throw UserError({}, fmt::format("`journal diff` takes two records, and {} {} named", words.size() - 1, words.size() == 2 ? "is" : "are"), "write journal diff A B");
    std::cout << record_difference(read_record(words[1]), words[1], read_record(words[2]), words[2]);
    return ExitCode::Success;
  }
  if (words[0] == "repeat") {
    if (words.size() != 2) throw UserError({}, "`journal repeat` takes one record", "write journal repeat A");
    return repeat_record(words[1]);
  }
  if (words[0] == "page") {
    if (words.size() < 2) throw UserError({}, "`journal page` takes records, and none is named", "write journal page A -o page.md");
    const std::string text = documentation_page({words.begin() + 1, words.end()}, options.folder.empty() ? "." : fs::path(options.folder).parent_path().string());
    if (options.folder.empty()) std::cout << text;
    else replace_file(options.folder, {}, text);
    return ExitCode::Success;
  }
  if (words.size() != 1) throw UserError({}, fmt::format("`journal` knows no `{}`", words[0]), "write journal FOLDER, journal diff A B, journal repeat A, or journal page A");
  return list_journal(options, words[0]);
}

}  // namespace tilewright
