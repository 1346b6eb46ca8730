#include "tests/mutation/mutants.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "ir/instructions.h"
#include "tests/sim/sim.h"

namespace tilewright {

std::string_view name_of(MutationKind kind) {
  switch (kind) {
    case MutationKind::Sync: return "sync";
    case MutationKind::Predicate: return "predicate";
    case MutationKind::Fill: return "fill";
    case MutationKind::Layout: return "layout";
  }
  return "";
}

namespace {

struct Change {
  MutationKind kind;
  std::string what;
};
struct ExprEdit {
  Change change;
  Expr expr;
  Expr poisoned;  // may be empty
};
struct StmtEdit {
  Change change;
  Block statements;
  Block poisoned;
};

void conjuncts_of(const Expr& condition, std::vector<Expr>& out) {
  if (const Binary* both = as<Binary>(condition); both && both->op == BinaryOp::And) {
    conjuncts_of(both->lhs, out);
    conjuncts_of(both->rhs, out);
  } else {
    out.push_back(condition);
  }
}

// A condition that holds more often.
std::vector<ExprEdit> weaker(const Expr& condition) {
  std::vector<ExprEdit> edits;
  std::vector<Expr> conjuncts;
  conjuncts_of(condition, conjuncts);
  const auto with = [&](std::size_t n, const Expr& instead) {
    std::vector<Expr> rest = conjuncts;
    if (instead) rest[n] = instead;
    else rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(n));
    return rest.empty() ? boolean(true) : all_of(rest);
  };
  for (std::size_t n = 0; n < conjuncts.size(); ++n) {
    edits.push_back({{MutationKind::Predicate, fmt::format("without `{}`", print(conjuncts[n]))}, with(n, {}), {}});
    if (const Binary* compared = as<Binary>(conjuncts[n]); compared && compared->op == BinaryOp::Lt)
      edits.push_back({{MutationKind::Predicate, fmt::format("one more in `{}`", print(conjuncts[n]))}, with(n, binary(BinaryOp::Le, compared->lhs, compared->rhs)), {}});
  }
  return edits;
}

// Another value for one that stands for what is not there.
Expr poisoned(const Const&, Dtype dtype) {
  return is_float(dtype) ? real(std::numeric_limits<double>::quiet_NaN(), dtype) : dtype == Dtype::Bool ? Expr{} : integer(85, dtype);
}

// The value with poison in it; it is still computed.
Expr with_poison(const Expr& value) {
  if (value->dtype == Dtype::Bool || value->dtype == Dtype::Index) return value;
  const Expr poison = is_float(value->dtype) ? real(std::numeric_limits<double>::quiet_NaN(), value->dtype) : integer(85, value->dtype);
  return binary(BinaryOp::Add, value, poison);
}

// What only registers get is poisoned; the rest stays.
Block with_poison(const Block& body, const std::function<bool(const std::string&)>& is_counter, const std::map<std::string, std::int64_t>& shared, const std::vector<std::string>& registers) {
  return rewrite_statements(body, [&](const Stmt& stmt) -> Block {
    const Store* store = as<Store>(stmt);
    if (store == nullptr || shared.contains(store->target.buffer) || is_counter(store->target.buffer) || std::find(registers.begin(), registers.end(), store->target.buffer) == registers.end()) return {stmt};
    Store changed = *store;
    changed.value = with_poison(store->value);
    return {make_stmt(changed, stmt->span)};
  });
}

class Mutator {
 public:
  explicit Mutator(const Kernel& kernel) {
    walk(kernel.body, [&](const Stmt& stmt) {
      const Buffer* buffer = as<Buffer>(stmt);
      if (buffer != nullptr && buffer->space == Space::Register) registers_.push_back(buffer->name);
      if (buffer == nullptr || buffer->space != Space::Shared) return true;
      shared_[buffer->name] = buffer->axes.size() > 1 || buffer->dtype == Dtype::Mbarrier ? buffer->axes.empty() ? 1 : buffer->axes.front().extent : 1;
      return true;
    });
  }

  std::vector<StmtEdit> edits_of(const Stmt& stmt) const {
    std::vector<StmtEdit> edits;
    const auto add = [&](MutationKind kind, const std::string& what, Block statements) { edits.push_back({{kind, what}, std::move(statements), {}}); };
    if (const Instr* instr = as<Instr>(stmt)) of_instruction(*instr, stmt->span, add);
    if (const If* branch = as<If>(stmt))
      for (const ExprEdit& edit : weaker(branch->condition)) {
        add(edit.change.kind, edit.change.what, {make_stmt(If{edit.expr, branch->then_body, branch->else_body}, stmt->span)});
        const Stmt where_new = make_stmt(If{edit.expr, with_poison(branch->then_body, is_counter, shared_, registers_), branch->else_body}, stmt->span);
        edits.back().poisoned = {make_stmt(If{branch->condition, branch->then_body, {where_new}}, stmt->span)};
      }
    if (const Loop* loop = as<Loop>(stmt)) of_loop(*loop, stmt->span, add);
    if (const Let* let = as<Let>(stmt); let && let->value->dtype == Dtype::Bool)
      for (const ExprEdit& edit : weaker(let->value)) add(edit.change.kind, edit.change.what, {make_stmt(Let{let->name, edit.expr, {}, {}}, stmt->span)});
    if (const Store* store = as<Store>(stmt)) {
      if (const Const* value = as<Const>(store->value))
        if (const Expr poison = poisoned(*value, store->value->dtype); poison && store->value->dtype != Dtype::Index && !is_counter(store->target.buffer)) {
          Store changed = *store;
          changed.value = poison;
          add(MutationKind::Fill, "poison", {make_stmt(changed, stmt->span)});
        }
      for (const auto& [change, access] : of_access(store->target)) {
        Store changed = *store;
        changed.target = access;
        add(change.kind, change.what, {make_stmt(changed, stmt->span)});
      }
    }
    // In its expressions, one place after the other.
    if (as<If>(stmt) == nullptr) {
      std::vector<Expr> direct;
      map_expressions(stmt, [&](const Expr& expr) {
        direct.push_back(expr);
        return expr;
      });
      for (std::size_t n = 0; n < direct.size(); ++n)
        for (const ExprEdit& edit : of_expression(direct[n])) {
          std::size_t next = 0;
          add(edit.change.kind, edit.change.what, {map_expressions(stmt, [&](const Expr& expr) { return next++ == n ? edit.expr : expr; })});
          next = 0;
          if (edit.poisoned) edits.back().poisoned = {map_expressions(stmt, [&](const Expr& expr) { return next++ == n ? edit.poisoned : expr; })};
        }
    }
    return edits;
  }

 private:
  // A register that counts slots and phases, `p.in`.
  static bool is_counter(const std::string& name) { return name.find('.') != std::string::npos; }

  std::vector<ExprEdit> of_expression(const Expr& expr) const {
    std::vector<ExprEdit> edits;
    if (const Select* select = as<Select>(expr)) {
      for (const ExprEdit& edit : weaker(select->condition)) edits.push_back({edit.change, tilewright::select(edit.expr, select->if_true, select->if_false),
                         tilewright::select(select->condition, select->if_true, tilewright::select(edit.expr, with_poison(select->if_true), select->if_false))});
      if (const Const* value = as<Const>(select->if_false))
        if (const Expr poison = poisoned(*value, expr->dtype)) edits.push_back({{MutationKind::Fill, "poison"}, tilewright::select(select->condition, select->if_true, poison), {}});
    }
    if (const Load* place = as<Load>(expr))
      for (const auto& [change, access] : of_access(place->access)) edits.push_back({change, load(access, expr->dtype), {}});
    std::vector<Expr> children;
    map_children(expr, [&](const Expr& child) {
      children.push_back(child);
      return child;
    });
    for (std::size_t n = 0; n < children.size(); ++n)
      for (const ExprEdit& edit : of_expression(children[n])) {
        const auto rebuilt = [&](const Expr& instead) {
          std::size_t next = 0;
          return map_children(expr, [&](const Expr& child) { return next++ == n ? instead : child; });
        };
        edits.push_back({edit.change, rebuilt(edit.expr), edit.poisoned ? rebuilt(edit.poisoned) : Expr{}});
      }
    return edits;
  }

  // The layout of a buffer in shared memory, seen by this access alone; and its slot.
  std::vector<std::pair<Change, Access>> of_access(const Access& access) const {
    std::vector<std::pair<Change, Access>> result;
    const auto found = shared_.find(access.buffer);
    if (found == shared_.end() || access.index.empty()) return result;
    for (const ExprEdit& edit : of_layout(access.index.back())) {
      Access changed = access;
      changed.index.back() = edit.expr;
      result.push_back({{edit.change.kind, fmt::format("{} of `{}`", edit.change.what, access.buffer)}, changed});
    }
    if (found->second > 1 && !integer_value(access.index.front())) {
      Access changed = access;
      Expr& slot = changed.index.front();
      slot = binary(BinaryOp::Mod, binary(BinaryOp::Add, slot, integer(1, slot->dtype)), integer(found->second, slot->dtype));
      result.push_back({{MutationKind::Sync, fmt::format("next slot of `{}`", access.buffer)}, changed});
    }
    return result;
  }

  std::vector<ExprEdit> of_layout(const Expr& index) const {
    std::vector<ExprEdit> edits;
    const Binary* node = as<Binary>(index);
    if (node && node->op == BinaryOp::BitXor) edits.push_back({{MutationKind::Layout, "not swizzled"}, node->lhs, {}});
    if (node && node->op == BinaryOp::Mul)
      if (const auto stride = integer_value(node->rhs); stride && *stride > 1)
        edits.push_back({{MutationKind::Layout, fmt::format("stride {} for {}", *stride + 1, *stride)}, binary(BinaryOp::Mul, node->lhs, integer(*stride + 1, node->rhs->dtype)), {}});
    if (node == nullptr) return edits;
    for (const bool is_left : {true, false})
      for (const ExprEdit& edit : of_layout(is_left ? node->lhs : node->rhs))
        edits.push_back({edit.change, binary(node->op, is_left ? edit.expr : node->lhs, is_left ? node->rhs : edit.expr), {}});
    return edits;
  }

  template <class Add>
  void of_loop(const Loop& loop, Span span, const Add& add) const {
    if (loop.kind != LoopKind::Serial && loop.kind != LoopKind::Unroll) return;
    for (std::size_t n = 0; n < loop.axes.size(); ++n) {
      const auto with = [&](std::int64_t more) {
        Loop changed = loop;
        Expr& hi = changed.axes[n].hi;
        hi = binary(BinaryOp::Add, hi, integer(more, hi->dtype));
        return Block{make_stmt(changed, span)};
      };
      add(MutationKind::Predicate, "a trip fewer", with(-1));
      if (loop.kind == LoopKind::Serial) add(MutationKind::Predicate, "a trip more", with(1));
    }
  }

  template <class Add>
  void of_instruction(const Instr& instr, Span span, const Add& add) const {
    const InstrInfo& row = *find_instruction(instr.op);
    const auto sync = [&](const std::string& what, Block statements) { add(MutationKind::Sync, what, std::move(statements)); };
    const auto with = [&](std::size_t operand, const Expr& value) {
      Instr changed = instr;
      changed.operands[operand] = value;
      return Block{make_stmt(changed, span)};
    };
    const auto constant_at = [&](std::size_t operand) { return integer_value(instr.operands.at(operand)); };
    const bool is_sync = row.effect == Effect::Orders || instr.op.ends_with(".commit") || instr.op.starts_with("cluster.") || instr.op == "mbarrier.init" || instr.op.starts_with("setmaxnreg");
    if (is_sync) sync("dropped", {});
    if (instr.op == "cp.async.wait" || instr.op.starts_with("bulk.wait") || instr.op == "wgmma.wait") sync("one group more open", with(0, integer(*constant_at(0) + 1)));
    if (instr.op == "cp.async.fill") add(MutationKind::Predicate, "copies all bytes", with(3, instr.operands[2]));
    if (instr.op == "mbarrier.init") {
      sync("one arrival more", with(1, integer(*constant_at(1) + 1)));
      if (*constant_at(1) > 1) sync("one arrival fewer", with(1, integer(*constant_at(1) - 1)));
    }
    if (instr.op == "mbarrier.arrive.expect_tx") {
      sync("fewer bytes", with(1, integer(*constant_at(1) / 2)));
      sync("more bytes", with(1, integer(*constant_at(1) * 2)));
    }
    if (instr.op == "mbarrier.wait") sync("other phase", with(1, binary(BinaryOp::BitXor, instr.operands[1], integer(1, instr.operands[1]->dtype))));
    if (instr.op == "barrier.named") sync("one barrier for all", with(0, integer(1, instr.operands[0]->dtype)));
    if (wgmma_form(instr.op)) {
      if (!(instr.operands[3] == boolean(true))) add(MutationKind::Fill, "adds always", with(3, boolean(true)));
      add(MutationKind::Layout, "other transposition of B", with(5, integer(1 - *constant_at(5), instr.operands[5]->dtype)));
      for (const std::size_t side : {std::size_t{1}, std::size_t{2}})
        if (const Call* descriptor = as<Call>(instr.operands[side])) {
          Call changed = *descriptor;
          changed.arguments[2] = binary(BinaryOp::Mul, changed.arguments[2], integer(2, changed.arguments[2]->dtype));
          add(MutationKind::Layout, side == 1 ? "double stride of A" : "double stride of B", with(side, call(changed.function, changed.arguments, Dtype::U64)));
        }
    }
    if (instr.op.starts_with("tma.load")) add(MutationKind::Layout, "column of the box moved", with(2, binary(BinaryOp::Add, instr.operands[2], integer(8, instr.operands[2]->dtype))));
    if (instr.op.starts_with("tma.load") && instr.op.ends_with("multicast")) sync("for one block", with(instr.operands.size() - 1, integer(1, instr.operands.back()->dtype)));
  }

  std::map<std::string, std::int64_t> shared_;  // with the number of slots
  std::vector<std::string> registers_;
};

// The body with other statements in the place of number `wanted`, counted parents first.
Block with_statement(const Block& body, std::size_t wanted, std::size_t& next, const Block& instead) {
  Block result;
  for (const Stmt& stmt : body) {
    if (next++ == wanted) {
      result.insert(result.end(), instead.begin(), instead.end());
      std::size_t all = 0;
      walk({stmt}, [&](const Stmt&) { return ++all, true; });
      next += all - 1;
      continue;
    }
    result.push_back(map_bodies(stmt, [&](const Block& inner) { return with_statement(inner, wanted, next, instead); }));
  }
  return result;
}

}  // namespace

Plan with_statement(const Plan& plan, std::size_t step, std::size_t position, const Block& instead) {
  Plan changed = plan;
  Kernel& kernel = std::get<Kernel>(changed.steps[step]);
  std::size_t next = 0;
  kernel.body = with_statement(kernel.body, position, next, instead);
  return changed;
}

namespace {

std::string first_line(const Stmt& stmt) {
  const std::string text = print(stmt);
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::vector<Mutant> mutants_of(const Plan& plan) {
  std::vector<Mutant> result;
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    const Kernel* kernel = std::get_if<Kernel>(&plan.steps[step]);
    if (kernel == nullptr) continue;
    const Mutator mutator(*kernel);
    std::size_t position = 0;
    walk(kernel->body, [&](const Stmt& stmt) {
      for (StmtEdit& edit : mutator.edits_of(stmt)) {
        Mutant mutant{edit.change.kind, fmt::format("{}: {}", edit.change.what, first_line(stmt)), plan, step, position, stmt, std::move(edit.statements), std::move(edit.poisoned)};
        mutant.plan = with_statement(plan, step, position, mutant.after);
        result.push_back(std::move(mutant));
      }
      ++position;
      return true;
    });
    for (std::size_t n = 0; n < kernel->launch.maps.size(); ++n) {
      const TensorMap& map = kernel->launch.maps[n];
      const auto add = [&](const std::string& what, const TensorMap& changed) {
        Mutant mutant{MutationKind::Layout, fmt::format("{}: map {}", what, map.name), plan, step, n, {}, {}, {}};
        std::get<Kernel>(mutant.plan.steps[step]).launch.maps[n] = changed;
        result.push_back(std::move(mutant));
      };
      TensorMap changed = map;
      changed.xor_bytes = map.xor_bytes == 0 ? 32 : map.xor_bytes == 32 ? 0 : map.xor_bytes / 2;
      add(fmt::format("swizzle {} for {}", changed.xor_bytes, map.xor_bytes), changed);
      changed = map;
      if (map.box.back() > 1) changed.box.back() /= 2, add("half the rows", changed);
    }
  }
  return result;
}

TEST_SUITE("mutation") {
  TEST_CASE("each mutant differs from its plan in one statement, prints and parses") {
    const Plan plan = ladder_plan("matmul.ch5.thread.ir");
    const std::vector<Mutant> mutants = mutants_of(plan);
    std::map<MutationKind, int> kinds;
    for (const Mutant& mutant : mutants) {
      ++kinds[mutant.kind];
      CHECK_MESSAGE(!(mutant.plan == plan), mutant.text);
      CHECK_MESSAGE(print(parse_plan(print(mutant.plan))) == print(mutant.plan), mutant.text);
    }
    CHECK(kinds[MutationKind::Sync] == 2);                     // two barriers
    CHECK(kinds[MutationKind::Fill] == 3);                     // the accumulator, two fills
    CHECK(kinds[MutationKind::Predicate] == 4 + 4 + 4 + 3);    // two copies, the store, two loops
    CHECK(kinds[MutationKind::Layout] == 4);                   // two stores, two loads
  }
}

}  // namespace tilewright
