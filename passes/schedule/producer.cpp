// Taking naive kernels apart.
#include "passes/schedule/producer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

NaiveKernel naive_kernel(const Kernel& kernel, Span at, std::string_view word) {
  const Loop* outer = kernel.body.size() == 1 ? as<Loop>(kernel.body[0]) : nullptr;
  bool changed = false;
  walk(kernel.body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    changed |= loop && loop->kind != LoopKind::Serial && stmt.identity() != kernel.body[0].identity();
    return !changed;
  });
  if (outer && outer->kind != LoopKind::Parallel && outer->kind != LoopKind::Serial) changed = true;
  if (changed)
    throw UserError(at, fmt::format("kernel `{}` is tiled or bound already", kernel.name),
                    fmt::format("put the `{}` line in front of them", word));
  if (outer && outer->kind == LoopKind::Parallel) return {outer->axes, outer->body, kernel.body[0]->span};
  return {{}, kernel.body, kernel.body.empty() ? Span{} : kernel.body[0]->span};
}

Kernel with_body(const Kernel& kernel, std::vector<Axis> axes, Block body, Span span) {
  Kernel result = kernel;
  result.body = axes.empty()
                    ? std::move(body)
                    : Block{make_stmt(Loop{LoopKind::Parallel, std::move(axes), std::nullopt, std::move(body)}, span)};
  return result;
}

Producer producer_of(const Plan& plan, const LineName& tensor, std::string_view word) {
  int kernels = 0;
  for (const Kernel* kernel : kernels_of(plan)) kernels += kernel->name == tensor.text ? 1 : 0;
  if (kernels == 0) kernel_named(plan, tensor);
  NaiveKernel naive = naive_kernel(kernel_named(plan, tensor), tensor.span, word);
  const Store* store = naive.body.empty() ? nullptr : as<Store>(naive.body.back());
  auto refuse = [&] {
    throw UserError(tensor.span,
                    fmt::format("`{}` is not written element for element by one statement, so `{}` cannot move it",
                                tensor.text, word));
  };
  if (kernels > 1 || !store || store->target.buffer != tensor.text || store->atomic || !store->where.empty()) refuse();
  Producer result{
      tensor.text, {}, Block(naive.body.begin(), naive.body.end() - 1), store->value, naive.body.back()->span};
  for (const Expr& index : store->target.index) {
    const Var* name = as<Var>(index);
    auto axis = std::find_if(naive.axes.begin(), naive.axes.end(),
                             [&](const Axis& candidate) { return name && candidate.name == name->name; });
    if (axis == naive.axes.end())
      refuse();
    else
      result.axes.push_back(*axis);
  }
  if (result.axes.size() != naive.axes.size() || mentions_buffer(result.before, tensor.text) ||
      uses_buffer(result.value, tensor.text))
    refuse();
  return result;
}

namespace {

Block rename_loop(const Block& body, const std::string& from, const std::string& to) {
  return rewrite_statements(substitute(body, {{from, var(to)}}), [&](const Stmt& stmt) -> Block {
    const Loop* loop = as<Loop>(stmt);
    if (!loop) return {stmt};
    Loop node = *loop;
    for (Axis& axis : node.axes)
      if (axis.name == from) axis.name = to;
    return {make_stmt(std::move(node), stmt->span)};
  });
}

}  // namespace

Block as_scalar(const Producer& producer, const std::vector<Expr>& index, const std::string& name,
                const std::set<std::string>& around, Names& names) {
  Dtype dtype = producer.value->dtype;
  Block body = producer.before;
  body.push_back(make_stmt(Store{Access{name, {}, {}, {}}, producer.value, {}, std::nullopt}, producer.span));
  for (const std::string& loop : loop_names(body))
    if (around.count(loop)) body = rename_loop(body, loop, names.fresh(loop));
  std::vector<std::pair<std::string, Expr>> element;
  for (std::size_t d = 0; d < producer.axes.size(); ++d) element.emplace_back(producer.axes[d].name, index[d]);
  body = replace(body, element);
  std::vector<std::string> own;
  walk(body, [&](const Stmt& stmt) {
    if (const Buffer* buffer = as<Buffer>(stmt)) own.push_back(buffer->name);
    return true;
  });
  for (const std::string& buffer : own) {
    std::string made = names.fresh(buffer);
    while (made != buffer && std::find(own.begin(), own.end(), made) != own.end()) made = names.fresh(buffer);
    body = rename_buffer(body, buffer, made);
  }
  Block result;
  result.push_back(make_stmt(Buffer{Space::Register, name, dtype, {}, std::nullopt, std::nullopt}, producer.span));
  result.insert(result.end(), body.begin(), body.end());
  return result;
}

Block read_scalar(const Block& body, const std::string& tensor, const std::vector<Expr>& index, Span at) {
  return rewrite_expressions(body, [&](const Expr& expr) {
    const Load* access = as<Load>(expr);
    if (!access || access->access.buffer != tensor || (access->access.index.empty() && !index.empty())) return expr;
    if (!(access->access.index == index))
      throw UserError(at, fmt::format("`{}` is read at another element than the one at hand", print(expr)),
                      "every element would be computed again where it is read");
    return load(Access{tensor, {}, {}, access->access.span}, expr->dtype, expr->span);
  });
}

std::vector<std::vector<Expr>> indices_of(const Block& body, const std::string& tensor) {
  std::vector<std::vector<Expr>> result;
  walk_expressions(body, [&](const Expr& expr) {
    walk(expr, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      if (access && access->access.buffer == tensor &&
          std::find(result.begin(), result.end(), access->access.index) == result.end())
        result.push_back(access->access.index);
      return true;
    });
  });
  return result;
}

bool is_temporary(const Plan& plan, const std::string& name) {
  return std::any_of(plan.temps.begin(), plan.temps.end(), [&](const Temp& temp) { return temp.name == name; });
}

Plan without_kernel(const Plan& plan, const std::string& name) {
  Plan result = plan;
  std::erase_if(result.steps, [&](const Step& step) {
    const Kernel* kernel = std::get_if<Kernel>(&step);
    return kernel && kernel->name == name;
  });
  std::erase_if(result.temps, [&](const Temp& temp) { return temp.name == name; });
  // The places of errors still name it, as the program does. Nothing says its dtype any more, and the parser takes f32.
  for (ErrorSite& site : result.errors)
    site.access = rewrite(site.access, [&](const Expr& expr) {
      const Load* access = as<Load>(expr);
      return access && access->access.buffer == name ? load(access->access, Dtype::F32, expr->span) : expr;
    });
  return result;
}

std::vector<std::string> readers_of(const Plan& plan, const std::string& tensor) {
  std::vector<std::string> result;
  for (const Kernel* kernel : kernels_of(plan)) {
    bool reads = !indices_of(kernel->body, tensor).empty();
    walk(kernel->body, [&](const Stmt& stmt) {
      if (const Copy* copy = as<Copy>(stmt)) reads |= copy->source.buffer == tensor;
      return !reads;
    });
    if (reads) result.push_back(kernel->name);
  }
  return result;
}

}  // namespace tilewright
