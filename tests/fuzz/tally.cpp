// Counting what a run met.
#include "tests/fuzz/tally.h"

#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "ir/operators.h"
#include "passes/pass.h"

namespace tilewright::fuzz {

namespace {

const char* name_of_rule(const std::string& rule) {
  if (rule.empty()) return "none";
  for (const char* word : {"clamp", "wrap", "mirror", "skip"})
    if (rule == word) return word;
  return "a value";
}

std::string range_kind(const Range& range) {
  if (!range.relation.empty()) return "scan " + range.relation;
  if (range.bounds.empty()) return "range inferred";
  if (range.bounds[0].kind == TermKind::Access) return "range from a tensor";
  return range.is_inclusive ? "range ..=" : "range ..";
}

std::string construct_of(const Term& term) {
  switch (term.kind) {
    case TermKind::Literal: return "name or number";
    case TermKind::Access: return "access";
    case TermKind::Unary: return "unary";
    case TermKind::Binary: return "binary";
    case TermKind::Compare: return term.kids.size() == 3 ? "comparison chain" : "comparison";
    case TermKind::If: return "if";
    case TermKind::Call: return dtype_by_name(term.text) ? "conversion" : "call";
    case TermKind::Reduction: return "reduction";
  }
  return {};
}

void count_term(Tally& tally, const Term& term) {
  tally.count("construct", construct_of(term));
  switch (term.kind) {
    case TermKind::Access:
      tally.count("rule", name_of_rule(term.rule));
      for (const Term& index : term.kids) {
        const bool is_plain = index.kind == TermKind::Literal;
        if (!is_plain) tally.count("construct", index.kind == TermKind::Access ? "gather" : "index arithmetic");
      }
      break;
    case TermKind::Unary: tally.count("operator", term.text + " unary"); break;
    case TermKind::Binary:
    case TermKind::Compare: tally.count("operator", term.text); break;
    case TermKind::Call: tally.count(dtype_by_name(term.text) ? "conversion" : "function", term.text); break;
    case TermKind::Reduction:
      tally.count("reduction", term.text.substr(0, term.text.find('.')));
      for (const Range& range : term.ranges) {
        tally.count("construct", range_kind(range));
        for (const Term& bound : range.bounds) count_term(tally, bound);
      }
      break;
    case TermKind::Literal:
    case TermKind::If: break;
  }
  for (const Term& kid : term.kids) count_term(tally, kid);
}

}  // namespace

void Tally::count(const FuzzProgram& program) {
  count("construct", fmt::format("{} statements", program.main().statements.size() > 3 ? "4 or more" : std::to_string(program.main().statements.size())));
  for (const Function& function : program.functions) {
    for (const Parameter& param : function.parameters) {
      count("dtype", std::string(info(param.dtype).name));
      count("construct", param.kind == ParamKind::InOut ? "inout" : param.kind == ParamKind::Out ? (param.shape.empty() ? "scalar result" : "result") : (param.shape.empty() ? "scalar input" : "input"));
      for (const std::string& extent : param.shape)
        if (extent.find_first_of("+*/(") != std::string::npos) count("construct", "size expression");
    }
    for (const Statement& statement : function.statements) {
      count("statement", statement.is_let ? "let" : statement.op);
      if (!statement.rule.empty()) count("rule", "skip of an update");
      count_term(*this, statement.value);
    }
  }
}

void Tally::expect(const std::string& category, const std::string& name) {
  count(category, name, 0);
  expected_.emplace(category, name);
}

void Tally::expect_everything() {
  for (const DtypeInfo* row : {&info(Dtype::F64), &info(Dtype::F32), &info(Dtype::F16), &info(Dtype::BF16), &info(Dtype::E4M3), &info(Dtype::E5M2), &info(Dtype::I64), &info(Dtype::I32), &info(Dtype::I16), &info(Dtype::I8), &info(Dtype::U64),
                               &info(Dtype::U32), &info(Dtype::U16), &info(Dtype::U8), &info(Dtype::Bool)}) {
    expect("dtype", std::string(row->name));
    expect("conversion", std::string(row->name));
  }
  for (int op = 0; op <= static_cast<int>(BinaryOp::Shr); ++op)
    if (info(static_cast<BinaryOp>(op)).is_infix) expect("operator", std::string(info(static_cast<BinaryOp>(op)).spelling));
  for (const char* op : {"- unary", "~ unary", "not unary"}) expect("operator", op);
  for (const FunctionInfo& row : all_functions())
    if (row.name.find('.') == std::string_view::npos && row.group != FunctionGroup::Structural) expect("function", std::string(row.name));
  for (const char* name : {"min", "max"}) expect("function", name);
  for (const char* rule : {"none", "clamp", "wrap", "mirror", "skip", "a value", "skip of an update"}) expect("rule", rule);
  for (const char* word : {"sum", "prod", "max", "min", "any", "all", "count", "mean", "argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin"}) expect("reduction", word);
  for (const char* direction : {"scan <=", "scan <", "scan >=", "scan >"}) expect("construct", direction);
  for (const char* op : {"=", "let", "+=", "*=", "max=", "min=", "&=", "|="}) expect("statement", op);
  for (const SchedulePass& pass : schedule_passes())
    for (const char* category : {"line drawn", "line accepted", "line refused"}) expect(category, std::string(pass.word));
}

void Tally::add(const Tally& other) {
  for (const auto& [category, names] : other.counts_)
    for (const auto& [name, times] : names) counts_[category][name] += times;
}

std::int64_t Tally::total(const std::string& category, const std::string& name) const {
  const auto names = counts_.find(category);
  if (names == counts_.end()) return 0;
  const auto found = names->second.find(name);
  return found == names->second.end() ? 0 : found->second;
}

const std::map<std::string, std::int64_t>& Tally::names(const std::string& category) const {
  static const std::map<std::string, std::int64_t> none;
  const auto names = counts_.find(category);
  return names == counts_.end() ? none : names->second;
}

std::string Tally::table(std::int64_t least) const {
  std::string text, rare;
  for (const auto& [category, names] : counts_) {
    text += category + "\n";
    for (const auto& [name, times] : names) {
      text += fmt::format("  {:>9}  {}\n", times, name);
      if (times < least && expected_.count({category, name}) > 0) rare += fmt::format("{}{} `{}` {}", rare.empty() ? "" : ", ", category, name, times);
    }
  }
  text += rare.empty() ? fmt::format("everything occurred {} times or more\n", least) : fmt::format("below {}: {}\n", least, rare);
  return text;
}

std::string Tally::to_json() const { return nlohmann::json(counts_).dump(2); }

Tally Tally::from_json(const std::string& text) {
  Tally tally;
  nlohmann::json::parse(text).get_to(tally.counts_);
  return tally;
}

std::string kind_of_refusal(const std::string& message) {
  std::string kind;
  bool is_code = false;
  int depth = 0;  // of parentheses: layouts, lists of buffers
  for (const char c : message) {
    if (c == '`') {
      if (!is_code && depth == 0) kind += "`…`";
      is_code = !is_code;
      continue;
    }
    if (is_code) continue;
    if (c == '(' && depth++ == 0) kind += "(…)";
    if (c == ')') --depth;
    if (depth > 0 || c == ')') continue;
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (kind.empty() || kind.back() != '#') kind += '#';
      continue;
    }
    kind += c;
  }
  // A list counts as one, whatever its length; a dim or a dtype that stands bare as any other.
  const auto replace_all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = kind.find(from); at != std::string::npos; at = kind.find(from, at)) kind.replace(at, from.size(), to);
  };
  replace_all("`…` and `…`", "`…`");
  replace_all("`…`, `…`", "`…`");
  for (const char* dim : {"M", "N", "K", "P", "L"})
    for (const char* in : {"than {}", "over {}", "be {}", "*{}"}) {
      const std::string from = fmt::format(fmt::runtime(in), dim);
      const std::size_t at = kind.find(from);
      if (at != std::string::npos && (at + from.size() == kind.size() || std::isalnum(static_cast<unsigned char>(kind[at + from.size()])) == 0)) kind.replace(at, from.size(), fmt::format(fmt::runtime(in), "#"));
    }
  return kind;
}

}  // namespace tilewright::fuzz
