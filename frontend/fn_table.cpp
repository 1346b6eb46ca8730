// The fns of a program, built in the order in which they need each other.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"

namespace tilewright {

FnTable::FnTable(const std::vector<AstFn>& fns, Sink& sink) : sink_(sink) {
  for (const AstFn& fn : fns) {
    const std::string& name = fn.name.text;
    const bool has_dot = name.find('.') != std::string::npos;
    const FunctionInfo* function = find_function(name);
    if (has_dot || (function && function->group != FunctionGroup::Structural)) {
      sink.error(fn.name.span, has_dot ? fmt::format("`{}` has a dot, but the name of a fn is one word", name)
                                       : fmt::format("`{}` is a function of the language and cannot name a fn", name));
      continue;
    }
    const auto [found, is_new] = entries_.try_emplace(name);
    if (!is_new) {
      sink.error(fn.name.span, fmt::format("fn `{}` is declared twice", name), {},
                 {Note{found->second.ast->span, "the first one is here"}});
      continue;
    }
    found->second.ast = &fn;
    found->second.signature = declare_signature(fn, sink);
  }
}

const TensorFn* FnTable::signature(const std::string& name) const {
  const auto found = entries_.find(name);
  return found != entries_.end() && found->second.signature ? &*found->second.signature : nullptr;
}

const TensorFn* FnTable::built(const std::string& name, Span use) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;  // its name was refused
  Entry& entry = found->second;
  if (use.is_known()) entry.is_called = true;
  if (!entry.signature) return nullptr;
  if (entry.state == State::Building) {
    sink_.error(use, fmt::format("`{}` calls itself, and a call is put in place of its body", name),
                "loops on the host call fns; a fn has no recursion");
    return nullptr;
  }
  if (entry.state == State::NotBuilt) {
    entry.state = State::Building;
    entry.fn = FnBuilder(*entry.signature, this, sink_).build(*entry.ast);
    entry.state = State::Built;
  }
  return entry.fn ? &*entry.fn : nullptr;
}

bool FnTable::is_scalar_fn(const std::string& name) const {
  const TensorFn* fn = signature(name);
  if (!fn) return false;
  const auto outputs = std::count_if(fn->params.begin(), fn->params.end(),
                                     [](const Param& param) { return param.kind == ParamKind::Out; });
  return outputs == 1 && std::all_of(fn->params.begin(), fn->params.end(), [](const Param& param) {
           return param.shape.empty() && param.kind != ParamKind::InOut;
         });
}

Expr FnTable::inlined_result(const std::string& name, Span use) {
  const TensorFn* fn = built(name, use);
  if (!fn) return {};
  // Each intermediate in place of its uses.
  std::map<std::string, Expr> values;
  for (const TensorStmt& statement : fn->statements) {
    Expr value = put_in_place(statement.value, values);
    if (!value) {
      sink_.error_once(fmt::format("{} is too large", name), use,
                       fmt::format("`{}` becomes too large when its intermediates are put in place", name), "and here");
      return {};
    }
    values[statement.target] = std::move(value);
  }
  const auto output = std::find_if(fn->params.begin(), fn->params.end(),
                                   [](const Param& param) { return param.kind == ParamKind::Out; });
  return values.at(output->name);
}

std::vector<std::string> FnTable::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

bool FnTable::is_called(const std::string& name) const { return entries_.at(name).is_called; }

}  // namespace tilewright
