// synchronise: puts a barrier between accesses of a shared buffer by different threads.
//
//   before   serial k.block { As[…] = A[…]; unroll k { acc = fma(As[…], …) } }
//   after    serial k.block { As[…] = A[…]; barrier.block(); unroll k { acc = fma(As[…], …) }; barrier.block() }
//
// Only plain and vector accesses count here: what a pipe moves, and what the tensor cores write, is synchronised by the
// verbs of the pipe. Decided by buffer, slot and statement, never by address: two statements conflict if both touch one slot of one buffer
// and at least one writes. A statement never conflicts with itself, for a tile statement's iterations are independent.
// A barrier stands only where all threads of the block come by; a conflict inside a divergent branch is our fault.
#include <set>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "passes/finish/passes.h"

namespace tilewright {

namespace {

struct Touch {
  std::string buffer;
  Expr slot;  // empty: the buffer has no slots
  bool write = false;
  friend bool operator==(const Touch&, const Touch&) = default;
};
using Touches = std::vector<Touch>;

// `(x + a) % n` and `(x + b) % n` differ where a and b do, modulo n.
bool are_distinct_slots(const Expr& a, const Expr& b) {
  auto parts = [](const Expr& slot) {
    struct Parts {
      Expr base;
      std::int64_t offset = 0;
      std::int64_t modulus = 0;
    } result;
    const Binary* modulo = as<Binary>(slot);
    if (!modulo || modulo->op != BinaryOp::Mod || !integer_value(modulo->rhs)) return result;
    result.modulus = *integer_value(modulo->rhs);
    result.base = modulo->lhs;
    if (const Binary* sum = as<Binary>(modulo->lhs); sum && sum->op == BinaryOp::Add && integer_value(sum->rhs)) {
      result.base = sum->lhs;
      result.offset = *integer_value(sum->rhs);
    }
    return result;
  };
  if (!a || !b) return false;
  auto x = parts(a);
  auto y = parts(b);
  return x.modulus > 0 && x.modulus == y.modulus && x.base == y.base && (x.offset - y.offset) % x.modulus != 0;
}

bool conflicts(const Touches& before, const Touches& now) {
  for (const Touch& a : before)
    for (const Touch& b : now)
      if (a.buffer == b.buffer && (a.write || b.write) && !are_distinct_slots(a.slot, b.slot)) return true;
  return false;
}

void join(Touches& into, const Touches& more) {
  for (const Touch& touch : more) {
    bool known = false;
    for (const Touch& old : into) known |= old == touch;
    if (!known) into.push_back(touch);
  }
}

class Synchroniser {
 public:
  Synchroniser(const Plan& plan, const Block& body) {
    for (const Step& step : plan.steps)
      if (const Table* table = std::get_if<Table>(&step)) tables_.insert(table->name);
    walk(body, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->space == Space::Shared && buffer->dtype != Dtype::Mbarrier) shared_.insert(buffer->name);
      return true;
    });
    divergent_ = {"thread.x", "thread.y", "thread.z", "lane", "warp", "thread"};
  }

  // `pending`: what was touched since the last barrier.
  Block run(const Block& body, Touches& pending) {
    Block out;
    for (const Stmt& stmt : body) {
      if (const Let* let = as<Let>(stmt); let && is_divergent(let->value)) divergent_.insert(let->name);
      if (const If* branch = as<If>(stmt); branch && is_divergent(branch->condition)) require_no_conflicts_inside(*branch);
      if (is_barrier(stmt)) {
        pending.clear();
        out.push_back(stmt);
        continue;
      }
      if (const Loop* loop = as<Loop>(stmt); loop && is_uniform(*loop)) {
        out.push_back(uniform_loop(*loop, stmt, pending));
        continue;
      }
      if (const If* branch = as<If>(stmt); branch && !is_divergent(branch->condition)) {
        Touches in_then = pending;
        Touches in_else = pending;
        Block then_body = run(branch->then_body, in_then);
        Block else_body = run(branch->else_body, in_else);
        pending = std::move(in_then);
        join(pending, in_else);
        out.push_back(make_stmt(If{branch->condition, std::move(then_body), std::move(else_body)}, stmt->span));
        continue;
      }
      Touches now = touches_of({stmt});
      if (contains_barrier({stmt})) internal_error("a block barrier stands where not all threads come by");
      if (conflicts(pending, now)) {
        const Instr* last = out.empty() ? nullptr : as<Instr>(out.back());
        out.insert(last && last->op == "wgmma.fence" ? out.end() - 1 : out.end(), barrier(stmt->span));
        pending.clear();
      }
      join(pending, now);
      out.push_back(stmt);
    }
    return out;
  }

 private:
  void require_no_conflicts_inside(const If& branch) {
    for (const Block* body : {&branch.then_body, &branch.else_body}) {
      if (has_own_barriers(*body)) continue;  // a role
      Touches none;
      if (contains_barrier(run(*body, none))) internal_error("statements that need a barrier between them stand where not all threads come by");
    }
  }

  static bool has_own_barriers(const Block& body) {
    bool found = false;
    walk(body, [&](const Stmt& stmt) {
      const Instr* instr = as<Instr>(stmt);
      found |= instr && (instr->op.starts_with("barrier.") || instr->op.starts_with("mbarrier."));
      return !found;
    });
    return found;
  }

  static Stmt barrier(Span span) { return make_stmt(Instr{"barrier.block", {}}, span); }
  static bool is_barrier(const Stmt& stmt) {
    const Instr* instr = as<Instr>(stmt);
    return instr && instr->op == "barrier.block";
  }
  static bool contains_barrier(const Block& body) {
    bool found = false;
    walk(body, [&](const Stmt& stmt) {
      found |= is_barrier(stmt);
      return !found;
    });
    return found;
  }

  // A loop's body also follows itself: where the next trip would need a barrier at once, it stands at the end.
  Stmt uniform_loop(const Loop& loop, const Stmt& stmt, Touches& pending) {
    Loop node = loop;
    Touches entry = pending;
    node.body = run(loop.body, pending);
    Touches carried = pending;
    if (!is_last_part(loop) && next_trip_conflicts(node.body, carried)) {
      node.body.push_back(barrier(stmt->span));
      pending.clear();
    }
    join(pending, entry);  // the loop may not run at all
    return make_stmt(std::move(node), stmt->span);
  }

  // `x in K / 16 .. ceildiv(K, 16)`, what `peel` leaves of a loop: one trip at most.
  static bool is_last_part(const Loop& loop) {
    const Axis& axis = loop.axes.back();
    const Binary* whole = as<Binary>(axis.lo);
    const Call* all = as<Call>(axis.hi);
    return loop.axes.size() == 1 && whole && whole->op == BinaryOp::Div && all && all->function == "ceildiv" && whole->lhs == all->arguments[0] && whole->rhs == all->arguments[1];
  }

  // Whether what is left from one trip conflicts with the next before its first barrier.
  bool next_trip_conflicts(const Block& body, const Touches& left) {
    for (const Stmt& stmt : body) {
      if (is_barrier(stmt)) return false;
      bool same_slots_move = false;
      Touches now = touches_of({stmt});
      for (const Touch& a : left)
        for (const Touch& b : now) same_slots_move |= a.buffer == b.buffer && (a.write || b.write);
      if (same_slots_move) return true;
      const Loop* inner = as<Loop>(stmt);
      const If* branch = as<If>(stmt);
      if (inner && is_uniform(*inner) && contains_barrier(inner->body)) return next_trip_conflicts(inner->body, left);
      if (branch && contains_barrier(branch->then_body) && contains_barrier(branch->else_body)) return false;
    }
    return false;
  }

  bool is_divergent(const Expr& expr) const {
    bool found = false;
    walk(expr, [&](const Expr& node) {
      if (const Var* variable = as<Var>(node)) found |= divergent_.count(variable->name) > 0;
      // What memory or registers hold may differ between threads; a table is read alike by all.
      if (const Load* load = as<Load>(node)) found |= tables_.count(load->access.buffer) == 0;
      return !found;
    });
    return found;
  }

  bool is_uniform(const Loop& loop) const {
    // Only a loop whose body needs barriers is looked into; any other is one statement.
    // The trips of an unrolled loop without barriers are a tile statement's iterations.
    Touches touched = touches_of(loop.body);
    bool has_barrier = contains_barrier(loop.body);
    if (!conflicts(touched, touched) && !has_barrier) return false;
    for (const Axis& axis : loop.axes)
      for (const Expr& bound : {axis.lo, axis.hi, axis.step})
        if (bound && is_divergent(bound)) return false;
    return loop.kind == LoopKind::Serial || (loop.kind == LoopKind::Unroll && has_barrier);
  }

  Touches touches_of(const Block& body) const {
    Touches result;
    auto add = [&](const Access& access, bool write) {
      if (!shared_.count(access.buffer)) return;
      join(result, {Touch{access.buffer, access.index.size() > 1 ? access.index[0] : Expr{}, write}});
    };
    auto reads = [&](const Expr& expr) {
      walk(expr, [&](const Expr& node) {
        if (const Load* access = as<Load>(node)) add(access->access, false);
        return true;
      });
    };
    walk(body, [&](const Stmt& stmt) {
      if (const Instr* instr = as<Instr>(stmt)) {
        bool stores = instr->op.rfind("store.v", 0) == 0;
        for (std::size_t n = 0; n < instr->operands.size(); ++n) {
          const Load* place = as<Load>(instr->operands[n]);
          if (place) add(place->access, stores && n == 0);
          reads(instr->operands[n]);
        }
      }
      if (const Store* store = as<Store>(stmt)) add(store->target, true);
      return true;
    });
    // Reads of all other statements; an Instr's operands were looked at above.
    walk(body, [&](const Stmt& stmt) {
      if (as<Instr>(stmt)) return true;
      map_expressions(stmt, [&](const Expr& expr) {
        reads(expr);
        return expr;
      });
      return true;
    });
    return result;
  }

  std::set<std::string> shared_;
  std::set<std::string> tables_;
  std::set<std::string> divergent_;
};

}  // namespace

Plan synchronise(const Plan& plan, const Target&) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage != Stage::Thread) return kernel;
    Kernel result = kernel;
    Touches pending;
    result.body = Synchroniser(plan, kernel.body).run(kernel.body, pending);
    return result;
  });
}

}  // namespace tilewright
