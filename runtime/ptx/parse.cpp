// Reading PTX text into a Module.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "ir/diagnostic.h"
#include "runtime/ptx/lexer.h"
#include "runtime/ptx/module.h"

namespace tilewright::ptx {

namespace {

std::optional<Space> space_by_name(std::string_view name) {
  if (name == ".reg") return Space::Register;
  if (name == ".global") return Space::Global;
  if (name == ".shared") return Space::Shared;
  if (name == ".local") return Space::Local;
  if (name == ".const") return Space::Const;
  if (name == ".param") return Space::Param;
  return std::nullopt;
}

// One level of braces.
struct Scope {
  std::unordered_map<std::string_view, int> registers;
  std::unordered_map<std::string_view, int> variables;
};

class Parser {
 public:
  explicit Parser(const std::string& text) : tokens_(tokens_of(text)) {}

  Module run() {
    while (now().kind != Token::Kind::End) top_level();
    return std::move(module_);
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(std::size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  [[noreturn]] void fail(const std::string& wanted) const {
    throw MachineError(fmt::format("PTX line {}: found `{}`, {}", now().line, now().text, wanted));
  }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(std::string_view sign) {
    if (!now().is(sign)) return false;
    take();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) fail(fmt::format("`{}` is needed", sign));
  }
  std::string name() {
    if (now().kind != Token::Kind::Name) fail("a name is needed");
    return std::string(take().text);
  }
  std::int64_t integer() {
    const bool is_negative = accept("-");
    if (now().kind != Token::Kind::Number) fail("a number is needed");
    const std::int64_t value = integer_value(take().text);
    return is_negative ? -value : value;
  }
  std::int64_t integer_value(std::string_view text) const {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) base = 16, text.remove_prefix(2);
    else if (text.starts_with("0b") || text.starts_with("0B")) base = 2, text.remove_prefix(2);
    else if (text.size() > 1 && text[0] == '0') base = 8, text.remove_prefix(1);
    if (text.ends_with("U")) text.remove_suffix(1);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) throw MachineError(fmt::format("PTX line {}: `{}` is no integer", now().line, text));
    return static_cast<std::int64_t>(value);
  }
  // Everything up to the sign, which is taken too.
  void skip_past(std::string_view sign) {
    while (now().kind != Token::Kind::End && !now().is(sign)) take();
    take();
  }

  void top_level() {
    const std::string_view word = now().text;
    if (word == ".version") {
      take(), take();
    } else if (word == ".target") {
      take();
      module_.target = name();
      while (accept(",")) take();
    } else if (word == ".address_size") {
      take();
      if (integer() != 64) throw MachineError("PTX of 64-bit addresses is needed");
    } else if (word == ".file") {
      take();
      read_file();
    } else if (word == ".section") {
      skip_past("}");
    } else if (word == ".pragma" || word == ".alias") {
      skip_past(";");
    } else if (word == ".visible" || word == ".extern" || word == ".weak" || word == ".common") {
      take();
    } else if (word == ".entry" || word == ".func") {
      function();
    } else if (space_by_name(word)) {
      for (Variable& variable : declarations()) module_.variables.push_back(std::move(variable));
    } else {
      fail("a function or a variable is needed");
    }
  }

  void read_file() {
    const auto number = static_cast<std::size_t>(integer());
    const std::string_view path = take().text;
    while (accept(",")) take();
    if (module_.files.size() <= number) module_.files.resize(number + 1);
    module_.files[number] = std::string(path.substr(path.find_last_of('/') + 1));
  }

  // `.shared .align 4 .b8 a[16], b[4] = {…};` without registers. A parameter has no semicolon.
  Variable declared_head() {
    Variable variable;
    variable.space = *space_by_name(take().text);
    bool has_type = false;
    vector_elements_ = 1;
    while (now().kind == Token::Kind::Name && now().text[0] == '.') {
      const std::string_view word = take().text;
      if (word == ".align") {
        variable.alignment = static_cast<std::size_t>(integer());
      } else if (word == ".v2" || word == ".v4") {
        vector_elements_ = word == ".v2" ? 2 : 4;
      } else if (const auto type = type_by_name(word.substr(1))) {
        variable.type = *type;
        has_type = true;
      }  // else .ptr, .global … of a parameter, attributes
    }
    if (!has_type) fail("a type is needed");
    return variable;
  }
  void declared_name(Variable& variable) {
    variable.name = name();
    std::size_t elements = vector_elements_;
    while (accept("[")) {
      if (accept("]")) {
        variable.is_unsized = true;
        elements = 0;
        continue;
      }
      elements *= static_cast<std::size_t>(integer());
      expect("]");
    }
    variable.bytes = elements * bytes_of(variable.type);
    variable.alignment = std::max(variable.alignment, bytes_of(variable.type));
    if (accept("=")) initial_value(variable);
  }
  std::vector<Variable> declarations() {
    const Variable head = declared_head();
    std::vector<Variable> result;
    do {
      Variable variable = head;
      declared_name(variable);
      result.push_back(std::move(variable));
    } while (accept(","));
    expect(";");
    return result;
  }
  void initial_value(Variable& variable) {
    variable.content.assign(variable.bytes, std::byte{0});
    std::size_t at = 0;
    const bool has_braces = accept("{");
    do {
      if (has_braces && accept("}")) return;
      if (at + bytes_of(variable.type) > variable.bytes) fail("more values than the variable holds");
      initial_element(variable, at);
      at += bytes_of(variable.type);
    } while (has_braces && accept(","));
    if (has_braces) expect("}");
  }
  void initial_element(Variable& variable, std::size_t at) {
    if (now().kind == Token::Kind::Name) {
      const bool is_generic = now().is("generic");
      if (is_generic) take(), expect("(");
      Variable::Address address{at, name(), 0};
      if (accept("+")) address.offset = integer();
      if (is_generic) expect(")");
      if (bits_of(variable.type) != 64) fail("an address takes 64 bits");
      variable.addresses.push_back(std::move(address));
      return;
    }
    const Operand value = number();
    const std::uint64_t bits = value.kind == Operand::Kind::Real ? value.real : static_cast<std::uint64_t>(value.integer);
    std::memcpy(variable.content.data() + at, &bits, bytes_of(variable.type));
  }

  void function() {
    Function function;
    function.is_entry = take().is(".entry");
    scopes_.assign(1, {});
    function_ = &function;
    if (now().is("(")) function.results = formal_parameters();
    function.name = name();
    if (now().is("(")) function.parameters = formal_parameters();
    while (!now().is("{") && !now().is(";")) take();  // .maxntid 256, 1, 1 .noreturn …
    source_ = {};
    if (accept(";")) {
      function.is_declaration = true;
    } else {
      expect("{");
      body();
    }
    function_ = nullptr;
    module_.functions.push_back(std::move(function));
  }
  std::vector<int> formal_parameters() {
    std::vector<int> result;
    expect("(");
    while (!accept(")")) {
      if (now().is(".reg")) fail("parameters in `.param` are needed");
      Variable variable = declared_head();
      declared_name(variable);
      result.push_back(add_variable(std::move(variable)));
      accept(",");
    }
    return result;
  }
  int add_variable(Variable variable) {
    function_->variables.push_back(std::move(variable));
    const int index = static_cast<int>(function_->variables.size()) - 1;
    names_.push_back(std::make_unique<std::string>(function_->variables.back().name));
    scopes_.back().variables[*names_.back()] = index;
    return index;
  }

  void body() {
    for (;;) {
      if (accept("}")) {
        scopes_.pop_back();
        if (scopes_.empty()) return;
      } else if (accept("{")) {
        scopes_.emplace_back();
      } else if (accept(";")) {
      } else if (now().kind == Token::Kind::End) {
        fail("`}` is needed");
      } else if (now().text[0] == '.') {
        directive();
      } else if (now().kind == Token::Kind::Name && ahead(1).is(":")) {
        function_->labels.emplace_back(name(), function_->instructions.size());
        expect(":");
      } else {
        instruction();
      }
    }
  }
  void directive() {
    const std::string_view word = now().text;
    if (word == ".reg") {
      registers();
    } else if (word == ".loc") {
      location();
    } else if (space_by_name(word)) {
      for (Variable& variable : declarations()) add_variable(std::move(variable));
    } else if (word == ".pragma") {
      take();
      pragma(now().text);
      skip_past(";");
    } else if (word == ".branchtargets" && !function_->labels.empty()) {
      take();
      function_->branch_targets.emplace_back(function_->labels.back().first, std::vector<std::string>{});
      do function_->branch_targets.back().second.push_back(name());
      while (accept(","));
      expect(";");
    } else {
      fail("this directive is not supported inside a function");
    }
  }
  // `"used_bytes_mask 4095"` says of the load that follows which of its bytes are in use. Others only advise the assembler.
  void pragma(std::string_view text) {
    const std::size_t at = text.find("used_bytes_mask ");
    if (at != std::string_view::npos) used_bytes_ = static_cast<std::uint32_t>(std::stoul(std::string(text.substr(at + 16)), nullptr, 0));
  }
  // `.loc 1 17 5, function_name $L__info_string0, inlined_at 1 31 9`. A line 0 keeps the line before.
  void location() {
    take();
    SourceLine place{static_cast<int>(integer()), static_cast<int>(integer())};
    integer();
    while (accept(",")) {
      const std::string word = name();
      if (word == "inlined_at") integer(), integer(), integer();
      else if (word == "function_name") {
        name();
        if (accept("+")) integer();
      }
    }
    if (place.line > 0) source_ = place;
  }
  void registers() {
    take();
    const std::string_view type_name = take().text;
    const auto type = type_name.size() > 1 ? type_by_name(type_name.substr(1)) : std::nullopt;
    if (!type) fail("registers of this type are not supported");
    do {
      const std::string prefix = name();
      if (!accept("<")) {
        add_register(prefix, *type);
        continue;
      }
      const std::int64_t count = integer();
      expect(">");
      for (std::int64_t n = 0; n < count; ++n) add_register(prefix + std::to_string(n), *type);
    } while (accept(","));
    expect(";");
  }
  void add_register(std::string register_name, Type type) {
    names_.push_back(std::make_unique<std::string>(register_name));
    scopes_.back().registers[*names_.back()] = static_cast<int>(function_->registers.size());
    function_->registers.push_back({std::move(register_name), type});
  }

  int find_register(std::string_view register_name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->registers.find(register_name); found != scope->registers.end()) return found->second;
    return -1;
  }
  int find_variable(std::string_view variable_name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->variables.find(variable_name); found != scope->variables.end()) return found->second;
    return -1;
  }

  void instruction() {
    Instruction result;
    result.line = now().line;
    result.source = source_;
    result.used_bytes = std::exchange(used_bytes_, ~0u);
    if (accept("@")) {
      result.is_guard_negated = accept("!");
      result.guard = find_register(now().text);
      if (result.guard < 0) fail("a predicate is needed");
      take();
    }
    std::string_view word = now().text;
    if (now().kind != Token::Kind::Name) fail("an instruction is needed");
    take();
    while (!word.empty()) {
      std::size_t dot = word.find('.', 1);
      if (dot == std::string_view::npos) dot = word.size();
      result.words.emplace_back(word.substr(word[0] == '.' ? 1 : 0, dot - (word[0] == '.' ? 1 : 0)));
      word.remove_prefix(dot);
    }
    if (result.words[0] == "call") {
      call(result);
    } else {
      while (!now().is(";")) {
        result.operands.push_back(operand());
        if (!accept(",")) break;
      }
    }
    expect(";");
    function_->instructions.push_back(std::move(result));
  }
  // `call (results), f, (arguments)`
  void call(Instruction& result) {
    const auto list = [&](std::vector<Operand>& into) {
      expect("(");
      while (!accept(")")) {
        into.push_back(operand());
        accept(",");
      }
    };
    if (now().is("(")) {
      list(result.results);
      expect(",");
    }
    result.operands.push_back(operand());
    if (accept(",")) {
      if (now().is("(")) list(result.arguments);
      while (accept(",")) result.operands.push_back(operand());  // a prototype
    }
  }

  Operand operand() {
    if (accept("[")) {
      Operand result = plain_operand();
      result.is_address = true;
      offset(result);
      if (now().is(",")) fail("an operand of this form is not supported");
      expect("]");
      return result;
    }
    if (accept("{")) {
      Operand result;
      result.kind = Operand::Kind::Vector;
      while (!accept("}")) {
        result.elements.push_back(plain_operand());
        accept(",");
      }
      return result;
    }
    Operand result = plain_operand();
    if (accept("|")) {
      Operand pair;
      pair.kind = Operand::Kind::Vector;
      pair.elements = {result, plain_operand()};
      return pair;
    }
    offset(result);
    return result;
  }
  void offset(Operand& base) {
    if (!now().is("+") && !now().is("-")) return;
    if (accept("+")) base.integer += integer();
    else base.integer += integer();  // with its sign
  }
  Operand plain_operand() {
    Operand result;
    result.is_negated = accept("!");
    if (now().kind != Token::Kind::Name) return number();
    const std::string_view word = now().text;
    if (word == "_") {
      take();
      return result;
    }
    if (result.index = find_register(word); result.index >= 0) {
      result.kind = Operand::Kind::Register;
      result.name = name();
      return result;
    }
    if (result.index = find_variable(word); result.index >= 0) {
      result.kind = Operand::Kind::Symbol;
    } else if (word[0] == '%' || word == "WARP_SZ") {
      result.kind = Operand::Kind::Special;
    } else if (word.starts_with("$L")) {
      result.kind = Operand::Kind::Label;
    } else {
      result.kind = Operand::Kind::Symbol;
    }
    result.name = name();
    return result;
  }
  Operand number() {
    Operand result;
    const bool is_negative = accept("-");
    if (now().kind != Token::Kind::Number) fail("an operand is needed");
    const std::string_view text = take().text;
    const bool is_bits = text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F' || text[1] == 'd' || text[1] == 'D');
    if (is_bits && !is_negative) {
      result.kind = Operand::Kind::Real;
      result.real_bits = text[1] == 'f' || text[1] == 'F' ? 32 : 64;
      const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), result.real, 16);
      if (error != std::errc{} || end != text.data() + text.size()) fail(fmt::format("behind `{}`, which is no number", text));
      return result;
    }
    if (text.find('.') != std::string_view::npos) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size()) fail(fmt::format("behind `{}`, which is no number", text));
      result.kind = Operand::Kind::Real;
      result.real_bits = 64;
      result.real = std::bit_cast<std::uint64_t>(is_negative ? -value : value);
      return result;
    }
    result.kind = Operand::Kind::Integer;
    result.integer = integer_value(text);
    if (is_negative) result.integer = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(result.integer));
    return result;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t vector_elements_ = 1;  // of the type in the declaration at hand
  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::vector<std::unique_ptr<std::string>> names_;  // keys of the scopes
  SourceLine source_;
  std::uint32_t used_bytes_ = ~0u;  // of the next instruction
};

}  // namespace

Module parse_module(const std::string& text) { return Parser(text).run(); }

}  // namespace tilewright::ptx
