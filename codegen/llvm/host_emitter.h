// A tile-stage kernel as a function of the host: `parallel` and `grid` iterations first .. last, everything in them in
// order. Block buffers are arrays of the call; tile operations are their reference nests.
#pragma once

#include <map>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/host_nest.h"

namespace tilewright {

class HostEmitter final : public Emitter {
 public:
  // The function made is void name(ptr tensors, ptr dims, i64 first, i64 last, ptr error_word, ptr scratch).
  HostEmitter(const Plan& plan, const Kernel& kernel, llvm::Module& module);
  void emit(const HostNest& nest, const std::string& name);
  std::int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct PipeState {
    llvm::Value* next_in;
    llvm::Value* next_out;
    llvm::Value* in;
    llvm::Value* out;
    int slots;
  };
  struct ChainState {
    llvm::Value* total;   // of all iterations that have published
    llvm::Value* before;  // the same without the last of them
    Dtype dtype;
    CombineOp op;
  };

  llvm::Value* predefined(const std::string& name) override;
  llvm::Value* library_function(const FunctionInfo& function, Dtype dtype,
                                const std::vector<llvm::Value*>& arguments) override;
  llvm::Value* remainder(Dtype dtype, llvm::Value* a, llvm::Value* b) override;
  llvm::Value* instruction_value(const Expr& expr, const Call& call) override;
  void instruction(const Instr& instr) override;
  void tile_statement(const Stmt& stmt) override;
  Storage declare_buffer(const Buffer& buffer) override;
  bool is_unrolled(const Loop&) const override { return false; }
  llvm::SyncScope::ID atomic_scope() const override { return llvm::SyncScope::System; }

  void make_functions(const std::string& name);
  void bind_arguments();
  void iterate(const HostNest& nest);
  void pipe(const Pipe& node);
  void verb(const Verb& node);
  void chain(const Chain& node);
  void publish(const Publish& node);
  void lookback(const Lookback& node);
  llvm::Value* library_call(const std::string& name, Dtype dtype, const std::vector<llvm::Value*>& arguments);

  const Kernel& kernel_;
  std::vector<std::pair<std::string, TensorInfo>> tensors_;  // in the order of the call
  std::map<std::string, PipeState> pipes_;
  std::map<std::string, Layout> layouts_;  // of buffers, where they have one
  std::map<std::string, ChainState> chains_;
  llvm::Value* first_ = nullptr;
  llvm::Value* last_ = nullptr;
  llvm::Value* scratch_ = nullptr;
  std::int64_t stack_bytes_ = 0;
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace tilewright
