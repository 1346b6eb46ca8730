// Smaller cases of a failure. Whoever tries them refuses what a step has spoilt.
#include "runtime/library/shrink_failure.h"

#include <algorithm>
#include <set>

namespace tilewright {

namespace {

using Emit = std::function<bool(FailingCase)>;  // tells whether the candidate was taken

// The expression with its n-th node (parents first) replaced; `n` counts down.
Expr with_node(const Expr& expr, std::size_t& n, const Expr& replacement) {
  if (n-- == 0) return replacement;
  return map_children(expr, [&](const Expr& child) { return n == static_cast<std::size_t>(-1) ? child : with_node(child, n, replacement); });
}

std::vector<Expr> nodes_of(const Expr& expr) {
  std::vector<Expr> nodes = {expr};
  map_children(expr, [&](const Expr& child) {
    const std::vector<Expr> below = nodes_of(child);
    nodes.insert(nodes.end(), below.begin(), below.end());
    return child;
  });
  return nodes;
}

// What may stand in the place of a node: a part of it of the same dtype, or a number.
std::vector<Expr> smaller_values(const Expr& node) {
  std::vector<Expr> values;
  if (as<Const>(node) || as<Var>(node)) return values;
  if (node->dtype != Dtype::Index) values.push_back(constant(1, node->dtype));
  map_children(node, [&](const Expr& child) {
    if (child->dtype == node->dtype && !as<Reduce>(node)) values.push_back(child);
    return child;
  });
  return values;
}

bool drop_statements(const FailingCase& failing, const Emit& emit) {
  std::set<std::string> targets;
  for (const TensorStmt& stmt : failing.fn.statements) targets.insert(stmt.target);
  if (targets.size() < 2) return false;
  for (const std::string& target : targets) {
    FailingCase next = failing;
    std::erase_if(next.fn.statements, [&](const TensorStmt& stmt) { return stmt.target == target; });
    std::erase_if(next.fn.params, [&](const Param& param) { return param.name == target && param.kind == ParamKind::Out; });
    std::erase_if(next.fn.lets, [&](const Temp& let) { return let.name == target; });
    if (emit(std::move(next))) return true;
  }
  return false;
}

bool drop_lines(const FailingCase& failing, const Emit& emit) {
  for (std::size_t n = failing.lines.size(); n-- > 0;) {
    if (failing.lines[n].text == failing.pass) continue;
    FailingCase next = failing;
    next.lines.erase(next.lines.begin() + static_cast<std::ptrdiff_t>(n));
    if (emit(std::move(next))) return true;
  }
  return false;
}

bool simplify_values(const FailingCase& failing, const Emit& emit) {
  for (std::size_t s = 0; s < failing.fn.statements.size(); ++s) {
    const std::vector<Expr> nodes = nodes_of(failing.fn.statements[s].value);
    for (std::size_t n = 0; n < nodes.size(); ++n)
      for (const Expr& value : smaller_values(nodes[n])) {
        FailingCase next = failing;
        std::size_t position = n;
        next.fn.statements[s].value = with_node(failing.fn.statements[s].value, position, value);
        if (emit(std::move(next))) return true;
      }
  }
  return false;
}

bool reduce_sizes(const FailingCase& failing, const Emit& emit) {
  for (const auto& [name, size] : failing.dims)
    for (const std::int64_t smaller : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, size / 2, size - 1}) {
      if (smaller < 0 || smaller >= size) continue;
      FailingCase next = failing;
      next.dims[name] = smaller;
      if (emit(std::move(next))) return true;
    }
  return false;
}

}  // namespace

FailingCase shrink_failure(const FailingCase& failing, const std::function<bool(const FailingCase&)>& still_fails, int most_tries) {
  FailingCase smallest = failing;
  int tries = 0;
  const Emit emit = [&](FailingCase candidate) {
    if (++tries > most_tries || !still_fails(candidate)) return false;
    smallest = std::move(candidate);
    return true;
  };
  bool has_progress = true;
  while (has_progress && tries < most_tries) {
    const FailingCase from = smallest;
    has_progress = drop_statements(from, emit) || drop_lines(from, emit) || reduce_sizes(from, emit) || simplify_values(from, emit);
  }
  return smallest;
}

}  // namespace tilewright
