// fence: orders what threads wrote into shared memory before what the async proxy reads there: wgmma and the copy engine.
//
//   before   As[…] = …; barrier.block(); wgmma.fence(acc); wgmma.m64n256k16.bf16(acc, desc(As[…], …), …)
//   after    As[…] = …; fence.proxy.async.shared(); barrier.block(); wgmma.fence(acc); …
//
// The fence stands on the writers' side, in front of the first barrier behind the writes. Needs: synchronise before it.
#include <set>
#include <string>

#include "passes/finish/passes.h"

namespace tilewright {

namespace {

const Load* place_of(const Expr& operand) { return as<Load>(operand); }

// Buffers that the async proxy reads: operands of descriptors and sources of stores by the copy engine.
std::set<std::string> read_by_async_proxy(const Block& body) {
  std::set<std::string> result;
  walk(body, [&](const Stmt& stmt) {
    const Instr* instr = as<Instr>(stmt);
    if (!instr) return true;
    bool is_store = instr->op.starts_with("tma.store");
    for (const Expr& operand : instr->operands) {
      if (const Load* place = place_of(operand); place && is_store) result.insert(place->access.buffer);
      walk(operand, [&](const Expr& node) {
        const Call* call = as<Call>(node);
        const Load* place = call && call->function == "desc" ? place_of(call->arguments[0]) : nullptr;
        if (place) result.insert(place->access.buffer);
        return true;
      });
    }
    return true;
  });
  return result;
}

class Fencer {
 public:
  explicit Fencer(const Block& body) : read_(read_by_async_proxy(body)) {}

  // `is_open`: something was written that no fence stands behind yet.
  Block run(const Block& body, bool& is_open) {
    Block out;
    for (const Stmt& stmt : body) {
      if (const Loop* loop = as<Loop>(stmt)) {
        Loop node = *loop;
        bool after = is_open;
        node.body = run(loop->body, after);
        if (after && !is_open) node.body = run(loop->body, after);  // the next trip begins where this one ends
        is_open |= after;
        out.push_back(make_stmt(std::move(node), stmt->span));
        continue;
      }
      if (const If* branch = as<If>(stmt)) {
        bool in_then = is_open;
        bool in_else = is_open;
        Block then_body = run(branch->then_body, in_then);
        Block else_body = run(branch->else_body, in_else);
        is_open = in_then || in_else;
        out.push_back(make_stmt(If{branch->condition, std::move(then_body), std::move(else_body)}, stmt->span));
        continue;
      }
      const Instr* instr = as<Instr>(stmt);
      if (instr && instr->op.starts_with("barrier.") && is_open) {
        out.push_back(make_stmt(Instr{"fence.proxy.async.shared", {}}, stmt->span));
        is_open = false;
      }
      is_open |= writes(stmt);
      out.push_back(stmt);
    }
    return out;
  }

 private:
  bool writes(const Stmt& stmt) const {
    if (const Store* store = as<Store>(stmt)) return read_.count(store->target.buffer) > 0;
    const Instr* instr = as<Instr>(stmt);
    bool is_write = instr && (instr->op.starts_with("store.") || instr->op.starts_with("stmatrix.") || instr->op == "cp.async" || instr->op == "cp.async.fill");
    const Load* place = is_write ? place_of(instr->operands[0]) : nullptr;
    return place && read_.count(place->access.buffer) > 0;
  }

  std::set<std::string> read_;
};

}  // namespace

Plan fence(const Plan& plan, const Target&) {
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.stage != Stage::Thread) return kernel;
    Kernel result = kernel;
    bool is_open = false;
    result.body = Fencer(kernel.body).run(kernel.body, is_open);
    return result;
  });
}

}  // namespace tilewright
