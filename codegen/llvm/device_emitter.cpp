// The frame of an NVPTX kernel; see device_emitter.h.
#include "codegen/llvm/device_emitter.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"

namespace tilewright {

using llvm::Value;

namespace {

constexpr unsigned global_space = 1;
constexpr unsigned shared_space = 3;

bool is_by_value(const Plan& plan, const std::string& name) {
  const Param* param = find_param(plan, name);
  return param != nullptr && is_by_value(*param);
}

// What the class of the plan promises of the base of every tensor.
std::uint64_t promised_alignment(const Plan& plan, Dtype dtype) {
  std::uint64_t alignment = static_cast<std::uint64_t>(bytes_of(dtype));
  for (const Fact& fact : plan.facts)
    if (fact.kind == Fact::Kind::Aligned && fact.alignment > 0 && (fact.alignment & (fact.alignment - 1)) == 0)
      alignment = std::max(alignment, static_cast<std::uint64_t>(fact.alignment));
  return alignment;
}

}  // namespace

DeviceEmitter::DeviceEmitter(const Plan& plan, const Kernel& kernel, llvm::Module& module, int sm, bool keeps_lines)
    : Emitter(plan, module, static_cast<unsigned>(plan.index_bits), NativeNarrow{true, sm >= 80}),
      kernel_(kernel),
      sm_(sm),
      keeps_lines_(keeps_lines) {
  if (kernel.stage != Stage::Thread)
    internal_error(fmt::format("llvm: kernel `{}` is not at thread stage", kernel.name));
}

void DeviceEmitter::emit() {
  find_written_tensors();
  make_entry();
  if (keeps_lines_) keep_lines();
  in_scope([&] {
    bind_arguments();
    block(kernel_.body);
    settle();
  });
  b_.CreateRetVoid();
}

void DeviceEmitter::find_written_tensors() {
  walk(kernel_.body, [&](const Stmt& stmt) {
    if (const Store* store = as<Store>(stmt)) written_.push_back(store->target.buffer);
    const Instr* instr = as<Instr>(stmt);
    if (instr == nullptr) return true;
    // Whatever an instruction names may be written by it, but for the source of a vector load.
    const bool is_load = instr->op.starts_with("load.v");
    for (std::size_t n = 0; n < instr->operands.size(); ++n)
      if (const Load* place = as<Load>(instr->operands[n]); place && !(is_load && n == 1))
        written_.push_back(place->access.buffer);
    return true;
  });
  for (const Param& param : plan_.params)
    writes_inout_ = writes_inout_ || (param.kind == ParamKind::InOut &&
                                      std::find(written_.begin(), written_.end(), param.name) != written_.end());
}

void DeviceEmitter::make_entry() {
  std::vector<llvm::Type*> types;
  llvm::Type* pointer = b_.getPtrTy(global_space);
  for (const std::string& argument : kernel_.launch.arguments) {
    const auto tensor = find_tensor(plan_, argument);
    if (!tensor)
      types.push_back(arithmetic_.type(Dtype::Index));
    else
      types.push_back(is_by_value(plan_, argument) ? arithmetic_.memory_type(tensor->dtype) : pointer);
  }
  const std::size_t first_map = types.size();
  types.insert(types.end(), kernel_.launch.maps.size(), b_.getPtrTy());
  if (!plan_.error_name.empty()) types.push_back(pointer);
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, c_name(kernel_.name), module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  // ptxas waits for all wgmmas in front of an indirect branch, and what a switch saves is little.
  function_->addFnAttr("no-jump-tables", "true");
  // A tensor map is a parameter of 128 bytes whose address in the parameter space the copy engine takes.
  llvm::LLVMContext& context = module_.getContext();
  auto* map_type = llvm::ArrayType::get(b_.getInt8Ty(), 128);
  for (std::size_t n = 0; n < kernel_.launch.maps.size(); ++n) {
    llvm::Argument* map = function_->getArg(static_cast<unsigned>(first_map + n));
    map->addAttr(llvm::Attribute::getWithByValType(context, map_type));
    map->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
    map->addAttr(llvm::Attribute::ReadOnly);
    function_->addParamAttr(static_cast<unsigned>(first_map + n), llvm::Attribute::get(context, "nvvm.grid_constant"));
  }
  std::vector<std::int64_t> cluster = kernel_.launch.cluster;
  if (!cluster.empty()) {
    cluster.resize(3, 1);
    function_->addFnAttr("nvvm.cluster_dim", fmt::format("{}", fmt::join(cluster, ",")));
  }
  if (!kernel_.launch.block.empty())
    function_->addFnAttr("nvvm.maxntid", fmt::format("{}", fmt::join(kernel_.launch.block, ",")));
  if (kernel_.launch.min_blocks > 0)
    function_->addFnAttr("nvvm.minctasm", fmt::format("{}", kernel_.launch.min_blocks));
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
}

void DeviceEmitter::bind_arguments() {
  unsigned position = 0;
  for (const std::string& argument : kernel_.launch.arguments) {
    llvm::Argument* passed = function_->getArg(position++);
    passed->setName(c_name(argument));
    const auto tensor = find_tensor(plan_, argument);
    if (!tensor) {
      const unsigned width = static_cast<unsigned>(plan_.index_bits);
      const llvm::ConstantRange nonnegative(llvm::APInt(width, 0), llvm::APInt::getSignedMinValue(width));
      passed->addAttr(llvm::Attribute::get(module_.getContext(), llvm::Attribute::Range, nonnegative));
      define(argument, passed, true);
      continue;
    }
    Storage place;
    place.dtype = tensor->dtype;
    place.shape = tensor->shape;
    if (is_by_value(plan_, argument)) {
      place.value = tensor->dtype == Dtype::Bool ? b_.CreateICmpNE(passed, b_.getInt8(0)) : static_cast<Value*>(passed);
    } else {
      place.address = passed;
      const bool is_written = std::find(written_.begin(), written_.end(), argument) != written_.end();
      const Param* param = find_param(plan_, argument);
      // An inout tensor may overlap an input: then neither is known to stand alone.
      const bool may_overlap = writes_inout_ && param != nullptr && param->kind != ParamKind::Out;
      place.is_read_only = !is_written && !may_overlap;
      if (!may_overlap) passed->addAttr(llvm::Attribute::NoAlias);
      if (!is_written) passed->addAttr(llvm::Attribute::ReadOnly);
      passed->addAttr(llvm::Attribute::NoUndef);
      passed->addAttr(llvm::Attribute::getWithAlignment(module_.getContext(),
                                                        llvm::Align(promised_alignment(plan_, tensor->dtype))));
    }
    define_storage(argument, std::move(place));
  }
  for (const TensorMap& map : kernel_.launch.maps) {
    maps_[map.name] = function_->getArg(position++);
    maps_[map.name]->setName(c_name(map.name));
  }
  if (!plan_.error_name.empty()) {
    error_word_ = function_->getArg(position);
    error_word_->setName("error_word");
  }
}

// Line tables only: PTX then has `.loc` lines and no other debug information, and the code is the same.
void DeviceEmitter::keep_lines() {
  llvm::DIBuilder builder(module_);
  llvm::DIFile* file = builder.createFile("program", ".");
  builder.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C11), file, "tilewright", true, "", 0, "",
                            llvm::DICompileUnit::DebugDirectivesOnly);
  llvm::DISubroutineType* type = builder.createSubroutineType(builder.getOrCreateTypeArray({}));
  subprogram_ = builder.createFunction(file, kernel_.name, "", file, 1, type, 1, llvm::DINode::FlagZero,
                                       llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function_->setSubprogram(subprogram_);
  builder.finalize();
  module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
}

// ---- Index variables

Value* DeviceEmitter::special_register(llvm::Intrinsic::ID intrinsic) {
  return arithmetic_.convert(Dtype::Index, Dtype::I32,
                             b_.CreateIntrinsic(intrinsic, llvm::ArrayRef<llvm::Type*>{}, llvm::ArrayRef<Value*>{}));
}

// Of the block, x first.
Value* DeviceEmitter::linear_thread() {
  const std::vector<std::int64_t>& shape = kernel_.launch.block;
  const auto extent = [&](std::size_t axis) { return axis < shape.size() ? shape[axis] : 1; };
  Value* linear = special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  const auto add = [&](llvm::Intrinsic::ID axis, std::int64_t stride) {
    Value* part = arithmetic_.binary(BinaryOp::Mul, Dtype::Index, special_register(axis), arithmetic_.index(stride));
    linear = arithmetic_.binary(BinaryOp::Add, Dtype::Index, linear, part);
  };
  if (extent(1) > 1) add(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y, extent(0));
  if (extent(2) > 1) add(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z, extent(0) * extent(1));
  return linear;
}

Value* DeviceEmitter::predefined(const std::string& name) {
  struct Row {
    const char* name;
    llvm::Intrinsic::ID intrinsic;
  };
  static constexpr Row rows[] = {
      {"thread.x", llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x},
      {"thread.y", llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y},
      {"thread.z", llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z},
      {"block", llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x},
      {"block.x", llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x},
      {"block.y", llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y},
      {"block.z", llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z},
      {"grid.x", llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x},
      {"grid.y", llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y},
      {"grid.z", llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z},
      {"cluster.rank", llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank},
  };
  for (const Row& row : rows)
    if (name == row.name) return special_register(row.intrinsic);
  if (name == "thread") return linear_thread();
  if (name == "lane") return arithmetic_.binary(BinaryOp::BitAnd, Dtype::Index, linear_thread(), arithmetic_.index(31));
  if (name == "warp")
    return arithmetic_.binary(BinaryOp::Div, Dtype::Index, linear_thread(), arithmetic_.index(32), {true, true});
  return nullptr;
}

// ---- Memory

Value* DeviceEmitter::shared_block() {
  if (llvm::GlobalVariable* made = module_.getGlobalVariable("shared", true)) return made;
  const bool is_dynamic = kernel_.launch.shared_bytes > most_static_shared_bytes;
  auto* type =
      llvm::ArrayType::get(b_.getInt8Ty(), is_dynamic ? 0 : static_cast<std::uint64_t>((kernel_.launch.shared_bytes + 15) / 16 * 16));
  auto* made = new llvm::GlobalVariable(
      module_, type, false, is_dynamic ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
      is_dynamic ? nullptr : llvm::UndefValue::get(type), "shared", nullptr, llvm::GlobalValue::NotThreadLocal,
      shared_space);
  made->setAlignment(llvm::Align(static_cast<std::uint64_t>(std::max<std::int64_t>(kernel_.launch.align, 16))));
  return made;
}

Storage DeviceEmitter::declare_buffer(const Buffer& buffer) {
  Storage place;
  place.dtype = buffer.dtype;
  std::int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) {
    place.shape.push_back(integer(axis.extent));
    elements *= axis.extent;
  }
  llvm::Type* element = arithmetic_.memory_type(buffer.dtype);
  if (buffer.space == Space::Register) {
    place.is_private = true;
    place.address = stack_array(element, elements, buffer.name);
  } else if (buffer.offset) {
    place.address =
        b_.CreateInBoundsGEP(b_.getInt8Ty(), shared_block(), b_.getInt64(static_cast<std::uint64_t>(*buffer.offset)));
  } else {
    auto* type = llvm::ArrayType::get(element, static_cast<std::uint64_t>(elements));
    auto* made = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::UndefValue::get(type), "shared_" + c_name(buffer.name), nullptr,
                                          llvm::GlobalValue::NotThreadLocal, shared_space);
    made->setAlignment(llvm::Align(16));
    place.address = made;
  }
  return place;
}

bool DeviceEmitter::is_unrolled(const Loop& loop) const {
  if (loop.kind == LoopKind::Unroll || loop.kind == LoopKind::Vector) return true;
  if (loop.kind != LoopKind::Serial) internal_error("llvm: only serial, unroll and vector loops stand at thread stage");
  return false;
}

llvm::SyncScope::ID DeviceEmitter::atomic_scope() const {
  return module_.getContext().getOrInsertSyncScopeID("device");
}

// ---- libdevice

Value* DeviceEmitter::library_call(const std::string& name, Dtype dtype, const std::vector<Value*>& arguments) {
  llvm::Type* type = arithmetic_.type(dtype);
  auto* signature = llvm::FunctionType::get(type, std::vector<llvm::Type*>(arguments.size(), type), false);
  llvm::CallInst* call = b_.CreateCall(module_.getOrInsertFunction(name, signature), arguments);
  call->setDoesNotThrow();
  return call;
}

Value* DeviceEmitter::library_function(const FunctionInfo& function, Dtype dtype,
                                       const std::vector<Value*>& arguments) {
  const std::string name(dtype == Dtype::F64 ? function.libdevice_f64 : function.libdevice_f32);
  if (name.empty())
    throw MachineError(fmt::format("LLVM: libdevice has no `{}` of {}", function.name, info(dtype).name));
  return library_call(name, dtype, arguments);
}

Value* DeviceEmitter::remainder(Dtype dtype, Value* a, Value* b) {
  return library_call(dtype == Dtype::F64 ? "__nv_fmod" : "__nv_fmodf", dtype, {a, b});
}

void DeviceEmitter::tile_statement(const Stmt& stmt) {
  internal_error(fmt::format("llvm: `{}` does not stand at thread stage", print(stmt)));
}

}  // namespace tilewright
