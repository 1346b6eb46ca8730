// Schedules: `from` resolved, facts typed, parameters replaced by values.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "frontend/items.h"

namespace tilewright {

const TensorFn* named_fn(const AstWord& word, const FnTable& table, Sink& sink) {
  if (!table.has(word.text)) {
    sink.error_once(fmt::format("no fn {}", word.text), word.span, fmt::format("there is no fn `{}`", word.text),
                    fmt::format("`{}` also stands here", word.text), did_you_mean(word.text, table.names()));
    return nullptr;
  }
  return table.signature(word.text);
}

std::vector<Fact> resolve_facts(const std::vector<AstFact>& facts, const TensorFn& signature, Sink& sink) {
  // Conditions are on dims alone: what a call gives as data is not known when a schedule is chosen.
  TensorFn dims_only = signature;
  dims_only.params.clear();
  FnBuilder names(dims_only, nullptr, sink);
  std::vector<Fact> result;
  for (const AstFact& fact : facts) {
    Fact resolved;
    resolved.kind = fact.kind;
    resolved.alignment = static_cast<int>(fact.alignment);
    if (fact.kind == Fact::Kind::Condition) resolved.condition = names.size_condition(fact.condition);
    if (fact.kind != Fact::Kind::Condition || resolved.condition) result.push_back(std::move(resolved));
  }
  return result;
}

std::vector<Schedule> resolve_schedules(const std::vector<AstSchedule>& items, FnTable& table, Sink& sink) {
  enum class State : std::uint8_t { Open, Busy, Done };
  std::vector<State> states(items.size(), State::Open);
  std::vector<Schedule> result(items.size());

  const auto find_base = [&](const AstSchedule& item) -> std::optional<std::size_t> {
    std::vector<std::size_t> matches;
    std::vector<std::string> known;
    for (std::size_t k = 0; k < items.size(); ++k) {
      if (items[k].fn.text != item.fn.text || &items[k] == &item) continue;
      if (items[k].name.text == item.from->text) return k;
      known.push_back(items[k].name.text);
      if (items[k].name.text.rfind(item.from->text, 0) == 0) matches.push_back(k);
    }
    if (matches.size() == 1) return matches.front();
    std::string help = did_you_mean(item.from->text, known);
    if (help.empty() && !known.empty()) help = fmt::format("`{}` has \"{}\"", item.fn.text, fmt::join(known, "\", \""));
    sink.error(item.from->span,
               matches.empty() ? fmt::format("`{}` has no schedule \"{}\" to continue", item.fn.text, item.from->text)
                               : fmt::format("\"{}\" is the beginning of several schedules", item.from->text),
               help);
    return std::nullopt;
  };

  const std::function<void(std::size_t)> resolve = [&](std::size_t k) {
    const AstSchedule& item = items[k];
    Schedule& schedule = result[k];
    if (states[k] != State::Open) return;
    states[k] = State::Busy;
    schedule.fn = item.fn.text;
    schedule.name = item.name.text;
    schedule.span = item.span;
    if (item.from) {
      if (const std::optional<std::size_t> base = find_base(item)) {
        if (states[*base] == State::Busy) {
          sink.error(item.from->span, fmt::format("schedule \"{}\" continues itself", item.name.text));
        } else {
          resolve(*base);
          const Schedule& from = result[*base];
          schedule.arch = from.arch;
          schedule.parameters = from.parameters;
          schedule.when = from.when;
          schedule.lines = from.lines;
        }
      }
    }
    if (item.arch) {
      const std::string& arch = item.arch->text;
      const bool is_arch = arch.rfind("sm_", 0) == 0 && arch.size() > 3 && arch[3] >= '1' && arch[3] <= '9';
      if (!is_arch)
        sink.error(item.arch->span, fmt::format("`{}` is not an architecture", arch),
                   "an architecture is such as `sm_80` or `sm_90a`");
      schedule.arch = arch;
    }
    for (const AstParameter& parameter : item.parameters) {
      const auto same = std::find_if(schedule.parameters.begin(), schedule.parameters.end(),
                                     [&](const ScheduleParameter& p) { return p.name == parameter.name.text; });
      if (same != schedule.parameters.end())
        same->value = parameter.value;
      else
        schedule.parameters.push_back(ScheduleParameter{parameter.name.text, parameter.value});
    }
    if (const TensorFn* fn = named_fn(item.fn, table, sink)) {
      for (Fact& fact : resolve_facts(item.when, *fn, sink)) schedule.when.push_back(std::move(fact));
      for (const AstParameter& parameter : item.parameters)
        if (std::find(fn->dims.begin(), fn->dims.end(), parameter.name.text) != fn->dims.end())
          sink.error(parameter.name.span,
                     fmt::format("parameter `{}` has the name of a dim of `{}`", parameter.name.text, fn->name),
                     "take another letter");
    }
    schedule.lines.insert(schedule.lines.end(), item.lines.begin(), item.lines.end());
    states[k] = State::Done;
  };
  for (std::size_t k = 0; k < items.size(); ++k) {
    resolve(k);
    for (std::size_t before = 0; before < k; ++before)
      if (items[before].fn.text == items[k].fn.text && items[before].name.text == items[k].name.text)
        sink.error(items[k].name.span,
                   fmt::format("`{}` has a schedule \"{}\" already", items[k].fn.text, items[k].name.text), {},
                   {Note{items[before].name.span, "here"}});
  }
  return result;
}

Schedule with_parameters(const Schedule& generic, const std::map<std::string, std::int64_t>& values) {
  Schedule result = generic;
  for (ScheduleParameter& parameter : result.parameters)
    if (const auto found = values.find(parameter.name); found != values.end()) parameter.value = found->second;
  for (ScheduleLine& line : result.lines) {
    // The text is put together anew, with the blanks that it had.
    std::size_t at = line.target.empty() ? 0 : line.text.find(':') + 1;
    at = line.text.find(line.word, at) + line.word.size();
    std::string text = line.text.substr(0, at);
    for (ScheduleToken& token : line.tokens) {
      const std::string written = token.kind == ScheduleToken::Kind::String ? '"' + token.text + '"' : token.text;
      const std::size_t start = std::min(line.text.find(written, at), line.text.size());
      text += line.text.substr(at, start - at);
      at = std::min(start + written.size(), line.text.size());
      const auto parameter = std::find_if(result.parameters.begin(), result.parameters.end(),
                                          [&](const ScheduleParameter& p) { return p.name == token.text; });
      if (token.kind == ScheduleToken::Kind::Name && parameter != result.parameters.end()) {
        token.kind = ScheduleToken::Kind::Number;
        token.number = parameter->value;
        token.text = std::to_string(parameter->value);
        text += token.text;
      } else {
        text += written;
      }
    }
    line.text = text + line.text.substr(at);
  }
  return result;
}

}  // namespace tilewright
