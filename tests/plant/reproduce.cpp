// The failure of a verification, followed as its message says.
#include "tests/plant/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>
#include <vector>

#include "frontend/program.h"
#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "runtime/library/verify_passes.h"
#include "tests/plant/planted.h"
#include "tools/options.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

struct ExampleSchedule {
  std::string name;
  TensorFn fn;
  Schedule schedule;
  std::string right;  // its plans without a fault
};

Target target_of(const ExampleSchedule& example) { return example.schedule.arch.empty() ? Target{} : target_for(example.schedule.arch); }

std::vector<Rung> rungs_of(const ExampleSchedule& example) {
  return build_rungs(example.fn, example.schedule.name, example.schedule.arch, example.schedule.when, example.schedule.lines, target_of(example), {});
}

// All plans on the way; what stops it, where it is stopped.
std::string plans_of(const ExampleSchedule& example) {
  std::string text;
  try {
    for (const Rung& rung : rungs_of(example)) {
      text += print(rung.plan);
      std::vector<std::pair<std::string, Plan>> after;
      finish(rung.plan, target_of(example), &after);
      for (const auto& [pass, plan] : after) text += print(plan);
    }
  } catch (const std::exception& error) {
    text += error.what();
  }
  return text;
}

std::vector<ExampleSchedule> example_schedules(const std::string& source_root) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(source_root) / "examples"))
    if (entry.path().extension() == ".tw") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<ExampleSchedule> all;
  for (const fs::path& file : files) {
    const Program program = parse_program(read_whole_file(file.string()), file.filename().string());
    for (const Schedule& schedule : program.schedules)
      for (const TensorFn& fn : program.fns)
        if (fn.name == schedule.fn) all.push_back({fmt::format("{} \"{}\"", file.filename().string(), schedule.name), fn, schedule, {}});
  }
  for (ExampleSchedule& example : all) example.right = plans_of(example);
  std::stable_sort(all.begin(), all.end(), [](const ExampleSchedule& a, const ExampleSchedule& b) { return a.schedule.lines.size() < b.schedule.lines.size(); });
  return all;
}

// What the verification says of the schedule; nothing where it finds no difference.
std::optional<std::string> failure_of(const ExampleSchedule& example, const fs::path& folder) {
  VerifyOptions options;
  options.folder = folder.string();
  options.most_operations = 2e4;
  try {
    verify_passes(example.fn, rungs_of(example), target_of(example), options);
  } catch (const UserError&) {  // the fault makes a pass refuse
  } catch (const InternalError& error) {
    return error.what();
  }
  return std::nullopt;
}

// What stands between two texts; empty where they do not.
std::string between(const std::string& text, const std::string& before, const std::string& behind) {
  const std::size_t from = text.find(before);
  if (from == std::string::npos) return {};
  const std::size_t start = from + before.size();
  const std::size_t end = text.find(behind, start);
  return end == std::string::npos ? std::string{} : text.substr(start, end - start);
}

struct CommandResult {
  int code = 0;
  std::string outputs;  // the files that it wrote
};

// `tilewright run FILE …`, with each result to a file.
CommandResult run_command(const std::string& line, const fs::path& folder) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<fs::path> files;
  for (const Param& param : read_plan(read_whole_file(words.at(2))).params)
    if (param.kind != ParamKind::In) {
      files.push_back(folder / (param.name + ".npy"));
      fs::remove(files.back());
      words.insert(words.end(), {"--out", param.name + "=" + files.back().string()});
    }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::ostringstream quiet;
  std::streambuf* const out = std::cout.rdbuf(quiet.rdbuf());
  std::streambuf* const err = std::cerr.rdbuf(quiet.rdbuf());
  CommandResult result;
  result.code = command_line(static_cast<int>(arguments.size()), arguments.data());
  std::cout.rdbuf(out);
  std::cerr.rdbuf(err);
  for (const fs::path& file : files)
    if (fs::exists(file)) result.outputs += read_whole_file(file.string());
  return result;
}

// What is wrong with the reproducer of a failure.
std::string fault_of_reproducer(const std::string& failure, const fs::path& folder) {
  std::istringstream commands(between(failure, "to see it again:\n", "--- before"));
  std::vector<CommandResult> results;
  for (std::string line; std::getline(commands, line);) {
    const std::size_t word = line.find_first_not_of(' ');
    if (word != std::string::npos) results.push_back(run_command(line.substr(word), folder));
  }
  if (results.size() != 2) return fmt::format("{} commands instead of two", results.size());
  if (results[0].code != 0) return fmt::format("the plan in front of the pass ends with {}", results[0].code);
  if (results[1].code == 0 && results[0].outputs == results[1].outputs) return "both plans give the same results";
  return {};
}

}  // namespace

Reproduction reproduce(const PlantedFault& fault, const std::string& source_root, const fs::path& folder) {
  plant({});
  static const std::vector<ExampleSchedule> examples = example_schedules(source_root);
  const std::string pass = fault.name.substr(0, fault.name.find('.'));
  fs::create_directories(folder);
  plant(fault.name);
  Reproduction result;
  for (const ExampleSchedule& example : examples) {
    if (plans_of(example) == example.right) continue;
    const std::optional<std::string> failure = failure_of(example, folder);
    if (!failure) continue;
    result.in = example.name;
    if (const std::string broken = between(*failure, "after pass `", "`:"); !broken.empty()) {
      result.where = broken == pass ? "the verifier, behind the pass" : "the verifier, behind `" + broken + "`, a later pass";
      continue;  // nothing has run; another schedule may show more
    }
    const std::string named = between(*failure, "pass `", "` changes the result at ");
    result.where = fmt::format("`{}` at {}", named, between(*failure, "changes the result at ", ":"));
    const std::string words = " " + named + " ";
    const bool is_named = words.find(" " + pass + " ") != std::string::npos || words.find(" " + pass + ",") != std::string::npos;
    if (!is_named) result.where += ", a later pass";
    result.wrong = fault_of_reproducer(*failure, folder);
    break;
  }
  plant({});
  return result;
}

}  // namespace tilewright
