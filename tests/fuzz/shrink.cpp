// Smaller cases of a case. The frontend and the passes refuse what a step has spoilt, so that steps need no care.
#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace tilewright::fuzz {

namespace {

using Emit = std::function<bool(Case)>;  // tells whether the candidate was taken

// Every term of a program, by a visit that may change it.
void for_each_term(Term& term, const std::function<void(Term&)>& f) {
  f(term);
  for (Term& kid : term.kids) for_each_term(kid, f);
  for (Range& range : term.ranges)
    for (Term& bound : range.bounds) for_each_term(bound, f);
}

void for_each_term(Case& drawn, const std::function<void(Term&)>& f) {
  for (Function& function : drawn.program.functions)
    for (Statement& statement : function.statements) {
      for_each_term(statement.value, f);
      for (Term& index : statement.index) for_each_term(index, f);
    }
}

std::size_t count_terms(Case drawn) {
  std::size_t count = 0;
  for_each_term(drawn, [&](Term&) { ++count; });
  return count;
}

// The case with its n-th term replaced by what `f` makes of it.
Case with_term(Case drawn, std::size_t n, const std::function<Term(const Term&)>& f) {
  std::size_t position = 0;
  Term* found = nullptr;
  for_each_term(drawn, [&](Term& term) {
    if (position++ == n) found = &term;
  });
  if (found) *found = f(Term(*found));
  return drawn;
}

std::vector<Term> smaller_terms(const Term& term) {
  std::vector<Term> result;
  if (term.kind != TermKind::Literal)
    for (const char* number : {"1", "0", "true", "1.0"}) result.push_back(literal(number));
  if (term.kind == TermKind::Literal && term.text.size() > 1 && std::isdigit(static_cast<unsigned char>(term.text.back())) != 0) result.push_back(literal("1"));
  for (const Term& kid : term.kids) result.push_back(kid);
  if (!term.rule.empty()) {
    for (const char* rule : {"", "0", "clamp"}) {
      result.push_back(term);
      result.back().rule = rule;
    }
  }
  if (term.ranges.size() > 1)
    for (std::size_t n = 0; n < term.ranges.size(); ++n) {
      result.push_back(term);
      result.back().ranges.erase(result.back().ranges.begin() + static_cast<std::ptrdiff_t>(n));
    }
  for (std::size_t n = 0; n < term.ranges.size(); ++n) {
    if (term.ranges[n].bounds.empty() || !term.ranges[n].relation.empty()) continue;
    result.push_back(term);
    result.back().ranges[n].bounds.clear();
    result.push_back(term);
    result.back().ranges[n].bounds = {literal("0"), literal("2")};
    result.back().ranges[n].is_inclusive = false;
  }
  if (term.kids.size() > 2 && (term.kind == TermKind::Call || term.kind == TermKind::Compare)) {
    result.push_back(term);
    result.back().kids.pop_back();
  }
  return result;
}

// Lines with one part left out, or one number made smaller.
std::vector<std::string> smaller_lines(const std::string& line) {
  std::vector<std::string> result;
  std::vector<std::size_t> commas;
  for (std::size_t n = 0; n < line.size(); ++n)
    if (line[n] == ',') commas.push_back(n);
  for (std::size_t n = 0; n < commas.size(); ++n) {
    const std::size_t end = n + 1 < commas.size() ? commas[n + 1] : line.size();
    result.push_back(line.substr(0, commas[n]) + line.substr(end));
  }
  if (!commas.empty()) {  // the first part: between the words and the comma
    const std::size_t first = line.rfind(' ', line.rfind(' ', commas[0]) - 1);
    if (first != std::string::npos && first < commas[0]) result.push_back(line.substr(0, first) + line.substr(commas[0] + 1));
  }
  for (std::size_t n = 0; n < line.size(); ++n) {
    if (std::isdigit(static_cast<unsigned char>(line[n])) == 0 || (n > 0 && line[n - 1] != ' ')) continue;
    std::size_t end = n;
    while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
    const std::int64_t number = std::stoll(line.substr(n, end - n));
    for (const std::int64_t smaller : {std::int64_t{1}, std::int64_t{2}, number / 2})
      if (smaller > 0 && smaller < number) result.push_back(line.substr(0, n) + std::to_string(smaller) + line.substr(end));
  }
  if (const std::size_t colon = line.find(": "); colon != std::string::npos) result.push_back(line.substr(colon + 2));
  return result;
}

template <class T>
T without(const T& list, std::size_t n) {
  T result = list;
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(n));
  return result;
}

// Gives candidates until one is taken; false where none was.
bool step(const Case& drawn, const Emit& emit) {
  Case next;
  for (std::size_t n = 0; drawn.runs.size() > 1 && n < drawn.runs.size(); ++n) {
    next = drawn;
    next.runs = {drawn.runs[n]};
    if (emit(std::move(next))) return true;
  }
  for (std::size_t n = 0; n < drawn.program.lines.size(); ++n) {  // only the first n lines
    next = drawn;
    next.program.lines.resize(n);
    if (emit(std::move(next))) return true;
  }
  for (std::size_t n = drawn.program.lines.size(); n-- > 0;) {
    next = drawn;
    next.program.lines = without(drawn.program.lines, n);
    if (emit(std::move(next))) return true;
  }
  for (std::size_t n = 0; n < drawn.program.facts.size(); ++n) {
    next = drawn;
    next.program.facts = without(drawn.program.facts, n);
    if (emit(std::move(next))) return true;
  }
  // A tensor with all statements that define it.
  std::set<std::string> targets;
  for (const Statement& statement : drawn.program.main().statements) targets.insert(statement.target);
  for (const std::string& target : targets) {
    next = drawn;
    std::erase_if(next.program.main().statements, [&](const Statement& statement) { return statement.target == target; });
    std::erase_if(next.program.main().parameters, [&](const Parameter& param) { return param.name == target && param.kind == ParamKind::Out; });
    if (emit(std::move(next))) return true;
  }
  for (std::size_t n = 0; n < drawn.program.main().statements.size(); ++n) {
    next = drawn;
    next.program.main().statements = without(drawn.program.main().statements, n);
    if (emit(std::move(next))) return true;
  }
  for (std::size_t n = 0; n < drawn.program.main().parameters.size(); ++n) {
    next = drawn;
    next.program.main().parameters = without(drawn.program.main().parameters, n);
    if (emit(std::move(next))) return true;
  }
  if (drawn.program.functions.size() > 1) {
    next = drawn;
    next.program.functions = {drawn.program.main()};
    if (emit(std::move(next))) return true;
  }
  for (std::size_t n = 0; n < count_terms(drawn); ++n) {
    std::vector<Term> smaller;
    with_term(drawn, n, [&](const Term& term) {
      smaller = smaller_terms(term);
      return term;
    });
    for (const Term& term : smaller)
      if (emit(with_term(drawn, n, [&](const Term&) { return term; }))) return true;
  }
  for (std::size_t n = 0; n < drawn.program.main().parameters.size(); ++n) {
    const Parameter& param = drawn.program.main().parameters[n];
    for (const Dtype dtype : {Dtype::F32, Dtype::I32}) {
      if (param.dtype == dtype || param.dtype == Dtype::F32) continue;
      next = drawn;
      next.program.main().parameters[n].dtype = dtype;
      if (emit(std::move(next))) return true;
    }
    for (std::size_t axis = 0; axis < param.shape.size(); ++axis) {
      const std::string& extent = param.shape[axis];
      if (extent.size() < 2) continue;
      next = drawn;
      next.program.main().parameters[n].shape[axis] = std::isdigit(static_cast<unsigned char>(extent.back())) != 0 ? "1" : extent.substr(extent.size() - 1);
      if (emit(std::move(next))) return true;
    }
  }
  for (std::size_t line = 0; line < drawn.program.lines.size(); ++line)
    for (const std::string& smaller : smaller_lines(drawn.program.lines[line])) {
      next = drawn;
      next.program.lines[line] = smaller;
      if (emit(std::move(next))) return true;
    }
  for (std::size_t n = 0; n < drawn.runs.size(); ++n) {
    const Run& run = drawn.runs[n];
    for (const auto& [name, size] : run.dims)
      for (const std::int64_t smaller : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, size / 2, size - 1}) {
        if (smaller < 0 || smaller >= size) continue;
        next = drawn;
        next.runs[n].dims[name] = smaller;
        if (emit(std::move(next))) return true;
      }
    for (const Data data : {Data::Exact, Data::Random, Data::Special}) {
      if (data >= run.data) break;
      next = drawn;
      next.runs[n].data = data;
      if (emit(std::move(next))) return true;
    }
    for (std::uint64_t seed = 1; seed < std::min<std::uint64_t>(run.seed, 4); ++seed) {
      next = drawn;
      next.runs[n].seed = seed;
      if (emit(std::move(next))) return true;
    }
  }
  if (drawn.index_bits != 32) {
    next = drawn;
    next.index_bits = 32;
    if (emit(std::move(next))) return true;
  }
  return false;
}

}  // namespace

Case shrink(const Case& drawn, const StillFails& still_fails, int most_tries) {
  Case smallest = drawn;
  std::set<std::string> tried;  // a step may come to a case again
  int tries = 0;
  const Emit emit = [&](Case candidate) {
    if (tries >= most_tries || candidate.program.main().statements.empty() || !tried.insert(to_text(candidate)).second) return false;
    ++tries;
    if (!still_fails(candidate)) return false;
    smallest = std::move(candidate);
    return true;
  };
  while (tries < most_tries) {
    const Case from = smallest;
    if (!step(from, emit)) break;
  }
  return smallest;
}

}  // namespace tilewright::fuzz
