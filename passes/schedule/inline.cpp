// inline: an intermediate tensor disappears into the kernels that read it.
//
//   inline e
//   before   kernel e { parallel r, d { e[r, d] = exp(X[r, d] - m[r]) } }
//            kernel Y { parallel r, d { …; serial c { acc = acc + e[r, c] }; Y[r, d] = e[r, d] / acc } }
//   after    kernel Y { parallel r, d {
//              …; serial c { acc = acc + exp(X[r, c] - m[r]) }; Y[r, d] = exp(X[r, d] - m[r]) / acc } }
//
//   inline z, a reduction: its reader becomes the epilogue behind it
//   before   kernel z { parallel i, j { reg acc; …; z[i, j] = acc } }
//            kernel C { parallel i, j { C[i, j] = gelu(z[i, j] + b[j]) } }
//   after    kernel C { parallel i, j { reg z; reg acc; …; z = acc; C[i, j] = gelu(z + b[j]) } }
//
// The rounding to the tensor's dtype stays, so not a bit changes.
//
// Needs: a `let` of the fn, not tiled yet. A reduction needs one reader, which reads the element of its own indices.
#include <fmt/format.h>

#include <algorithm>

#include "ir/operators.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/producer.h"

namespace tilewright {

namespace {

// `0 <= index < shape` in every dim.
Expr is_inside(const std::vector<Expr>& index, const std::vector<Expr>& shape) {
  std::vector<Expr> conditions;
  for (std::size_t d = 0; d < index.size(); ++d) {
    Expr place = cast(Dtype::Index, index[d]);
    conditions.push_back(binary(BinaryOp::Le, integer(0), place));
    conditions.push_back(less(place, shape[d]));
  }
  return all_of(conditions);
}

Expr element_of(const Producer& producer, const Access& access, const std::vector<Expr>& shape, const LineName& name) {
  std::vector<std::pair<std::string, Expr>> element;
  for (std::size_t d = 0; d < producer.axes.size(); ++d)
    element.emplace_back(producer.axes[d].name, cast(Dtype::Index, access.index[d]));
  Expr value = replace(producer.value, element);
  if (access.rule.kind == Rule::Kind::None) return value;
  if (access.rule.kind != Rule::Kind::Fill)
    throw UserError(name.span, fmt::format("`{}` is read with a rule that only memory can follow: `{}`", name.text,
                                           print(load(access, value->dtype))));
  return select(is_inside(access.index, shape), value, access.rule.fill);
}

bool reports_errors(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    const Load* load = as<Load>(node);
    const Call* function = as<Call>(node);
    found |= (load && load->access.rule.kind == Rule::Kind::Check) || (function && function->function == "within");
    return !found;
  });
  return found;
}

// Whether the value is computed whatever the conditions say: then what it reads is read.
bool reads_always(const Expr& expr, const std::function<bool(const Load&)>& is_wanted) {
  if (const Load* load = as<Load>(expr); load && is_wanted(*load)) return true;
  if (const Select* branch = as<Select>(expr)) return reads_always(branch->condition, is_wanted);
  if (const Binary* binary = as<Binary>(expr); binary && info(binary->op).is_logical) return reads_always(binary->lhs, is_wanted);
  bool found = false;
  map_children(expr, [&](const Expr& child) {
    found = found || reads_always(child, is_wanted);
    return child;
  });
  return found;
}

// Whether a kernel reads every element of the producer's tensor, so that no report of an access outside is lost.
bool reads_every_element(const Kernel& kernel, const Producer& producer, const std::string& tensor) {
  const Loop* nest = kernel.body.size() == 1 ? as<Loop>(kernel.body[0]) : nullptr;
  if (!nest || nest->kind != LoopKind::Parallel) return false;
  const auto is_element_by_element = [&](const Load& load) {
    if (load.access.buffer != tensor) return false;
    std::set<std::string> used;
    for (std::size_t d = 0; d < load.access.index.size(); ++d) {
      const Var* name = as<Var>(load.access.index[d]);
      const auto axis = std::find_if(nest->axes.begin(), nest->axes.end(), [&](const Axis& candidate) { return name && candidate.name == name->name; });
      if (axis == nest->axes.end() || !(extent_of(*axis) == extent_of(producer.axes[d])) || !used.insert(axis->name).second) return false;
    }
    return used.size() == nest->axes.size();
  };
  for (const Stmt& stmt : nest->body)
    if (const Store* store = as<Store>(stmt); store && store->where.empty() && reads_always(store->value, is_element_by_element)) return true;
  return false;
}

void require_same_reports(const Plan& plan, const Producer& producer, const LineName& name) {
  if (!reports_errors(producer.value)) return;
  for (const Kernel* kernel : kernels_of(plan))
    if (kernel->name != name.text && reads_every_element(*kernel, producer, name.text)) return;
  throw UserError(name.span, fmt::format("`{}` reports indices that leave a tensor, and no kernel reads each of its elements: some would not be reported", name.text),
                  "state a rule for the access that it checks");
}

// An index that has become a constant is one of the index's dtype, as it is written.
Access with_plain_indices(const Access& access) {
  Access result = access;
  for (Expr& index : result.index)
    if (auto value = integer_value(index)) index = integer(*value, Dtype::Index, index->span);
  return result;
}

Plan inline_pointwise(const Plan& plan, const Producer& producer, const LineName& name) {
  require_same_reports(plan, producer, name);
  std::vector<Expr> shape = find_tensor(plan, name.text)->shape;
  Plan rest = without_kernel(plan, name.text);
  return map_kernels(rest, [&](const Kernel& kernel) {
    walk(kernel.body, [&](const Stmt& stmt) {
      if (const Copy* copy = as<Copy>(stmt); copy && copy->source.buffer == name.text)
        throw UserError(name.span,
                        fmt::format("`{}` is staged in kernel `{}`; `inline` it before", name.text, kernel.name));
      return true;
    });
    Kernel result = kernel;
    result.body = rewrite_expressions(kernel.body, [&](const Expr& expr) {
      const Load* access = as<Load>(expr);
      if (!access) return expr;
      if (access->access.buffer == name.text) return element_of(producer, access->access, shape, name);
      return load(with_plain_indices(access->access), expr->dtype, expr->span);
    });
    result.body = rewrite_statements(result.body, [](const Stmt& stmt) -> Block {
      const Store* store = as<Store>(stmt);
      if (!store) return {stmt};
      Store node = *store;
      node.target = with_plain_indices(node.target);
      return {make_stmt(std::move(node), stmt->span)};
    });
    return result;
  });
}

// Which axis of the reader stands for each axis of the producer; refuses what would compute an element more than once.
void require_own_element(const Producer& producer, const NaiveKernel& reader, const std::vector<Expr>& index,
                         const std::string& kernel, const LineName& name) {
  std::set<std::string> used;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const Var* variable = as<Var>(index[d]);
    auto axis = std::find_if(reader.axes.begin(), reader.axes.end(),
                             [&](const Axis& candidate) { return variable && candidate.name == variable->name; });
    bool same = axis != reader.axes.end() && axis->hi == producer.axes[d].hi &&
                extent_of(*axis) == extent_of(producer.axes[d]) && used.insert(axis->name).second;
    if (!same)
      throw UserError(
          name.span,
          fmt::format(
              "`{}` is a reduction and kernel `{}` reads it at `{}`, which is not the element of its own indices",
              name.text, kernel, print(index[d])),
          "each element would be reduced again at every place that reads it");
  }
  if (used.size() == reader.axes.size()) return;
  std::string last = producer.axes.empty() ? reader.axes[0].name : as<Var>(index.back())->name;
  throw UserError(name.span,
                  fmt::format("`{}` is a reduction over fewer indices than kernel `{}` has: it would be reduced again "
                              "for each of the others",
                              name.text, kernel),
                  fmt::format("`fuse {} into {} at {}` reduces it once", name.text, kernel, last));
}

bool is_read_in_loop(const Block& body, const std::string& tensor) {
  bool found = false;
  walk(body, [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt))
      found |= !indices_of({stmt}, tensor).empty() && loop->kind != LoopKind::Parallel;
    return !found;
  });
  return found;
}

Plan inline_reduction(const Plan& plan, const Producer& producer, const LineName& name) {
  std::vector<std::string> readers = readers_of(plan, name.text);
  if (readers.size() != 1)
    throw UserError(name.span, fmt::format("`{}` is a reduction with {} readers ({}); it can become part of one",
                                           name.text, readers.size(), in_words(readers)));
  Plan rest = without_kernel(plan, name.text);
  Names names(rest);
  return map_kernels(rest, [&](const Kernel& kernel) {
    if (kernel.name != readers[0]) return kernel;
    NaiveKernel reader = naive_kernel(kernel, name.span, "inline");
    if (is_read_in_loop(reader.body, name.text))
      throw UserError(name.span, fmt::format("kernel `{}` reads `{}` in a loop, where each trip would reduce it again",
                                             kernel.name, name.text));
    auto indices = indices_of(reader.body, name.text);
    if (indices.size() != 1)
      throw UserError(name.span, fmt::format("kernel `{}` reads `{}` at {} different elements", kernel.name, name.text,
                                             indices.size()));
    require_own_element(producer, reader, indices[0], kernel.name, name);
    std::set<std::string> around;
    for (const Axis& axis : reader.axes) around.insert(axis.name);
    Block body = as_scalar(producer, indices[0], name.text, around, names);
    Block epilogue = read_scalar(reader.body, name.text, indices[0], name.span);
    body.insert(body.end(), epilogue.begin(), epilogue.end());
    return with_body(kernel, reader.axes, std::move(body), reader.span);
  });
}

}  // namespace

Plan inline_tensor(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  std::vector<LineName> tensors;
  do tensors.push_back(reader.name("a tensor"));
  while (reader.accept(","));
  reader.end();
  Plan result = plan;
  for (const LineName& name : tensors) {
    kernel_named(result, name);
    if (!is_temporary(result, name.text))
      throw UserError(name.span,
                      fmt::format("`{}` is a result of `{}`; only a `let` can disappear", name.text, plan.name));
    Producer producer = producer_of(result, name, "inline");
    result =
        producer.before.empty() ? inline_pointwise(result, producer, name) : inline_reduction(result, producer, name);
  }
  return result;
}

}  // namespace tilewright
