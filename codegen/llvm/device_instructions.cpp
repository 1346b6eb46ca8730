// Instructions of the table in ir/instructions.h: LLVM's intrinsics where they are known to the optimiser, wide
// accesses for load.vN and store.vN, inline PTX with the table's text for the rest.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "codegen/descriptor_offset.h"
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

}  // namespace

// A shared place is its 32-bit address, a global one its pointer, a map the address of its parameter; coordinates and counts are 32 bits in every class.
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
  const Var* variable = as<Var>(operand);
  if (variable && maps_.count(variable->name) != 0) {
    constraint = "l";
    return b_.CreatePtrToInt(maps_.at(variable->name), b_.getInt64Ty());
  }
  Value* made = value(operand);
  if (operand->dtype == Dtype::Bool) made = b_.CreateZExt(made, b_.getInt32Ty());
  if (operand->dtype == Dtype::Index) made = b_.CreateTrunc(made, b_.getInt32Ty());
  llvm::Type* type = made->getType();
  if (type->isFloatTy())
    constraint = "f";
  else if (type->isDoubleTy())
    constraint = "d";
  else if (type->isIntegerTy(64))
    constraint = "l";
  else if (type->isIntegerTy(16))
    constraint = "h";
  else
    constraint = "r";
  if (type->isIntegerTy(8)) made = b_.CreateZExt(made, b_.getInt32Ty());
  return made;
}

// One inline assembly: the table's texts of one instruction, or of several. Outputs are numbered first, then inputs, then
// the old values of registers that are read and written.
struct DeviceEmitter::PtxCall {
  struct Output {
    llvm::Type* type;
    std::string constraint;
    Value* address;         // where it goes; null for the value of the call
    bool is_read = false;   // holds its old value before
  };
  std::vector<Output> outputs;
  std::vector<Value*> inputs;
  std::vector<std::string> constraints;  // of the inputs
  std::vector<std::string> spelling;     // of each operand of the instruction in hand: `%o3`, `%i0`, a list of them, a constant
  std::string text;                      // with `%o3` and `%i0`
  Value* array = nullptr;                // the outputs are its elements from here on
  bool touches_memory = false;
  bool stays = false;       // has an effect beside its outputs
  bool converges = false;
};

void DeviceEmitter::add_operand(PtxCall& call, const InstrInfo& row, std::size_t n, const Expr& operand) {
  if (takes_constant(row, n)) {
    const auto constant = integer_value(operand);
    if (!constant) internal_error(fmt::format("llvm: operand {} of `{}` is no constant", n + 1, row.name));
    call.spelling.push_back(fmt::format("{}", *constant));
    return;
  }
  const Load* load = as<Load>(operand);
  const Storage* place = load ? &storage_of(load->access.buffer) : nullptr;
  const auto wgmma = wgmma_form(row.name);
  const bool is_part = n == 0 && wgmma && place && !load->access.index.empty();  // the registers from an element on
  const bool is_array = place && place->is_private && !place->shape.empty() && (load->access.index.empty() || is_part);
  if (is_array) return add_array(call, row, n, load->access, is_part ? wgmma->n / 2 : *integer_value(place->shape.at(0)));
  if (sets_register(row, n)) {
    if (!place || !place->is_private) internal_error(fmt::format("llvm: `{}` sets registers", row.name));
    call.spelling.push_back(fmt::format("%o{}", call.outputs.size()));
    const bool adds = row.name.starts_with("mma.");
    call.outputs.push_back({adds ? b_.getFloatTy() : static_cast<llvm::Type*>(b_.getInt32Ty()), adds ? "f" : "r", address_of(load->access), adds});
    return;
  }
  std::string constraint;
  call.spelling.push_back(fmt::format("%i{}", call.inputs.size()));
  call.inputs.push_back(operand_of(operand, constraint));
  call.constraints.push_back(constraint);
}

// Whether operand n, an array of registers, is written: the first, and one that the text only announces.
bool DeviceEmitter::is_target(const InstrInfo& row, std::size_t n) {
  return n == 0 || row.ptx.find(fmt::format("%{}", n)) == std::string_view::npos;
}

void DeviceEmitter::add_array(PtxCall& call, const InstrInfo& row, std::size_t n, const Access& access, std::int64_t elements) {
  const Storage& place = storage_of(access.buffer);
  Value* const first = access.index.empty() ? place.address : address_of(access);
  const bool target = is_target(row, n);
  const bool is_known = target && call.array == first;
  llvm::Type* element = arithmetic_.memory_type(place.dtype);
  const std::string constraint = place.dtype == Dtype::F32 ? "f" : "r";
  std::vector<std::string> registers;
  for (std::int64_t at = 0; at < elements; ++at) {
    const std::size_t number = is_known ? static_cast<std::size_t>(at) : target ? call.outputs.size() : call.inputs.size();
    registers.push_back(fmt::format("%{}{}", target ? 'o' : 'i', number));
    if (is_known) continue;
    Value* address = b_.CreateConstInBoundsGEP1_64(element, first, static_cast<std::uint64_t>(at));
    if (target) {
      call.outputs.push_back({element, constraint, address, true});
      continue;
    }
    call.inputs.push_back(b_.CreateLoad(element, address));
    call.constraints.push_back(constraint);
  }
  if (target) call.array = first;
  call.spelling.push_back(fmt::format("{{{}}}", fmt::join(registers, ", ")));
}

// Appends the table's text, its `%n` and `#n` by the operands' spelling.
void DeviceEmitter::add_text(PtxCall& call, std::string_view text) {
  if (!call.text.empty()) call.text += "\n\t";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_mark = (text[at] == '%' || text[at] == '#') && at + 1 < text.size();
    if (is_mark && text[at + 1] == 'r')
      call.text += "%o0", ++at;
    else if (is_mark && text[at + 1] >= '0' && text[at + 1] <= '9')
      call.text += call.spelling.at(static_cast<std::size_t>(text[++at] - '0'));
    else
      call.text += text[at] == '$' ? "$$" : std::string(1, text[at]);
  }
  call.spelling.clear();
}

// Emits the assembly, by LLVM's numbers of operands, and stores what it gives.
Value* DeviceEmitter::emit(const PtxCall& call) {
  std::string text = call.text;
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at)) {
    const std::size_t end = text.find_first_not_of("0123456789", at + 2);
    const std::size_t number = std::stoul(text.substr(at + 2, end - at - 2));
    text.replace(at, end - at, fmt::format("${}", text[at + 1] == 'o' ? number : number + call.outputs.size()));
  }
  std::vector<std::string> constraints;
  std::vector<llvm::Type*> result_types;
  for (const PtxCall::Output& output : call.outputs) {
    constraints.push_back("=" + output.constraint);
    result_types.push_back(output.type);
  }
  constraints.insert(constraints.end(), call.constraints.begin(), call.constraints.end());
  std::vector<Value*> values = call.inputs;
  for (std::size_t n = 0; n < call.outputs.size(); ++n) {
    if (!call.outputs[n].is_read) continue;
    values.push_back(b_.CreateLoad(call.outputs[n].type, call.outputs[n].address));
    constraints.push_back(fmt::format("{}", n));
  }
  if (call.touches_memory) constraints.emplace_back("~{memory}");
  std::vector<llvm::Type*> types;
  for (const Value* each : values) types.push_back(each->getType());
  llvm::Type* made = result_types.empty()       ? b_.getVoidTy()
                     : result_types.size() == 1 ? result_types[0]
                                                : llvm::StructType::get(module_.getContext(), result_types);
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(made, types, false), text,
                                        fmt::format("{}", fmt::join(constraints, ",")), call.stays);
  llvm::CallInst* made_call = b_.CreateCall(assembly, values);
  made_call->setDoesNotThrow();
  if (call.converges) made_call->setConvergent();
  for (unsigned n = 0; n < call.outputs.size(); ++n)
    if (call.outputs[n].address != nullptr)
      b_.CreateStore(result_types.size() == 1 ? static_cast<Value*>(made_call) : b_.CreateExtractValue(made_call, n),
                     call.outputs[n].address);
  return made_call;
}

Value* DeviceEmitter::inline_ptx(const InstrInfo& row, const std::vector<Expr>& operands, std::optional<Dtype> result) {
  if (row.ptx.empty())
    throw MachineError(fmt::format("LLVM: this version does not generate the instruction `{}` yet", row.name));
  const bool stays_open = !result && row.name.starts_with("wgmma.");
  if (stays_open && open_ && !continues(*open_, row, operands)) settle();
  if (stays_open && !open_) open_ = std::make_shared<PtxCall>();
  PtxCall own;
  PtxCall& call = stays_open ? *open_ : own;
  if (result) {
    const char* constraint =
        *result == Dtype::Bool ? "b" : *result == Dtype::F32 ? "f" : bytes_of(*result) == 8 ? "l" : "r";
    call.outputs.push_back({arithmetic_.type(*result), constraint, nullptr});
  }
  for (std::size_t n = 0; n < operands.size(); ++n) add_operand(call, row, n, operands[n]);
  const bool touches_memory = row.effect != Effect::None;
  call.touches_memory |= touches_memory;
  call.stays |= touches_memory || !result || row.convergence != Convergence::None;
  call.converges |= row.convergence != Convergence::None;
  if (stays_open && subprogram_ != nullptr)  // each its own line, where LLVM knows one for all
    call.text += fmt::format("{}.loc\t1 {} 1", call.text.empty() ? "" : "\n\t", lines_.size());
  add_text(call, row.ptx);
  return stays_open ? nullptr : emit(call);
}

// wgmmas one after the other, with their fence, commit and wait, become one assembly: LLVM then carries the accumulators
// through one call and not through seven, in two thirds of the time.
bool DeviceEmitter::joins(const Stmt& stmt) const {
  if (const Loop* loop = as<Loop>(stmt))
    return is_unrolled(*loop) && std::all_of(loop->body.begin(), loop->body.end(), [&](const Stmt& inner) { return joins(inner); });
  const Instr* instr = as<Instr>(stmt);
  return instr && instr->op.starts_with("wgmma.");
}

// Whether the instruction can follow what is open: it writes the same accumulators or none, and reads nothing but scalar
// registers, which are read before all of it.
bool DeviceEmitter::continues(const PtxCall& open, const InstrInfo& row, const std::vector<Expr>& operands) {
  bool is_so = true;
  const auto reads_scalars = [&](const Expr& part) {
    const Load* load = as<Load>(part);
    const Storage* place = load ? &storage_of(load->access.buffer) : nullptr;
    is_so = is_so && (!load || (place->is_private && place->shape.empty()));
    return true;
  };
  for (std::size_t n = 0; n < operands.size(); ++n) {
    const Load* load = as<Load>(operands[n]);
    const Call* call = as<Call>(operands[n]);
    if (load && is_target(row, n)) {
      const bool is_whole = load->access.index.empty();
      is_so = is_so && is_whole && (open.array == nullptr || storage_of(load->access.buffer).address == open.array);
    } else if (call && call->function == "desc") {  // its first argument is a place, not what is there
      for (const Expr& index : as<Load>(call->arguments.at(0))->access.index) walk(index, reads_scalars);
      for (std::size_t at = 1; at < call->arguments.size(); ++at) walk(call->arguments[at], reads_scalars);
    } else {
      walk(operands[n], reads_scalars);
    }
  }
  return is_so;
}

void DeviceEmitter::settle() {
  if (!open_) return;
  const std::shared_ptr<PtxCall> closed = std::move(open_);
  emit(*closed);
}

// As assembly, or LLVM makes two paths of it again.
Value* DeviceEmitter::pick(Value* condition, Value* chosen, Value* old) {
  if (!old->getType()->isFloatTy()) return Emitter::pick(condition, chosen, old);
  llvm::Type* word = b_.getInt32Ty();
  Value* is_chosen = b_.CreateZExt(condition, word);
  Value* bits = b_.CreateBitCast(chosen, word);
  auto* type = llvm::FunctionType::get(old->getType(), {word, word, old->getType()}, false);
  auto* assembly = llvm::InlineAsm::get(
      type, "{ .reg .pred p; setp.ne.b32 p, $1, 0; selp.b32 $0, $2, $3, p; }", "=f,r,r,0", false);
  return b_.CreateCall(assembly, {is_chosen, bits, old});
}

// The matrix descriptor: the low word holds address and leading offset, the high word stride offset and swizzle.
Value* DeviceEmitter::descriptor(const std::vector<Expr>& operands) {
  const std::int64_t swizzle = operands.size() > 3 ? integer_value(operands[3]).value_or(-1) : 128;
  const int code = swizzle == 0 ? 0 : swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : -1;
  if (code < 0) internal_error("llvm: the swizzle of a descriptor is 0, 32, 64 or 128");
  const Access& access = as<Load>(operands.at(0))->access;
  const Storage& storage = storage_of(access.buffer);
  std::vector<std::int64_t> extents;
  for (const Expr& extent : storage.shape) extents.push_back(integer_value(extent).value());
  const std::optional<Expr> offset = descriptor_offset(access, storage.dtype, extents);
  Value* place = b_.CreatePtrToInt(offset ? storage.address : address_of(access), b_.getInt32Ty());
  Value* sixteens = offset ? b_.CreateTrunc(value(*offset), b_.getInt32Ty()) : b_.getInt32(0);
  const auto sixteenths = [&](const Expr& bytes) {
    return b_.CreateLShr(arithmetic_.convert(Dtype::I32, bytes->dtype, value(bytes)), 4);
  };
  Value* start = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(place, 4), 0x3fff), b_.CreateShl(sixteenths(operands.at(1)), 16));
  Value* low = b_.CreateAdd(start, sixteens);
  Value* high = b_.CreateOr(sixteenths(operands.at(2)), static_cast<std::uint64_t>(code) << 30);
  return b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()), b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
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
  if (call.function == "desc") return descriptor(call.arguments);
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
  inline_ptx(row_of(instr.op), instr.operands, std::nullopt);
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

}  // namespace tilewright
