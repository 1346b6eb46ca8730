// A thread-stage kernel as an NVPTX module: the entry with its parameters and launch bounds, index variables, shared
// memory, libdevice calls, and the instructions of ir/instructions.h.
#pragma once

#include <map>
#include <memory>

#include "codegen/llvm/emitter.h"
#include "ir/instructions.h"

namespace tilewright {

class DeviceEmitter final : public Emitter {
 public:
  // `sm`: the number in the architecture's name, 90 for sm_90a. `keeps_lines`: statements leave debug locations; line n
  // of them stands for lines()[n - 1].
  DeviceEmitter(const Plan& plan, const Kernel& kernel, llvm::Module& module, int sm, bool keeps_lines);
  void emit();
  const std::vector<Span>& lines() const { return lines_; }

 private:
  llvm::Value* predefined(const std::string& name) override;
  llvm::Value* library_function(const FunctionInfo& function, Dtype dtype,
                                const std::vector<llvm::Value*>& arguments) override;
  llvm::Value* remainder(Dtype dtype, llvm::Value* a, llvm::Value* b) override;
  llvm::Value* instruction_value(const Expr& expr, const Call& call) override;
  void instruction(const Instr& instr) override;
  bool joins(const Stmt& stmt) const override;
  void settle() override;
  void tile_statement(const Stmt& stmt) override;
  Storage declare_buffer(const Buffer& buffer) override;
  bool is_unrolled(const Loop& loop) const override;
  llvm::SyncScope::ID atomic_scope() const override;
  llvm::Value* pick(llvm::Value* condition, llvm::Value* chosen, llvm::Value* old) override;

  void find_written_tensors();
  void make_entry();
  void bind_arguments();
  void keep_lines();
  llvm::Value* special_register(llvm::Intrinsic::ID intrinsic);
  llvm::Value* linear_thread();
  llvm::Value* library_call(const std::string& name, Dtype dtype, const std::vector<llvm::Value*>& arguments);
  llvm::Value* shared_block();

  // device_instructions.cpp
  llvm::Value* inline_ptx(const InstrInfo& row, const std::vector<Expr>& operands, std::optional<Dtype> result);
  struct PtxCall;
  void add_operand(PtxCall& call, const InstrInfo& row, std::size_t n, const Expr& operand);
  void add_array(PtxCall& call, const InstrInfo& row, std::size_t n, const Access& access, std::int64_t elements);
  static bool is_target(const InstrInfo& row, std::size_t n);
  bool continues(const PtxCall& open, const InstrInfo& row, const std::vector<Expr>& operands);
  static void add_text(PtxCall& call, std::string_view text);
  llvm::Value* emit(const PtxCall& call);
  llvm::Value* operand_of(const Expr& operand, std::string& constraint);
  llvm::Value* descriptor(const std::vector<Expr>& operands);
  llvm::Value* shuffled(const Call& call);
  void vector_access(const Instr& instr, unsigned elements);

  const Kernel& kernel_;
  int sm_;
  bool keeps_lines_;
  std::vector<std::string> written_;
  bool writes_inout_ = false;
  std::shared_ptr<PtxCall> open_;  // wgmma instructions one after the other, not emitted yet
  std::map<std::string, llvm::Value*> maps_;  // tensor maps: the address of each parameter
};

}  // namespace tilewright
