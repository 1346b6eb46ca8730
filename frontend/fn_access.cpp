// Accesses: which element, what happens outside of the tensor, and the proof that nothing does where no rule is stated.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "ir/operators.h"

namespace tilewright {

// The tensor, if it can be read here with so many indices.
FnBuilder::Tensor* FnBuilder::readable(const AstWord& word, const std::vector<Ast>& index, Span span) {
  const std::string cause = fmt::format("{}: read {}", fn_.name, word.text);
  const auto found = tensors_.find(word.text);
  if (found == tensors_.end()) {
    const bool is_number = has_dim(word.text) || std::any_of(indices_.begin(), indices_.end(),
                                                             [&](const Index& i) { return i.name == word.text; });
    std::vector<std::string> known;
    for (const auto& [name, tensor] : tensors_) known.push_back(name);
    sink_.error_once(cause, word.span,
                     is_number ? fmt::format("`{}` is a number, which has no elements", word.text)
                               : fmt::format("there is no tensor `{}`", word.text),
                     fmt::format("`{}` also stands here", word.text),
                     is_number ? std::string() : did_you_mean(word.text, known));
    return nullptr;
  }
  Tensor& tensor = found->second;
  if (tensor.is_faulty) return nullptr;
  const auto refuse = [&](std::string message, std::string help) {
    sink_.error_once(cause, span, std::move(message), fmt::format("`{}` also stands here", sink_.text_of(span)),
                     std::move(help), {Note{tensor.span, fmt::format("`{}` is declared here", word.text)}});
    return nullptr;
  };
  if (tensor.shape.size() != index.size()) {
    const std::size_t rank = tensor.shape.size();
    if (rank == 0)
      return refuse(fmt::format("`{}` is a scalar, which has no indices", word.text),
                    fmt::format("write `{}`", word.text));
    return refuse(index.empty()
                      ? fmt::format("`{}` has {} dim{}, and no index says which element is meant", word.text, rank,
                                    rank == 1 ? "" : "s")
                      : fmt::format("`{}` has {} dim{}, but {} {} given", word.text, rank, rank == 1 ? "" : "s",
                                    index.size(), index.size() == 1 ? "index is" : "indices are"),
                  {});
  }
  const bool is_own_target = statement_ && std::any_of(statement_->targets.begin(), statement_->targets.end(),
                                                       [&](const AstWord& t) { return t.text == word.text; });
  if (tensor.kind == ParamKind::InOut && is_own_target) {
    // Another element might have been written before.
    bool is_same = !statement_->combine && statement_->index.size() == index.size();
    for (std::size_t dim = 0; is_same && dim < index.size(); ++dim) {
      const AstName* here = as<AstName>(index[dim]);
      const AstName* there = as<AstName>(statement_->index[dim]);
      is_same = here && there && here->name == there->name;
    }
    if (!is_same)
      return refuse(fmt::format("`{}` reads another element of `{}` while the statement writes it", sink_.text_of(span),
                                word.text),
                    "copy it with `let` first");
  } else if (tensor.kind == ParamKind::Out && (!tensor.is_defined || is_own_target)) {
    return refuse(fmt::format("`{}` is read before it is defined", word.text),
                  is_own_target ? "a result that is read and updated is an `inout` parameter" : std::string());
  }
  return &tensor;
}

std::vector<Expr> FnBuilder::indices(const std::vector<Ast>& index) {
  std::vector<Expr> result;
  for (const Ast& ast : index) {
    Expr built = leaf(ast, Dtype::Index);
    if (!built) return {};
    result.push_back(std::move(built));
  }
  return result;
}

std::vector<FnBuilder::Escape> FnBuilder::escapes(const std::vector<Expr>& index, const std::vector<Expr>& shape) {
  std::vector<Escape> open;
  for (std::size_t dim = 0; dim < index.size(); ++dim) {
    if (!facts_.proves_not_negative(index[dim])) open.push_back(Escape{dim, true});
    if (!facts_.proves_not_negative(shape[dim] - index[dim] + -1)) open.push_back(Escape{dim, false});
  }
  return open;
}

bool FnBuilder::is_from_data(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const Expr& part) {
    if (const Load* loaded = as<Load>(part); loaded && !loaded->access.index.empty()) found = true;
    if (const Var* variable = as<Var>(part))
      for (const Index& index : indices_) found = found || (index.name == variable->name && index.is_from_data);
    return !found;
  });
  return found;
}

// How far an index gets, indices put at the ends of their ranges; empty where that is not plain to see.
std::string FnBuilder::farthest(const Expr& expr, bool is_below) {
  Expr end = expr;
  for (auto index = indices_.rbegin(); index != indices_.rend(); ++index) {
    if (!uses_var(end, index->name)) continue;
    const std::optional<std::int64_t> coefficient = facts_.coefficient(end, index->name);
    if (!coefficient || index->is_from_data || !index->lo) return {};
    end = substitute(end, {{index->name, (*coefficient > 0) == is_below ? index->lo : index->hi + -1}});
  }
  // What a caller or a tensor gives has no end.
  bool has_load = false;
  walk(end, [&](const Expr& part) {
    has_load = has_load || as<Load>(part) != nullptr;
    return !has_load;
  });
  return has_load ? std::string() : facts_.gathered(end);
}

void FnBuilder::report_escape(const AstWord& word, const std::vector<Ast>& index, const std::vector<Expr>& built,
                              const std::vector<Escape>& open, const Tensor& tensor, Span span) {
  const Escape& first = open.front();
  const Expr& value = built[first.dim];
  const std::string words = sink_.text_of(index[first.dim]->span);
  const std::string limit = facts_.gathered(tensor.shape[first.dim]);
  const std::string end = guards_.empty() ? farthest(value, first.is_below) : std::string();
  std::string why;
  if (first.is_below)
    why = end.empty()    ? fmt::format("`{}` is not known to be 0 or more", words)
          : end == words ? fmt::format("`{}` can be negative", words)
                         : fmt::format("`{}` can be {}", words, end);
  else
    why = end.empty() || end == words ? fmt::format("`{}` is not known to be less than {}", words, limit)
          : end == limit              ? fmt::format("`{}` can be {}, one too many", words, end)
                                      : fmt::format("`{}` can be {}, and must be less than {}", words, end, limit);
  const std::string access = sink_.text_of(span);
  const bool is_whole = !access.empty() && access.back() == ']';
  const std::string padded =
      is_whole ? access.substr(0, access.size() - 1) + (tensor.dtype == Dtype::Bool ? "; false]" : "; 0]") : access;
  std::string help = fmt::format("say what lies outside: `{}` or `; clamp`{}, or bound the index by `if`", padded,
                                 skips_.empty() ? "" : ", leave the term out with `; skip`");
  if (statement_ && std::any_of(statement_->targets.begin(), statement_->targets.end(),
                                [&](const AstWord& t) { return t.text == word.text; }))
    help = fmt::format("leave such updates out: `{}; skip]`", is_whole ? access.substr(0, access.size() - 1) : access);
  const std::string cause =
      fmt::format("{}: line {} leaves {}", fn_.name, statement_ ? statement_->span.line : 0, word.text);
  sink_.error_once(cause, span, fmt::format("`{}` can leave `{}`: {}", access, word.text, why),
                   fmt::format("`{}` can too: {}", access, why), help,
                   {Note{tensor.span, fmt::format("`{}` is declared here", sink_.text_of(tensor.span))}});
}

int FnBuilder::new_error_site(Expr load) {
  const int id = static_cast<int>(fn_.errors.size());
  fn_.errors.push_back(ErrorSite{id, std::move(load)});
  return id;
}

// The term is left out unless every open side holds; where a condition around keeps the access from being made, it
// stays.
void FnBuilder::skip(const std::vector<Expr>& index, const std::vector<Expr>& shape, const std::vector<Escape>& open) {
  Skips& around = skips_.back();
  for (const Escape& side : open) {
    Expr inside =
        side.is_below ? binary(BinaryOp::Ge, index[side.dim], integer(0)) : less(index[side.dim], shape[side.dim]);
    for (std::size_t k = guards_.size(); k > around.first_guard; --k)
      inside = binary(BinaryOp::Or, unary(UnaryOp::Not, guards_[k - 1]), inside);
    if (std::find(around.where.begin(), around.where.end(), inside) == around.where.end())
      around.where.push_back(std::move(inside));
  }
}

Expr FnBuilder::access(const AstAccess& ast, Span span) {
  const Tensor* tensor = readable(ast.tensor, ast.index, span);
  if (!tensor) return {};
  Access result{ast.tensor.text, indices(ast.index), {}, span};
  if (result.index.size() != tensor->shape.size()) return {};
  const std::vector<Escape> open = escapes(result.index, tensor->shape);
  switch (ast.rule.kind) {
    case Rule::Kind::None: {
      if (open.empty()) break;
      std::vector<Escape> affine;
      for (const Escape& side : open)
        if (!is_from_data(result.index[side.dim])) affine.push_back(side);
      if (!affine.empty()) {
        report_escape(ast.tensor, ast.index, result.index, affine, *tensor, span);
        return {};
      }
      const int site = new_error_site(load(result, tensor->dtype, span));
      result.rule = Rule{Rule::Kind::Check, {}, site};
      break;
    }
    case Rule::Kind::Fill: {
      const ValueType type = type_of(ast.rule.value);
      if (!check_assignable(ast.rule.value, type, tensor->dtype, fmt::format("an element of `{}`", ast.tensor.text)))
        return {};
      Expr fill = assigned(ast.rule.value, tensor->dtype);
      if (!fill) return {};
      result.rule = Rule{Rule::Kind::Fill, std::move(fill), 0};
      break;
    }
    case Rule::Kind::Clamp:
    case Rule::Kind::Wrap:
    case Rule::Kind::Mirror:
      result.rule.kind = ast.rule.kind;
      break;
    case Rule::Kind::Skip:
      if (skips_.empty()) {
        sink_.error(ast.rule.span, "`skip` leaves a term out of a reduction, but no reduction is around",
                    "state a value or `clamp` instead");
        return {};
      }
      skip(result.index, tensor->shape, open);
      break;
    case Rule::Kind::Check:
      internal_error("a rule that nobody can write");
  }
  return load(std::move(result), tensor->dtype, span);
}

}  // namespace tilewright
