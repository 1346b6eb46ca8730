// simplify: index expressions and predicates by interval facts; what cannot happen disappears.
//
//   before   let t = thread.x / 256; if thread.x < 256 { As[(i*16 + 3) / 16] = … }
//   after    let t = 0; As[i] = …          (in a block of 256 threads)
//
// Exact: only integers of sizes and indices, and conditions on them, are touched.
#include "passes/affine.h"
#include "passes/finish/conditions.h"
#include "passes/finish/passes.h"

namespace tilewright {

namespace {

class Simplifier {
 public:
  Block body(const Block& statements, Ranges ranges) {
    Block out;
    for (const Stmt& stmt : statements) {
      auto simple = [&](const Expr& expr) { return simplify_expr(expr, ranges); };
      if (const Loop* loop = as<Loop>(stmt)) {
        Loop node = *loop;
        Ranges inner = ranges;
        bool empty = false;
        for (Axis& axis : node.axes) {
          for (Expr* bound : {&axis.lo, &axis.hi, &axis.step})
            if (*bound) *bound = simplify_expr(*bound, inner);
          add_axis(inner, axis);
          Expr lo = axis.lo ? axis.lo : integer(0);
          empty |= decide(less(lo, axis.hi), ranges) == false;
        }
        if (empty) continue;
        node.body = body(loop->body, inner);
        if (node.body.empty()) continue;
        out.push_back(make_stmt(std::move(node), stmt->span));
        continue;
      }
      if (const If* branch = as<If>(stmt)) {
        Expr condition = simple(branch->condition);
        auto known = decide(condition, ranges);
        if (known) {
          Block taken = body(*known ? branch->then_body : branch->else_body, ranges);
          bool declares = false;
          for (const Stmt& inner : taken) declares |= as<Buffer>(inner) != nullptr || as<Let>(inner) != nullptr;
          if (!declares) out.insert(out.end(), taken.begin(), taken.end());
          else out.push_back(make_stmt(If{boolean(true), std::move(taken), {}}, stmt->span));
          continue;
        }
        Block then_body = body(branch->then_body, ranges);
        Block else_body = body(branch->else_body, ranges);
        if (then_body.empty() && else_body.empty()) continue;
        out.push_back(make_stmt(If{condition, std::move(then_body), std::move(else_body)}, stmt->span));
        continue;
      }
      Stmt again = map_expressions(stmt, simple);
      if (const Let* let = as<Let>(again); let && let->value->dtype == Dtype::Index) ranges[let->name] = interval_of(let->value, ranges);
      out.push_back(std::move(again));
    }
    return out;
  }
};

}  // namespace

Plan simplify(const Plan& plan, const Target&) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    Kernel result = kernel;
    Ranges ranges = ranges_of_dims(plan);
    const char* threads[] = {"thread.x", "thread.y", "thread.z"};
    for (std::size_t n = 0; kernel.stage == Stage::Thread && n < 3; ++n)
      ranges[threads[n]] = Interval{0, n < kernel.launch.block.size() ? kernel.launch.block[n] - 1 : 0};
    for (const char* name : {"block.x", "block.y", "block.z"}) ranges[name] = Interval{0, std::nullopt};
    ranges["lane"] = Interval{0, 31};
    result.body = Simplifier().body(kernel.body, ranges);
    return result;
  });
}

}  // namespace tilewright
