// Expressions. From loose to tight: or, and, not, comparisons, |, ^, &, shifts, + -, * / %, unary, access.
#include <fmt/format.h>

#include <array>

#include "frontend/parser.h"

namespace tilewright {

namespace {

// Every level of the tree is a level of recursion in all that reads it.
constexpr int most_levels = 200;

struct Level {
  std::string_view spelling;
  BinaryOp op;
  int level;
};
constexpr int or_level = 1, and_level = 2, not_level = 3, compare_level = 4, product_level = 10;
constexpr std::array<Level, 18> levels = {{{"or", BinaryOp::Or, or_level},
                                           {"and", BinaryOp::And, and_level},
                                           {"==", BinaryOp::Eq, compare_level},
                                           {"!=", BinaryOp::Ne, compare_level},
                                           {"<", BinaryOp::Lt, compare_level},
                                           {"<=", BinaryOp::Le, compare_level},
                                           {">", BinaryOp::Gt, compare_level},
                                           {">=", BinaryOp::Ge, compare_level},
                                           {"|", BinaryOp::BitOr, 5},
                                           {"^", BinaryOp::BitXor, 6},
                                           {"&", BinaryOp::BitAnd, 7},
                                           {"<<", BinaryOp::Shl, 8},
                                           {">>", BinaryOp::Shr, 8},
                                           {"+", BinaryOp::Add, 9},
                                           {"-", BinaryOp::Sub, 9},
                                           {"*", BinaryOp::Mul, product_level},
                                           {"/", BinaryOp::Div, product_level},
                                           {"%", BinaryOp::Mod, product_level}}};

const Level* level_of(const Lexeme& token) {
  if (token.kind != LexemeKind::Punct && token.kind != LexemeKind::Name) return nullptr;
  for (const Level& level : levels)
    if (level.spelling == token.text) return &level;
  return nullptr;
}

struct ReductionName {
  std::string_view name;
  ReductionWord word;
};
constexpr std::array<ReductionName, 10> reductions = {{{"sum", ReductionWord::Sum},
                                                      {"prod", ReductionWord::Prod},
                                                      {"max", ReductionWord::Max},
                                                      {"min", ReductionWord::Min},
                                                      {"any", ReductionWord::Any},
                                                      {"all", ReductionWord::All},
                                                      {"count", ReductionWord::Count},
                                                      {"mean", ReductionWord::Mean},
                                                       {"argmax", ReductionWord::ArgMax},
                                                       {"argmin", ReductionWord::ArgMin}}};
constexpr std::array<ReductionName, 4> scans = {{{"cumsum", ReductionWord::Sum},
                                                 {"cumprod", ReductionWord::Prod},
                                                 {"cummax", ReductionWord::Max},
                                                 {"cummin", ReductionWord::Min}}};

std::string_view before_dot(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::optional<ReductionWord> reduction_by_name(std::string_view word) {
  for (const ReductionName& row : reductions)
    if (row.name == word) return row.word;
  return std::nullopt;
}

std::optional<ReductionWord> scan_by_name(std::string_view word) {
  for (const ReductionName& row : scans)
    if (row.name == word) return row.word;
  return std::nullopt;
}

std::string_view name_of(ReductionWord word) { return reductions[static_cast<std::size_t>(word)].name; }

void ProgramParser::check_depth(int depth, Span span) {
  if (depth > most_levels)
    fail(span, fmt::format("the expression has more than {} levels", most_levels), "split it with `let`");
}

Ast ProgramParser::make(decltype(AstNode::value) value, Span span) {
  auto node = std::make_shared<AstNode>();
  node->value = std::move(value);
  node->span = span;
  int below = 0;
  const auto look = [&](const Ast& child) {
    if (child) below = std::max(below, child->depth);
  };
  const auto look_at_all = [&](const std::vector<Ast>& children) {
    for (const Ast& child : children) look(child);
  };
  match_variant(
      node->value, [](const AstNumber&) {}, [](const AstName&) {},
      [&](const AstAccess& access) {
        look_at_all(access.index);
        look(access.rule.value);
      },
      [&](const AstCall& call) { look_at_all(call.arguments); }, [&](const AstUnary& unary) { look(unary.operand); },
      [&](const AstBinary& binary) {
        look(binary.lhs);
        look(binary.rhs);
      },
      [&](const AstCompare& compare) { look_at_all(compare.operands); },
      [&](const AstIf& branch) {
        look(branch.condition);
        look(branch.if_true);
        look(branch.if_false);
      },
      [&](const AstReduction& reduction) {
        for (const AstRange& axis : reduction.axes) {
          look(axis.lo);
          look(axis.hi);
        }
        look(reduction.body);
      });
  node->depth = below + 1;
  check_depth(node->depth, span);
  return node;
}

Ast ProgramParser::parse_expr() {
  check_depth(depth_ + 1, here().span);
  ++depth_;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  return at("if") ? parse_if() : parse_binary(or_level);
}

Ast ProgramParser::parse_if() {
  const Span start = take().span;
  AstIf branch;
  branch.condition = parse_expr();
  expect("then", "behind the condition of `if`");
  branch.if_true = parse_expr();
  if (!at("else")) fail_expected("`else`", "behind the first branch of `if`: both branches have a value");
  take();
  branch.if_false = parse_expr();
  return make(std::move(branch), join(start, previous_span()));
}

// Operators of `level` and tighter.
Ast ProgramParser::parse_binary(int level) {
  Ast lhs;
  if (level <= not_level && at("not")) {
    const Span start = take().span;
    check_depth(++depth_, start);
    Ast operand = parse_binary(not_level);
    --depth_;
    lhs = make(AstUnary{UnaryOp::Not, std::move(operand)}, join(start, previous_span()));
  } else {
    lhs = parse_unary();
  }
  while (const Level* next = level_of(here())) {
    if (next->level < level) break;
    if (next->level == compare_level) {
      AstCompare chain;
      chain.operands.push_back(lhs);
      while (const Level* link = level_of(here())) {
        if (link->level != compare_level) break;
        take();
        chain.ops.push_back(link->op);
        chain.operands.push_back(parse_binary(compare_level + 1));
      }
      lhs = make(std::move(chain), join(lhs->span, previous_span()));
      continue;
    }
    take();
    if (next->op == BinaryOp::Div && at_reduction())
      fail(here().span, "a reduction behind `/` stands in parentheses, so that it is plain how far it reaches",
           fmt::format("write `/ ({}[…] …)`", here().text));
    Ast rhs = parse_binary(next->level + 1);
    lhs = make(AstBinary{next->op, lhs, std::move(rhs)}, join(lhs->span, previous_span()));
  }
  return lhs;
}

Ast ProgramParser::parse_unary() {
  const Lexeme token = here();
  if (at("-") || at("~")) {
    take();
    check_depth(++depth_, token.span);
    Ast operand = parse_unary();
    --depth_;
    return make(AstUnary{is(token, "-") ? UnaryOp::Neg : UnaryOp::BitNot, std::move(operand)},
                join(token.span, previous_span()));
  }
  if (at("+")) fail(token.span, "`+` stands between two operands");
  if (at("!")) fail(token.span, "`!` is not an operator", "write `not`");
  return parse_primary();
}

bool ProgramParser::at_reduction() const {
  return here().kind == LexemeKind::Name && is(ahead(), "[") &&
         (reduction_by_name(before_dot(here().text)) || scan_by_name(before_dot(here().text)));
}

Ast ProgramParser::parse_primary() {
  if (at_reduction()) return parse_reduction();
  const Lexeme token = here();
  switch (token.kind) {
    case LexemeKind::Integer:
    case LexemeKind::Float:
      take();
      return make(AstNumber{token.kind == LexemeKind::Float, token.integer, token.real}, token.span);
    case LexemeKind::Name:
      break;
    case LexemeKind::Punct:
      if (take_if("(")) {
        Ast inner = parse_expr();
        expect(")", "to close the parenthesis");
        auto node = std::make_shared<AstNode>(*inner);
        node->has_parentheses = true;
        return node;
      }
      [[fallthrough]];
    case LexemeKind::String:
    case LexemeKind::End:
      fail(token.span, fmt::format("found {}, but an expression is needed", seen()));
  }
  if (at("if")) fail(token.span, "`if` behind an operator stands in parentheses", "write `(if … then … else …)`");
  for (std::string_view word : {"then", "else", "and", "or", "not", "in", "let"})
    if (at(word)) fail(token.span, fmt::format("found {}, but an expression is needed", seen()));
  take();
  if (at("[")) {
    return parse_access(token);
  }
  if (at("(") && !here().starts_line) {
    take();
    AstCall call{AstWord{std::string(token.text), token.span}, {}};
    parse_list(")", "the arguments", [&] { call.arguments.push_back(parse_expr()); });
    return make(std::move(call), join(token.span, previous_span()));
  }
  return make(AstName{std::string(token.text)}, token.span);
}

Ast ProgramParser::parse_access(const Lexeme& name) {
  take();
  AstAccess access;
  access.tensor = AstWord{std::string(name.text), name.span};
  parse_list("]", "the indices", [&] {
    access.index.push_back(parse_expr());
    if (at(";")) access.rule = parse_rule();
  });
  if (access.index.empty())
    fail(join(name.span, previous_span()), "brackets without an index", "a scalar is written without brackets");
  return make(std::move(access), join(name.span, previous_span()));
}

Ast ProgramParser::parse_reduction() {
  const Lexeme name = take();
  take();
  AstReduction reduction;
  const std::optional<ReductionWord> scanned = scan_by_name(before_dot(name.text));
  reduction.word = scanned ? *scanned : *reduction_by_name(before_dot(name.text));
  if (before_dot(name.text) != name.text) {
    const std::string_view suffix = name.text.substr(name.text.find('.') + 1);
    const std::optional<Dtype> dtype = dtype_by_name(suffix);
    if (!dtype || *dtype == Dtype::Index || *dtype == Dtype::Bool || info(*dtype).bits < 32 ||
        *dtype == Dtype::Mbarrier)
      fail(name.span, fmt::format("`{}` is not the type of an accumulator", suffix),
           "an accumulator is f64, f32, i64, i32, u64 or u32");
    if (reduction.word == ReductionWord::Any || reduction.word == ReductionWord::All)
      fail(name.span, fmt::format("`{}` gives a bool and has no other accumulator", before_dot(name.text)));
    const bool gives_index = reduction.word == ReductionWord::ArgMax || reduction.word == ReductionWord::ArgMin;
    if (gives_index && !is_signed(*dtype)) fail(name.span, fmt::format("`{}` gives an index or -1, which {} does not hold", before_dot(name.text), suffix), "it gives an i32; `argmax.i64` an i64");
    reduction.accumulator = dtype;
  }
  if (scanned) reduction.scan = parse_scanned(reduction.axes.emplace_back());
  else parse_list("]", "the reduced indices", [&] { reduction.axes.push_back(parse_range()); });
  if (reduction.axes.empty()) fail(join(name.span, previous_span()), "a reduction over no index");
  if ((reduction.word == ReductionWord::ArgMax || reduction.word == ReductionWord::ArgMin) && reduction.axes.size() != 1)
    fail(join(name.span, previous_span()), fmt::format("`{}` gives one index, and {} are named", before_dot(name.text), reduction.axes.size()),
         "reduce the others first, `let best[i] = max[j] A[i, j]`");
  // The body is the longest product to the right; any, all and count take a comparison.
  const bool takes_comparison = reduction.word == ReductionWord::Any || reduction.word == ReductionWord::All ||
                                reduction.word == ReductionWord::Count;
  check_depth(++depth_, name.span);
  reduction.body = at("if") ? parse_if() : parse_binary(takes_comparison ? not_level : product_level);
  --depth_;
  return make(std::move(reduction), join(name.span, previous_span()));
}

// `j <= i]` of `cumsum[j <= i] X[j]`.
BinaryOp ProgramParser::parse_scanned(AstRange& range) {
  range.name = expect_name("the name of the scanned index");
  if (is_reserved(range.name.text))
    fail(range.name.span, fmt::format("`{}` is a word of the language and cannot name an index", range.name.text));
  const Level* level = level_of(here());
  if (!level || level->level != compare_level || level->op == BinaryOp::Eq || level->op == BinaryOp::Ne)
    fail(here().span, fmt::format("found {}, but a scan says how far its index goes", seen()),
         fmt::format("as in `cumsum[{0} <= i] X[{0}]`; `<` leaves out the last, `>=` and `>` go from the end", range.name.text));
  const BinaryOp op = level->op;
  take();
  range.hi = parse_binary(compare_level + 1);
  expect("]", "behind the end of a scan");
  return op;
}

AstRange ProgramParser::parse_range() {
  AstRange range;
  range.name = expect_name("the name of an index");
  if (is_reserved(range.name.text))
    fail(range.name.span, fmt::format("`{}` is a word of the language and cannot name an index", range.name.text));
  if (!take_if("in")) return range;
  range.lo = parse_expr();
  range.is_inclusive = at("..=");
  if (!take_if("..") && !take_if("..=")) fail_expected("`..` or `..=`", "between the bounds of a range");
  range.hi = parse_expr();
  return range;
}

}  // namespace tilewright
