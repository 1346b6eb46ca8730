// lower: from tensor IR to the naive plan.
//
//   before   C[i, j] = sum[k] A[i, k] * B[k, j]
//   after    kernel C { parallel i in M, j in N { reg acc: f32; acc = 0.0; serial k in K { acc = fma(A[i, k], B[k, j], acc) }; C[i, j] = acc } }
//
// A kernel a statement, named after its tensor (a second one that updates it: `H.2`). Contraction to `fma` is decided here, once, within one statement.
// A scatter becomes atomics where any order gives the same bits (integers); a scatter of floats runs in index order.
#include <fmt/format.h>

#include <map>
#include <set>

#include "ir/operators.h"
#include "passes/linear_form.h"
#include "passes/pass.h"

namespace tilewright {

namespace {

constexpr std::int64_t chunk_terms = 4096;

bool is_contractible(Dtype dtype) { return dtype == Dtype::F32 || dtype == Dtype::F64; }

// a*b + c, c + a*b, a*b - c and c - a*b of one rounding each become an fma; of two products the left one is fused.
Expr contract_products(const Expr& expr) {
  return rewrite(expr, [](const Expr& node) -> Expr {
    const Binary* sum = as<Binary>(node);
    if (!sum || !is_contractible(node->dtype) || (sum->op != BinaryOp::Add && sum->op != BinaryOp::Sub)) return node;
    auto product = [](const Expr& side) -> const Binary* {
      const Binary* found = as<Binary>(side);
      return found && found->op == BinaryOp::Mul ? found : nullptr;
    };
    auto negated = [](const Expr& side) { return unary(UnaryOp::Neg, side); };
    bool minus = sum->op == BinaryOp::Sub;
    if (const Binary* left = product(sum->lhs))
      return call("fma", {left->lhs, left->rhs, minus ? negated(sum->rhs) : sum->rhs}, node->dtype, node->span);
    if (const Binary* right = product(sum->rhs))
      return call("fma", {minus ? negated(right->lhs) : right->lhs, right->rhs, sum->lhs}, node->dtype, node->span);
    return node;
  });
}

class StatementLowering {
 public:
  StatementLowering(const TensorFn& fn, bool long_sums) : long_sums_(long_sums) {
    for (const std::string& dim : fn.dims) taken_.insert(dim);
    for (const Param& param : fn.params) taken_.insert(param.name);
    for (const Temp& temp : fn.lets) taken_.insert(temp.name);
    for (const TensorStmt& stmt : fn.statements) {
      for (const Axis& axis : stmt.axes) taken_.insert(axis.name);
      walk(stmt.value, [&](const Expr& node) {
        if (const Reduce* inner = as<Reduce>(node))
          for (const Axis& axis : inner->axes) taken_.insert(axis.name);
        return true;
      });
    }
  }

  Kernel kernel(const TensorStmt& stmt, std::string name) {
    span_ = stmt.span;
    Kernel kernel;
    kernel.name = std::move(name);
    Block body;
    Access target{stmt.target, stmt.index, stmt.rule, stmt.span};
    bool ordered = false;
    if (const auto scan = stmt.combine ? std::nullopt : scan_of(stmt)) {
      kernel.body = running(stmt, *scan);
      return kernel;
    }
    if (!stmt.combine) {
      Expr value = emit(stmt.value, body);
      body.push_back(make_stmt(Store{target, contract_products(value), stmt.where, std::nullopt}, span_));
    } else {
      Expr value = emit(stmt.value, body);
      ordered = is_float(stmt.value->dtype);
      if (ordered) {
        Access place = target;
        if (place.rule.kind == Rule::Kind::Skip) place.rule = Rule{Rule::Kind::Fill, identity_of(*stmt.combine, value->dtype), 0};  // then nothing is stored
        Expr old = load(place, value->dtype, span_);
        body.push_back(make_stmt(Store{target, contract_products(combine(*stmt.combine, old, value)), stmt.where, std::nullopt}, span_));
      } else {
        body.push_back(make_stmt(Store{target, contract_products(value), stmt.where, stmt.combine}, span_));
      }
    }
    if (stmt.axes.empty()) {
      kernel.body = std::move(body);
    } else {
      kernel.body = {make_stmt(Loop{ordered ? LoopKind::Serial : LoopKind::Parallel, stmt.axes, std::nullopt, std::move(body)}, span_)};
    }
    return kernel;
  }

 private:
  // A name of ours that the program does not use: `acc`, `acc.2`, …
  std::string fresh(const std::string& base) {
    std::string name = base;
    for (int n = 2; taken_.count(name); ++n) name = fmt::format("{}.{}", base, n);
    taken_.insert(name);
    return name;
  }

  Expr scalar(const std::string& name, Dtype dtype) { return load(Access{name, {}, {}, span_}, dtype, span_); }

  void assign(Block& out, const std::string& name, const Expr& value, std::vector<Expr> where = {}) {
    out.push_back(make_stmt(Store{Access{name, {}, {}, span_}, value, std::move(where), std::nullopt}, span_));
  }

  void declare(Block& out, const std::string& name, Dtype dtype) {
    out.push_back(make_stmt(Buffer{Space::Register, name, dtype, {}, std::nullopt, std::nullopt}, span_));
  }

  // ---- Scans

  // A reduction as far as an index of the statement goes.
  struct Scan {
    std::size_t axis;         // of the statement
    bool is_from_end;         // over 0 .. E - i, where i goes to E
    std::vector<Expr> sums;   // the reductions of the statement that are like it
  };

  // How far `node` goes along the axis: over 0 .. i (no), 0 .. i + 1 (yes), from the end over 0 .. E - i - 1 or E - i; none
  // where it does not, or where more of it depends on the axis.
  std::optional<bool> takes_own_term(const Reduce& node, const Axis& axis, bool is_from_end) const {
    if (node.axes.size() != 1 || node.gives_index || node.axes[0].step || (node.axes[0].lo && integer_value(node.axes[0].lo) != 0)) return std::nullopt;
    if (axis.step || (axis.lo && integer_value(axis.lo) != 0) || uses_var(node.body, axis.name)) return std::nullopt;
    for (const Expr& condition : node.where)
      if (uses_var(condition, axis.name)) return std::nullopt;
    const Expr self = is_from_end ? axis.hi - var(axis.name) : var(axis.name);
    const std::optional<std::int64_t> beyond = constant_difference(linear_form(node.axes[0].hi), linear_form(self));
    const std::int64_t own = beyond.value_or(-2) + (is_from_end ? 1 : 0);
    if (own != 0 && own != 1) return std::nullopt;
    return own == 1;
  }

  std::optional<Scan> scan_of(const TensorStmt& stmt) const {
    std::optional<Scan> found;
    walk(stmt.value, [&](const Expr& node) {
      if (as<Select>(node)) return false;  // a branch that is not taken adds nothing
      const Reduce* sum = as<Reduce>(node);
      if (!sum) return true;
      for (std::size_t axis = 0; axis < stmt.axes.size() && !found; ++axis)
        for (const bool is_from_end : {false, true})
          if (takes_own_term(*sum, stmt.axes[axis], is_from_end)) found = Scan{axis, is_from_end, {}};
      if (found && takes_own_term(*sum, stmt.axes[found->axis], found->is_from_end)) found->sums.push_back(node);
      return false;
    });
    return found;
  }

  // reg run = the identity; serial i in N { run = run + X[i]; P[i] = run }, and an exclusive one adds behind its store. The
  // terms are added in the same order as each sum for itself would add them.
  Block running(const TensorStmt& stmt, const Scan& scan) {
    const Axis& axis = stmt.axes[scan.axis];
    const Expr here = scan.is_from_end ? axis.hi - var(axis.name) + -1 : var(axis.name);
    const auto placed = [&](const Expr& expr) { return scan.is_from_end ? substitute(expr, {{axis.name, here}}) : expr; };
    Block out, each, behind;
    std::vector<std::pair<Expr, Expr>> results;
    for (const Expr& sum : scan.sums) {
      const Reduce& node = *as<Reduce>(sum);
      const std::string run = fresh("run");
      declare(out, run, sum->dtype);
      assign(out, run, identity_of(node.op, sum->dtype));
      const bool is_inclusive = *takes_own_term(node, axis, scan.is_from_end);
      Block update;
      const auto at = [&](const Expr& expr) { return substitute(expr, {{node.axes[0].name, var(axis.name)}}); };
      std::vector<Expr> where;
      for (const Expr& condition : node.where) where.push_back(emit(at(condition), update));
      Block nested;
      const Expr term = emit(at(node.body), nested);
      assign(nested, run, contract_products(combine(node.op, scalar(run, sum->dtype), term)));
      if (const Expr condition = all_of(where)) update.push_back(make_stmt(If{condition, std::move(nested), {}}, span_));
      else update.insert(update.end(), nested.begin(), nested.end());
      Block& place = is_inclusive ? each : behind;
      place.insert(place.end(), update.begin(), update.end());
      results.emplace_back(sum, scalar(run, sum->dtype));
    }
    const Expr value = rewrite(stmt.value, [&](const Expr& node) -> Expr {
      for (const auto& [sum, run] : results)
        if (node == sum) return run;
      return node;
    });
    const Expr emitted = emit(placed(value), each);
    std::vector<Expr> index, where;
    for (const Expr& part : stmt.index) index.push_back(placed(part));
    for (const Expr& part : stmt.where) where.push_back(placed(part));
    each.push_back(make_stmt(Store{Access{stmt.target, std::move(index), stmt.rule, stmt.span}, contract_products(emitted), std::move(where), std::nullopt}, span_));
    // Behind the last there may be no further term to read.
    if (!behind.empty()) each.push_back(make_stmt(If{binary(BinaryOp::Lt, var(axis.name), axis.hi - integer(1)), std::move(behind), {}}, span_));
    out.push_back(make_stmt(Loop{LoopKind::Serial, {axis}, std::nullopt, std::move(each)}, span_));
    std::vector<Axis> others = stmt.axes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(scan.axis));
    if (others.empty()) return out;
    return {make_stmt(Loop{LoopKind::Parallel, std::move(others), std::nullopt, std::move(out)}, span_)};
  }

  // `expr` without reductions; what they need is appended to `out`. A reduction in a branch is computed only if the
  // branch is taken.
  Expr emit(const Expr& expr, Block& out) {
    if (const Reduce* node = as<Reduce>(expr)) return emit_reduce(*node, expr->dtype, out);
    const Select* branch = as<Select>(expr);
    if (branch && (has_reduce(branch->if_true) || has_reduce(branch->if_false))) {
      Expr condition = emit(branch->condition, out);
      std::string chosen = fresh("chosen");
      declare(out, chosen, expr->dtype);
      Block then_body, else_body;
      assign(then_body, chosen, contract_products(emit(branch->if_true, then_body)));
      assign(else_body, chosen, contract_products(emit(branch->if_false, else_body)));
      out.push_back(make_stmt(If{condition, std::move(then_body), std::move(else_body)}, span_));
      return scalar(chosen, expr->dtype);
    }
    return map_children(expr, [&](const Expr& child) { return emit(child, out); });
  }

  static bool has_reduce(const Expr& expr) {
    bool found = false;
    walk(expr, [&](const Expr& node) {
      found |= as<Reduce>(node) != nullptr;
      return !found;
    });
    return found;
  }

  // reg best = the identity; reg at = -1; serial k { reg term = body; if at < 0 or term is better or the first NaN { best = term; at = k } }
  Expr emit_index_of_extreme(const Reduce& node, Dtype dtype, Block& out) {
    const Dtype of_terms = node.body->dtype;
    const std::string at = fresh("at"), best = fresh("best"), term = fresh("term");
    declare(out, best, of_terms);
    assign(out, best, identity_of(node.op, of_terms));
    declare(out, at, dtype);
    assign(out, at, integer(-1, dtype));
    Block update, inner, take;
    std::vector<Expr> where;
    for (const Expr& condition : node.where) where.push_back(emit(condition, update));
    declare(inner, term, of_terms);
    assign(inner, term, contract_products(emit(node.body, inner)));
    const Expr now = scalar(term, of_terms), old = scalar(best, of_terms);
    Expr is_better = binary(BinaryOp::Or, binary(BinaryOp::Lt, scalar(at, dtype), integer(0, dtype)),
                            binary(node.op == CombineOp::Max ? BinaryOp::Gt : BinaryOp::Lt, now, old));
    if (is_float(of_terms))
      is_better = binary(BinaryOp::Or, is_better, binary(BinaryOp::And, binary(BinaryOp::Ne, now, now), binary(BinaryOp::Eq, old, old)));
    assign(take, best, now);
    assign(take, at, cast(dtype, var(node.axes[0].name)));
    inner.push_back(make_stmt(If{is_better, std::move(take), {}}, span_));
    if (const Expr condition = all_of(where)) update.push_back(make_stmt(If{condition, std::move(inner), {}}, span_));
    else update.insert(update.end(), inner.begin(), inner.end());
    out.push_back(make_stmt(Loop{LoopKind::Serial, node.axes, std::nullopt, std::move(update)}, span_));
    return scalar(at, dtype);
  }

  Expr emit_reduce(const Reduce& node, Dtype dtype, Block& out) {
    if (node.gives_index) return emit_index_of_extreme(node, dtype, out);
    std::string name = fresh("acc");
    declare(out, name, dtype);
    assign(out, name, identity_of(node.op, dtype));
    bool chunked = long_sums_ && dtype == Dtype::F32 && node.op == CombineOp::Add;
    std::string partial = chunked ? fresh(name + ".chunk") : name;
    Block update;
    std::vector<Expr> where;
    for (const Expr& condition : node.where) where.push_back(emit(condition, update));
    // A nested reduction must not run where the conditions do not hold: they may guard its reads.
    Block nested;
    Expr body = emit(node.body, nested);
    Expr next = contract_products(combine(node.op, scalar(partial, dtype), body));
    if (nested.empty()) {
      assign(update, partial, next, std::move(where));
    } else {
      assign(nested, partial, next);
      Expr condition = all_of(where);
      if (condition) update.push_back(make_stmt(If{condition, std::move(nested), {}}, span_));
      else update.insert(update.end(), nested.begin(), nested.end());
    }
    Block nest = std::move(update);
    for (auto axis = node.axes.rbegin(); axis != node.axes.rend(); ++axis) {
      bool outermost = axis + 1 == node.axes.rend();
      nest = chunked && outermost ? two_levels(*axis, name, partial, std::move(nest))
                                  : Block{make_stmt(Loop{LoopKind::Serial, {*axis}, std::nullopt, std::move(nest)}, span_)};
    }
    out.insert(out.end(), nest.begin(), nest.end());
    return scalar(name, dtype);
  }

  // serial k.chunk { part = 0; serial k in 4096 { part += … }; acc = acc + part }
  Block two_levels(const Axis& axis, const std::string& name, const std::string& partial, Block nest) {
    std::string chunk = axis.name + ".chunk";
    Expr lo = axis.lo ? axis.lo : integer(0);
    Expr extent = axis.hi - lo;
    Expr first = var(chunk) * chunk_terms;
    Expr count = binary(BinaryOp::Min, integer(chunk_terms), extent - first);
    nest = substitute(nest, {{axis.name, lo + first + var(axis.name)}});
    Block body;
    declare(body, partial, Dtype::F32);
    assign(body, partial, real(0, Dtype::F32));
    body.push_back(make_stmt(Loop{LoopKind::Serial, {Axis{axis.name, integer(0), count, {}, axis.span}}, std::nullopt, std::move(nest)}, span_));
    assign(body, name, scalar(name, Dtype::F32) + scalar(partial, Dtype::F32));
    return {make_stmt(Loop{LoopKind::Serial, {Axis{chunk, integer(0), ceildiv(extent, integer(chunk_terms)), {}, axis.span}}, std::nullopt, std::move(body)}, span_)};
  }

  bool long_sums_;
  std::set<std::string> taken_;
  Span span_;
};

}  // namespace

Plan lower(const TensorFn& fn, bool long_sums) {
  Plan plan;
  plan.name = fn.name;
  for (const std::string& dim : fn.dims) plan.dims.push_back(Dim{dim, {}});
  plan.params = fn.params;
  plan.temps = fn.lets;
  plan.errors = fn.errors;
  if (!fn.errors.empty()) plan.error_name = "e";
  std::set<std::string> cleared;
  std::map<std::string, int> updates;  // by target: the second statement's kernel is `H.2`
  for (const TensorStmt& stmt : fn.statements) {
    if (stmt.combine && cleared.insert(stmt.target).second) {
      bool keeps = false;
      for (const Param& param : fn.params) keeps |= param.name == stmt.target && param.kind == ParamKind::InOut;
      if (!keeps) plan.steps.push_back(Clear{stmt.target, identity_of(*stmt.combine, stmt.value->dtype)});
    }
    const int number = ++updates[stmt.target];
    std::string name = number == 1 ? stmt.target : fmt::format("{}.{}", stmt.target, number);
    plan.steps.push_back(StatementLowering(fn, long_sums).kernel(stmt, std::move(name)));
  }
  return plan;
}

}  // namespace tilewright
