// compile_for_host: a tile-stage kernel through LLVM's ORC to machine code of this process.
#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <mutex>
#include <new>

#include "codegen/codegen.h"
#include "codegen/llvm/host_emitter.h"
#include "ir/diagnostic.h"

namespace tilewright {

namespace {

template <class T>
T expect(llvm::Expected<T> made, const char* what) {
  if (!made) throw MachineError(fmt::format("LLVM: {}: {}", what, llvm::toString(made.takeError())));
  return std::move(*made);
}
void expect(llvm::Error error, const char* what) {
  if (error) throw MachineError(fmt::format("LLVM: {}: {}", what, llvm::toString(std::move(error))));
}

llvm::orc::JITTargetMachineBuilder host_machine() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto machine = expect(llvm::orc::JITTargetMachineBuilder::detectHost(), "this machine is not known");
  machine.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;  // contraction was decided in the IR
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  return machine;
}

void optimise_for_host(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

constexpr std::size_t scratch_alignment = 64;
struct FreeScratch {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(scratch_alignment)); }
};

class OrcKernel final : public HostKernel {
 public:
  using Entry = void (*)(void* const*, const std::int64_t*, std::int64_t, std::int64_t, std::int64_t*, std::byte*);

  OrcKernel(const Plan& plan, std::vector<Axis> axes, std::unique_ptr<llvm::orc::LLJIT> jit, Entry entry,
            std::int64_t scratch_bytes)
      : axes_(std::move(axes)),
        jit_(std::move(jit)),
        entry_(entry),
        scratch_bytes_(static_cast<std::size_t>(scratch_bytes)) {
    for (const Dim& dim : plan.dims) dims_.push_back(dim.name);
  }

  std::int64_t iterations(const std::vector<std::int64_t>& dims) const override {
    std::vector<std::pair<std::string, std::int64_t>> names;
    for (std::size_t n = 0; n < dims_.size(); ++n) names.emplace_back(dims_[n], dims.at(n));
    std::int64_t product = 1;
    for (const Axis& axis : axes_) {
      const std::int64_t low = axis.lo ? evaluate_index(axis.lo, names) : 0;
      const std::int64_t step = axis.step ? evaluate_index(axis.step, names) : 1;
      const std::int64_t extent = evaluate_index(axis.hi, names) - low;
      product *= extent <= 0 ? 0 : (extent + step - 1) / step;
    }
    return product;
  }

  void run(const std::vector<void*>& tensors, const std::vector<std::int64_t>& dims, std::int64_t first,
           std::int64_t last, std::int64_t* error_word) const override {
    std::unique_ptr<std::byte[], FreeScratch> scratch;
    if (scratch_bytes_ > 0)
      scratch.reset(static_cast<std::byte*>(::operator new[](scratch_bytes_, std::align_val_t(scratch_alignment))));
    entry_(tensors.data(), dims.data(), first, last, error_word, scratch.get());
  }

 private:
  std::vector<std::string> dims_;
  std::vector<Axis> axes_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  Entry entry_;
  std::size_t scratch_bytes_;
};

}  // namespace

std::unique_ptr<HostKernel> compile_for_host(const Plan& plan, const Kernel& kernel) {
  auto machine_builder = host_machine();
  auto machine = expect(machine_builder.createTargetMachine(), "no machine for this processor");
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>(kernel.name, *context);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());

  const HostNest nest = host_nest(plan, kernel);
  const std::string name = "tilewright." + c_name(kernel.name);
  HostEmitter emitter(plan, kernel, *module);
  emitter.emit(nest, name);
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", machine->getTargetCPU());
    function.addFnAttr("target-features", machine->getTargetFeatureString());
  }
  std::string faults;
  llvm::raw_string_ostream stream(faults);
  if (llvm::verifyModule(*module, &stream))
    internal_error(fmt::format("llvm: kernel `{}` gave a module that does not verify: {}", kernel.name, faults));
  optimise_for_host(*module, *machine);

  auto jit = expect(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine_builder)).create(),
                    "the JIT cannot start");
  // libm and what LLVM calls itself (memset, memcpy).
  jit->getMainJITDylib().addGenerator(
      expect(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit->getDataLayout().getGlobalPrefix()),
             "the symbols of this process"));
  expect(jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))), "the module");
  const auto entry = expect(jit->lookup(name), "the kernel's function").toPtr<OrcKernel::Entry>();
  return std::make_unique<OrcKernel>(plan, nest.axes, std::move(jit), entry, emitter.scratch_bytes());
}

}  // namespace tilewright
