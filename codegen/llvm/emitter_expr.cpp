// Expressions as LLVM IR; see emitter.h.
#include <fmt/format.h>

#include "codegen/llvm/emitter.h"
#include "codegen/nonnegative.h"
#include "ir/diagnostic.h"
#include "ir/instructions.h"

namespace tilewright {

using llvm::Value;

Value* Emitter::value(const Expr& expr) {
  return match(
      expr, [&](const Const& node) -> Value* { return arithmetic_.constant(node.bits, expr->dtype); },
      [&](const Var& node) -> Value* { return named(node.name); },
      [&](const Unary& node) -> Value* { return arithmetic_.unary(node.op, node.operand->dtype, value(node.operand)); },
      [&](const Binary& node) -> Value* { return binary_value(node); },
      [&](const Select& node) -> Value* { return select_value(node); },
      [&](const Cast& node) -> Value* {
        return arithmetic_.convert(expr->dtype, node.operand->dtype, value(node.operand));
      },
      [&](const Call& node) -> Value* { return call_value(expr, node); },
      [&](const Load& node) -> Value* { return load(node.access); },
      [&](const Reduce&) -> Value* { internal_error("llvm: a reduction stands only in tensor IR"); });
}

Value* Emitter::wide_integer(const Expr& expr) {
  const Cast* conversion = as<Cast>(expr);
  const bool is_cut = conversion && expr->dtype == Dtype::Index && is_integer(conversion->operand->dtype);
  const Expr& source = is_cut ? conversion->operand : expr;
  return arithmetic_.convert(Dtype::I64, source->dtype, value(source));
}

Value* Emitter::conjunction(const std::vector<Expr>& conditions) {
  const Expr all = all_of(conditions);
  return all ? value(all) : nullptr;
}

bool Emitter::is_nonnegative(const Expr& expr) const {
  return tilewright::is_nonnegative(expr, [&](const std::string& name) {
    const auto found = names_.find(name);
    return found != names_.end() && found->second.is_nonnegative;
  });
}

bool Emitter::is_dangerous(const Expr& expr) const {
  bool found = false;
  walk(expr, [&](const Expr& node) {
    if (const Load* access = as<Load>(node)) {
      const Storage& storage = storage_of(access->access.buffer);
      const bool is_safe = storage.value != nullptr || (storage.is_private && access->access.index.empty());
      found = found || !is_safe;
    }
    if (const Call* call = as<Call>(node))
      found = found || call->function == "within" || find_instruction(call->function) != nullptr;
    return !found;
  });
  return found;
}

Value* Emitter::choose(Value* condition, const std::function<Value*()>& if_true,
                       const std::function<Value*()>& if_false) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) return known->isZero() ? if_false() : if_true();
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* else_block = new_block("else");
  llvm::BasicBlock* join = new_block("join");
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  Value* first = if_true();
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(else_block);
  Value* second = if_false();
  llvm::BasicBlock* else_end = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
  phi->addIncoming(first, then_end);
  phi->addIncoming(second, else_end);
  return phi;
}

void Emitter::when(Value* condition, const std::function<void()>& body) {
  if (condition == nullptr) return body();
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (!known->isZero()) body();
    return;
  }
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* join = new_block("join");
  b_.CreateCondBr(condition, then_block, join);
  b_.SetInsertPoint(then_block);
  body();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
}

Value* Emitter::binary_value(const Binary& node) {
  const Dtype dtype = node.lhs->dtype;
  if (node.op == BinaryOp::And || node.op == BinaryOp::Or) {
    const bool is_and = node.op == BinaryOp::And;
    Value* first = value(node.lhs);
    if (!is_dangerous(node.rhs)) {
      // As a select, so that the right side's poison does not count where the left one decides.
      Value* second = value(node.rhs);
      return is_and ? b_.CreateLogicalAnd(first, second) : b_.CreateLogicalOr(first, second);
    }
    const auto right = [&] { return value(node.rhs); };
    const auto decided = [&]() -> Value* { return b_.getInt1(!is_and); };
    return is_and ? choose(first, right, decided) : choose(first, decided, right);
  }
  Value* a = value(node.lhs);
  Value* b = value(node.rhs);
  if (is_float(dtype) && node.op == BinaryOp::Mod) {
    // The remainder takes the sign of the divisor.
    const Dtype wide = dtype == Dtype::F64 ? Dtype::F64 : Dtype::F32;
    Value* divisor = arithmetic_.widen(dtype, b);
    Value* rest = remainder(wide, arithmetic_.widen(dtype, a), divisor);
    llvm::Type* integer = b_.getIntNTy(arithmetic_.bits(wide));
    Value* signs = b_.CreateXor(b_.CreateBitCast(rest, integer), b_.CreateBitCast(divisor, integer));
    Value* is_off = b_.CreateAnd(b_.CreateICmpSLT(signs, llvm::ConstantInt::get(integer, 0)),
                                 b_.CreateFCmpUNE(rest, llvm::ConstantFP::get(rest->getType(), 0.0)));
    return arithmetic_.narrow(dtype, b_.CreateSelect(is_off, b_.CreateFAdd(rest, divisor), rest));
  }
  DivisionFacts facts;
  if (node.op == BinaryOp::Div || node.op == BinaryOp::Mod)
    facts = {is_nonnegative(node.lhs), is_nonnegative(node.rhs)};
  const bool is_sum = node.op == BinaryOp::Add || node.op == BinaryOp::Sub || node.op == BinaryOp::Mul;
  if (dtype == Dtype::Index && is_sum && (is_from_tensor(node.lhs) || is_from_tensor(node.rhs)))
    return arithmetic_.binary(node.op, arithmetic_.bits(Dtype::Index) == 64 ? Dtype::I64 : Dtype::I32, a, b, facts);
  return arithmetic_.binary(node.op, dtype, a, b, facts);
}

Value* Emitter::select_value(const Select& node) {
  Value* condition = value(node.condition);
  if (is_dangerous(node.if_true) || is_dangerous(node.if_false))
    return choose(
        condition, [&] { return value(node.if_true); }, [&] { return value(node.if_false); });
  Value* first = value(node.if_true);
  return b_.CreateSelect(condition, first, value(node.if_false));
}

Value* Emitter::call_value(const Expr& expr, const Call& node) {
  if (find_instruction(node.function)) return instruction_value(expr, node);
  const FunctionInfo* function = find_function(node.function);
  if (!function) internal_error(fmt::format("llvm: `{}` is neither a function nor an instruction", node.function));
  if (node.function == "within") return within(node);
  return function_value(expr, node, *function);
}

// A bound read from a tensor is cut to 0 .. n; an offender is reported.
Value* Emitter::within(const Call& node) {
  Value* seen = wide_integer(node.arguments.at(0));
  Value* most = arithmetic_.convert(Dtype::I64, node.arguments.at(1)->dtype, value(node.arguments.at(1)));
  const auto site = integer_value(node.arguments.at(2));
  if (!site) internal_error("llvm: the site of `within` is a constant");
  Value* is_inside = b_.CreateICmpULE(seen, most);
  when(b_.CreateNot(is_inside), [&] { report(static_cast<int>(*site), seen); });
  Value* is_below = b_.CreateICmpSLT(seen, b_.getInt64(0));
  Value* cut = b_.CreateSelect(is_inside, seen, b_.CreateSelect(is_below, b_.getInt64(0), most));
  return arithmetic_.convert(Dtype::Index, Dtype::I64, cut);
}

Value* Emitter::function_value(const Expr& expr, const Call& node, const FunctionInfo& function) {
  const Dtype dtype = node.arguments.at(0)->dtype;
  std::vector<Value*> arguments;
  for (const Expr& argument : node.arguments) arguments.push_back(value(argument));
  const std::string& name = node.function;

  if (name == "fma" || name == "fma.kept")
    return arithmetic_.fma(dtype, arguments.at(0), arguments.at(1), arguments.at(2));
  if (name == "ceildiv") {
    const DivisionFacts facts{is_nonnegative(node.arguments.at(0)), is_nonnegative(node.arguments.at(1))};
    return arithmetic_.ceildiv(dtype, arguments.at(0), arguments.at(1), facts);
  }
  if (!is_float(dtype)) {
    if (name == "abs" && is_signed(dtype))
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, arguments[0], b_.getFalse());
    if (name == "abs") return arguments[0];
    if (name == "isnan" || name == "isinf") return b_.getFalse();
    throw UserError(expr->span, fmt::format("LLVM has no `{}` of {}", name, info(dtype).name));
  }
  // Narrow floats compute in f32 and round once.
  const Dtype wide = dtype == Dtype::F64 ? Dtype::F64 : Dtype::F32;
  for (Value*& argument : arguments) argument = arithmetic_.widen(dtype, argument);
  Value* x = arguments[0];
  if (name == "isnan") return b_.CreateFCmpUNO(x, x);
  if (name == "isinf") {
    Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
    return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), infinity);
  }
  struct Exact {
    const char* name;
    llvm::Intrinsic::ID intrinsic;
  };
  static constexpr Exact exact[] = {
      {"sqrt", llvm::Intrinsic::sqrt}, {"abs", llvm::Intrinsic::fabs},        {"floor", llvm::Intrinsic::floor},
      {"ceil", llvm::Intrinsic::ceil}, {"round", llvm::Intrinsic::roundeven}, {"trunc", llvm::Intrinsic::trunc},
  };
  for (const Exact& row : exact)
    if (name == row.name) return arithmetic_.narrow(dtype, b_.CreateUnaryIntrinsic(row.intrinsic, x));
  return arithmetic_.narrow(dtype, library_function(function, wide, arguments));
}

}  // namespace tilewright
