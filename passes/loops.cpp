// Finding loops, fresh names, and what depends on a loop.
#include "passes/loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

std::string bare_name(const std::string& loop) { return loop.substr(0, loop.find('.')); }

bool is_part(std::string_view loop) { return loop.ends_with(".coarse") || loop.ends_with(".by"); }

std::vector<std::string> loop_names(const Block& body) {
  std::vector<std::string> names;
  walk(body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt))
      for (const Axis& axis : loop->axes)
        if (std::find(names.begin(), names.end(), axis.name) == names.end()) names.push_back(axis.name);
    return true;
  });
  return names;
}

std::optional<FoundLoop> find_loop(const Block& body, std::string_view name) {
  std::optional<FoundLoop> found;
  walk(body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt))
      for (const Axis& axis : loop->axes)
        if (axis.name == name) found = FoundLoop{loop->kind, axis};
    return true;
  });
  return found;
}

bool has_loop(const Block& body, std::string_view name) { return find_loop(body, name).has_value(); }

std::string_view name_of(LoopKind kind) {
  switch (kind) {
    case LoopKind::Parallel:
      return "parallel";
    case LoopKind::Grid:
      return "grid";
    case LoopKind::Cluster:
      return "cluster";
    case LoopKind::Ordered:
      return "ordered";
    case LoopKind::Each:
      return "each";
    case LoopKind::Serial:
      return "serial";
    case LoopKind::Unroll:
      return "unroll";
    case LoopKind::Vector:
      return "vector";
  }
  internal_error("a loop of no kind");
}

std::string in_words(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t n = 0; n < names.size(); ++n)
    out += fmt::format("{}`{}`", n == 0 ? "" : n + 1 == names.size() ? " and " : ", ", names[n]);
  return out.empty() ? "none" : out;
}

const Kernel& kernel_named(const Plan& plan, const LineName& name) {
  std::vector<std::string> known;
  for (const Kernel* kernel : kernels_of(plan)) {
    if (kernel->name == name.text) return *kernel;
    known.push_back(kernel->name);
  }
  throw UserError(name.span, fmt::format("no kernel writes `{}`; there are {}", name.text, in_words(known)));
}

Plan map_kernels_with(const Plan& plan, const ScheduleLine& line, const std::vector<LineName>& loops,
                      const std::function<Kernel(const Kernel&)>& f) {
  if (!line.target.empty()) kernel_named(plan, {line.target, line.span});
  bool acted = false;
  auto is_meant = [&](const Kernel& kernel) { return line.target.empty() || kernel.name == line.target; };
  Plan result = map_kernels(plan, [&](const Kernel& kernel) {
    bool has_all = is_meant(kernel);
    for (const LineName& loop : loops) has_all = has_all && has_loop(kernel.body, loop.text);
    if (!has_all) return kernel;
    acted = true;
    return f(kernel);
  });
  if (acted) return result;

  std::string exist;
  for (const Kernel* kernel : kernels_of(plan))
    if (is_meant(*kernel))
      exist +=
          fmt::format("{}`{}` has {}", exist.empty() ? "" : "; ", kernel->name, in_words(loop_names(kernel->body)));
  for (const LineName& loop : loops) {
    bool somewhere = false;
    for (const Kernel* kernel : kernels_of(plan)) somewhere |= is_meant(*kernel) && has_loop(kernel->body, loop.text);
    if (!somewhere) throw UserError(loop.span, fmt::format("there is no loop `{}`", loop.text), "loops: " + exist);
  }
  throw UserError(line.span, "no kernel has all of these loops", "loops: " + exist);
}

namespace {

bool is_block_loop(const Stmt& stmt) {
  const Loop* loop = as<Loop>(stmt);
  return loop && (loop->kind == LoopKind::Grid || loop->kind == LoopKind::Cluster || loop->kind == LoopKind::Ordered);
}

}  // namespace

const Block& block_body(const Block& kernel_body) {
  for (const Stmt& stmt : kernel_body)
    if (is_block_loop(stmt)) return block_body(as<Loop>(stmt)->body);
  return kernel_body;
}

Block map_block_body(const Block& kernel_body, const std::function<Block(const Block&)>& f) {
  bool is_outer = std::any_of(kernel_body.begin(), kernel_body.end(), is_block_loop);
  if (!is_outer) return f(kernel_body);
  Block result;
  for (const Stmt& stmt : kernel_body)
    result.push_back(
        is_block_loop(stmt) ? map_bodies(stmt, [&](const Block& inner) { return map_block_body(inner, f); }) : stmt);
  return result;
}

Names::Names(const Plan& plan) {
  for (const Dim& dim : plan.dims) taken_.insert(dim.name);
  for (const Param& param : plan.params) taken_.insert(param.name);
  for (const Temp& temp : plan.temps) taken_.insert(temp.name);
  for (const Step& step : plan.steps)
    if (const Table* table = std::get_if<Table>(&step)) taken_.insert(table->name);
  for (const Kernel* kernel : kernels_of(plan))
    walk(kernel->body, [&](const Stmt& stmt) {
      if (const Loop* loop = as<Loop>(stmt))
        for (const Axis& axis : loop->axes) taken_.insert(axis.name);
      if (const Buffer* buffer = as<Buffer>(stmt)) taken_.insert(buffer->name);
      if (const Let* let = as<Let>(stmt)) taken_.insert(let->name);
      if (const Pipe* pipe = as<Pipe>(stmt)) taken_.insert(pipe->name);
      return true;
    });
}

std::string Names::fresh(const std::string& base) {
  std::string name = base;
  for (int n = 2; taken_.count(name); ++n) name = fmt::format("{}.{}", base, n);
  taken_.insert(name);
  return name;
}

std::optional<std::int64_t> constant_extent(const Axis& axis) {
  if (axis.step) return std::nullopt;
  return integer_value(extent_of(axis));
}

Expr extent_of(const Axis& axis) { return axis.lo ? axis.hi - axis.lo : axis.hi; }

Axis counted(std::string name, std::int64_t extent, Span span) {
  return Axis{std::move(name), integer(0), integer(extent), {}, span};
}

// ---- Tidy index arithmetic

namespace {

// expr as rest + constant.
struct Shifted {
  Expr rest;
  std::int64_t constant = 0;
};

Shifted shifted(const Expr& expr) {
  if (auto value = integer_value(expr)) return {integer(0), *value};
  const Binary* node = as<Binary>(expr);
  if (node && node->op == BinaryOp::Add) {
    if (auto value = integer_value(node->rhs)) return {node->lhs, *value};
    if (auto value = integer_value(node->lhs)) return {node->rhs, *value};
  }
  if (node && node->op == BinaryOp::Sub)
    if (auto value = integer_value(node->rhs)) return {node->lhs, -*value};
  return {expr, 0};
}

Expr shift(const Expr& rest, std::int64_t constant) {
  if (constant < 0) return rest - integer(-constant);
  return rest + integer(constant);
}

// Gives up on nothing that it cannot join: the result always has the value of `expr`.
Expr tidy_node(const Expr& expr) {
  const Binary* node = as<Binary>(expr);
  if (!node || expr->dtype != Dtype::Index) return expr;
  if (node->op == BinaryOp::Mul) {
    const Binary* inner = as<Binary>(node->lhs);
    auto factor = integer_value(node->rhs);
    if (inner && inner->op == BinaryOp::Mul && factor)
      if (auto other = integer_value(inner->rhs)) return inner->lhs * (*other * *factor);
    return expr;
  }
  if (node->op != BinaryOp::Add && node->op != BinaryOp::Sub) return expr;
  const Binary* right = as<Binary>(node->rhs);
  if (!as<Binary>(node->lhs) && !right) return expr;
  // a + (b + c) is a + b + c.
  if (node->op == BinaryOp::Add && right && (right->op == BinaryOp::Add || right->op == BinaryOp::Sub))
    return tidy_node(binary(right->op, tidy_node(node->lhs + right->lhs), right->rhs));
  Shifted a = shifted(node->lhs);
  Shifted b = shifted(node->rhs);
  if (a.constant == 0 && b.constant == 0) return expr;
  bool minus = node->op == BinaryOp::Sub;
  std::int64_t constant = minus ? a.constant - b.constant : a.constant + b.constant;
  return shift(minus ? a.rest - b.rest : a.rest + b.rest, constant);
}

}  // namespace

Expr tidy(const Expr& expr) { return rewrite(expr, tidy_node); }

Expr replace(const Expr& expr, const std::vector<std::pair<std::string, Expr>>& replacements) {
  Expr changed = substitute(expr, replacements);
  return changed == expr ? expr : tidy(changed);
}

Block replace(const Block& body, const std::vector<std::pair<std::string, Expr>>& replacements) {
  Block result;
  for (const Stmt& stmt : body)
    result.push_back(map_bodies(map_expressions(stmt, [&](const Expr& expr) { return replace(expr, replacements); }),
                                [&](const Block& inner) { return replace(inner, replacements); }));
  return result;
}

// ---- What depends on what

std::set<std::string> variables_of(const Expr& expr) {
  std::set<std::string> result;
  walk(expr, [&](const Expr& node) {
    if (const Var* variable = as<Var>(node)) result.insert(variable->name);
    return true;
  });
  return result;
}

bool reads_memory(const Expr& expr, const std::set<std::string>& registers) {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    if (const Load* access = as<Load>(node)) found |= registers.count(access->access.buffer) == 0;
    return !found;
  });
  return found;
}

bool mentions_var(const Block& body, std::string_view name) {
  bool found = false;
  walk_expressions(body, [&](const Expr& expr) { found |= uses_var(expr, name); });
  return found;
}

bool mentions_buffer(const Block& body, std::string_view name) {
  bool found = false;
  walk_expressions(body, [&](const Expr& expr) { found |= uses_buffer(expr, name); });
  walk(body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) found |= store->target.buffer == name;
    if (const Fill* fill = as<Fill>(stmt)) found |= fill->buffer == name;
    if (const Copy* copy = as<Copy>(stmt)) found |= copy->target.buffer == name || copy->source.buffer == name;
    if (const Mma* mma = as<Mma>(stmt))
      found |= mma->target.buffer == name || mma->a.buffer == name || mma->b.buffer == name;
    if (const Fold* fold = as<Fold>(stmt))
      found |= fold->target.buffer == name || fold->source.buffer == name || fold->total == name;
    if (const Lookback* lookback = as<Lookback>(stmt)) found |= lookback->target.buffer == name;
    return !found;
  });
  return found;
}

bool is_varying(const Expr& expr, const std::set<std::string>& vars, const std::set<std::string>& names) {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    if (const Var* variable = as<Var>(node)) found |= vars.count(variable->name) > 0 || names.count(variable->name) > 0;
    if (const Load* access = as<Load>(node)) found |= names.count(access->access.buffer) > 0;
    return !found;
  });
  return found;
}

namespace {

class VaryingNames {
 public:
  VaryingNames(const Block& body, const std::set<std::string>& vars) : vars_(vars) {
    walk(body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->space == Space::Register)
        registers_.insert(buffer->name);
      return true;
    });
    for (std::size_t before = names_.size() + 1; before != names_.size();) {
      before = names_.size();
      visit(body, false);
    }
  }

  std::set<std::string> take() { return std::move(names_); }

 private:
  bool differs(const Expr& expr) const { return expr && is_varying(expr, vars_, names_); }

  void visit(const Block& body, bool under_varying) {
    for (const Stmt& stmt : body) {
      if (const Loop* loop = as<Loop>(stmt)) {
        bool inner = under_varying;
        for (const Axis& axis : loop->axes) inner = inner || differs(axis.lo) || differs(axis.hi) || differs(axis.step);
        visit(loop->body, inner);
      } else if (const If* branch = as<If>(stmt)) {
        bool inner = under_varying || differs(branch->condition);
        visit(branch->then_body, inner);
        visit(branch->else_body, inner);
      } else if (const Let* let = as<Let>(stmt)) {
        if (under_varying || differs(let->value)) names_.insert(let->name);
      } else if (const Store* store = as<Store>(stmt); store && registers_.count(store->target.buffer)) {
        bool differing = under_varying || differs(store->value);
        for (const Expr& index : store->target.index) differing = differing || differs(index);
        for (const Expr& condition : store->where) differing = differing || differs(condition);
        if (differing) names_.insert(store->target.buffer);
      }
    }
  }

  const std::set<std::string>& vars_;
  std::set<std::string> registers_;
  std::set<std::string> names_;
};

}  // namespace

std::set<std::string> varying_names(const Block& body, const std::set<std::string>& vars) {
  return VaryingNames(body, vars).take();
}

}  // namespace tilewright
