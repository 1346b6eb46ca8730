// Statements that both stages share, and the names in scope; see emitter.h.
#include <fmt/format.h>
#include <llvm/IR/DebugInfoMetadata.h>

#include <algorithm>

#include "codegen/codegen.h"
#include "codegen/llvm/emitter.h"
#include "ir/diagnostic.h"

namespace tilewright {

using llvm::Value;

Emitter::Emitter(const Plan& plan, llvm::Module& module, unsigned index_bits, NativeNarrow native)
    : plan_(plan), module_(module), b_(module.getContext()), arithmetic_(b_, index_bits, native) {}

llvm::BasicBlock* Emitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

// In the entry block, where LLVM turns it into registers.
llvm::AllocaInst* Emitter::stack_array(llvm::Type* element, std::int64_t count, const std::string& name) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::Type* type = count == 1 ? element : llvm::ArrayType::get(element, static_cast<std::uint64_t>(count));
  llvm::AllocaInst* made = at_entry.CreateAlloca(type, nullptr, name);
  if (count > 1) made->setAlignment(llvm::Align(16));
  return made;
}

// ---- Names

void Emitter::in_scope(const std::function<void()>& body) {
  const std::size_t mark = undo_.size();
  body();
  while (undo_.size() > mark) {
    undo_.back()();
    undo_.pop_back();
  }
}

void Emitter::define(const std::string& name, Value* defined, bool is_known_nonnegative) {
  const auto old = names_.find(name);
  if (old == names_.end())
    undo_.emplace_back([this, name] { names_.erase(name); });
  else
    undo_.emplace_back([this, name, before = old->second] { names_[name] = before; });
  names_[name] = Name{defined, is_known_nonnegative};
}

void Emitter::define_storage(const std::string& name, Storage place) {
  const auto old = storages_.find(name);
  if (old == storages_.end())
    undo_.emplace_back([this, name] { storages_.erase(name); });
  else
    undo_.emplace_back([this, name, before = old->second] { storages_[name] = before; });
  storages_[name] = std::move(place);
}

Value* Emitter::named(const std::string& name) {
  if (const auto found = names_.find(name); found != names_.end()) return found->second.value;
  if (Value* known = predefined(name)) return known;
  internal_error(fmt::format("llvm: nothing declares `{}`", name));
}

// ---- Statements

void Emitter::block(const Block& body) {
  in_scope([&] {
    for (const Stmt& stmt : body) statement(stmt);
  });
}

void Emitter::set_line(const Span& span) {
  if (subprogram_ == nullptr) return;
  if (span.is_known()) lines_.push_back(span);
  if (!lines_.empty())
    b_.SetCurrentDebugLocation(
        llvm::DILocation::get(module_.getContext(), static_cast<unsigned>(lines_.size()), 1, subprogram_));
}

void Emitter::statement(const Stmt& stmt) {
  if (!joins(stmt)) settle();
  set_line(stmt->span);
  const auto on_tile = [&](const auto&) { tile_statement(stmt); };
  match(
      stmt, [&](const Loop& node) { nest(node.axes, is_unrolled(node), [&] { block(node.body); }, is_pipelined(node)); },
      [&](const If& node) {
        Value* condition = value(node.condition);
        if (node.else_body.empty() && choice_ == nullptr && sets_registers(node.then_body)) {
          choice_ = condition;
          block(node.then_body);
          choice_ = nullptr;
          return;
        }
        const auto branch = [&](const Block& body) {
          block(body);
          settle();
        };
        if (node.else_body.empty()) return when(condition, [&] { branch(node.then_body); });
        llvm::BasicBlock* then_block = new_block("then");
        llvm::BasicBlock* else_block = new_block("else");
        llvm::BasicBlock* join = new_block("join");
        b_.CreateCondBr(condition, then_block, else_block);
        b_.SetInsertPoint(then_block);
        branch(node.then_body);
        b_.CreateBr(join);
        b_.SetInsertPoint(else_block);
        branch(node.else_body);
        b_.CreateBr(join);
        b_.SetInsertPoint(join);
      },
      [&](const Buffer& node) { define_storage(node.name, declare_buffer(node)); }, [&](const Let& node) { let(node); },
      [&](const Store& node) { store(node); }, [&](const Instr& node) { instruction(node); },
      [&](const Copy& node) { on_tile(node); }, [&](const Fill& node) { on_tile(node); },
      [&](const Mma& node) { on_tile(node); }, [&](const Fold& node) { on_tile(node); },
      [&](const Pipe& node) { on_tile(node); }, [&](const Verb& node) { on_tile(node); },
      [&](const Role& node) { on_tile(node); }, [&](const Labelled& node) { on_tile(node); },
      [&](const Chain& node) { on_tile(node); }, [&](const Publish& node) { on_tile(node); },
      [&](const Lookback& node) { on_tile(node); });
}

// Whether a body only gives registers constants. Such a conditional fill is made without a branch: ptxas serialises
// wgmmas whose accumulators are written on one of two paths.
bool Emitter::sets_registers(const Block& body) const {
  return std::all_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    if (const Loop* loop = as<Loop>(stmt)) return is_unrolled(*loop) && sets_registers(loop->body);
    const Store* store = as<Store>(stmt);
    return store && store->where.empty() && !store->atomic && as<Const>(store->value) != nullptr &&
           store->target.rule.kind == Rule::Kind::None && storage_of(store->target.buffer).is_private;
  });
}

void Emitter::let(const Let& node) {
  const bool is_known = (node.lo && is_nonnegative(node.lo)) || is_nonnegative(node.value);
  define(node.name, value(node.value), is_known);
}

void Emitter::nest(const std::vector<Axis>& axes, bool unrolled, const std::function<void()>& body, bool stays) {
  axis_loop(axes, 0, unrolled, body, stays);
}

void Emitter::axis_loop(const std::vector<Axis>& axes, std::size_t position, bool unrolled,
                        const std::function<void()>& body, bool stays) {
  if (position == axes.size()) return body();
  const Axis& axis = axes[position];
  const bool is_known_nonnegative = !axis.lo || is_nonnegative(axis.lo);
  Value* first = axis.lo ? value(axis.lo) : arithmetic_.index(0);
  Value* past = value(axis.hi);
  Value* step = axis.step ? value(axis.step) : arithmetic_.index(1);
  const auto run = [&](Value* variable) {
    in_scope([&] {
      define(axis.name, variable, is_known_nonnegative);
      axis_loop(axes, position + 1, unrolled, body, stays);
    });
  };
  if (!unrolled) return counted_loop(first, past, step, axis.name, run, stays);
  const auto constant_of = [&](Value* bound) {
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(bound);
    if (!known) internal_error(fmt::format("llvm: the bounds of the unrolled loop `{}` are not constant", axis.name));
    return known->getSExtValue();
  };
  const std::int64_t stride = constant_of(step);
  if (stride <= 0) internal_error(fmt::format("llvm: the step of loop `{}` is not positive", axis.name));
  const std::int64_t end = constant_of(past);
  for (std::int64_t at = constant_of(first); at < end; at += stride) run(arithmetic_.index(at));
}

void Emitter::counted_loop(Value* first, Value* past, Value* step, const std::string& name,
                           const std::function<void(Value*)>& body, bool stays) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = new_block("loop");
  llvm::BasicBlock* inside = new_block("body");
  llvm::BasicBlock* done = new_block("done");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* variable = b_.CreatePHI(first->getType(), 2, name);
  variable->addIncoming(first, before);
  b_.CreateCondBr(b_.CreateICmpSLT(variable, past), inside, done);
  b_.SetInsertPoint(inside);
  body(variable);
  settle();
  Value* next = b_.CreateAdd(variable, step, "", false, true);
  variable->addIncoming(next, b_.GetInsertBlock());
  llvm::BranchInst* back = b_.CreateBr(head);
  if (stays) {
    llvm::LLVMContext& context = b_.getContext();
    llvm::MDNode* rule = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, {nullptr, rule});
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b_.SetInsertPoint(done);
}

}  // namespace tilewright
