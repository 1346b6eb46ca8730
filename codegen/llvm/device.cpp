// print_ptx and print_llvm: builds the module, links what it needs of libdevice, optimises, and lets LLVM's NVPTX
// backend print it.
#include <fmt/format.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <charconv>
#include <map>
#include <mutex>

#include "codegen/codegen.h"
#include "codegen/llvm/device_emitter.h"
#include "ir/diagnostic.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tilewright {

namespace {

constexpr const char* triple = "nvptx64-nvidia-cuda";

int sm_number(const std::string& arch) {
  int number = 0;
  const bool is_known =
      arch.starts_with("sm_") && std::from_chars(arch.data() + 3, arch.data() + arch.size(), number).ec == std::errc();
  if (!is_known || number < 70)
    throw MachineError(fmt::format("LLVM: `{}` is not an architecture that code is generated for", arch));
  return number;
}

std::unique_ptr<llvm::TargetMachine> device_machine(const std::string& arch) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  const llvm::Triple target_triple(triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(target_triple, error);
  if (target == nullptr) throw MachineError("LLVM: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // contraction was decided in the IR
  // The oldest PTX ISA that knows the architecture, for the oldest driver that could load it; 8.3 at least, which can say
  // that of three neighbours loaded as four the last is not in use (`.pragma "used_bytes_mask"`).
  const char* features = sm_number(arch) >= 100 ? "+ptx87" : "+ptx83";
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      target_triple, arch, features, options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (machine == nullptr) throw MachineError(fmt::format("LLVM: no NVPTX machine for `{}`", arch));
  return machine;
}

// libdevice stays in memory; each module parses only the functions that it needs.
const llvm::MemoryBuffer& libdevice_buffer(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>> buffers;
  const std::lock_guard lock(mutex);
  auto& slot = buffers[path];
  if (slot == nullptr) {
    auto read = llvm::MemoryBuffer::getFile(path, false, false);
    if (!read)
      throw MachineError(
          fmt::format("LLVM: a kernel calls mathematical functions, but libdevice (`{}`) cannot be read: {}", path,
                      read.getError().message()));
    slot = std::move(*read);
  }
  return *slot;
}

void link_libdevice(llvm::Module& module, const std::string& path) {
  bool is_needed = false;
  for (const llvm::Function& function : module)
    is_needed = is_needed || (function.isDeclaration() && function.getName().starts_with("__nv_"));
  if (!is_needed) return;
  if (path.empty())
    throw MachineError(
        "LLVM: a kernel calls mathematical functions, and libdevice.10.bc was not found (it is part of the CUDA "
        "toolkit)");
  auto library = llvm::getLazyBitcodeModule(libdevice_buffer(path).getMemBufferRef(), module.getContext());
  if (!library) throw MachineError("LLVM: libdevice: " + llvm::toString(library.takeError()));
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  const bool failed = llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded,
                                                [](llvm::Module& linked, const llvm::StringSet<>& names) {
                                                  llvm::internalizeModule(linked, [&](const llvm::GlobalValue& made) {
                                                    return !made.hasName() || names.count(made.getName()) == 0;
                                                  });
                                                });
  if (failed) throw MachineError("LLVM: libdevice could not be linked");
  module.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0U);
}

// A switch that has all cases goes to the last of them by default. LLVM prints the default that it proved impossible as a
// branch to `exit`, and ptxas, which sees a way out of the kernel there, waits for all wgmmas in front of it.
void close_switches(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function) {
      auto* node = llvm::dyn_cast<llvm::SwitchInst>(block.getTerminator());
      if (node == nullptr || node->getNumCases() == 0 || !llvm::isa<llvm::UnreachableInst>(node->getDefaultDest()->front())) continue;
      const auto last = std::prev(node->case_end());
      llvm::BasicBlock* target = last->getCaseSuccessor();
      node->removeCase(last);  // its way to `target`, and with it the phis' entries, becomes the default's
      node->setDefaultDest(target);
    }
}

// Whether `value` is, or a cast, choice or loop carries to it, a result of the intrinsic `id`.
bool comes_from(llvm::Intrinsic::ID id, const llvm::Value* value, llvm::SmallPtrSetImpl<const llvm::Value*>& seen) {
  if (!seen.insert(value).second) return false;
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value)) return call->getIntrinsicID() == id;
  if (!llvm::isa<llvm::CastInst, llvm::PHINode, llvm::SelectInst>(value)) return false;
  return llvm::any_of(llvm::cast<llvm::User>(value)->operands(),
                      [&](const llvm::Use& operand) { return comes_from(id, operand.get(), seen); });
}

// ptxas 13.0 makes one instruction of three operands of max(max(a, -b), c), and drops the minus; so with min, with 16
// bits, from sm_90 on. It does not touch unsigned ones: the outer of two is taken of unsigned numbers of the same order.
// After all other passes, which could undo it.
void part_signed_chains(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> outer;
  for (llvm::Function& function : module)
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call == nullptr || !call->getType()->isIntegerTy() || call->getType()->getIntegerBitWidth() > 32) continue;
      const llvm::Intrinsic::ID id = call->getIntrinsicID();
      if (id != llvm::Intrinsic::smin && id != llvm::Intrinsic::smax) continue;
      llvm::SmallPtrSet<const llvm::Value*, 8> seen;
      if (comes_from(id, call->getArgOperand(0), seen) || comes_from(id, call->getArgOperand(1), seen)) outer.push_back(call);
    }
  for (llvm::IntrinsicInst* call : outer) {
    llvm::IRBuilder<> builder(call);
    llvm::Value* sign = llvm::ConstantInt::get(call->getType(), llvm::APInt::getSignMask(call->getType()->getIntegerBitWidth()));
    const bool is_min = call->getIntrinsicID() == llvm::Intrinsic::smin;
    llvm::Value* of_unsigned = builder.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax,
                                                             builder.CreateXor(call->getArgOperand(0), sign),
                                                             builder.CreateXor(call->getArgOperand(1), sign));
    call->replaceAllUsesWith(builder.CreateXor(of_unsigned, sign));
    call->eraseFromParent();
  }
}

// Vectorisers are left out: what is one access is decided in the IR.
void optimise_for_device(llvm::Module& module, llvm::TargetMachine& machine, int sm) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  close_switches(module);
  if (sm >= 90) part_signed_chains(module);
}

struct DeviceModule {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
  std::vector<Span> lines;
};

std::unique_ptr<DeviceModule> build(const Plan& plan, const Kernel& kernel, const std::string& arch,
                                    const std::string& libdevice_path, bool keeps_lines) {
  auto made = std::make_unique<DeviceModule>();
  made->machine = device_machine(arch);
  made->context.setDiscardValueNames(keeps_lines);  // names are for readers of LLVM IR
  made->module = std::make_unique<llvm::Module>(kernel.name, made->context);
  made->module->setTargetTriple(llvm::Triple(triple));
  made->module->setDataLayout(made->machine->createDataLayout());
  DeviceEmitter emitter(plan, kernel, *made->module, sm_number(arch), keeps_lines);
  emitter.emit();
  made->lines = emitter.lines();
  std::string faults;
  llvm::raw_string_ostream stream(faults);
  if (llvm::verifyModule(*made->module, &stream))
    internal_error(fmt::format("llvm: kernel `{}` gave a module that does not verify: {}", kernel.name, faults));
  link_libdevice(*made->module, libdevice_path);
  optimise_for_device(*made->module, *made->machine, sm_number(arch));
  return made;
}

// Takes the `.loc` lines and the marks of debug information out of PTX and says instead which line of the rest stems
// from where.
KernelText without_directives(const std::string& name, std::string_view ptx, const std::vector<Span>& spans) {
  KernelText result{name, {}, {}};
  result.text.reserve(ptx.size());
  Span current;
  int line = 1;
  while (!ptx.empty()) {
    const std::string_view text = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(ptx.size(), text.size() + 1));
    const std::size_t start = text.find_first_not_of(" \t");
    const std::string_view body = start == std::string_view::npos ? std::string_view() : text.substr(start);
    const bool is_mark = body.starts_with(".file") || body.starts_with(".section") || body.starts_with("$L__tmp") ||
                         body.starts_with("$L__func_");
    if (is_mark) continue;
    if (body.starts_with(".loc\t")) {
      // `.loc 1 LINE COLUMN`
      std::size_t number = 0;
      const std::size_t at =
          body.find_first_of("0123456789", body.find_first_of(" \t", body.find_first_of("0123456789")));
      if (at != std::string_view::npos) std::from_chars(body.data() + at, body.data() + body.size(), number);
      current = number > 0 && number <= spans.size() ? spans[number - 1] : Span{};
      continue;
    }
    const bool is_instruction = body.size() > 1 && (body.back() == ';' || body.back() == '}');  // `{ …; }`: of the table
    if (current.is_known() && is_instruction) result.lines.push_back({line, current});
    result.text.append(text).push_back('\n');
    ++line;
  }
  return result;
}

}  // namespace

KernelText print_ptx(const Plan& plan, const Kernel& kernel, const std::string& arch,
                     const std::string& libdevice_path) {
  const auto made = build(plan, kernel, arch, libdevice_path, true);
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream stream(ptx);
  llvm::legacy::PassManager passes;
  if (made->machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw MachineError("LLVM: the NVPTX backend cannot print PTX");
  passes.run(*made->module);
  KernelText text = without_directives(c_name(kernel.name), ptx.str(), made->lines);
  if (const std::size_t at = text.text.find(".extern .func"); at != std::string::npos) {
    const std::string callee = text.text.substr(at, text.text.find('\n', at) - at);
    throw MachineError(
        fmt::format("LLVM: kernel `{}` calls a function that the device does not have: {}", kernel.name, callee));
  }
  return text;
}

std::string print_llvm(const Plan& plan, const Kernel& kernel, const std::string& arch,
                       const std::string& libdevice_path) {
  const auto made = build(plan, kernel, arch, libdevice_path, false);
  std::string text;
  llvm::raw_string_ostream stream(text);
  made->module->print(stream, nullptr);
  return text;
}

}  // namespace tilewright
