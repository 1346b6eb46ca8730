// help: schedule lines, finishing passes, instructions and functions by word, topics of the language, and what an error means.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ir/diagnostic.h"
#include "ir/instructions.h"
#include "ir/operators.h"
#include "passes/headers.h"
#include "tools/documents.h"
#include "tools/options.h"

namespace tilewright {

namespace {

std::string_view words_for(NumericClass numeric) {
  switch (numeric) {
    case NumericClass::Exact: return "exact: not a bit of a result changes";
    case NumericClass::Reassociates: return "reassociates: sums are made in another order";
    case NumericClass::ChangesPrecision: return "changes precision: other roundings or functions";
  }
  return "";
}

// Rows like `exp.fast` belong to passes, not to the language.
bool is_of_the_language(const FunctionInfo& function) { return function.name.find('.') == std::string_view::npos; }

void list_schedules() {
  for (const SchedulePass& pass : schedule_passes()) std::cout << fmt::format("{:<44} {}\n", pass.syntax, pass.summary);
}

void list_functions() {
  for (const FunctionInfo& function : all_functions())
    if (is_of_the_language(function))
      std::cout << fmt::format("{:<12} {} argument{}\n", function.name, function.arity, function.arity == 1 ? "" : "s");
}

// A schedule line, a finishing pass, a function or an instruction of this name.
bool explain_word(const std::string& word) {
  for (const SchedulePass& pass : schedule_passes())
    if (pass.word == word) {
      std::cout << fmt::format("  {}\n\n{}\n{}\n", pass.syntax, header_comment(word), words_for(pass.numeric));
      return true;
    }
  for (const FinishingPass& pass : finishing_passes())
    if (pass.name == word) {
      std::cout << fmt::format("A finishing pass; no line calls it.\n\n{}\n{}\n", header_comment(word), words_for(pass.numeric));
      return true;
    }
  for (const FunctionInfo& function : all_functions())
    if (function.name == word && is_of_the_language(function)) {
      std::cout << fmt::format("{} takes {} argument{}\n", word, function.arity, function.arity == 1 ? "" : "s");
      return true;
    }
  if (const InstrInfo* row = find_instruction(word)) {
    std::cout << fmt::format("An instruction of the thread stage.\n\n{}\n", row->meaning);
    if (!row->ptx.empty()) std::cout << fmt::format("PTX: {}\n", row->ptx);
    return true;
  }
  return false;
}

const std::vector<Section>& topics() {
  static const std::vector<Section> sections = sections_of(document("language.md"));
  return sections;
}

const std::vector<Section>& errors() {
  static const std::vector<Section> sections = sections_of(document("errors.md"));
  return sections;
}

void list_topics() {
  const auto names = [](const std::vector<Section>& sections) {
    std::vector<std::string> result;
    for (const Section& section : sections) result.push_back(section.name);
    return result;
  };
  std::cout << fmt::format("topics of the language: {}\nkinds of errors: {}\n", fmt::join(names(topics()), ", "), fmt::join(names(errors()), ", "));
}

// A topic of the language, a kind of error, or both.
bool explain_topic(const std::string& name) {
  bool is_known = false;
  for (const Section& section : topics())
    if (section.name == name) {
      std::cout << section.text;
      is_known = true;
    }
  for (const Section& section : errors())
    if (section.name == name) {
      std::cout << (is_known ? "\nErrors of this kind:\n" : "Errors of this kind:\n");
      for (const std::string& pattern : section.patterns) std::cout << fmt::format("  {}\n", pattern);
      std::cout << "\n" << section.text;
      is_known = true;
    }
  return is_known;
}

// The message of an error, as it was printed.
bool explain_message(std::string message) {
  constexpr std::string_view head = "error: ";
  if (message.starts_with(head)) message.erase(0, head.size());
  const Section* section = section_of_message(errors(), message);
  if (section) std::cout << fmt::format("{}\n\n`tilewright help {}` says which errors are of this kind.\n", section->text, section->name);
  return section != nullptr;
}

ExitCode print_json() {
  nlohmann::json out;
  for (const SchedulePass& pass : schedule_passes())
    out["schedules"].push_back({{"word", pass.word}, {"syntax", pass.syntax}, {"summary", pass.summary}, {"help", header_comment(pass.word)}});
  for (const FunctionInfo& function : all_functions())
    if (is_of_the_language(function)) out["functions"].push_back(function.name);
  for (const Section& section : topics()) out["topics"].push_back({{"name", section.name}, {"help", section.text}});
  for (const Section& section : errors()) out["errors"].push_back({{"name", section.name}, {"messages", section.patterns}, {"help", section.text}});
  std::cout << out.dump(2) << "\n";
  return ExitCode::Success;
}

}  // namespace

ExitCode help_verb(const Options& options) {
  const std::string topic = fmt::format("{}", fmt::join(options.topic, " "));
  if (options.json) return print_json();
  if (topic.empty()) {
    std::cout << "tilewright VERB --help tells of a verb; tilewright help WORD of a schedule line, a finishing pass, a function, an instruction, a topic or a kind of\n"
                 "error; tilewright help 'MESSAGE' of an error as it was printed. tilewright help functions lists the functions.\n\n";
    list_topics();
    std::cout << "\nSchedule lines:\n\n";
    list_schedules();
    return ExitCode::Success;
  }
  const bool is_word = explain_word(topic);
  const bool is_topic = explain_topic(topic);
  if (topic == "schedules") std::cout << "\n", list_schedules();
  if (topic == "functions") std::cout << "\n", list_functions();
  if (!is_word && !is_topic && !explain_message(topic))
    throw UserError({}, fmt::format("there is no help for `{}`", topic),
                    "`tilewright help` lists the topics; besides them each schedule line, finishing pass, function and instruction has its own, and a message in quotes; `tilewright VERB --help` tells of a verb");
  return ExitCode::Success;
}

}  // namespace tilewright
