// Plans and kernels of the IR's text; tokens and names for all parts of the parser.
#include "ir/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tilewright {

namespace {
constexpr std::size_t most_messages = 20;
}

Parser::Parser(const std::string& text, int file) { tokens_ = lex_ir(text, file, faults_); }

// ---- Tokens

const Token& Parser::peek(std::size_t ahead) {
  std::size_t index = position_;
  while (true) {
    while (brackets_ > 0 && tokens_[index].kind == Token::Kind::Newline) ++index;
    if (ahead == 0 || tokens_[index].kind == Token::Kind::End) return tokens_[index];
    ++index;
    --ahead;
  }
}

Token Parser::take() {
  const Token& token = peek();
  position_ = static_cast<std::size_t>(&token - tokens_.data());
  if (token.kind != Token::Kind::End) ++position_;
  return token;
}

bool Parser::at(std::string_view text) {
  const Token& token = peek();
  return token.text == text && (token.kind == Token::Kind::Name || token.kind == Token::Kind::Punct);
}

bool Parser::eat(std::string_view text) {
  if (!at(text)) return false;
  take();
  return true;
}

void Parser::need(std::string_view text, std::string_view where) {
  if (!eat(text)) fail_here(fmt::format("`{}` {}", text, where));
}

std::string Parser::need_name(std::string_view what) {
  if (peek().kind != Token::Kind::Name) fail_here(what);
  return take().text;
}

std::int64_t Parser::need_integer(std::string_view what, std::int64_t most) {
  const Token token = peek();
  if (token.kind != Token::Kind::Integer) fail_here(what);
  take();
  std::int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto result = std::from_chars(token.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value > most) fail(token.span, fmt::format("{} is too large for {}", token.text, what));
  return value;
}

int Parser::need_int(std::string_view what) { return static_cast<int>(need_integer(what, INT32_MAX)); }

void Parser::skip_lines() {
  while (peek().kind == Token::Kind::Newline) take();
}

void Parser::skip_separators() {
  while (peek().kind == Token::Kind::Newline || at(";")) take();
}

// To the end of the line or of the block, past a block that the statement holds.
void Parser::skip_statement() {
  for (int open = 0; peek().kind != Token::Kind::End; take()) {
    if (open == 0 && (peek().kind == Token::Kind::Newline || at("}"))) return;
    if (at("{")) ++open;
    if (at("}")) --open;
  }
}

void Parser::fail(const Span& span, std::string message) {
  // One fault a place: what surrounds a broken statement often fails at the same token.
  const bool is_known = !faults_.empty() && faults_.back().span.line == span.line && faults_.back().span.column == span.column;
  if (!is_known && faults_.size() < most_messages) faults_.push_back(Diagnostic{span, std::move(message), {}, {}});
  throw Recover{};
}

void Parser::fail_here(std::string_view needed) {
  const Token& token = peek();
  const bool is_quotable = token.kind != Token::Kind::End && token.kind != Token::Kind::Newline;
  const std::string seen = is_quotable ? fmt::format("`{}` stands", token.text.substr(0, 40))
                           : token.kind == Token::Kind::End ? std::string("the text ends") : std::string("the line ends");
  fail(token.span, fmt::format("{} where {} is needed", seen, needed));
}

Span Parser::since(const Span& start) const {
  if (position_ == 0) return start;
  const Span& last = tokens_[position_ - 1].span;
  return Span{start.file, start.line, start.column, last.end_line, last.end_column};
}

// ---- Names

void Parser::declare(const std::string& name, Symbol symbol) {
  symbols_[name].push_back(symbol);
  declared_.push_back(name);
}

const Parser::Symbol* Parser::find(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() || found->second.empty() ? nullptr : &found->second.back();
}

// The innermost buffer of this name; a loop variable of the same name does not hide a tensor.
Parser::Expected Parser::buffer_dtype(const std::string& name) const {
  const auto found = symbols_.find(name);
  if (found == symbols_.end()) return std::nullopt;
  for (auto symbol = found->second.rbegin(); symbol != found->second.rend(); ++symbol)
    if (symbol->is_buffer) return symbol->dtype;
  return std::nullopt;
}

void Parser::leave_scope(std::size_t mark) {
  for (; declared_.size() > mark; declared_.pop_back()) symbols_[declared_.back()].pop_back();
}

// ---- Plans

Plan Parser::run() {
  Plan plan;
  try {
    skip_separators();
    if (at("kernel")) {
      plan.name = peek(1).text;
      plan.steps.emplace_back(kernel());
    } else {
      if (!at("plan")) fail_here("`plan NAME { … }`");
      take();
      plan.name = need_name("the plan's name");
      if (peek().kind == Token::Kind::String) plan.schedule = take().text;
      if (eat("for")) plan.arch = need_name("an architecture");
      need("{", "in front of the plan's items");
      declare_scalars();
      for (skip_separators(); !at("}") && peek().kind != Token::Kind::End; skip_separators()) {
        try {
          plan_item(plan);
        } catch (const Recover&) {
          brackets_ = 0;
          depth_ = 0;
          skip_statement();
        }
      }
      need("}", "to close the plan");
    }
    skip_separators();
    if (peek().kind != Token::Kind::End) fail_here("the end of the text");
  } catch (const Recover&) {
  }
  std::stable_sort(faults_.begin(), faults_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.span.line, a.span.column) < std::pair(b.span.line, b.span.column);
  });
  if (!faults_.empty()) throw UserError(faults_);
  return plan;
}

// Shapes may use scalar parameters that stand further down.
void Parser::declare_scalars() {
  for (std::size_t n = position_; n + 4 < tokens_.size(); ++n) {
    const std::string& word = tokens_[n].text;
    const Token& before = tokens_[n - 1];
    if (word == "kernel") return;
    if ((word != "in" && word != "inout" && word != "out") || tokens_[n].kind != Token::Kind::Name) continue;
    if (before.kind != Token::Kind::Newline && before.text != ";" && before.text != "{") continue;
    const std::optional<Dtype> type = dtype_by_name(tokens_[n + 3].text);
    if (type && tokens_[n + 2].text == ":" && tokens_[n + 4].text != "[") declare_buffer(tokens_[n + 1].text, *type, true);
  }
}

void Parser::plan_item(Plan& plan) {
  const Token word = peek();
  if (word.kind != Token::Kind::Name) fail_here("an item of the plan");
  if (word.text == "kernel") {
    plan.steps.emplace_back(kernel());
    return;
  }
  take();
  if (word.text == "dim") return dims(plan);
  if (word.text == "when") return facts(plan);
  if (word.text == "error") return errors(plan);
  if (word.text == "class") {
    need("index", "behind `class`");
    plan.index_bits = need_int("32 or 64");
    return;
  }
  if (word.text == "clear") {
    Clear clear;
    clear.tensor = need_name("a tensor");
    clear.value = expression(buffer_dtype(clear.tensor));
    plan.steps.emplace_back(std::move(clear));
    return;
  }
  const bool is_param = word.text == "in" || word.text == "out" || word.text == "inout";
  if (!is_param && word.text != "temp" && word.text != "table") fail(word.span, fmt::format("`{}` is no item of a plan", word.text));
  const std::string name = need_name("a tensor's name");
  need(":", "behind the name");
  const Dtype type = dtype("the element type");
  std::vector<Expr> extents = shape();
  declare_buffer(name, type, extents.empty());
  if (word.text == "temp") {
    plan.temps.push_back(Temp{name, type, std::move(extents)});
  } else if (word.text == "table") {
    need("=", "behind the table's type");
    plan.steps.emplace_back(Table{name, type, std::move(extents), expression(type)});
  } else {
    const ParamKind kind = word.text == "in" ? ParamKind::In : word.text == "out" ? ParamKind::Out : ParamKind::InOut;
    plan.params.push_back(Param{kind, name, type, std::move(extents), since(word.span)});
  }
}

void Parser::dims(Plan& plan) {
  do {
    Dim dim;
    dim.name = need_name("a dim");
    if (eat("=")) dim.value = expression();
    declare_var(dim.name);
    plan.dims.push_back(std::move(dim));
  } while (eat(","));
}

void Parser::facts(Plan& plan) {
  do {
    Fact fact;
    if (at("aligned") && peek(1).kind == Token::Kind::Integer) {
      take();
      fact.kind = Fact::Kind::Aligned;
      fact.alignment = need_int("an alignment in bytes");
    } else if (at("contiguous")) {
      take();
      fact.kind = Fact::Kind::Contiguous;
    } else {
      fact.condition = expression();
    }
    plan.facts.push_back(std::move(fact));
  } while (eat(","));
}

void Parser::errors(Plan& plan) {
  if (peek().kind == Token::Kind::Name) plan.error_name = take().text;
  need("{", "in front of the accesses");
  ++brackets_;
  try {
    while (!at("}")) {
      ErrorSite site;
      site.id = need_int("the number of an access");
      need(":", "behind the number");
      site.access = expression();
      plan.errors.push_back(std::move(site));
      if (!eat(",")) break;
    }
    need("}", "behind the accesses");
  } catch (const Recover&) {
    brackets_ = 0;
    skip_statement();  // to the brace that would look like the plan's
    eat("}");
  }
  brackets_ = 0;
}

Kernel Parser::kernel() {
  take();
  Kernel result;
  result.name = need_name("the kernel's name");
  const std::size_t mark = declared_.size();
  for (skip_lines(); !at("{"); skip_lines()) launch_part(result);
  for (const TensorMap& map : result.launch.maps) declare_var(map.name, Dtype::U64);
  result.body = block();
  leave_scope(mark);
  return result;
}

std::vector<std::int64_t> Parser::integers() {
  need("(", "in front of the numbers");
  ++brackets_;
  std::vector<std::int64_t> list;
  do list.push_back(need_integer("a number"));
  while (eat(","));
  need(")", "behind the numbers");
  --brackets_;
  return list;
}

void Parser::launch_part(Kernel& kernel) {
  const Token word = peek();
  if (word.kind != Token::Kind::Name) fail_here("`{` in front of the statements");
  take();
  LaunchHeader& launch = kernel.launch;
  if (word.text == "thread") {
    kernel.stage = Stage::Thread;
  } else if (word.text == "for") {
    launch.arch = need_name("an architecture");
  } else if (word.text == "warps") {
    kernel.warps = need_int("a number of warps");
  } else if (word.text == "threads") {
    kernel.block_shape = integers();
  } else if (word.text == "grid") {
    need("(", "behind `grid`");
    launch.grid = expressions(")");
  } else if (word.text == "block") {
    launch.block = integers();
  } else if (word.text == "cluster") {
    launch.cluster = integers();
  } else if (word.text == "shared") {
    launch.shared_bytes = need_integer("a number of bytes");
  } else if (word.text == "align") {
    launch.align = need_integer("a number of bytes");
  } else if (word.text == "min_blocks") {
    launch.min_blocks = need_int("a number of blocks");
  } else if (word.text == "args") {
    need("(", "behind `args`");
    ++brackets_;
    do launch.arguments.push_back(need_name("an argument"));
    while (eat(","));
    need(")", "behind the arguments");
    --brackets_;
  } else if (word.text == "maps") {
    need("(", "behind `maps`");
    ++brackets_;
    do launch.maps.push_back(tensor_map());
    while (eat(","));
    need(")", "behind the maps");
    --brackets_;
  } else {
    fail(word.span, fmt::format("`{}` is no part of a kernel's header", word.text));
  }
}

TensorMap Parser::tensor_map() {
  TensorMap map;
  map.name = need_name("a map's name");
  need("=", "behind the name");
  need("tiled", "behind `=`");
  need("(", "behind `tiled`");
  map.tensor = need_name("a tensor");
  while (eat(",")) map.box.push_back(need_integer("an extent of the box"));
  need(")", "behind the box");
  if (eat("xor")) map.xor_bytes = need_int("the bytes of the swizzle");
  return map;
}

Plan parse_plan(const std::string& text, int file) { return Parser(text, file).run(); }

}  // namespace tilewright
