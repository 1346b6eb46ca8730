// Statements that only the tile stage has, on the host: tile operations by their reference nests, pipes as counters of
// slots, chains as running folds; roles and labels say who runs a statement, which does not matter in order.
#include <fmt/format.h>

#include "codegen/llvm/host_emitter.h"
#include "ir/diagnostic.h"
#include "ir/reference_nest.h"
#include "ir/scalar.h"

namespace tilewright {

using llvm::Value;

void HostEmitter::tile_statement(const Stmt& stmt) {
  const NestNames names{
      [&](const std::string& name) {
        const Storage& storage = storage_of(name);
        return std::optional(TensorInfo{storage.dtype, storage.shape});
      },
      [&](const std::string& name) { return is_defined(name) || name.ends_with(".in") || name.ends_with(".out"); },
      [&](const std::string& name) -> const Layout* {
        const auto found = layouts_.find(name);
        return found == layouts_.end() ? nullptr : &found->second;
      }};
  const auto nest = [&](const auto& node) { block(reference_nest(node, names)); };
  const auto shared_by_both = [&](const auto&) {
    internal_error("llvm: a statement of both stages among those of the tile stage");
  };
  match(
      stmt, [&](const Copy& node) { nest(node); }, [&](const Fill& node) { nest(node); },
      [&](const Mma& node) { nest(node); }, [&](const Fold& node) { nest(node); },
      [&](const Pipe& node) { pipe(node); }, [&](const Verb& node) { verb(node); }, [&](const Role&) {},
      [&](const Labelled& node) { statement(node.statement); }, [&](const Chain& node) { chain(node); },
      [&](const Publish& node) { publish(node); }, [&](const Lookback& node) { lookback(node); },
      [&](const Loop& node) { shared_by_both(node); }, [&](const If& node) { shared_by_both(node); },
      [&](const Buffer& node) { shared_by_both(node); }, [&](const Let& node) { shared_by_both(node); },
      [&](const Store& node) { shared_by_both(node); }, [&](const Instr& node) { shared_by_both(node); });
}

// ---- Pipes: the slot acquired last and the slot waited for last, each counting round.

void HostEmitter::pipe(const Pipe& node) {
  PipeState state{};
  state.slots = node.slots;
  for (Value** word : {&state.next_in, &state.next_out, &state.in, &state.out}) {
    *word = stack_array(b_.getInt64Ty(), 1, node.name);
    b_.CreateStore(b_.getInt64(0), *word);
  }
  pipes_[node.name] = state;
}

void HostEmitter::verb(const Verb& node) {
  const auto found = pipes_.find(node.pipe);
  if (found == pipes_.end()) internal_error(fmt::format("llvm: nothing declares pipe `{}`", node.pipe));
  const PipeState& state = found->second;
  const auto advance = [&](Value* next, Value* current) {
    Value* slot = b_.CreateLoad(b_.getInt64Ty(), next);
    b_.CreateStore(slot, current);
    b_.CreateStore(
        b_.CreateURem(b_.CreateAdd(slot, b_.getInt64(1)), b_.getInt64(static_cast<std::uint64_t>(state.slots))), next);
  };
  switch (node.kind) {
    case VerbKind::Acquire:
      return advance(state.next_in, state.in);
    case VerbKind::Wait:
      return advance(state.next_out, state.out);
    case VerbKind::Commit:
    case VerbKind::Release:
      return;
  }
}

Value* HostEmitter::predefined(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const auto found = pipes_.find(name.substr(0, dot));
  if (dot == std::string::npos || found == pipes_.end()) return nullptr;
  return b_.CreateLoad(b_.getInt64Ty(), name.substr(dot) == ".in" ? found->second.in : found->second.out);
}

// ---- Chains: `ordered` iterations run in order, so what they published is one running fold.

void HostEmitter::chain(const Chain& node) {
  ChainState state{nullptr, nullptr, node.dtype, node.op};
  for (Value** word : {&state.total, &state.before}) {
    *word = stack_array(arithmetic_.type(node.dtype), 1, node.name);
    b_.CreateStore(value(node.start), *word);
  }
  chains_[node.name] = state;
}

void HostEmitter::publish(const Publish& node) {
  const ChainState& state = chains_.at(node.chain);
  Value* total = b_.CreateLoad(arithmetic_.type(state.dtype), state.total);
  b_.CreateStore(total, state.before);
  b_.CreateStore(arithmetic_.binary(binary_of(state.op, state.dtype), state.dtype, total, value(node.value)),
                 state.total);
}

void HostEmitter::lookback(const Lookback& node) {
  const ChainState& state = chains_.at(node.chain);
  store_to(
      node.target, [&]() -> Value* { return b_.CreateLoad(arithmetic_.type(state.dtype), state.before); },
      std::nullopt);
}

}  // namespace tilewright
