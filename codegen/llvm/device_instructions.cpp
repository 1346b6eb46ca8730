// Instructions of the table in ir/instructions.h: LLVM's intrinsics where they are known to the optimiser, wide
// accesses for load.vN and store.vN, inline PTX with the table's text for the rest.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/device_emitter.h"
#include "ir/diagnostic.h"

namespace tilewright {

using llvm::Value;

namespace {

const InstrInfo& row_of(const std::string& name) {
  const InstrInfo* row = find_instruction(name);
  if (row == nullptr) internal_error(fmt::format("llvm: `{}` is not in the table of instructions", name));
  return *row;
}

// The table's text in LLVM's form: `%r` becomes the result, `%n` operand n behind it.
std::string asm_text(std::string_view text, std::size_t results, std::vector<bool>& is_used) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 1 < text.size() && text[at + 1] == 'r') {
      result += "$0";
      ++at;
    } else if (text[at] == '%' && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9') {
      const auto operand = static_cast<std::size_t>(text[++at] - '0');
      if (operand < is_used.size()) is_used[operand] = true;
      result += fmt::format("${}", operand + results);
    } else {
      result += text[at] == '$' ? "$$" : std::string(1, text[at]);
    }
  }
  return result;
}

}  // namespace

// A shared place is its 32-bit address, a global one its pointer; coordinates and counts are 32 bits in every class.
Value* DeviceEmitter::operand_of(const Expr& operand, std::string& constraint) {
  if (const Load* access = as<Load>(operand)) {
    const Storage& place = storage_of(access->access.buffer);
    if (place.address != nullptr && !place.is_private) {
      Value* address = address_of(access->access);
      const bool is_shared = address->getType()->getPointerAddressSpace() == 3;
      constraint = is_shared ? "r" : "l";
      return b_.CreatePtrToInt(address, is_shared ? b_.getInt32Ty() : b_.getInt64Ty());
    }
  }
  Value* made = value(operand);
  if (operand->dtype == Dtype::Index) made = b_.CreateTrunc(made, b_.getInt32Ty());
  llvm::Type* type = made->getType();
  if (llvm::isa<llvm::ConstantInt>(made) && !type->isIntegerTy(1))
    constraint = "n";
  else if (type->isFloatTy())
    constraint = "f";
  else if (type->isDoubleTy())
    constraint = "d";
  else if (type->isIntegerTy(1))
    constraint = "b";
  else if (type->isIntegerTy(64))
    constraint = "l";
  else if (type->isIntegerTy(16))
    constraint = "h";
  else
    constraint = "r";
  if (type->isIntegerTy(8)) made = b_.CreateZExt(made, b_.getInt32Ty());
  return made;
}

Value* DeviceEmitter::inline_ptx(const InstrInfo& row, const std::vector<Expr>& operands, std::optional<Dtype> result) {
  if (row.ptx.empty())
    throw MachineError(fmt::format("LLVM: this version does not generate the instruction `{}` yet", row.name));
  // Operands that the text does not name (registers that an instruction only announces) are not passed, so those behind
  // them move up; the table's texts leave out none but the last.
  std::vector<bool> is_used(operands.size(), false);
  const std::string text = asm_text(row.ptx, result ? 1 : 0, is_used);
  std::vector<Value*> values;
  std::vector<llvm::Type*> types;
  std::string constraints;
  llvm::Type* result_type = b_.getVoidTy();
  if (result) {
    result_type = arithmetic_.type(*result);
    constraints = *result == Dtype::Bool ? "=b" : *result == Dtype::F32 ? "=f" : bytes_of(*result) == 8 ? "=l" : "=r";
  }
  for (std::size_t n = 0; n < operands.size(); ++n) {
    if (!is_used[n]) continue;
    std::string constraint;
    values.push_back(operand_of(operands[n], constraint));
    types.push_back(values.back()->getType());
    constraints += (constraints.empty() ? "" : ",") + constraint;
  }
  const bool touches_memory = row.effect != Effect::None;
  if (touches_memory) constraints += std::string(constraints.empty() ? "" : ",") + "~{memory}";
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(result_type, types, false), text, constraints,
                                        touches_memory || !result || row.convergence != Convergence::None);
  llvm::CallInst* call = b_.CreateCall(assembly, values);
  call->setDoesNotThrow();
  if (row.convergence != Convergence::None) call->setConvergent();
  return call;
}

// Values of any width travel as 32-bit pieces.
Value* DeviceEmitter::shuffled(const Call& call) {
  struct Row {
    const char* name;
    llvm::Intrinsic::ID intrinsic;
    std::uint32_t clamp;
  };
  static constexpr Row rows[] = {
      {"uniform", llvm::Intrinsic::nvvm_shfl_sync_idx_i32, 31},
      {"shuffle.xor", llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, 31},
      {"shuffle.up", llvm::Intrinsic::nvvm_shfl_sync_up_i32, 0},
      {"shuffle.down", llvm::Intrinsic::nvvm_shfl_sync_down_i32, 31},
      {"shuffle.index", llvm::Intrinsic::nvvm_shfl_sync_idx_i32, 31},
  };
  for (const Row& row : rows) {
    if (call.function != row.name) continue;
    Value* own = value(call.arguments.at(0));
    Value* lane = b_.getInt32(0);
    if (call.arguments.size() > 1)
      lane = arithmetic_.convert(Dtype::I32, call.arguments[1]->dtype, value(call.arguments[1]));
    llvm::Type* type = own->getType();
    const unsigned width = type->getPrimitiveSizeInBits().getFixedValue() > 32 ? 64 : 32;
    Value* bits = b_.CreateZExt(
        b_.CreateBitCast(own, b_.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue()))),
        b_.getIntNTy(width));
    const auto travel = [&](Value* piece) {
      return b_.CreateIntrinsic(row.intrinsic, llvm::ArrayRef<llvm::Type*>{},
                                {b_.getInt32(0xffffffff), piece, lane, b_.getInt32(row.clamp)});
    };
    Value* result = nullptr;
    if (width == 32) {
      result = travel(bits);
    } else {
      Value* low = b_.CreateZExt(travel(b_.CreateTrunc(bits, b_.getInt32Ty())), b_.getInt64Ty());
      Value* high = b_.CreateZExt(travel(b_.CreateTrunc(b_.CreateLShr(bits, 32), b_.getInt32Ty())), b_.getInt64Ty());
      result = b_.CreateOr(low, b_.CreateShl(high, 32));
    }
    return b_.CreateBitCast(
        b_.CreateTrunc(result, b_.getIntNTy(static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue()))),
        type);
  }
  return nullptr;
}

Value* DeviceEmitter::instruction_value(const Expr& expr, const Call& call) {
  if (Value* result = shuffled(call)) return result;
  if (call.function == "vote.any" || call.function == "vote.all") {
    const auto vote =
        call.function == "vote.any" ? llvm::Intrinsic::nvvm_vote_any_sync : llvm::Intrinsic::nvvm_vote_all_sync;
    return b_.CreateIntrinsic(vote, llvm::ArrayRef<llvm::Type*>{},
                              {b_.getInt32(0xffffffff), value(call.arguments.at(0))});
  }
  return inline_ptx(row_of(call.function), call.arguments, expr->dtype);
}

void DeviceEmitter::instruction(const Instr& instr) {
  const auto intrinsic = [&](llvm::Intrinsic::ID id, Value* operand) {
    b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>{}, {operand});
  };
  if (instr.op == "barrier.block") return intrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, b_.getInt32(0));
  if (instr.op == "barrier.warp") return intrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, b_.getInt32(0xffffffff));
  if (instr.op == "error.report") {
    const auto site = integer_value(instr.operands.at(0));
    if (!site) internal_error("llvm: the site of `error.report` is a constant");
    return report(static_cast<int>(*site), wide_integer(instr.operands.at(1)));
  }
  if (instr.op.starts_with("load.v") || instr.op.starts_with("store.v")) {
    const unsigned elements = static_cast<unsigned>(std::stoul(instr.op.substr(instr.op.find(".v") + 2)));
    return vector_access(instr, elements);
  }
  const InstrInfo& row = row_of(instr.op);
  if (instr.op == "ldmatrix.x4") return load_matrix(row, instr);
  inline_ptx(row, instr.operands, std::nullopt);
}

// load.vN(destination, source) and store.vN(destination, source). The side in memory is accessed in vectors of at most
// 16 bytes; the side in registers element by element, so that the array dissolves into registers.
void DeviceEmitter::vector_access(const Instr& instr, unsigned elements) {
  const Load* destination = as<Load>(instr.operands.at(0));
  const Load* source = as<Load>(instr.operands.at(1));
  if (!destination || !source) internal_error(fmt::format("llvm: the operands of `{}` are places", instr.op));
  const Storage to = storage_of(destination->access.buffer);
  const Storage from = storage_of(source->access.buffer);
  llvm::Type* element = arithmetic_.memory_type(to.dtype);
  const auto bytes = static_cast<unsigned>(bytes_of(to.dtype));
  const unsigned width = std::min(elements, 16 / bytes);
  Value* to_address = address_of(destination->access);
  Value* from_address = address_of(source->access);
  const auto at = [&](Value* base, unsigned position) {
    return b_.CreateConstInBoundsGEP1_64(element, base, position);
  };
  auto* vector = llvm::FixedVectorType::get(element, width);
  for (unsigned first = 0; first < elements; first += width) {
    Value* loaded = nullptr;
    if (from.is_private) {
      loaded = llvm::PoisonValue::get(vector);
      for (unsigned n = 0; n < width; ++n)
        loaded = b_.CreateInsertElement(
            loaded, b_.CreateAlignedLoad(element, at(from_address, first + n), llvm::Align(bytes)), b_.getInt32(n));
    } else {
      llvm::LoadInst* load = b_.CreateAlignedLoad(vector, at(from_address, first), llvm::Align(width * bytes));
      if (from.is_read_only)
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
      loaded = load;
    }
    if (to.is_private) {
      for (unsigned n = 0; n < width; ++n)
        b_.CreateAlignedStore(b_.CreateExtractElement(loaded, b_.getInt32(n)), at(to_address, first + n),
                              llvm::Align(bytes));
    } else {
      b_.CreateAlignedStore(loaded, at(to_address, first), llvm::Align(width * bytes));
    }
  }
}

// Its first four operands are registers that it sets.
void DeviceEmitter::load_matrix(const InstrInfo& row, const Instr& instr) {
  std::vector<bool> is_used(5, false);
  const std::string text = asm_text(row.ptx, 0, is_used);
  std::string constraint;
  Value* address = operand_of(instr.operands.at(4), constraint);
  llvm::Type* word = b_.getInt32Ty();
  auto* results = llvm::StructType::get(word, word, word, word);
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(results, {address->getType()}, false), text,
                                        "=r,=r,=r,=r," + constraint + ",~{memory}", true);
  llvm::CallInst* call = b_.CreateCall(assembly, {address});
  call->setConvergent();
  for (unsigned n = 0; n < 4; ++n) {
    const Load* target = as<Load>(instr.operands.at(n));
    if (!target) internal_error("llvm: `ldmatrix.x4` sets registers");
    b_.CreateStore(b_.CreateExtractValue(call, n), address_of(target->access));
  }
}

}  // namespace tilewright
