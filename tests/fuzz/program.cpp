// Text of a drawn program. Every operation stands in parentheses: precedence has tests of its own.
#include "tests/fuzz/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::fuzz {

namespace {

std::string list_of(const std::vector<Term>& terms) {
  std::string text;
  for (const Term& term : terms) text += (text.empty() ? "" : ", ") + print(term);
  return text;
}

std::string print_range(const Range& range) {
  if (!range.relation.empty()) return fmt::format("{} {} {}", range.name, range.relation, print(range.bounds[0]));
  if (range.bounds.size() != 2) return range.name;
  return fmt::format("{} in {}{}{}", range.name, print(range.bounds[0]), range.is_inclusive ? "..=" : "..", print(range.bounds[1]));
}

std::string print_access(const std::string& name, const std::string& index, const std::string& rule) {
  return fmt::format("{}[{}{}]", name, index, rule.empty() ? "" : "; " + rule);
}

std::string print_parameters(const Function& function, bool is_result) {
  std::string text;
  int count = 0;
  for (const Parameter& param : function.parameters) {
    if ((param.kind == ParamKind::Out) != is_result) continue;
    ++count;
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : ", ", param.kind == ParamKind::InOut ? "inout " : "", param.name, info(param.dtype).name);
    if (!param.shape.empty()) text += fmt::format("[{}]", fmt::join(param.shape, ", "));
  }
  return is_result && count == 1 ? text : "(" + text + ")";
}

}  // namespace

Term literal(std::string text) { return Term{TermKind::Literal, std::move(text), {}, {}, {}, {}}; }
Term make_term(TermKind kind, std::string text, std::vector<Term> kids) { return Term{kind, std::move(text), std::move(kids), {}, {}, {}}; }

Term binary(std::string op, Term a, Term b) { return make_term(TermKind::Binary, std::move(op), {std::move(a), std::move(b)}); }
Term call(std::string name, std::vector<Term> arguments) { return make_term(TermKind::Call, std::move(name), std::move(arguments)); }

std::string print(const Term& term) {
  switch (term.kind) {
    case TermKind::Literal: return term.text;
    case TermKind::Access: return term.kids.empty() ? term.text : print_access(term.text, list_of(term.kids), term.rule);
    case TermKind::Unary: return fmt::format("({} {})", term.text, print(term.kids[0]));
    case TermKind::Binary: return fmt::format("({} {} {})", print(term.kids[0]), term.text, print(term.kids[1]));
    case TermKind::Compare:
      if (term.kids.size() == 3) return fmt::format("({} {} {} {} {})", print(term.kids[0]), term.text, print(term.kids[1]), term.second, print(term.kids[2]));
      return fmt::format("({} {} {})", print(term.kids[0]), term.text, print(term.kids[1]));
    case TermKind::If: return fmt::format("(if {} then {} else {})", print(term.kids[0]), print(term.kids[1]), print(term.kids[2]));
    case TermKind::Call: return fmt::format("{}({})", term.text, list_of(term.kids));
    case TermKind::Reduction: {
      std::string ranges;
      for (const Range& range : term.ranges) ranges += (ranges.empty() ? "" : ", ") + print_range(range);
      return fmt::format("({}[{}] {})", term.text, ranges, print(term.kids[0]));
    }
  }
  return {};
}

std::string print(const Statement& statement) {
  std::string index;
  for (std::size_t n = 0; n < statement.index.size(); ++n) {
    const bool has_range = n < statement.ranges.size() && statement.ranges[n].bounds.size() == 2;
    index += (n > 0 ? ", " : "") + (has_range ? print_range(statement.ranges[n]) : print(statement.index[n]));
  }
  std::string target = statement.index.empty() ? statement.target : print_access(statement.target, index, statement.rule);
  if (!statement.dtype.empty()) target += ": " + statement.dtype;
  return fmt::format("{}{} {} {}", statement.is_let ? "let " : "", target, statement.op, print(statement.value));
}

std::string print(const FuzzProgram& program) {
  std::string text;
  for (const Function& function : program.functions) {
    text += fmt::format("fn {}{} -> {} {{\n", function.name, print_parameters(function, false), print_parameters(function, true));
    for (const Statement& statement : function.statements) text += "    " + print(statement) + "\n";
    text += "}\n";
  }
  if (program.lines.empty() && program.facts.empty()) return text;
  text += fmt::format("schedule {} \"drawn\"", program.main().name);
  if (!program.facts.empty()) text += fmt::format(" when {}", fmt::join(program.facts, ", "));
  text += " {\n";
  for (const std::string& line : program.lines) text += "    " + line + "\n";
  return text + "}\n";
}

}  // namespace tilewright::fuzz
