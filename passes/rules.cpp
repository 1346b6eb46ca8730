// The compiler's own schedule for a program without one: rules by the class of each kernel, in the language's syntax.
//
//   pointwise producers and readers of a finished reduction   `inline t`
//   matrix products                                           `C: tile block i 16, j 16, k 16; C: bind …; C: coarsen …; C: stage …`
//   reductions to one number                                `s: split k block 65536; s.part: bind k.part block; s.part: split k 256 thread.x; …`
//   everything else                                           nothing: bind_default's one thread an element
//
// A group of lines that a pass refuses for this plan is left out as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "passes/pass.h"

namespace tilewright {

namespace {

const Kernel* kernel_of(const Plan& plan, const std::string& name) {
  for (const Kernel* kernel : kernels_of(plan))
    if (kernel->name == name) return kernel;
  return nullptr;
}

bool has_reduction(const Kernel& kernel) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    found |= loop && loop->kind == LoopKind::Serial;
    return !found;
  });
  return found;
}

// Where a kernel reads a tensor: inside a serial loop (then once for each of its trips) or only outside.
bool reads_in_reduction(const Kernel& kernel, const std::string& tensor) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    if (loop && loop->kind == LoopKind::Serial)
      walk_expressions(loop->body, [&](const Expr& expr) { found |= uses_buffer(expr, tensor); });
    return true;
  });
  return found;
}

bool reads(const Kernel& kernel, const std::string& tensor) {
  bool found = false;
  walk_expressions(kernel.body, [&](const Expr& expr) { found |= uses_buffer(expr, tensor); });
  return found;
}

// A producer is computed again wherever it is read: worth it for a pointwise one that is read outside reductions, and for
// a reduction only where each element is read once, by the element of the same indices.
bool is_worth_inlining(const Plan& plan, const std::string& temp) {
  const Kernel* producer = kernel_of(plan, temp);
  if (!producer) return false;
  int readers = 0;
  for (const Kernel* kernel : kernels_of(plan)) {
    if (kernel == producer || !reads(*kernel, temp)) continue;
    ++readers;
    if (reads_in_reduction(*kernel, temp)) return false;
  }
  return readers > 0 && (!has_reduction(*producer) || readers == 1);
}

struct Product {
  std::string row, column, reduced;
  std::vector<std::string> operands;
};

// C[i, j] = sum[k] f(A[… i, k …], B[… k, j …]): two free axes, one reduced, each operand on one of the free ones.
std::optional<Product> as_product(const Kernel& kernel) {
  if (kernel.body.size() != 1) return std::nullopt;
  const Loop* outer = as<Loop>(kernel.body[0]);
  if (!outer || outer->kind != LoopKind::Parallel || outer->axes.size() != 2) return std::nullopt;
  const Loop* inner = nullptr;
  for (const Stmt& stmt : outer->body)
    if (const Loop* loop = as<Loop>(stmt)) {
      if (inner || loop->kind != LoopKind::Serial || loop->axes.size() != 1) return std::nullopt;
      inner = loop;
    }
  if (!inner || inner->body.size() != 1) return std::nullopt;
  const Store* update = as<Store>(inner->body[0]);
  if (!update || !update->where.empty()) return std::nullopt;
  Product product{outer->axes[0].name, outer->axes[1].name, inner->axes[0].name, {}};
  bool by_row = false, by_column = false;
  bool fits = true;
  walk(update->value, [&](const Expr& node) {
    const Load* access = as<Load>(node);
    if (!access || access->access.index.empty()) return true;
    if (!uses_var(node, product.reduced)) return true;
    bool on_row = uses_var(node, product.row);
    bool on_column = uses_var(node, product.column);
    fits &= on_row != on_column && access->access.rule.kind == Rule::Kind::None;
    by_row |= on_row;
    by_column |= on_column;
    product.operands.push_back(access->access.buffer);
    return true;
  });
  std::set<std::string> distinct(product.operands.begin(), product.operands.end());
  if (!fits || !by_row || !by_column || distinct.size() != product.operands.size()) return std::nullopt;
  return product;
}

// The reduced indices, outermost first, of a kernel whose result is one element: s = sum[i, j] …
std::vector<std::string> whole_reduction(const Kernel& kernel) {
  std::vector<std::string> result;
  bool fits = true;
  walk(kernel.body, [&](const Stmt& stmt) {
    const Loop* loop = as<Loop>(stmt);
    if (!loop) return true;
    fits &= loop->kind == LoopKind::Serial;
    for (const Axis& axis : loop->axes) {
      const std::string name = axis.name.ends_with(".chunk") ? axis.name.substr(0, axis.name.size() - 6) : axis.name;
      if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
    }
    return true;
  });
  return fits && result.size() <= 2 ? result : std::vector<std::string>{};
}

class Rules {
 public:
  Rules(const Plan& plan, const Target& target) : plan_(plan), target_(target) {}

  std::vector<ScheduleLine> run() {
    std::vector<std::string> temps;
    for (const Temp& temp : plan_.temps) temps.push_back(temp.name);
    for (const std::string& temp : temps)
      if (is_worth_inlining(plan_, temp)) attempt({fmt::format("inline {}", temp)}, "");
    std::vector<std::string> names;
    for (const Kernel* kernel : kernels_of(plan_)) names.push_back(kernel->name);
    for (const std::string& name : names) {
      const Kernel* kernel = kernel_of(plan_, name);
      if (kernel) share_whole_reduction(*kernel);
      auto product = kernel ? as_product(*kernel) : std::nullopt;
      if (!product) continue;
      std::string staged;
      for (const std::string& operand : product->operands) staged += (staged.empty() ? "" : ", ") + operand;
      attempt({fmt::format("tile block {} 16, {} 16, {} 16", product->row, product->column, product->reduced),
               fmt::format("bind {} thread.y, {} thread.x", product->row, product->column),
               fmt::format("coarsen {} 4, {} 4", product->row, product->column),
               fmt::format("stage {} in shared at {}.block", staged, product->reduced)},
              name);
    }
    return std::move(lines_);
  }

 private:
  // Blocks take a part each, and their threads share it: 65,536 terms of one index, or 16 rows of two.
  void share_whole_reduction(const Kernel& kernel) {
    const std::vector<std::string> indices = whole_reduction(kernel);
    if (indices.empty()) return;
    const std::string name = kernel.name, outer = indices.front();
    attempt({fmt::format("{}: split {} block {}", name, outer, indices.size() == 1 ? 65536 : 16),
             fmt::format("{}.part: bind {}.part block", name, outer),
             fmt::format("{}.part: split {} 256 thread.x", name, indices.back()),
             fmt::format("{}: split {}.part 256 thread.x", name, outer)},
            "");
  }

  void attempt(const std::vector<std::string>& texts, const std::string& kernel) {
    Plan trial = plan_;
    std::vector<ScheduleLine> made;
    try {
      for (const std::string& text : texts) {
        ScheduleLine line = tokenize_line(kernel.empty() ? text : kernel + ": " + text);
        trial = apply_line(trial, line, target_);
        made.push_back(std::move(line));
      }
    } catch (const UserError&) {
      return;
    }
    plan_ = std::move(trial);
    lines_.insert(lines_.end(), made.begin(), made.end());
  }

  Plan plan_;
  const Target& target_;
  std::vector<ScheduleLine> lines_;
};

}  // namespace

std::vector<ScheduleLine> default_schedule(const Plan& plan, const Target& target) { return Rules(plan, target).run(); }

}  // namespace tilewright
