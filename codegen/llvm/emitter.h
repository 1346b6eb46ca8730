// Emits LLVM IR for what both stages of a kernel share: expressions, accesses, loops, conditions, stores, atomics. The
// device and the host derive from it and say what differs: names that they predefine, library functions, buffers, and
// the statements that only one of them has.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/arithmetic.h"
#include "ir/operators.h"
#include "ir/plan.h"

namespace tilewright {

// A name that can be accessed: a tensor, a scalar passed by value, a buffer.
struct Storage {
  llvm::Value* address = nullptr;  // of the first element; null where the place is a value
  llvm::Value* value = nullptr;    // a scalar passed by value
  Dtype dtype = Dtype::F32;
  std::vector<Expr> shape;
  bool is_read_only = false;  // nobody writes it while the kernel runs
  bool is_private = false;    // a thread's own: reading it is never dangerous
};

class Emitter {
 public:
  virtual ~Emitter() = default;
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

 protected:
  Emitter(const Plan& plan, llvm::Module& module, unsigned index_bits, NativeNarrow native);

  // ---- What a target says.
  // The value of a name that nobody declared (`thread.x`); null where there is none.
  virtual llvm::Value* predefined(const std::string& name) = 0;
  // A function of the table that needs a library, on f32 or f64.
  virtual llvm::Value* library_function(const FunctionInfo& function, Dtype dtype,
                                        const std::vector<llvm::Value*>& arguments) = 0;
  // C's fmod on f32 or f64: exact, with the sign of `a`.
  virtual llvm::Value* remainder(Dtype dtype, llvm::Value* a, llvm::Value* b) = 0;
  virtual llvm::Value* instruction_value(const Expr& expr, const Call& call) = 0;
  virtual void instruction(const Instr& instr) = 0;
  // Whether the statement may join what instructions before it have left open; settle() emits what is open.
  virtual bool joins(const Stmt&) const { return false; }
  virtual void settle() {}
  virtual void tile_statement(const Stmt& stmt) = 0;
  virtual Storage declare_buffer(const Buffer& buffer) = 0;
  // Whether the emitter copies the body of such a loop, the variable a constant.
  virtual bool is_unrolled(const Loop& loop) const = 0;
  virtual llvm::SyncScope::ID atomic_scope() const = 0;
  // `condition ? chosen : old` for a register that keeps its place either way.
  virtual llvm::Value* pick(llvm::Value* condition, llvm::Value* chosen, llvm::Value* old) {
    return b_.CreateSelect(condition, chosen, old);
  }

  // ---- emitter_expr.cpp
  llvm::Value* value(const Expr& expr);
  llvm::Value* wide_integer(const Expr& expr);  // an integer as i64, before any cut to the width of Index
  llvm::Value* conjunction(const std::vector<Expr>& conditions);  // null for none
  bool is_nonnegative(const Expr& expr) const;
  // Whether evaluating it without need could read what must not be read, or report.
  bool is_dangerous(const Expr& expr) const;
  // `condition ? if_true() : if_false()` by branches.
  llvm::Value* choose(llvm::Value* condition, const std::function<llvm::Value*()>& if_true,
                      const std::function<llvm::Value*()>& if_false);
  void when(llvm::Value* condition, const std::function<void()>& body);  // null condition: always

  // ---- emitter_access.cpp
  const Storage& storage_of(const std::string& buffer) const;
  llvm::Value* load(const Access& access);
  void store(const Store& store);
  void store_to(const Access& target, const std::function<llvm::Value*()>& value, std::optional<CombineOp> atomic);
  // The address of an element whose rule, if any, is not asked.
  llvm::Value* address_of(const Access& access);
  void report(int site, llvm::Value* seen);  // seen: i64

  // ---- emitter_stmt.cpp
  void block(const Block& body);
  void statement(const Stmt& stmt);
  // `stays`: LLVM must not unroll or peel the loops.
  void nest(const std::vector<Axis>& axes, bool unrolled, const std::function<void()>& body, bool stays = false);
  // A real loop; `body` gets the variable's value.
  void counted_loop(llvm::Value* first, llvm::Value* past, llvm::Value* step, const std::string& name,
                    const std::function<void(llvm::Value*)>& body, bool stays = false);

  // ---- Names. A name lives until the scope that declared it ends.
  void in_scope(const std::function<void()>& body);
  void define(const std::string& name, llvm::Value* value, bool is_nonnegative);
  void define_storage(const std::string& name, Storage place);
  bool is_defined(const std::string& name) const { return names_.count(name) != 0; }
  llvm::Value* named(const std::string& name);
  llvm::AllocaInst* stack_array(llvm::Type* element, std::int64_t count, const std::string& name);
  llvm::BasicBlock* new_block(const char* name);

  const Plan& plan_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  Arithmetic arithmetic_;
  llvm::Function* function_ = nullptr;
  llvm::Value* error_word_ = nullptr;
  llvm::DISubprogram* subprogram_ = nullptr;  // set where lines are kept
  std::vector<Span> lines_;                   // line n of the debug locations is lines_[n - 1]

 private:
  struct Name {
    llvm::Value* value = nullptr;
    bool is_nonnegative = false;
  };

  // emitter_expr.cpp
  llvm::Value* binary_value(const Binary& node);
  llvm::Value* select_value(const Select& node);
  llvm::Value* call_value(const Expr& expr, const Call& node);
  llvm::Value* function_value(const Expr& expr, const Call& node, const FunctionInfo& function);
  llvm::Value* within(const Call& node);

  // emitter_access.cpp
  std::vector<llvm::Value*> indices(const Access& access);
  // True where every index is in its range; also the first that is not, as i64 (only if asked for).
  llvm::Value* in_range(const Access& access, const Storage& place, llvm::Value** offender);
  llvm::Value* is_nonempty(const std::vector<Expr>& sides);
  std::vector<llvm::Value*> folded_indices(const Access& access, const Storage& place);  // clamp, wrap, mirror
  llvm::Value* element_address(const Storage& place, const std::vector<llvm::Value*>& index);
  std::vector<Expr> extents(const Access& access, const Storage& place) const;
  llvm::Value* read(const Storage& place, llvm::Value* address);
  void write(const Storage& place, llvm::Value* address, llvm::Value* value);
  void combine_into(const Storage& place, llvm::Value* address, CombineOp op, llvm::Value* value);
  void swap_loop(const Storage& place, llvm::Value* address, CombineOp op, llvm::Value* value);
  llvm::Function* report_function();

  // emitter_stmt.cpp
  void axis_loop(const std::vector<Axis>& axes, std::size_t axis, bool unrolled, const std::function<void()>& body,
                 bool stays);
  void let(const Let& node);
  bool sets_registers(const Block& body) const;
  void set_line(const Span& span);

  std::unordered_map<std::string, Name> names_;
  std::unordered_map<std::string, Storage> storages_;
  std::vector<std::function<void()>> undo_;
  llvm::Value* choice_ = nullptr;  // inside a conditional fill of registers: whether a write happens
};

}  // namespace tilewright
