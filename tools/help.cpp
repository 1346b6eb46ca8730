// help: schedule lines by word, and what else there is to ask.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "ir/diagnostic.h"
#include "ir/operators.h"
#include "tools/options.h"

namespace tilewright {

ExitCode help_verb(const Options& options) {
  const std::string& topic = options.topic;
  if (options.json) {
    nlohmann::json out;
    for (const SchedulePass& pass : schedule_passes()) out["schedules"].push_back({{"word", pass.word}, {"syntax", pass.syntax}, {"summary", pass.summary}});
    for (const FunctionInfo& function : all_functions())
      if (function.name.find('.') == std::string_view::npos) out["functions"].push_back(function.name);
    std::cout << out.dump(2) << "\n";
    return ExitCode::Success;
  }
  for (const SchedulePass& pass : schedule_passes())
    if (pass.word == topic) {
      std::cout << fmt::format("{}\n\n  {}\n", pass.summary, pass.syntax);
      return ExitCode::Success;
    }
  if (topic == "functions") {
    for (const FunctionInfo& function : all_functions())
      if (function.name.find('.') == std::string_view::npos) std::cout << function.name << " (" << function.arity << (function.arity == 1 ? " argument)\n" : " arguments)\n");
    return ExitCode::Success;
  }
  if (!topic.empty() && topic != "schedules") throw UserError({}, fmt::format("there is no help for `{}`", topic), "topics are schedules, functions, and each schedule line; `tilewright VERB --help` tells of a verb");
  if (topic.empty()) std::cout << "tilewright VERB --help tells of a verb; tilewright help WORD of a schedule line; tilewright help functions lists functions\n\n";
  for (const SchedulePass& pass : schedule_passes()) std::cout << fmt::format("{:<40} {}\n", pass.syntax, pass.summary);
  return ExitCode::Success;
}

}  // namespace tilewright
