// Boxes of tensors by linear forms of the indices.
#include "passes/schedule/footprint.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/linear_form.h"

namespace tilewright {

namespace {

void collect(const Block& body, const std::string& tensor, std::vector<Axis>& loops, std::vector<TileAccess>& out) {
  for (const Stmt& stmt : body) {
    const Loop* loop = as<Loop>(stmt);
    map_expressions(stmt, [&](const Expr& expr) {
      walk(expr, [&](const Expr& node) {
        if (const Load* found = as<Load>(node); found && found->access.buffer == tensor)
          out.push_back({found->access, loops, stmt->span});
        return true;
      });
      return expr;
    });
    std::size_t outside = loops.size();
    if (loop) loops.insert(loops.end(), loop->axes.begin(), loop->axes.end());
    if (loop) collect(loop->body, tensor, loops, out);
    if (const If* branch = as<If>(stmt)) {
      collect(branch->then_body, tensor, loops, out);
      collect(branch->else_body, tensor, loops, out);
    }
    if (const Labelled* labelled = as<Labelled>(stmt)) collect({labelled->statement}, tensor, loops, out);
    loops.resize(outside);
  }
}

const Axis* find_axis(const std::vector<Axis>& loops, const Expr& atom) {
  const Var* variable = as<Var>(atom);
  if (!variable) return nullptr;
  for (const Axis& axis : loops)
    if (axis.name == variable->name) return &axis;
  return nullptr;
}

// The part of an index that loops of the region make, and the rest.
struct Parts {
  LinearForm inner;
  LinearForm base;
};

Parts parts_of(const Expr& index, const std::vector<Axis>& loops) {
  Parts parts;
  LinearForm form = linear_form(index);
  parts.base.constant = form.constant;
  for (const LinearForm::Term& term : form.terms)
    (find_axis(loops, term.atom) ? parts.inner : parts.base).terms.push_back(term);
  return parts;
}

Expr expr_of(const LinearForm& form) {
  Expr sum = integer(0);
  for (const LinearForm::Term& term : form.terms) sum = sum + term.atom * term.coefficient;
  return form.constant < 0 ? sum - integer(-form.constant) : sum + integer(form.constant);
}

// An index with all variables of one side 0, as it is written where that gives the other side, else put together anew.
Expr side_of(const Expr& index, const LinearForm& wanted, const std::set<std::string>& zero) {
  std::vector<std::pair<std::string, Expr>> zeros;
  for (const std::string& name : variables_of(index))
    if (zero.count(name)) zeros.emplace_back(name, integer(0));
  Expr written = replace(index, zeros);
  return constant_difference(linear_form(written), wanted) ? written : expr_of(wanted);
}

}  // namespace

std::vector<TileAccess> accesses_in(const Block& region, const std::string& tensor) {
  std::vector<TileAccess> result;
  std::vector<Axis> loops;
  collect(region, tensor, loops, result);
  return result;
}

bool are_shifts(const Access& a, const Access& b) {
  if (a.buffer != b.buffer || a.index.size() != b.index.size()) return false;
  for (std::size_t d = 0; d < a.index.size(); ++d)
    if (!constant_difference(linear_form(a.index[d]), linear_form(b.index[d]))) return false;
  return true;
}

namespace {

[[noreturn]] void refuse_extent(const Access& access, const LineName& at, const std::string& why) {
  throw UserError(at.span, fmt::format("the tile of `{}` at `{}` has no constant size: {}",
                                       print(load(access, Dtype::F32)), at.text, why));
}

FootprintAxis dim_of(const std::vector<TileAccess>& shifts, std::size_t d, const LineName& at) {
  const TileAccess& first = shifts[0];
  const Expr& index = first.access.index[d];
  Parts parts = parts_of(index, first.loops);
  std::set<std::string> inner;
  for (const Axis& axis : first.loops) inner.insert(axis.name);
  for (const LinearForm::Term& term : parts.base.terms)
    for (const std::string& name : variables_of(term.atom))
      if (inner.count(name))
        refuse_extent(first.access, at,
                      fmt::format("`{}` is not a multiple of `{}` and something fixed", print(term.atom), name));
  for (const LinearForm::Term& term : parts.base.terms)
    if (reads_memory(term.atom, {}))
      refuse_extent(first.access, at, fmt::format("`{}` is read from memory", print(term.atom)));

  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  FootprintAxis result;
  for (const LinearForm::Term& term : parts.inner.terms) {
    const Axis* axis = find_axis(first.loops, term.atom);
    auto lo = axis->lo ? integer_value(axis->lo) : std::optional<std::int64_t>(0);
    auto hi = integer_value(axis->hi);
    if (!lo || !hi || axis->step) {
      std::string cure = axis->step ? "" : fmt::format("; `tile` it before, and stage at the loop over its tiles");
      refuse_extent(first.access, at,
                    fmt::format("`{}` has the extent `{}`{}", axis->name, print(extent_of(*axis)), cure));
    }
    lowest += std::min(term.coefficient * *lo, term.coefficient * (*hi - 1));
    highest += std::max(term.coefficient * *lo, term.coefficient * (*hi - 1));
    if (result.name.empty()) result.name = bare_name(axis->name);
  }
  std::int64_t least = parts.base.constant;
  std::int64_t most = least;
  for (const TileAccess& other : shifts) {
    std::int64_t constant = linear_form(other.access.index[d]).constant;
    least = std::min(least, constant);
    most = std::max(most, constant);
  }
  result.extent = highest - lowest + most - least + 1;
  result.offset = lowest + least;
  LinearForm base = parts.base;
  base.constant = 0;
  Expr written = side_of(index, base, inner);
  std::int64_t constant = linear_form(written).constant;
  result.base = tidy(constant < 0 ? written + integer(-constant) : written - integer(constant));
  if (result.name.empty() && result.extent > 1) result.name = fmt::format("d{}", d);
  return result;
}

}  // namespace

Footprint footprint_of(const std::vector<TileAccess>& shifts, const LineName& at) {
  Footprint result;
  for (std::size_t d = 0; d < shifts[0].access.index.size(); ++d) {
    FootprintAxis axis = dim_of(shifts, d, at);
    std::string name = axis.name;
    for (int n = 2;
         !axis.name.empty() && std::any_of(result.axes.begin(), result.axes.end(),
                                           [&](const FootprintAxis& other) { return other.name == axis.name; });
         ++n)
      axis.name = fmt::format("{}{}", name, n);
    result.axes.push_back(std::move(axis));
  }
  for (const TileAccess& access : shifts) {
    const Rule& rule = access.access.rule;
    if (rule.kind == Rule::Kind::None || rule == result.rule) continue;
    if (rule.kind != Rule::Kind::Fill || !as<Const>(rule.fill))
      throw UserError(at.span, fmt::format("`{}` has a rule that a staged tile cannot keep; it needs a constant value",
                                           print(load(access.access, Dtype::F32))));
    if (result.rule.kind != Rule::Kind::None)
      throw UserError(at.span, fmt::format("accesses of `{}` have different values outside; a staged tile has one",
                                           access.access.buffer));
    result.rule = rule;
  }
  return result;
}

std::vector<Expr> local_index(const Access& access, const std::vector<Axis>& loops, const Footprint& box) {
  std::set<std::string> inner;
  for (const Axis& axis : loops) inner.insert(axis.name);
  std::vector<Expr> result;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    if (box.axes[d].name.empty()) continue;
    const Expr& index = access.index[d];
    Parts parts = parts_of(index, loops);
    std::set<std::string> outside = variables_of(index);
    for (const std::string& name : inner) outside.erase(name);
    Expr written = side_of(index, parts.inner, outside);
    std::int64_t wrong = linear_form(index).constant - box.axes[d].offset - linear_form(written).constant;
    result.push_back(tidy(wrong < 0 ? written - integer(-wrong) : written + integer(wrong)));
  }
  return result;
}

}  // namespace tilewright
