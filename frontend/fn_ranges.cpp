// What an index ranges over: the extent of every dimension that it alone subscripts, or the range that is written.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "ir/operators.h"

namespace tilewright {

void FnBuilder::collect_use(const AstWord& tensor, const std::vector<Ast>& index, Span span, const std::string& name,
                            bool is_secondary, std::vector<Use>& uses) {
  const auto found = tensors_.find(tensor.text);
  if (found == tensors_.end() || found->second.shape.size() != index.size()) return;
  for (std::size_t dim = 0; dim < index.size(); ++dim) {
    const AstName* alone = as<AstName>(index[dim]);
    if (alone && alone->name == name) uses.push_back(Use{span, tensor.text, found->second.shape[dim], is_secondary});
  }
}

void FnBuilder::collect_uses(const Ast& ast, const std::string& name, bool is_secondary, std::vector<Use>& uses) {
  const auto look = [&](const Ast& child, bool is_below_condition) {
    if (child) collect_uses(child, name, is_secondary || is_below_condition, uses);
  };
  match(
      ast, [](const AstNumber&) {}, [](const AstName&) {},
      [&](const AstAccess& found) {
        const bool has_rule = found.rule.kind != Rule::Kind::None;
        collect_use(found.tensor, found.index, ast->span, name, is_secondary || has_rule, uses);
        for (const Ast& index : found.index) look(index, false);
        look(found.rule.value, false);
      },
      [&](const AstCall& found) {
        for (const Ast& argument : found.arguments) look(argument, false);
      },
      [&](const AstUnary& found) { look(found.operand, false); },
      [&](const AstBinary& found) {
        look(found.lhs, false);
        look(found.rhs, info(found.op).is_logical);
      },
      [&](const AstCompare& found) {
        for (const Ast& operand : found.operands) look(operand, false);
      },
      [&](const AstIf& found) {
        look(found.condition, false);
        look(found.if_true, true);
        look(found.if_false, true);
      },
      [&](const AstReduction& found) {
        // A bound such as `ptr[r]` says where a range begins, not how far `r` goes.
        for (const AstRange& axis : found.axes) {
          look(axis.lo, true);
          look(axis.hi, true);
        }
        look(found.body, false);
      });
}

Expr FnBuilder::extent_of(const AstWord& index, const std::vector<Use>& uses, const std::string& help) {
  const bool has_primary = std::any_of(uses.begin(), uses.end(), [](const Use& use) { return !use.is_secondary; });
  const Use* first = nullptr;
  for (const Use& use : uses) {
    if (has_primary && use.is_secondary) continue;
    if (!first) {
      first = &use;
      continue;
    }
    if (facts_.are_equal(first->extent, use.extent)) continue;
    Diagnostic fault;
    std::vector<Note> notes;
    for (const std::string& tensor : {first->tensor, use.tensor}) {
      const Span declared = tensors_.at(tensor).span;
      if (notes.empty() || first->tensor != use.tensor)
        notes.push_back(Note{declared, fmt::format("`{}` is declared here", sink_.text_of(declared))});
    }
    const bool are_names = as<Var>(first->extent) && as<Var>(use.extent);
    sink_.error(use.span,
                fmt::format("index `{}` ranges over {} in `{}` but over {} in `{}`", index.text, print(first->extent),
                            sink_.text_of(first->span), print(use.extent), sink_.text_of(use.span)),
                are_names ? fmt::format("give both dims one name where they are equal, or {}", help) : help,
                std::move(notes));
    return {};
  }
  if (first) return first->extent;
  sink_.error(index.span, fmt::format("nothing bounds index `{}`: it alone subscripts no dimension", index.text), help);
  return {};
}

Expr FnBuilder::bound(const Ast& ast, const std::vector<Use>& uses, std::int64_t offset) {
  Expr value = leaf(ast, Dtype::Index);
  if (!value) return {};
  value = value + offset;
  Expr first_load;
  walk(value, [&](const Expr& part) {
    if (const Load* loaded = as<Load>(part); loaded && !loaded->access.index.empty() && !first_load) first_load = part;
    return !first_load;
  });
  if (!first_load || uses.empty()) return value;
  // A bound read from a tensor is cut to what the index may subscript.
  const auto primary = std::find_if(uses.begin(), uses.end(), [](const Use& use) { return !use.is_secondary; });
  const Expr extent = (primary == uses.end() ? uses.front() : *primary).extent;
  const int site = new_error_site(first_load);
  const Cast* conversion = as<Cast>(value);
  Expr raw = conversion && as<Load>(conversion->operand) ? conversion->operand : value;
  return tilewright::call("within", {std::move(raw), extent, integer(site)}, Dtype::Index, ast->span);
}

void FnBuilder::push_index(Index index) {
  const Expr self = var(index.name);
  facts_.assume_not_negative(self - index.lo);
  facts_.assume_not_negative(index.hi - self + -1);
  indices_.push_back(std::move(index));
}

bool FnBuilder::open_index(const AstRange& range, const std::vector<Use>& uses, const std::string& help) {
  Index index{range.name.text, range.name.span, {}, {}, false};
  if (range.lo) {
    index.lo = bound(range.lo, uses, 0);
    index.hi = bound(range.hi, uses, range.is_inclusive ? 1 : 0);
    if (!index.lo || !index.hi) return false;
    index.is_from_data = is_from_data(index.lo) || is_from_data(index.hi);
  } else {
    index.lo = integer(0);
    index.hi = extent_of(range.name, uses, help);
    if (!index.hi) return false;
  }
  push_index(std::move(index));
  return true;
}

}  // namespace tilewright
