// Fns: signatures and statements; and where reading goes on behind a fault.
#include "frontend/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tilewright {

namespace {
constexpr std::array<std::string_view, 4> item_words = {"fn", "schedule", "hand", "bench"};

bool is_item_word(std::string_view word) {
  return std::find(item_words.begin(), item_words.end(), word) != item_words.end();
}
}  // namespace

bool is_reserved(std::string_view word) {
  constexpr std::array<std::string_view, 16> words = {"if",    "then",  "else", "and",   "or",  "not",
                                                      "in",    "let",   "true", "false", "inf", "nan",
                                                      "inout", "clamp", "wrap", "mirror"};
  return std::find(words.begin(), words.end(), word) != words.end() || word == "skip" ||
         reduction_by_name(word).has_value() || dtype_by_name(word).has_value();
}

// ---- Tokens.

Lexeme ProgramParser::take() {
  const Lexeme token = here();
  if (!at_end()) ++at_;
  return token;
}

bool ProgramParser::take_if(std::string_view text) {
  if (!at(text)) return false;
  take();
  return true;
}

std::string ProgramParser::seen() const {
  if (at_end()) return "the end of the text";
  if (here().kind == LexemeKind::String) return fmt::format("the string \"{}\"", here().text);
  return fmt::format("`{}`", here().text);
}

void ProgramParser::fail(Span span, std::string message, std::string help) {
  if (misread_.count(span.line) == 0) sink_.error(span, std::move(message), std::move(help));
  throw Abandoned{};
}

void ProgramParser::fail_expected(std::string_view what, std::string_view where) {
  fail(here().span, fmt::format("found {}, but {} is needed {}", seen(), what, where));
}

void ProgramParser::expect(std::string_view text, std::string_view where) {
  if (!take_if(text)) fail_expected(fmt::format("`{}`", text), where);
}

AstWord ProgramParser::expect_name(std::string_view what) {
  if (here().kind != LexemeKind::Name) fail(here().span, fmt::format("found {}, but {} is needed", seen(), what));
  const Lexeme token = take();
  return AstWord{std::string(token.text), token.span};
}

AstWord ProgramParser::expect_string(std::string_view what) {
  if (here().kind != LexemeKind::String) fail(here().span, fmt::format("found {}, but {} is needed", seen(), what));
  const Lexeme token = take();
  return AstWord{std::string(token.text), token.span};
}

std::int64_t ProgramParser::expect_integer(std::string_view what) {
  const bool is_negative = at("-") && ahead().kind == LexemeKind::Integer;
  if (is_negative) take();
  if (here().kind != LexemeKind::Integer) fail(here().span, fmt::format("found {}, but {} is needed", seen(), what));
  const std::int64_t value = take().integer;
  return is_negative ? -value : value;
}

void ProgramParser::parse_list(std::string_view close, std::string_view what, const std::function<void()>& element) {
  if (take_if(close)) return;
  do {
    if (at(close)) break;  // a comma behind the last element
    element();
  } while (take_if(","));
  if (!take_if(close)) fail_expected(fmt::format("`,` or `{}`", close), fmt::format("in {}", what));
}

// ---- Items.

AstProgram ProgramParser::parse_program() {
  AstProgram program;
  if (at_end() && !sink_.has_errors())
    sink_.error(here().span, "the program is empty: it needs at least one `fn`",
                "for example `fn scale(X: f32[N]) -> Y: f32[N] { Y[i] = 2.0 * X[i] }`");
  while (!at_end() && !sink_.is_full()) {
    const std::size_t before = at_;
    try {
      parse_item(program);
    } catch (const Abandoned&) {
      depth_ = 0;
      if (at_ == before) take();
      skip_to_item();
    }
  }
  return program;
}

void ProgramParser::parse_item(AstProgram& program) {
  if (at("fn")) {
    program.fns.push_back(parse_fn());
  } else if (at("schedule")) {
    program.schedules.push_back(parse_schedule());
  } else if (at("hand")) {
    program.hands.push_back(parse_hand());
  } else if (at("bench")) {
    program.benches.push_back(parse_bench());
  } else if (at("program")) {
    fail(here().span, "`program` items (loops on the host) are not supported yet",
         "call the fns one after the other from the host");
  } else {
    const std::vector<std::string> words(item_words.begin(), item_words.end());
    fail(here().span, fmt::format("found {}, but an item begins with `fn`, `schedule`, `hand` or `bench`", seen()),
         did_you_mean(here().text, words));
  }
}

void ProgramParser::skip_to_item() {
  // A word of an item at the start of a line is one, whatever braces are open: they may be what was forgotten.
  while (!at_end() && !(here().starts_line && here().kind == LexemeKind::Name && is_item_word(here().text) &&
                        here().span.column == 1))
    take();
}

AstFn ProgramParser::parse_fn() {
  AstFn fn;
  const Span start = take().span;
  fn.name = expect_name("the name of the fn");
  if (is_reserved(fn.name.text))
    fail(fn.name.span, fmt::format("`{}` is a word of the language and cannot name a fn", fn.name.text));
  expect("(", "behind the name of a fn");
  parse_list(")", "the parameters", [&] {
    const bool is_inout = at("inout") && ahead().kind == LexemeKind::Name;
    if (is_inout) take();
    fn.params.push_back(parse_param(is_inout ? ParamKind::InOut : ParamKind::In));
  });
  parse_outputs(fn);
  fn.span = join(start, previous_span());
  if (take_if("=")) {
    // `fn relu(x: f32) -> f32 = max(x, 0.0)`
    if (fn.params.empty() || fn.params.back().kind != ParamKind::Out || !fn.params.back().shape.empty())
      fail(previous_span(), "`=` behind a signature defines one scalar result, but this fn has no such result");
    AstStatement statement;
    statement.targets.push_back(fn.params.back().name);
    statement.value = parse_expr();
    statement.span = statement.value->span;
    fn.statements.push_back(std::move(statement));
    return fn;
  }
  parse_body([&] {
    AstStatement statement;
    try {
      parse_statement(statement);
    } catch (const Abandoned&) {
      fn.broken.push_back(std::move(statement));
      throw;
    }
    fn.statements.push_back(std::move(statement));
  });
  return fn;
}

void ProgramParser::parse_outputs(AstFn& fn) {
  if (!at("->")) {
    const bool has_inout = std::any_of(fn.params.begin(), fn.params.end(),
                                       [](const AstParam& param) { return param.kind == ParamKind::InOut; });
    if (!has_inout)
      fail(here().span, fmt::format("found {}, but `->` and the results are needed behind the parameters", seen()),
           "a signature reads `fn f(A: f32[N]) -> B: f32[N] { … }`");
    return;
  }
  take();
  if (take_if("(")) {
    parse_list(")", "the results", [&] { fn.params.push_back(parse_param(ParamKind::Out)); });
  } else if (here().kind == LexemeKind::Name && !is(ahead(), ":")) {
    // A dtype alone: one scalar without a name.
    AstParam result;
    result.kind = ParamKind::Out;
    result.name = AstWord{"result", here().span};
    result.span = here().span;
    result.dtype = parse_dtype();
    if (at("[")) fail(here().span, "a tensor result needs a name", "write `-> C: f32[M, N]`");
    fn.params.push_back(std::move(result));
  } else {
    fn.params.push_back(parse_param(ParamKind::Out));
  }
}

AstParam ProgramParser::parse_param(ParamKind kind) {
  AstParam param;
  param.kind = kind;
  param.name = expect_name("the name of a parameter");
  if (is_reserved(param.name.text))
    fail(param.name.span, fmt::format("`{}` is a word of the language and cannot name a parameter", param.name.text));
  expect(":", "between a parameter and its type");
  param.dtype = parse_dtype();
  if (take_if("[")) param.shape = parse_shape();
  param.span = join(param.name.span, previous_span());
  return param;
}

Dtype ProgramParser::parse_dtype() {
  const AstWord word = expect_name("a dtype");
  const std::optional<Dtype> dtype = dtype_by_name(word.text);
  if (!dtype || *dtype == Dtype::Index || *dtype == Dtype::Mbarrier) {
    constexpr std::array<std::string_view, 15> names = {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "i64", "i32", "i16",
                                                        "i8",  "u64", "u32", "u16",  "u8",  "bool"};
    std::string help = did_you_mean(word.text, {names.begin(), names.end()});
    if (help.empty()) help = fmt::format("the dtypes are {}", fmt::join(names, ", "));
    fail(word.span, fmt::format("`{}` is not a dtype", word.text), help);
  }
  return *dtype;
}

std::vector<Ast> ProgramParser::parse_shape() {
  std::vector<Ast> shape;
  const Span open = previous_span();
  parse_list("]", "a shape", [&] { shape.push_back(parse_expr()); });
  if (shape.empty()) fail(join(open, previous_span()), "a shape without dims", "a scalar is written without brackets");
  return shape;
}

void ProgramParser::parse_body(const std::function<void()>& statement) {
  const Span open = here().span;
  expect("{", "in front of the body");
  while (!take_if("}")) {
    if (at_end())
      fail(here().span, fmt::format("the text ends, but `}}` is needed for the `{{` in line {}", open.line));
    if (take_if(";")) continue;
    const std::size_t before = at_;
    try {
      statement();
    } catch (const Abandoned&) {
      depth_ = 0;
      if (at_ == before && !at("}")) take();
      // The next statement is the next line that begins outside of the brackets of this one.
      while (!at_end() && !at("}") && !here().starts_line) take();
      if (at_end() || sink_.is_full()) throw;
      if (here().starts_line && here().span.column == 1 && is_item_word(here().text)) throw;
    }
  }
}

void ProgramParser::parse_statement(AstStatement& statement) {
  const Span start = here().span;
  if (take_if("let")) statement.is_let = true;
  if (take_if("(")) {
    parse_list(")", "the targets of a call", [&] { statement.targets.push_back(expect_name("the name of a tensor")); });
  } else {
    statement.targets.push_back(expect_name(statement.is_let ? "the name of an intermediate" : "a statement"));
  }
  const AstWord& target = statement.targets.empty() ? AstWord{} : statement.targets.front();
  if (statement.is_let && is_reserved(target.text))
    fail(target.span, fmt::format("`{}` is a word of the language and cannot name an intermediate", target.text));
  if (statement.targets.size() == 1 && take_if("[")) {
    statement.has_index = true;
    if (statement.is_let) {
      parse_let_target(statement);
    } else {
      parse_list("]", "the indices", [&] {
        statement.index.push_back(parse_expr());
        if (at(";")) statement.rule = parse_rule();
      });
    }
    if (statement.index.empty())
      fail(previous_span(), "brackets without an index", "a scalar is written without brackets");
  }
  if (statement.is_let && take_if(":")) statement.dtype = parse_dtype();
  parse_assignment_operator(statement);
  statement.value = parse_expr();
  statement.span = join(start, previous_span());
  if (!at_end() && !at("}") && !at(";") && !here().starts_line)
    fail(here().span,
         fmt::format("found {} behind the expression, but a statement ends at its line's end or at `;`", seen()));
}

void ProgramParser::parse_let_target(AstStatement& statement) {
  parse_list("]", "the indices", [&] {
    statement.ranges.push_back(parse_range());
    statement.index.push_back(make(AstName{statement.ranges.back().name.text}, statement.ranges.back().name.span));
  });
}

void ProgramParser::parse_assignment_operator(AstStatement& statement) {
  if (take_if("=")) return;
  const auto combine = [&](CombineOp op) {
    if (statement.is_let) fail(previous_span(), "a `let` defines its tensor with `=`");
    statement.combine = op;
  };
  if (take_if("+=")) return combine(CombineOp::Add);
  if (take_if("*=")) return combine(CombineOp::Mul);
  if (take_if("&=")) return combine(CombineOp::And);
  if (take_if("|=")) return combine(CombineOp::Or);
  if ((at("max") || at("min")) && is(ahead(), "=")) {
    const bool is_max = take().text == "max";
    take();
    return combine(is_max ? CombineOp::Max : CombineOp::Min);
  }
  if (at("-") && is(ahead(), "="))
    fail(join(here().span, ahead().span), "`-=` is no combining operator", "write `+= -(…)`");
  fail_expected("`=` or one of `+= *= max= min= &= |=`", "behind the target of a statement");
}

AstRule ProgramParser::parse_rule() {
  AstRule rule;
  take();
  const Span start = here().span;
  if (take_if("clamp")) {
    rule.kind = Rule::Kind::Clamp;
  } else if (take_if("wrap")) {
    rule.kind = Rule::Kind::Wrap;
  } else if (take_if("mirror")) {
    rule.kind = Rule::Kind::Mirror;
  } else if (take_if("skip")) {
    rule.kind = Rule::Kind::Skip;
  } else {
    rule.kind = Rule::Kind::Fill;
    rule.value = parse_expr();
  }
  rule.span = join(start, previous_span());
  if (!at("]")) fail_expected("`]`", "behind the rule of an access");
  return rule;
}

}  // namespace tilewright
