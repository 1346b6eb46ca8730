// Schedules, hand items and benches.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/parser.h"

namespace tilewright {

// `schedule matmul "ch6" (T = 16) from "ch5" for sm_90a when K % 4 == 0, aligned 16 { lines }`
AstSchedule ProgramParser::parse_schedule() {
  AstSchedule schedule;
  const Span start = take().span;
  schedule.fn = expect_name("the fn that the schedule is for");
  schedule.name = expect_string("the name of the schedule, in quotes");
  while (!at("{")) {
    if (take_if("(")) {
      parse_list(")", "the parameters", [&] {
        AstParameter parameter;
        parameter.name = expect_name("the name of a parameter");
        expect("=", "between a parameter and its value");
        parameter.value = expect_integer("a whole number");
        schedule.parameters.push_back(std::move(parameter));
      });
    } else if (take_if("from")) {
      schedule.from = expect_string("the schedule that this one continues, in quotes");
    } else if (take_if("for")) {
      schedule.arch = expect_name("an architecture, such as `sm_90a`,");
    } else if (take_if("when")) {
      for (AstFact& fact : parse_facts()) schedule.when.push_back(std::move(fact));
    } else {
      fail_expected("`{`, or `(`, `from`, `for` or `when`", "in the head of a schedule");
    }
  }
  schedule.span = join(start, previous_span());
  take();
  parse_lines(true, schedule.lines);
  return schedule;
}

std::vector<AstFact> ProgramParser::parse_facts() {
  std::vector<AstFact> facts;
  do {
    AstFact fact;
    const Span start = here().span;
    if (at("aligned") && ahead().kind == LexemeKind::Integer) {
      take();
      fact.kind = Fact::Kind::Aligned;
      fact.alignment = take().integer;
      if (fact.alignment < 1 || fact.alignment > 256 || (fact.alignment & (fact.alignment - 1)) != 0)
        fail(previous_span(),
             fmt::format("an alignment of {} bytes, but a power of two up to 256 is needed", fact.alignment));
    } else if (at("contiguous")) {
      take();
      fact.kind = Fact::Kind::Contiguous;
    } else {
      fact.condition = parse_expr();
    }
    fact.span = join(start, previous_span());
    facts.push_back(std::move(fact));
  } while (take_if(","));
  return facts;
}

// Lines end at `;` or where the text line ends; brackets and a comma at the end hold a line together.
void ProgramParser::parse_lines(bool in_braces, std::vector<ScheduleLine>& lines) {
  std::size_t first = at_;
  int open = 0;
  const auto finish = [&] {
    if (at_ > first) lines.push_back(make_line(first, at_));
    first = at_;
  };
  while (true) {
    const bool continues = at_ > first && (open > 0 || is(tokens_[at_ - 1], ","));
    if (at_end()) {
      if (in_braces) fail(here().span, "the text ends, but `}` is needed behind the lines of a schedule");
      finish();
      return;
    }
    if (in_braces && at("}")) {
      finish();
      take();
      return;
    }
    if (here().starts_line && !continues) finish();
    if (at(";") && open == 0) {
      finish();
      take();
      first = at_;
      continue;
    }
    if (at("[") || at("(")) ++open;
    if ((at("]") || at(")")) && open > 0) --open;
    take();
  }
}

ScheduleLine ProgramParser::make_line(std::size_t first, std::size_t end) {
  ScheduleLine line;
  line.span = join(tokens_[first].span, tokens_[end - 1].span);
  std::size_t next = first;
  if (end - first >= 2 && tokens_[first].kind == LexemeKind::Name && is(tokens_[first + 1], ":")) {
    line.target = std::string(tokens_[first].text);
    next += 2;
  }
  if (next >= end || tokens_[next].kind != LexemeKind::Name) {
    const Lexeme& odd = tokens_[std::min(next, end - 1)];
    sink_.error(odd.span,
                fmt::format("found `{}`, but a schedule line begins with a word such as `tile` or `bind`", odd.text));
    return line;
  }
  line.word = std::string(tokens_[next].text);
  for (std::size_t k = first; k < end; ++k) {
    const Lexeme& token = tokens_[k];
    if (k > first && token.has_blank_before) line.text += ' ';
    line.text += token.kind == LexemeKind::String ? fmt::format("\"{}\"", token.text) : std::string(token.text);
    if (k <= next) continue;
    ScheduleToken::Kind kind = ScheduleToken::Kind::Punct;
    switch (token.kind) {
      case LexemeKind::Name:
        kind = ScheduleToken::Kind::Name;
        break;
      case LexemeKind::Integer:
        kind = ScheduleToken::Kind::Number;
        break;
      case LexemeKind::String:
        kind = ScheduleToken::Kind::String;
        break;
      case LexemeKind::Punct:
      case LexemeKind::End:
        break;
      case LexemeKind::Float:
        sink_.error(token.span, fmt::format("`{}` in a schedule line, but its numbers are whole", token.text));
        break;
    }
    line.tokens.push_back(ScheduleToken{kind, std::string(token.text), token.integer, token.span});
  }
  return line;
}

std::vector<ScheduleLine> ProgramParser::parse_all_lines() {
  std::vector<ScheduleLine> lines;
  parse_lines(false, lines);
  return lines;
}

// `hand matmul "book" from "hand.cu" when … { steps }`
AstHand ProgramParser::parse_hand() {
  AstHand hand;
  const Span start = take().span;
  hand.fn = expect_name("the fn that the hand kernel computes");
  hand.label = expect_string("a label, in quotes");
  expect("from", "behind the label of a hand kernel");
  hand.file = expect_string("the file of the kernel, in quotes");
  if (take_if("when")) hand.when = parse_facts();
  hand.span = join(start, previous_span());
  parse_body([&] { hand.steps.push_back(parse_hand_step()); });
  return hand;
}

std::vector<AstHandStep> ProgramParser::parse_all_hand_steps() {
  std::vector<AstHandStep> steps;
  try {
    while (!at_end())
      if (!take_if(";")) steps.push_back(parse_hand_step());
  } catch (const Abandoned&) {
  }
  return steps;
}

AstHandStep ProgramParser::parse_hand_step() {
  AstHandStep step;
  const Span start = here().span;
  if (take_if("launch")) {
    step.value = parse_launch();
  } else if (take_if("let")) {
    AstTemporary temporary;
    temporary.name = expect_name("the name of a temporary");
    expect("=", "behind the name of a temporary");
    temporary.dtype = parse_dtype();
    if (take_if("[")) temporary.shape = parse_shape();
    step.value = std::move(temporary);
  } else if (take_if("zero")) {
    step.value = AstZero{expect_name("the tensor to clear")};
  } else if (take_if("constant")) {
    AstConstant constant;
    constant.symbol = expect_name("the `__constant__` array");
    expect("=", "behind the name of a constant array");
    constant.tensor = expect_name("the tensor that it holds");
    step.value = std::move(constant);
  } else {
    fail_expected("`launch`, `let`, `zero` or `constant`", "at the start of a step of a hand item");
  }
  step.span = join(start, previous_span());
  return step;
}

// `kernel<<<(gx, gy), (bx, by), shared>>>(arguments)`
AstLaunch ProgramParser::parse_launch() {
  AstLaunch launch;
  launch.kernel = expect_name("the name of a kernel");
  while (at(":") && is(ahead(), ":")) {
    take();
    take();
    launch.kernel.text += "::" + expect_name("a name behind `::`").text;
  }
  if (at("<")) {
    // An instance of a template: its arguments belong to the name.
    while (!at_end() && !at("<<<")) launch.kernel.text += take().text;
    launch.kernel.span = join(launch.kernel.span, previous_span());
  }
  expect("<<<", "behind the name of a kernel");
  launch.grid = parse_launch_shape("the grid");
  expect(",", "between grid and block");
  launch.block = parse_launch_shape("the block");
  if (take_if(",")) launch.shared_bytes = parse_expr();
  expect(">>>", "behind the shape of a launch");
  expect("(", "in front of the arguments of a launch");
  parse_list(")", "the arguments of a launch", [&] { launch.arguments.push_back(parse_expr()); });
  return launch;
}

// `(x, y, z)`, or one expression.
std::vector<Ast> ProgramParser::parse_launch_shape(std::string_view what) {
  std::vector<Ast> shape;
  const Span start = here().span;
  // A parenthesis may also begin an expression, `(N + 1) / 2`: then something else than `,` or `>>>` stands behind it.
  std::size_t close = at_;
  if (at("(")) {
    int open = 0;
    do {
      if (is(tokens_[close], "(")) ++open;
      if (is(tokens_[close], ")")) --open;
      ++close;
    } while (open > 0 && close + 1 < tokens_.size());
  }
  if (at("(") && (is(tokens_[close], ",") || is(tokens_[close], ">>>"))) {
    take();
    parse_list(")", what, [&] { shape.push_back(parse_expr()); });
  } else {
    shape.push_back(parse_expr());
  }
  if (shape.empty() || shape.size() > 3)
    fail(join(start, previous_span()),
         fmt::format("{} has {} extents, but one to three are needed", what, shape.size()));
  return shape;
}

// `bench "matmul.bf16.4096" = matmul(M = 4096, N = 4096, K = 4096)`
AstBench ProgramParser::parse_bench() {
  AstBench bench;
  const Span start = take().span;
  bench.name = expect_string("the name of the bench, in quotes");
  expect("=", "behind the name of a bench");
  bench.fn = expect_name("the fn to run");
  expect("(", "behind the fn of a bench");
  parse_list(")", "the sizes of a bench", [&] {
    AstBenchValue value;
    value.name = expect_name("the name of a size");
    expect("=", "behind the name of a size");
    value.value = parse_expr();
    bench.values.push_back(std::move(value));
  });
  bench.span = join(start, previous_span());
  return bench;
}

}  // namespace tilewright
