// Expressions of the IR's text, typed while they are read (docs/ir.md, "Literals").
#include <fmt/format.h>

#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace tilewright {

namespace {

constexpr int deepest = 500;

bool is_reserved(const std::string& name) {
  return name == "if" || name == "then" || name == "else" || name == "and" || name == "or" || name == "not" || name == "inf" ||
         name == "nan" || name == "true" || name == "false";
}

// Whether an integer literal's magnitude has a value of this dtype.
bool fits(std::uint64_t magnitude, bool is_negative, Dtype dtype) {
  const int bits = info(dtype).bits;
  const std::uint64_t most = bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  if (is_unsigned(dtype)) return magnitude <= most && (!is_negative || magnitude == 0);
  return magnitude <= most / 2 + (is_negative ? 1 : 0);
}

}  // namespace

Expr Parser::expression(Expected expected) { return settle(operand(expected), expected); }

Parser::Operand Parser::note_height(Expr expr, int height) {
  if (height > deepest) fail(expr->span, fmt::format("an expression is nested deeper than {}", deepest));
  return Operand{std::move(expr), {}, false, height};
}

Expr Parser::settle(const Operand& operand, Expected expected) {
  if (operand.expr) return operand.expr;
  if (expected == Dtype::Bool) expected.reset();
  const Token& literal = operand.literal;
  if (literal.kind == Token::Kind::Real || literal.kind == Token::Kind::Name) {
    const Dtype dtype = expected && is_float(*expected) ? *expected : Dtype::F32;
    return literal_of(literal.text, operand.is_negative, dtype, literal.span);
  }
  const Dtype dtype = expected.value_or(Dtype::Index);
  if (is_integer(dtype)) {
    const Expr value = literal_of(literal.text, false, Dtype::U64, literal.span);
    if (!fits(static_cast<std::uint64_t>(as<Const>(value)->bits), operand.is_negative, dtype))
      fail(literal.span, fmt::format("`{}{}` is no value of {}", operand.is_negative ? "-" : "", literal.text, info(dtype).name));
  }
  return literal_of(literal.text, operand.is_negative, dtype, literal.span);
}

Expr Parser::settle_beside(const Operand& operand, const Operand& other, Expected otherwise) {
  return settle(operand, other.expr ? Expected(other.expr->dtype) : otherwise);
}

Parser::Operand Parser::operand(Expected expected) {
  if (++depth_ > deepest) fail(peek().span, fmt::format("an expression is nested deeper than {}", deepest));
  Operand result = at("if") ? select_operand(expected) : binary_operand(1, expected);
  --depth_;
  return result;
}

Parser::Operand Parser::select_operand(Expected expected) {
  const Span start = take().span;
  Operand condition = binary_operand(1, std::nullopt);
  need("then", "behind the condition");
  Operand if_true = operand(expected);
  need("else", "behind the first branch");
  Operand if_false = operand(expected);
  const int height = std::max({condition.height, if_true.height, if_false.height}) + 1;
  Expr a = settle_beside(if_true, if_false, expected);
  Expr b = settle_beside(if_false, if_true, expected);
  const Dtype dtype = a->dtype;
  return note_height(make_expr(Select{settle(condition, std::nullopt), std::move(a), std::move(b)}, dtype, since(start)), height);
}

Parser::Operand Parser::join(BinaryOp op, const Operand& lhs, const Operand& rhs, Expected expected, const Span& start) {
  const BinaryInfo& facts = info(op);
  const bool is_shift = op == BinaryOp::Shl || op == BinaryOp::Shr;
  const Expected outer = facts.is_comparison || facts.is_logical ? Expected() : expected;
  Expr a = is_shift ? settle(lhs, outer) : settle_beside(lhs, rhs, outer);
  Expr b = is_shift ? settle(rhs, a->dtype) : settle_beside(rhs, lhs, outer);
  const Dtype dtype = facts.is_comparison || facts.is_logical ? Dtype::Bool : a->dtype;
  return note_height(make_expr(Binary{op, std::move(a), std::move(b)}, dtype, since(start)), std::max(lhs.height, rhs.height) + 1);
}

Parser::Operand Parser::binary_operand(int strength, Expected expected) {
  const Span start = peek().span;
  Operand lhs = unary_operand(expected);
  while (true) {
    const Token& token = peek();
    if (token.kind != Token::Kind::Punct && token.text != "and" && token.text != "or") return lhs;
    const std::optional<BinaryOp> op = binary_by_spelling(token.text);
    if (!op || !info(*op).is_infix || info(*op).precedence < strength) return lhs;
    take();
    const BinaryInfo& facts = info(*op);
    const bool keeps = !facts.is_comparison && !facts.is_logical && *op != BinaryOp::Shl && *op != BinaryOp::Shr;
    Operand rhs = binary_operand(facts.precedence + 1, keeps ? expected : Expected());
    lhs = join(*op, lhs, rhs, expected, start);
  }
}

Parser::Operand Parser::unary_operand(Expected expected) {
  const Token& token = peek();
  const bool is_neg = token.kind == Token::Kind::Punct && token.text == "-";
  const bool is_not = token.kind == Token::Kind::Name && token.text == "not";
  const bool is_bit_not = token.kind == Token::Kind::Punct && token.text == "~";
  if (!is_neg && !is_not && !is_bit_not) return primary_operand(expected);
  const Span start = take().span;
  const Token& next = peek();
  const bool is_number = next.kind == Token::Kind::Integer || next.kind == Token::Kind::Real ||
                         (next.kind == Token::Kind::Name && (next.text == "inf" || next.text == "nan"));
  if (is_neg && is_number) return Operand{{}, take(), true, 1};
  if (++depth_ > deepest) fail(start, fmt::format("an expression is nested deeper than {}", deepest));
  Operand inner = unary_operand(expected);
  --depth_;
  Expr value = settle(inner, expected);
  const Dtype dtype = value->dtype;
  const UnaryOp op = is_neg ? UnaryOp::Neg : is_not ? UnaryOp::Not : UnaryOp::BitNot;
  return note_height(make_expr(Unary{op, std::move(value)}, dtype, since(start)), inner.height + 1);
}

Parser::Operand Parser::primary_operand(Expected expected) {
  const Token& token = peek();
  if (token.kind == Token::Kind::Integer || token.kind == Token::Kind::Real) return Operand{{}, take(), false, 1};
  if (eat("(")) {
    ++brackets_;
    Operand inner = operand(expected);
    need(")", "to close the parenthesis");
    --brackets_;
    return inner;
  }
  if (token.kind != Token::Kind::Name) fail_here("an expression");
  const Token name = take();
  if (name.text == "inf" || name.text == "nan") return Operand{{}, name, false, 1};
  if (name.text == "true" || name.text == "false") return Operand{make_expr(Const{name.text == "true"}, Dtype::Bool, name.span), {}, false, 1};
  if (is_reserved(name.text)) fail(name.span, fmt::format("`{}` stands where an expression is needed", name.text));
  if (at("(")) return call_operand(name, expected);
  if (at("[")) {
    int height = 1;
    Access place = access_of(name, &height);
    const Dtype dtype = buffer_dtype(place.buffer).value_or(Dtype::F32);
    return note_height(make_expr(Load{std::move(place)}, dtype, since(name.span)), height + 1);
  }
  return named_operand(name);
}

Parser::Operand Parser::named_operand(const Token& name) {
  const Symbol* symbol = find(name.text);
  if (symbol && symbol->is_buffer && (symbol->is_scalar || whole_arrays_))
    return Operand{make_expr(Load{Access{name.text, {}, {}, name.span}}, symbol->dtype, name.span), {}, false, 1};
  if (symbol && !symbol->is_buffer) return Operand{make_expr(Var{name.text}, symbol->dtype, name.span), {}, false, 1};
  std::string text = name.text == "thread" || name.text == "block" ? name.text + ".x" : name.text;
  return Operand{make_expr(Var{std::move(text)}, Dtype::Index, name.span), {}, false, 1};
}

std::vector<Parser::Operand> Parser::arguments(Expected expected) {
  need("(", "behind the name");
  ++brackets_;
  std::vector<Operand> list;
  while (!at(")")) {
    list.push_back(operand(expected));
    if (!eat(",")) break;
  }
  need(")", "behind the arguments");
  --brackets_;
  return list;
}

Parser::Operand Parser::call_operand(const Token& name, Expected expected) {
  const ArgumentRule how = argument_rule(name.text);
  const std::optional<Dtype> cast_to = dtype_by_name(name.text);
  const std::optional<BinaryOp> op = binary_by_spelling(name.text);
  const bool is_value = !cast_to && how == ArgumentRule::Value;
  std::vector<Operand> list = arguments(is_value ? expected : Expected());
  int height = 1;
  for (const Operand& argument : list) height = std::max(height, argument.height + 1);

  if (cast_to) {
    if (list.size() != 1) fail(name.span, fmt::format("`{}` converts one value, and {} stand here", name.text, list.size()));
    const bool is_integer_text = list[0].literal.kind == Token::Kind::Integer;
    if (!list[0].expr && *cast_to != Dtype::Bool && (is_float(*cast_to) || is_integer_text))
      return Operand{settle(list[0], cast_to), {}, false, 1};
    Expr value = settle(list[0], std::nullopt);
    if (value->dtype == *cast_to) return Operand{std::move(value), {}, false, height};
    return note_height(make_expr(Cast{std::move(value)}, *cast_to, since(name.span)), height);
  }
  if (op && !info(*op).is_infix && list.size() == 2) return join(*op, list[0], list[1], expected, name.span);

  Expected for_literals = is_value ? expected : Expected();
  if (how != ArgumentRule::Plain)
    for (auto argument = list.rbegin(); argument != list.rend(); ++argument)
      if (argument->expr) for_literals = argument->expr->dtype;
  std::vector<Expr> values;
  for (const Operand& argument : list) values.push_back(settle(argument, for_literals));
  Dtype dtype = values.empty() ? expected.value_or(Dtype::Index) : values[0]->dtype;
  if (const FunctionInfo* row = find_function(name.text); row && row->result) dtype = *row->result;
  if (const InstrInfo* row = find_instruction(name.text); row && row->result && *row->result != Dtype::Index) dtype = *row->result;
  return note_height(make_expr(Call{name.text, std::move(values)}, dtype, since(name.span)), height);
}

Rule Parser::rule(Expected expected) {
  Rule result;
  const bool is_word = peek().kind == Token::Kind::Name && (peek(1).text == "]" || peek(1).kind == Token::Kind::Integer);
  if (is_word && eat("clamp")) {
    result.kind = Rule::Kind::Clamp;
  } else if (is_word && eat("wrap")) {
    result.kind = Rule::Kind::Wrap;
  } else if (is_word && eat("mirror")) {
    result.kind = Rule::Kind::Mirror;
  } else if (is_word && eat("skip")) {
    result.kind = Rule::Kind::Skip;
  } else if (is_word && eat("check")) {
    result.kind = Rule::Kind::Check;
    result.check_id = need_int("the number of an access");
  } else {
    result.kind = Rule::Kind::Fill;
    result.fill = expression(expected);
  }
  return result;
}

Access Parser::access_of(const Token& name, int* height) {
  Access result{name.text, {}, {}, {}};
  if (eat("[")) {
    ++brackets_;
    const bool outer = std::exchange(whole_arrays_, false);
    while (!at("]") && !at(";")) {
      const Operand index = operand(std::nullopt);
      if (height) *height = std::max(*height, index.height);
      result.index.push_back(settle(index, std::nullopt));
      if (!eat(",")) break;
    }
    if (result.index.empty() && !at(";")) fail_here("an index");
    if (eat(";")) result.rule = rule(buffer_dtype(name.text));
    whole_arrays_ = outer;
    need("]", "behind the indices");
    --brackets_;
  }
  result.span = since(name.span);
  return result;
}

Access Parser::access() {
  if (peek().kind != Token::Kind::Name) fail_here("the name of a tensor or buffer");
  return access_of(take());
}

std::vector<Expr> Parser::expressions(std::string_view close) {
  ++brackets_;
  std::vector<Expr> list;
  while (!at(close)) {
    list.push_back(expression());
    if (!eat(",")) break;
  }
  need(close, "to close the list");
  --brackets_;
  return list;
}

std::vector<Expr> Parser::where() {
  std::vector<Expr> list;
  if (!eat("where")) return list;
  do list.push_back(expression());
  while (eat(","));
  return list;
}

Axis Parser::axis() {
  Axis result;
  const Span start = peek().span;
  result.name = need_name("a loop variable");
  need("in", "behind the loop variable");
  result.hi = expression();
  if (eat("..")) {
    result.lo = std::move(result.hi);
    result.hi = expression();
  } else {
    result.lo = integer(0);
  }
  if (eat("step")) result.step = expression();
  result.span = since(start);
  return result;
}

std::vector<Expr> Parser::shape() { return eat("[") ? expressions("]") : std::vector<Expr>(); }

}  // namespace tilewright
