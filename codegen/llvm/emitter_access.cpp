// Accesses: addresses, the rules for indices out of range, stores, atomics, the error word; see emitter.h.
#include <fmt/format.h>

#include "codegen/llvm/emitter.h"
#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace tilewright {

using llvm::Value;

const Storage& Emitter::storage_of(const std::string& buffer) const {
  const auto found = storages_.find(buffer);
  if (found == storages_.end())
    internal_error(fmt::format("llvm: `{}` is neither a buffer nor an argument of the kernel", buffer));
  return found->second;
}

// Of the axes that the indices count along: those of the shape, or one flat axis.
std::vector<Expr> Emitter::extents(const Access& access, const Storage& place) const {
  if (access.index.size() == place.shape.size()) return place.shape;
  if (access.index.size() != 1)
    internal_error(
        fmt::format("llvm: `{}` has {} axes and {} indices", access.buffer, place.shape.size(), access.index.size()));
  Expr product = integer(1);
  for (const Expr& extent : place.shape) product = product * extent;
  return {product};
}

std::vector<Value*> Emitter::indices(const Access& access) {
  std::vector<Value*> result;
  for (const Expr& index : access.index)
    result.push_back(arithmetic_.convert(Dtype::Index, index->dtype, value(index)));
  return result;
}

Value* Emitter::in_range(const Access& access, const Storage& place, Value** offender) {
  const std::vector<Expr> sides = extents(access, place);
  Value* all = b_.getTrue();
  if (offender) *offender = b_.getInt64(0);
  for (std::size_t axis = access.index.size(); axis-- > 0;) {
    Value* index = wide_integer(access.index[axis]);
    // Unsigned: a negative index is beyond every extent.
    Value* inside = b_.CreateICmpULT(index, arithmetic_.convert(Dtype::I64, Dtype::Index, value(sides[axis])));
    all = b_.CreateAnd(inside, all);
    if (offender) *offender = b_.CreateSelect(inside, *offender, index);
  }
  return all;
}

Value* Emitter::is_nonempty(const std::vector<Expr>& sides) {
  Value* all = b_.getTrue();
  for (const Expr& side : sides) all = b_.CreateAnd(all, b_.CreateICmpSGT(value(side), arithmetic_.index(0)));
  return all;
}

std::vector<Value*> Emitter::folded_indices(const Access& access, const Storage& place) {
  const std::vector<Expr> sides = extents(access, place);
  std::vector<Value*> index = indices(access);
  const auto apply = [&](BinaryOp op, Value* a, Value* b) { return arithmetic_.binary(op, Dtype::Index, a, b); };
  Value* zero = arithmetic_.index(0);
  Value* one = arithmetic_.index(1);
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    Value* extent = value(sides[axis]);
    Value* last = apply(BinaryOp::Sub, extent, one);
    switch (access.rule.kind) {
      case Rule::Kind::Clamp:
        index[axis] = apply(BinaryOp::Max, zero, apply(BinaryOp::Min, index[axis], last));
        break;
      case Rule::Kind::Wrap:
        index[axis] = apply(BinaryOp::Mod, index[axis], extent);
        break;
      case Rule::Kind::Mirror: {  // 0 1 2 1 0 1 …: the edge is not repeated
        Value* period = apply(BinaryOp::Max, apply(BinaryOp::Mul, last, arithmetic_.index(2)), one);
        Value* phase = apply(BinaryOp::Mod, index[axis], period);
        index[axis] = apply(BinaryOp::Min, apply(BinaryOp::Min, phase, apply(BinaryOp::Sub, period, phase)), last);
        break;
      }
      case Rule::Kind::None:
      case Rule::Kind::Fill:
      case Rule::Kind::Skip:
      case Rule::Kind::Check:
        break;
    }
  }
  return index;
}

Value* Emitter::element_address(const Storage& place, const std::vector<Value*>& index) {
  if (place.address == nullptr) internal_error("llvm: a scalar argument has no address");
  if (index.empty()) return place.address;
  Value* flat = index[0];
  for (std::size_t axis = 1; axis < index.size(); ++axis) {
    flat = arithmetic_.binary(BinaryOp::Mul, Dtype::Index, flat, value(place.shape.at(axis)));
    flat = arithmetic_.binary(BinaryOp::Add, Dtype::Index, flat, index[axis]);
  }
  Value* offset = b_.CreateSExt(flat, b_.getInt64Ty());
  return b_.CreateInBoundsGEP(arithmetic_.memory_type(place.dtype), place.address, offset);
}

Value* Emitter::address_of(const Access& access) { return element_address(storage_of(access.buffer), indices(access)); }

Value* Emitter::read(const Storage& place, Value* address) {
  llvm::LoadInst* loaded = b_.CreateAlignedLoad(arithmetic_.memory_type(place.dtype), address,
                                                llvm::Align(static_cast<std::uint64_t>(bytes_of(place.dtype))));
  if (place.is_read_only)
    loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  if (place.dtype == Dtype::Bool) return b_.CreateICmpNE(loaded, b_.getInt8(0));
  return loaded;
}

void Emitter::write(const Storage& place, Value* address, Value* stored) {
  if (choice_ != nullptr) stored = pick(choice_, stored, read(place, address));
  if (place.dtype == Dtype::Bool) stored = b_.CreateZExt(stored, b_.getInt8Ty());
  b_.CreateAlignedStore(stored, address, llvm::Align(static_cast<std::uint64_t>(bytes_of(place.dtype))));
}

Value* Emitter::load(const Access& access) {
  const Storage place = storage_of(access.buffer);
  if (place.value != nullptr) return place.value;
  const auto plain = [&] { return read(place, element_address(place, indices(access))); };
  switch (access.rule.kind) {
    case Rule::Kind::None:
      return plain();
    case Rule::Kind::Fill:
      return choose(in_range(access, place, nullptr), plain, [&] { return value(access.rule.fill); });
    case Rule::Kind::Check: {
      Value* offender = nullptr;
      Value* inside = in_range(access, place, &offender);
      return choose(inside, plain, [&] {
        report(access.rule.check_id, offender);
        return arithmetic_.constant(0, place.dtype);
      });
    }
    case Rule::Kind::Clamp:
    case Rule::Kind::Wrap:
    case Rule::Kind::Mirror:
      // An empty tensor has no element to fold to: 0.
      return choose(
          is_nonempty(extents(access, place)),
          [&] { return read(place, element_address(place, folded_indices(access, place))); },
          [&]() -> Value* { return arithmetic_.constant(0, place.dtype); });
    case Rule::Kind::Skip:
      internal_error(fmt::format("llvm: a load of `{}` with `skip` reached the generator", access.buffer));
  }
  internal_error("llvm: a rule without a case");
}

void Emitter::store(const Store& node) {
  when(conjunction(node.where), [&] {
    store_to(
        node.target, [&] { return value(node.value); }, node.atomic);
  });
}

void Emitter::store_to(const Access& target, const std::function<Value*()>& make_value,
                       std::optional<CombineOp> atomic) {
  const Storage place = storage_of(target.buffer);
  // What is left out is evaluated all the same: its own accesses may report.
  Value* stored = make_value();
  const auto put = [&](Value* address) {
    if (atomic)
      combine_into(place, address, *atomic, stored);
    else
      write(place, address, stored);
  };
  switch (target.rule.kind) {
    case Rule::Kind::None:
      return put(element_address(place, indices(target)));
    case Rule::Kind::Skip:
      return when(in_range(target, place, nullptr), [&] { put(element_address(place, indices(target))); });
    case Rule::Kind::Check: {
      Value* offender = nullptr;
      Value* inside = in_range(target, place, &offender);
      when(b_.CreateNot(inside), [&] { report(target.rule.check_id, offender); });
      return when(inside, [&] { put(element_address(place, indices(target))); });
    }
    case Rule::Kind::Clamp:
    case Rule::Kind::Wrap:
    case Rule::Kind::Mirror:
      return put(element_address(place, folded_indices(target, place)));
    case Rule::Kind::Fill:
      break;
  }
  internal_error(fmt::format("llvm: a store to `{}` cannot have a fill", target.buffer));
}

// ---- Atomics

void Emitter::combine_into(const Storage& place, Value* address, CombineOp op, Value* operand) {
  using Rmw = llvm::AtomicRMWInst;
  const bool is_wide_float = place.dtype == Dtype::F32 || place.dtype == Dtype::F64;
  if (is_float(place.dtype) && !(is_wide_float && op == CombineOp::Add)) return swap_loop(place, address, op, operand);
  if (op == CombineOp::Mul || (place.dtype == Dtype::Bool && op == CombineOp::Add))
    return swap_loop(place, address, op, operand);
  if (place.is_private)
    return write(place, address,
                 arithmetic_.binary(binary_of(op, place.dtype), place.dtype, read(place, address), operand));
  const bool is_ordered_signed = is_signed(place.dtype);
  Rmw::BinOp operation = Rmw::Add;
  switch (op) {
    case CombineOp::Add:
      operation = is_wide_float ? Rmw::FAdd : Rmw::Add;
      break;
    case CombineOp::Max:
      operation = is_ordered_signed ? Rmw::Max : Rmw::UMax;
      break;
    case CombineOp::Min:
      operation = is_ordered_signed ? Rmw::Min : Rmw::UMin;
      break;
    case CombineOp::And:
      operation = Rmw::And;
      break;
    case CombineOp::Or:
      operation = Rmw::Or;
      break;
    case CombineOp::Mul:
      internal_error("llvm: no atomic multiplication");
  }
  if (place.dtype == Dtype::Bool) operand = b_.CreateZExt(operand, b_.getInt8Ty());
  b_.CreateAtomicRMW(operation, address, operand, llvm::Align(static_cast<std::uint64_t>(bytes_of(place.dtype))),
                     llvm::AtomicOrdering::Monotonic, atomic_scope());
}

// Compare and swap until nobody came between.
void Emitter::swap_loop(const Storage& place, Value* address, CombineOp op, Value* operand) {
  const BinaryOp operation = binary_of(op, place.dtype);
  if (place.is_private)
    return write(place, address, arithmetic_.binary(operation, place.dtype, read(place, address), operand));
  const auto bytes = static_cast<std::uint64_t>(bytes_of(place.dtype));
  llvm::Type* word = b_.getIntNTy(static_cast<unsigned>(bytes) * 8);
  llvm::LoadInst* first = b_.CreateAlignedLoad(word, address, llvm::Align(bytes));
  first->setAtomic(llvm::AtomicOrdering::Monotonic, atomic_scope());
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* again = new_block("swap");
  llvm::BasicBlock* done = new_block("swapped");
  b_.CreateBr(again);
  b_.SetInsertPoint(again);
  llvm::PHINode* seen = b_.CreatePHI(word, 2);
  seen->addIncoming(first, before);
  const bool is_bool = place.dtype == Dtype::Bool;
  Value* old = is_bool ? b_.CreateICmpNE(seen, b_.getInt8(0)) : b_.CreateBitCast(seen, arithmetic_.type(place.dtype));
  Value* next = arithmetic_.binary(operation, place.dtype, old, operand);
  next = is_bool ? b_.CreateZExt(next, word) : b_.CreateBitCast(next, word);
  llvm::AtomicCmpXchgInst* swap =
      b_.CreateAtomicCmpXchg(address, seen, next, llvm::Align(bytes), llvm::AtomicOrdering::Monotonic,
                             llvm::AtomicOrdering::Monotonic, atomic_scope());
  seen->addIncoming(b_.CreateExtractValue(swap, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(swap, 1), done, again);
  b_.SetInsertPoint(done);
}

// ---- The error word: site + 1 (0: none), then what was seen there. The first offender is kept.

void Emitter::report(int site, Value* seen) {
  if (error_word_ == nullptr) internal_error("llvm: a checked access in a plan without an error word");
  b_.CreateCall(report_function(), {error_word_, b_.getInt64(static_cast<std::uint64_t>(site) + 1), seen});
}

llvm::Function* Emitter::report_function() {
  if (llvm::Function* made = module_.getFunction("tilewright.report")) return made;
  llvm::LLVMContext& context = module_.getContext();
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {error_word_->getType(), b.getInt64Ty(), b.getInt64Ty()}, false);
  auto* made = llvm::Function::Create(type, llvm::Function::InternalLinkage, "tilewright.report", module_);
  made->addFnAttr(llvm::Attribute::NoInline);
  made->addFnAttr(llvm::Attribute::Cold);
  made->addFnAttr(llvm::Attribute::NoUnwind);
  auto* entry = llvm::BasicBlock::Create(context, "entry", made);
  auto* attempt = llvm::BasicBlock::Create(context, "try", made);
  auto* won = llvm::BasicBlock::Create(context, "won", made);
  auto* done = llvm::BasicBlock::Create(context, "done", made);
  Value* word = made->getArg(0);
  b.SetInsertPoint(entry);
  llvm::LoadInst* current = b.CreateAlignedLoad(b.getInt64Ty(), word, llvm::Align(8));
  current->setAtomic(llvm::AtomicOrdering::Monotonic, atomic_scope());
  b.CreateCondBr(b.CreateICmpEQ(current, b.getInt64(0)), attempt, done);
  b.SetInsertPoint(attempt);
  auto* swap = b.CreateAtomicCmpXchg(word, b.getInt64(0), made->getArg(1), llvm::Align(8),
                                     llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic, atomic_scope());
  b.CreateCondBr(b.CreateExtractValue(swap, 1), won, done);
  b.SetInsertPoint(won);
  b.CreateAlignedStore(made->getArg(2), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), word, 1), llvm::Align(8));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return made;
}

}  // namespace tilewright
