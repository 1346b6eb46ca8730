// Statements: definitions, reductions written as `+=`, scatters; and what a fn must have defined at its end.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"

namespace tilewright {

FnBuilder::FnBuilder(TensorFn signature, FnTable* table, Sink& sink)
    : fn_(std::move(signature)), table_(table), sink_(sink) {
  for (const Param& param : fn_.params) {
    Tensor tensor;
    tensor.kind = param.kind;
    tensor.dtype = param.dtype;
    tensor.shape = param.shape;
    tensor.span = param.span;
    tensor.is_defined = param.kind != ParamKind::Out;
    tensors_.emplace(param.name, std::move(tensor));
  }
}

std::optional<TensorFn> FnBuilder::build(const AstFn& ast) {
  for (const AstStatement& statement : ast.broken) {
    may_miss_outputs_ = may_miss_outputs_ || statement.targets.empty();
    poison(statement);
  }
  for (const AstStatement& statement : ast.statements) {
    statement_ = &statement;
    facts_ = Facts{};
    for (const std::string& dim : fn_.dims) facts_.assume_not_negative(var(dim));
    indices_.clear();
    skips_.clear();
    guards_.clear();
    const std::size_t before = fn_.statements.size();
    build_statement(statement);
    if (fn_.statements.size() == before) poison(statement);
  }
  statement_ = nullptr;
  if (!may_miss_outputs_) check_outputs(ast);
  return is_well_ ? std::optional(fn_) : std::nullopt;
}

// The statement has a fault: what it would have defined is used without further ones.
void FnBuilder::poison(const AstStatement& statement) {
  is_well_ = false;
  for (const AstWord& word : statement.targets) {
    const auto found = tensors_.find(word.text);
    if (found != tensors_.end() && !statement.is_let) {
      found->second.is_defined = true;
      found->second.is_faulty = found->second.kind == ParamKind::Out;
    } else if (statement.is_let) {
      Tensor tensor;
      tensor.is_let = true;
      tensor.is_faulty = true;
      tensor.is_defined = true;
      tensor.span = word.span;
      tensors_.emplace(word.text, std::move(tensor));
    }
  }
}

void FnBuilder::check_outputs(const AstFn& ast) {
  for (const AstParam& param : ast.params)
    if (!tensors_.at(param.name.text).is_defined) {
      is_well_ = false;
      sink_.error(param.span,
                  fmt::format("`{}` is a result of `{}`, but no statement defines it", param.name.text, fn_.name));
    }
}

void FnBuilder::build_statement(const AstStatement& statement) {
  if (is_tensor_call(statement.value)) return build_tensor_call(statement);
  if (statement.targets.size() != 1) {
    sink_.error(statement.span, "several targets need the call of a fn with as many results on the right side");
    return;
  }
  if (statement.is_let) {
    const AstWord& name = statement.targets.front();
    const auto found = tensors_.find(name.text);
    if (found != tensors_.end() || has_dim(name.text)) {
      sink_.error(name.span, fmt::format("`{}` is declared already", name.text), {},
                  found == tensors_.end() ? std::vector<Note>{} : std::vector<Note>{Note{found->second.span, "here"}});
      return;
    }
    return build_definition(statement, nullptr);
  }
  Tensor* output = find_output(statement);
  if (!output) {
    may_miss_outputs_ = true;
    return;
  }
  if (statement.combine) {
    const std::vector<AstWord> free = free_indices_of(statement);
    return build_scatter(statement, *output, free);
  }
  build_definition(statement, output);
}

FnBuilder::Tensor* FnBuilder::find_output(const AstStatement& statement) {
  const AstWord& name = statement.targets.front();
  const auto found = tensors_.find(name.text);
  if (found == tensors_.end()) {
    std::vector<std::string> outputs;
    for (const auto& [other, tensor] : tensors_)
      if (tensor.kind != ParamKind::In) outputs.push_back(other);
    const std::string help = did_you_mean(name.text, outputs);
    sink_.error(
        name.span, fmt::format("`{}` is not a result of `{}`", name.text, fn_.name),
        help.empty() ? fmt::format("an intermediate is defined by `let {} …`", sink_.text_of(name.span)) : help);
    return nullptr;
  }
  Tensor& tensor = found->second;
  const auto refuse = [&](Span span, std::string message, std::string help = {}) {
    sink_.error(span, std::move(message), std::move(help),
                {Note{tensor.span, fmt::format("`{}` is declared here", name.text)}});
    return nullptr;
  };
  if (tensor.is_let) return refuse(name.span, fmt::format("`{}` is a `let`, which has one definition", name.text));
  if (tensor.kind == ParamKind::In)
    return refuse(name.span, fmt::format("`{}` is an input and cannot be assigned", name.text),
                  fmt::format("declare it `inout {}: …` if it is to be updated", name.text));
  if (tensor.shape.size() != statement.index.size()) {
    const std::size_t rank = tensor.shape.size();
    return refuse(join(name.span, statement.has_index ? statement.index.back()->span : name.span),
                  fmt::format("`{}` has {} dim{}, but {} {} given", name.text, rank, rank == 1 ? "" : "s",
                              statement.index.size(), statement.index.size() == 1 ? "index is" : "indices are"));
  }
  if (!statement.combine && statement.rule.kind != Rule::Kind::None)
    return refuse(statement.rule.span, "a definition covers its whole target and has no rule");
  // Several scatters of one operator may meet in a result; otherwise one statement defines it.
  if (tensor.kind == ParamKind::Out && tensor.is_defined &&
      !(tensor.scattered && tensor.scattered == statement.combine))
    return refuse(name.span, fmt::format("`{}` is defined a second time", name.text),
                  "give one of them a name of its own with `let`");
  return &tensor;
}

bool FnBuilder::check_new_index(const AstWord& word) {
  const auto refuse = [&](std::string message, std::vector<Note> notes) {
    sink_.error(word.span, std::move(message), "take another letter", std::move(notes));
    return false;
  };
  for (const Index& index : indices_)
    if (index.name == word.text)
      return refuse(fmt::format("index `{}` is in scope already", word.text), {Note{index.span, "here"}});
  if (has_dim(word.text)) return refuse(fmt::format("`{}` is a dim and cannot name an index", word.text), {});
  const auto found = tensors_.find(word.text);
  if (found != tensors_.end())
    return refuse(fmt::format("`{}` is a tensor or scalar and cannot name an index", word.text),
                  {Note{found->second.span, "declared here"}});
  if (word.text.find('.') != std::string::npos)
    return refuse(fmt::format("`{}` has a dot and cannot name an index", word.text), {});
  return true;
}

// The type of a statement's value: names and types come before ranges, so that a misspelt name is not an unbounded
// index.
ValueType FnBuilder::free_type_of(const std::vector<AstWord>& free, const Ast& value) {
  for (const AstWord& name : free)
    if (!check_new_index(name)) return ValueType::unknown();
  for (const AstWord& name : free) indices_.push_back(Index{name.text, name.span, {}, {}, false});
  const ValueType type = type_of(value);
  indices_.clear();
  return type;
}

bool FnBuilder::open_free_indices(const std::vector<AstWord>& free, const AstStatement& statement,
                                  const Tensor* output) {
  bool is_well = true;
  for (const AstWord& name : free) {
    AstRange range{name, {}, {}, false};
    for (const AstRange& written : statement.ranges)
      if (written.name.text == name.text) range = written;
    std::vector<Use> uses;
    if (output)
      collect_use(statement.targets.front(), statement.index, join(statement.targets.front().span, statement.span),
                  name.text, false, uses);
    if (output && !uses.empty()) {
      // The place of the target, not of the whole statement.
      const Span first = statement.targets.front().span;
      Span last = statement.index.back()->span;
      ++last.end_column;
      uses.front().span = join(first, last);
    }
    for (const Ast& index : statement.index)
      if (!as<AstName>(index)) collect_uses(index, name.text, false, uses);
    collect_uses(statement.value, name.text, false, uses);
    const std::string help = statement.is_let ? fmt::format("state its range: `{} in 0..n` on the left side", name.text)
                                              : fmt::format(
                                                    "an index ranges over the dimensions that it alone subscripts; a "
                                                    "rule as in `A[{}; 0]` says what lies beyond",
                                                    name.text);
    is_well = open_index(range, uses, help) && is_well;
    if (is_well && statement.is_let && !is_integer_constant(indices_.back().lo, 0)) {
      sink_.error(range.lo->span, fmt::format("index `{}` of a `let` starts at 0, for it counts the elements of `{}`",
                                              name.text, statement.targets.front().text));
      is_well = false;
    }
    if (is_well && statement.is_let && (indices_.back().is_from_data || [&] {
          bool has_load = false;
          walk(indices_.back().hi, [&](const Expr& part) {
            has_load = has_load || as<Load>(part) != nullptr;
            return true;
          });
          return has_load;
        }())) {
      sink_.error(range.hi->span,
                  fmt::format("the size of `{}` must follow from the dims", statement.targets.front().text));
      is_well = false;
    }
  }
  return is_well;
}

std::vector<Axis> FnBuilder::axes_of(std::size_t first_index) const {
  std::vector<Axis> axes;
  for (std::size_t k = first_index; k < indices_.size(); ++k)
    axes.push_back(Axis{indices_[k].name, indices_[k].lo, indices_[k].hi, {}, indices_[k].span});
  return axes;
}

std::vector<Expr> FnBuilder::variables_of(const std::vector<Axis>& axes) {
  std::vector<Expr> variables;
  for (const Axis& axis : axes) variables.push_back(var(axis.name, Dtype::Index, axis.span));
  return variables;
}

void FnBuilder::build_definition(const AstStatement& statement, Tensor* output) {
  const AstWord& name = statement.targets.front();
  std::vector<AstWord> free;
  for (const Ast& index : statement.index) {
    const AstName* plain = as<AstName>(index);
    const bool is_again =
        plain && std::any_of(free.begin(), free.end(), [&](const AstWord& word) { return word.text == plain->name; });
    if (!plain || is_again || has_dim(plain->name)) {
      sink_.error(
          index->span,
          is_again ? fmt::format("index `{}` stands twice on the left side", plain->name)
                   : fmt::format("`{}` on the left side of `=` is not an index of its own", sink_.text_of(index->span)),
          fmt::format(
              "a definition says each element of `{}`, as in `{}[i, j] = …`; single elements are updated by `+=`",
              name.text, name.text));
      return;
    }
    free.push_back(AstWord{plain->name, index->span});
  }
  const ValueType type = free_type_of(free, statement.value);
  if (type.is_unknown()) return;
  const Dtype dtype = output ? output->dtype : statement.dtype.value_or(settled(type));
  if (!check_assignable(statement.value, type, dtype, fmt::format("`{}`", name.text))) return;
  if (!open_free_indices(free, statement, output)) return;
  const std::vector<Axis> axes = axes_of(0);
  Expr value = assigned(statement.value, dtype);
  if (!value) return;
  fn_.statements.push_back(
      TensorStmt{name.text, axes, variables_of(axes), {}, {}, std::move(value), std::nullopt, statement.span});
  if (output) {
    output->is_defined = true;
    return;
  }
  Tensor tensor;
  tensor.is_let = true;
  tensor.is_defined = true;
  tensor.dtype = dtype;
  tensor.span = join(name.span, statement.index.empty() ? name.span : statement.index.back()->span);
  for (const Axis& axis : axes) tensor.shape.push_back(axis.hi);
  fn_.lets.push_back(Temp{name.text, dtype, tensor.shape});
  tensors_.emplace(name.text, std::move(tensor));
}

}  // namespace tilewright
