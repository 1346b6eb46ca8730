// The frame of a host kernel; see host_emitter.h.
#include "codegen/llvm/host_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace tilewright {

using llvm::Value;

namespace {

// Buffers up to this size in all live on the stack of the call, where LLVM knows that nothing else points to them.
constexpr std::int64_t most_stack_bytes = 512 * 1024;

}  // namespace

HostEmitter::HostEmitter(const Plan& plan, const Kernel& kernel, llvm::Module& module)
    : Emitter(plan, module, 64, NativeNarrow{}), kernel_(kernel) {
  if (kernel.stage != Stage::Tile)
    throw MachineError(
        fmt::format("the cpu device runs kernels of the tile stage, and `{}` is at thread stage", kernel.name));
  for (const Param& param : plan.params) tensors_.emplace_back(param.name, TensorInfo{param.dtype, param.shape});
  for (const Temp& temp : plan.temps) tensors_.emplace_back(temp.name, TensorInfo{temp.dtype, temp.shape});
  for (const Step& step : plan.steps)
    if (const Table* table = std::get_if<Table>(&step))
      tensors_.emplace_back(table->name, TensorInfo{table->dtype, table->shape});
}

void HostEmitter::emit(const HostNest& nest, const std::string& name) {
  make_functions(name);
  in_scope([&] {
    bind_arguments();
    for (const Stmt& stmt : nest.before) statement(stmt);
    iterate(nest);
  });
  b_.CreateRetVoid();
}

// The entry takes arrays of pointers and dims apart; the kernel behind it has them as arguments, so that LLVM may be
// told that no two tensors overlap.
void HostEmitter::make_functions(const std::string& name) {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* word = b_.getInt64Ty();
  auto* entry = llvm::Function::Create(
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, word, word, pointer, pointer}, false),
      llvm::Function::ExternalLinkage, name, module_);
  std::vector<llvm::Type*> types(tensors_.size(), pointer);
  types.insert(types.end(), plan_.dims.size(), word);
  types.insert(types.end(), {word, word, pointer, pointer});
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::InternalLinkage, name + ".body", module_);
  function_->addFnAttr(llvm::Attribute::NoInline);
  function_->addFnAttr(llvm::Attribute::NoUnwind);

  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", entry));
  std::vector<Value*> arguments;
  for (std::size_t n = 0; n < tensors_.size(); ++n)
    arguments.push_back(b_.CreateLoad(pointer, b_.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), n)));
  for (std::size_t n = 0; n < plan_.dims.size(); ++n)
    arguments.push_back(b_.CreateLoad(word, b_.CreateConstInBoundsGEP1_64(word, entry->getArg(1), n)));
  for (unsigned n = 2; n < 6; ++n) arguments.push_back(entry->getArg(n));
  b_.CreateCall(function_, arguments);
  b_.CreateRetVoid();
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
}

void HostEmitter::bind_arguments() {
  std::vector<std::string> written;
  walk(kernel_.body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) written.push_back(store->target.buffer);
    if (const Copy* copy = as<Copy>(stmt)) written.push_back(copy->target.buffer);
    return true;
  });
  const auto is_written = [&](const std::string& name) {
    return std::find(written.begin(), written.end(), name) != written.end();
  };
  // An inout tensor may overlap an input: then neither is known to stand alone.
  const bool writes_inout = std::any_of(plan_.params.begin(), plan_.params.end(), [&](const Param& param) {
    return param.kind == ParamKind::InOut && is_written(param.name);
  });

  unsigned position = 0;
  for (const auto& [name, tensor] : tensors_) {
    const std::size_t index = position;
    llvm::Argument* passed = function_->getArg(position++);
    passed->setName(name);
    const Param* param = index < plan_.params.size() ? &plan_.params[index] : nullptr;
    const bool may_overlap = writes_inout && param != nullptr && param->kind != ParamKind::Out;
    if (!may_overlap) passed->addAttr(llvm::Attribute::NoAlias);
    if (!is_written(name)) passed->addAttr(llvm::Attribute::ReadOnly);
    Storage storage;
    storage.dtype = tensor.dtype;
    storage.shape = tensor.shape;
    storage.address = passed;
    define_storage(name, storage);
  }
  const llvm::ConstantRange nonnegative(llvm::APInt(64, 0), llvm::APInt::getSignedMinValue(64));
  for (const Dim& dim : plan_.dims) {
    llvm::Argument* passed = function_->getArg(position++);
    passed->setName(dim.name);
    passed->addAttr(llvm::Attribute::get(module_.getContext(), llvm::Attribute::Range, nonnegative));
    define(dim.name, passed, true);
  }
  first_ = function_->getArg(position++);
  last_ = function_->getArg(position++);
  error_word_ = function_->getArg(position++);
  scratch_ = function_->getArg(position);
  function_->getArg(position)->addAttr(llvm::Attribute::NoAlias);
}

// Iterations first .. last of the nest, counted row by row: the last axis is a plain loop over what is left of its row,
// the other digits are carried between rows.
void HostEmitter::iterate(const HostNest& nest) {
  Value* zero = b_.getInt64(0);
  Value* one = b_.getInt64(1);
  if (nest.axes.empty()) return when(b_.CreateICmpSLT(first_, last_), [&] { block(nest.body); });

  const std::size_t rank = nest.axes.size();
  std::vector<Value*> low, step, count;
  for (const Axis& axis : nest.axes) {
    low.push_back(axis.lo ? value(axis.lo) : zero);
    step.push_back(axis.step ? value(axis.step) : one);
    Value* extent = b_.CreateSub(value(axis.hi), low.back(), "", false, true);
    Value* trips = is_integer_constant(axis.step, 1) || !axis.step
                       ? extent
                       : arithmetic_.ceildiv(Dtype::Index, extent, step.back(), {});
    count.push_back(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, trips, zero));
  }
  std::vector<Value*> digit(rank);
  Value* rest = first_;
  for (std::size_t axis = rank; axis-- > 0;) {
    digit[axis] = stack_array(b_.getInt64Ty(), 1, "digit");
    Value* radix = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count[axis], one);
    b_.CreateStore(b_.CreateURem(rest, radix), digit[axis]);
    rest = b_.CreateUDiv(rest, radix);
  }
  Value* position = stack_array(b_.getInt64Ty(), 1, "position");
  b_.CreateStore(first_, position);

  llvm::BasicBlock* head = new_block("rows");
  llvm::BasicBlock* row = new_block("row");
  llvm::BasicBlock* done = new_block("done");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  Value* at = b_.CreateLoad(b_.getInt64Ty(), position);
  b_.CreateCondBr(b_.CreateICmpSLT(at, last_), row, done);
  b_.SetInsertPoint(row);
  in_scope([&] {
    for (std::size_t axis = 0; axis + 1 < rank; ++axis) {
      Value* place = b_.CreateLoad(b_.getInt64Ty(), digit[axis]);
      define(nest.axes[axis].name,
             b_.CreateAdd(low[axis], b_.CreateMul(place, step[axis], "", false, true), "", false, true),
             !nest.axes[axis].lo || is_nonnegative(nest.axes[axis].lo));
    }
    const Axis& inner = nest.axes[rank - 1];
    Value* start = b_.CreateLoad(b_.getInt64Ty(), digit[rank - 1]);
    Value* run =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(count[rank - 1], start), b_.CreateSub(last_, at));
    const bool is_known = !inner.lo || is_nonnegative(inner.lo);
    counted_loop(start, b_.CreateAdd(start, run, "", false, true), one, inner.name, [&](Value* place) {
      in_scope([&] {
        define(inner.name,
               b_.CreateAdd(low[rank - 1], b_.CreateMul(place, step[rank - 1], "", false, true), "", false, true),
               is_known);
        block(nest.body);
      });
    });
    b_.CreateStore(b_.CreateAdd(at, run, "", false, true), position);
    b_.CreateStore(zero, digit[rank - 1]);
  });
  Value* carry = one;
  for (std::size_t axis = rank - 1; axis-- > 0;) {
    Value* next = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), digit[axis]), carry);
    Value* is_full = b_.CreateICmpEQ(next, count[axis]);
    b_.CreateStore(b_.CreateSelect(is_full, zero, next), digit[axis]);
    carry = b_.CreateZExt(is_full, b_.getInt64Ty());
  }
  b_.CreateBr(head);
  b_.SetInsertPoint(done);
}

Storage HostEmitter::declare_buffer(const Buffer& buffer) {
  if (buffer.layout) layouts_[buffer.name] = *buffer.layout;
  Storage storage;
  storage.dtype = buffer.dtype;
  storage.is_private = true;
  std::int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) {
    storage.shape.push_back(integer(axis.extent));
    elements *= axis.extent;
  }
  const std::int64_t bytes = elements * bytes_of(buffer.dtype);
  if (stack_bytes_ + bytes <= most_stack_bytes) {
    stack_bytes_ += bytes;
    storage.address = stack_array(arithmetic_.memory_type(buffer.dtype), elements, buffer.name);
  } else {
    storage.address =
        b_.CreateInBoundsGEP(b_.getInt8Ty(), scratch_, b_.getInt64(static_cast<std::uint64_t>(scratch_bytes_)));
    scratch_bytes_ += (bytes + 63) / 64 * 64;
  }
  return storage;
}

// ---- libm

Value* HostEmitter::library_call(const std::string& name, Dtype dtype, const std::vector<Value*>& arguments) {
  llvm::Type* type = arithmetic_.type(dtype);
  auto* signature = llvm::FunctionType::get(type, std::vector<llvm::Type*>(arguments.size(), type), false);
  llvm::CallInst* call = b_.CreateCall(module_.getOrInsertFunction(name, signature), arguments);
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();  // nobody reads errno
  call->addFnAttr(llvm::Attribute::WillReturn);
  return call;
}

// Of f32 as ir/scalar.h has it: the function of f64, rounded once, so that the host gives the bits of the interpreters.
// A fast form is the accurate function here: the host has no approximations of its own.
Value* HostEmitter::library_function(const FunctionInfo& function, Dtype dtype, const std::vector<Value*>& arguments) {
  std::string name(function.name);
  if (name.ends_with(".fast")) name.resize(name.size() - 5);
  if (name == "div") return b_.CreateFDiv(arguments.at(0), arguments.at(1));
  std::vector<Value*> wide;
  for (Value* argument : arguments) wide.push_back(arithmetic_.convert(Dtype::F64, dtype, argument));
  Value* result = nullptr;
  if (name == "rsqrt")
    result = b_.CreateFDiv(llvm::ConstantFP::get(b_.getDoubleTy(), 1.0),
                           b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, wide.at(0)));
  else
    result = library_call(name, Dtype::F64, wide);
  return arithmetic_.convert(dtype, Dtype::F64, result);
}

Value* HostEmitter::remainder(Dtype dtype, Value* a, Value* b) {
  return library_call(dtype == Dtype::F64 ? "fmod" : "fmodf", dtype, {a, b});
}

Value* HostEmitter::instruction_value(const Expr& expr, const Call& call) {
  throw UserError(expr.operator bool() ? expr->span : Span{},
                  fmt::format("the cpu device does not have the instruction `{}`", call.function));
}

void HostEmitter::instruction(const Instr& instr) {
  throw MachineError(fmt::format("the cpu device does not have the instruction `{}`", instr.op));
}

}  // namespace tilewright
