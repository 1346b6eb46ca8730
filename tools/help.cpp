// help: schedule lines, finishing passes and functions by word, and what else there is to ask.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "passes/headers.h"
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

// A schedule line, a finishing pass or a function of this name.
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
  return false;
}

ExitCode print_json() {
  nlohmann::json out;
  for (const SchedulePass& pass : schedule_passes())
    out["schedules"].push_back({{"word", pass.word}, {"syntax", pass.syntax}, {"summary", pass.summary}, {"help", header_comment(pass.word)}});
  for (const FunctionInfo& function : all_functions())
    if (is_of_the_language(function)) out["functions"].push_back(function.name);
  std::cout << out.dump(2) << "\n";
  return ExitCode::Success;
}

}  // namespace

ExitCode help_verb(const Options& options) {
  const std::string& topic = options.topic;
  if (options.json) return print_json();
  if (topic.empty()) {
    std::cout << "tilewright VERB --help tells of a verb; tilewright help WORD of a schedule line, a finishing pass or a function;\n"
                 "tilewright help functions lists the functions, and these are the schedule lines:\n\n";
    list_schedules();
  } else if (topic == "schedules") {
    list_schedules();
  } else if (topic == "functions") {
    list_functions();
  } else if (!explain_word(topic)) {
    throw UserError({}, fmt::format("there is no help for `{}`", topic),
                    "topics are schedules, functions, and each schedule line, finishing pass and function; `tilewright VERB --help` tells of a verb");
  }
  return ExitCode::Success;
}

}  // namespace tilewright
