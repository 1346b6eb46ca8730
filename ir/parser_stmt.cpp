// Statements of the IR's text.
#include <fmt/format.h>

#include <array>

#include "ir/operators.h"
#include "ir/parser.h"

namespace tilewright {

namespace {

constexpr int deepest_block = 250;

struct LoopWord {
  std::string_view word;
  LoopKind kind;
};
constexpr std::array<LoopWord, 8> loop_words = {{{"parallel", LoopKind::Parallel},
                                                 {"grid", LoopKind::Grid},
                                                 {"cluster", LoopKind::Cluster},
                                                 {"ordered", LoopKind::Ordered},
                                                 {"each", LoopKind::Each},
                                                 {"serial", LoopKind::Serial},
                                                 {"unroll", LoopKind::Unroll},
                                                 {"vector", LoopKind::Vector}}};

struct VerbWord {
  std::string_view word;
  VerbKind kind;
};
constexpr std::array<VerbWord, 4> verb_words = {
    {{"acquire", VerbKind::Acquire}, {"commit", VerbKind::Commit}, {"wait", VerbKind::Wait}, {"release", VerbKind::Release}}};

}  // namespace

Block Parser::block() {
  need("{", "in front of the statements");
  const int brackets = std::exchange(brackets_, 0);
  const int depth = depth_;
  if (++depth_ > deepest_block) fail(tokens_[position_ - 1].span, fmt::format("statements are nested deeper than {}", deepest_block));
  const std::size_t mark = declared_.size();
  Block body;
  for (skip_separators(); !at("}") && peek().kind != Token::Kind::End; skip_separators()) {
    try {
      body.push_back(statement());
      const Token& next = peek();
      if (next.kind != Token::Kind::Newline && next.kind != Token::Kind::End && next.text != ";" && next.text != "}")
        fail_here("the end of the statement");
    } catch (const Recover&) {
      brackets_ = 0;
      depth_ = depth + 1;
      whole_arrays_ = false;
      skip_statement();
    }
  }
  leave_scope(mark);
  brackets_ = brackets;
  need("}", "to close the block");
  depth_ = depth;
  return body;
}

Stmt Parser::statement() {
  const Span start = peek().span;
  if (eat("@")) {
    if (++depth_ > deepest_block) fail(start, fmt::format("statements are nested deeper than {}", deepest_block));
    std::string role = need_name("the name of a role");
    Stmt inner = statement();
    --depth_;
    return make_stmt(Labelled{std::move(role), std::move(inner)}, start);
  }
  if (peek().kind != Token::Kind::Name) fail_here("a statement");
  const Stmt made = statement_of(peek());
  return make_stmt(made->value, since(start));
}

// A word of the grammar is one only in front of another name; so a tensor may be called `fill`.
Stmt Parser::statement_of(const Token& first) {
  const std::string word = first.text;
  if (word == "if") return branch();
  if (peek(1).kind == Token::Kind::Name) {
    for (const LoopWord& row : loop_words)
      if (row.word == word) return loop(row.kind);
    for (const VerbWord& row : verb_words)
      if (row.word == word) {
        take();
        return make_stmt(Verb{row.kind, need_name("a pipe")});
      }
    if (word == "reg") return buffer(Space::Register);
    if (word == "shared") return buffer(Space::Shared);
    if (word == "atomic") return store(true);
    if (word == "pipe") return pipe_statement();
    if (word == "role") return role_statement();
    return tile_operation(word);
  }
  if (peek(1).text == "(") return instruction(take());
  return store(false);
}

Stmt Parser::loop(LoopKind kind) {
  take();
  Loop node{kind, {}, {}, {}};
  const std::size_t mark = declared_.size();
  do {
    node.axes.push_back(axis());
    declare_var(node.axes.back().name);
  } while (eat(","));
  if (eat("on")) node.deal = layout();
  node.body = block();
  leave_scope(mark);
  return make_stmt(std::move(node));
}

Stmt Parser::branch() {
  take();
  const Operand condition = binary_operand(1, std::nullopt);
  If node{settle(condition, std::nullopt), {}, {}};
  node.then_body = block();
  const std::size_t here = position_;
  skip_lines();
  if (!eat("else")) {
    position_ = here;
  } else if (at("if")) {
    node.else_body.push_back(statement());
  } else {
    node.else_body = block();
  }
  return make_stmt(std::move(node));
}

Dtype Parser::dtype(std::string_view where) {
  const Token token = peek();
  const std::string name = need_name(where);
  if (const std::optional<Dtype> found = dtype_by_name(name)) return *found;
  fail(token.span, fmt::format("`{}` is no element type", name));
}

Stmt Parser::buffer(Space space) {
  take();
  Buffer node{space, need_name("the buffer's name"), Dtype::F32, {}, {}, {}};
  need(":", "behind the buffer's name");
  node.dtype = dtype("the element type");
  if (eat("[")) {
    ++brackets_;
    do {
      BufferAxis axis;
      if (peek().kind == Token::Kind::Name) axis.name = take().text;
      axis.extent = need_integer("the extent of an axis");
      node.axes.push_back(std::move(axis));
    } while (eat(","));
    need("]", "behind the axes");
    --brackets_;
  }
  if (at("(")) node.layout = layout();
  if (eat("at")) node.offset = need_integer("a byte offset");
  declare_buffer(node.name, node.dtype, node.axes.empty());
  return make_stmt(std::move(node));
}

Layout Parser::layout() {
  Layout result;
  need("(", "in front of a layout");
  ++brackets_;
  while (!at(")")) {
    AxisLayout axis;
    axis.axis = need_name("an axis");
    need(":", "behind the axis");
    do {
      Factor factor;
      factor.extent = need_integer("the extent of a factor");
      const Token place = peek();
      const std::optional<Place> found = place_by_name(need_name("a place"));
      if (!found) fail(place.span, fmt::format("`{}` is no place; mem, reg, lane, warp, warpgroup, thread.x, step … are", place.text));
      factor.place = *found;
      if (eat("*")) factor.stride = need_integer("a stride");
      axis.factors.push_back(factor);
    } while (eat(","));
    result.axes.push_back(std::move(axis));
    if (!eat(";")) break;
  }
  need(")", "behind the layout");
  --brackets_;
  if (eat("xor")) result.xor_bytes = need_int("the bytes of the swizzle");
  return result;
}

CombineOp Parser::combine_op() {
  for (CombineOp op : {CombineOp::Add, CombineOp::Mul, CombineOp::Max, CombineOp::Min, CombineOp::And, CombineOp::Or})
    if (eat(info(op).spelling)) return op;
  fail_here("one of + * max min & |");
}

Stmt Parser::store(bool is_atomic) {
  if (is_atomic) take();
  Store node;
  node.target = access();
  if (is_atomic) {
    for (CombineOp op : {CombineOp::Add, CombineOp::Mul, CombineOp::Max, CombineOp::Min, CombineOp::And, CombineOp::Or}) {
      const bool is_word = op == CombineOp::Max || op == CombineOp::Min;
      if (node.atomic || !eat(is_word ? std::string(info(op).spelling) : fmt::format("{}=", info(op).spelling))) continue;
      if (is_word) need("=", "behind the operator");
      node.atomic = op;
    }
    if (!node.atomic) fail_here("one of += *= max= min= &= |=");
  } else {
    need("=", "behind the target");
  }
  node.value = expression(buffer_dtype(node.target.buffer));
  node.where = where();
  return make_stmt(std::move(node));
}

Stmt Parser::instruction(const Token& name) {
  Instr node{name.text, {}};
  whole_arrays_ = true;
  for (const Operand& item : arguments(std::nullopt)) node.operands.push_back(settle(item, std::nullopt));
  whole_arrays_ = false;
  return make_stmt(std::move(node));
}

Stmt Parser::tile_operation(const std::string& word) {
  const Token first = take();
  if (word == "let") {
    Let node;
    node.name = need_name("a name");
    need("=", "behind the name");
    node.value = expression();
    if (eat("in")) {
      if (!at("..")) node.lo = expression();
      need("..", "in the range");
      const Token& next = peek();
      if (next.kind != Token::Kind::Newline && next.text != ";" && next.text != "}") node.hi = expression();
    }
    declare_var(node.name, node.value->dtype);
    return make_stmt(std::move(node));
  }
  if (word == "copy") {
    Copy node;
    node.target = access();
    need("<-", "behind the target");
    node.source = access();
    if (eat("multicast")) node.multicast = need_name("a loop variable");
    node.where = where();
    if (eat("on")) node.deal = layout();
    return make_stmt(std::move(node));
  }
  if (word == "fill") {
    Fill node;
    node.buffer = need_name("a buffer");
    need("<-", "behind the buffer");
    node.value = expression(buffer_dtype(node.buffer));
    return make_stmt(std::move(node));
  }
  if (word == "mma") {
    Mma node;
    node.target = access();
    need("+=", "behind the target");
    node.a = access();
    need("*", "between the operands");
    node.b = access();
    need("by", "behind the operands");
    node.instruction = need_name("an instruction");
    return make_stmt(std::move(node));
  }
  if (word == "reduce" || word == "scan") {
    Fold node;
    node.is_scan = word == "scan";
    node.target = access();
    need("<-", "behind the target");
    node.op = combine_op();
    node.source = access();
    if (node.is_scan && eat("total")) node.total = need_name("a scalar");
    return make_stmt(std::move(node));
  }
  if (word == "chain") {
    Chain node;
    node.name = need_name("a name");
    need(":", "behind the name");
    node.dtype = dtype("the element type");
    need("by", "behind the element type");
    node.op = combine_op();
    need("from", "behind the operator");
    node.start = expression(node.dtype);
    declare_buffer(node.name, node.dtype, false);
    return make_stmt(std::move(node));
  }
  if (word == "publish") {
    Publish node;
    node.chain = need_name("a chain");
    need("<-", "behind the chain");
    node.value = expression(buffer_dtype(node.chain));
    return make_stmt(std::move(node));
  }
  if (word == "lookback") {
    Lookback node;
    node.target = access();
    need("<-", "behind the target");
    node.chain = need_name("a chain");
    return make_stmt(std::move(node));
  }
  fail(first.span, fmt::format("`{}` begins no statement", word));
}

Stmt Parser::pipe_statement() {
  take();
  Pipe node;
  node.name = need_name("a name");
  need(":", "behind the name");
  do node.buffers.push_back(need_name("a buffer"));
  while (eat(","));
  need("slots", "behind the buffers");
  node.slots = need_int("the number of slots");
  need("via", "behind the slots");
  node.mechanism = need_name("a mechanism");
  if (eat("in")) {
    need("flight", "behind `in`");
    node.in_flight = need_int("a number of trips");
  }
  if (eat("scope")) {
    const Token scope = peek();
    const std::string word = need_name("`block` or `cluster`");
    if (word != "block" && word != "cluster") fail(scope.span, fmt::format("`{}` stands where `block` or `cluster` is needed", word));
    node.scope = word == "cluster" ? PipeScope::Cluster : PipeScope::Cta;
  }
  return make_stmt(std::move(node));
}

Stmt Parser::role_statement() {
  take();
  Role node;
  node.name = need_name("a name");
  need("warps", "behind the name");
  node.first_warp = need_int("the first warp");
  need("..", "between the warps");
  node.last_warp = need_int("the warp behind the last");
  if (eat("registers")) node.registers = need_int("registers a thread");
  return make_stmt(std::move(node));
}

}  // namespace tilewright
