// How a tile-stage kernel becomes a flat program.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "ir/reference_nest.h"
#include "runtime/interpreter_machine.h"
#include "runtime/slot_program.h"

namespace tilewright {

// What the instructions of one kernel point to.
struct InterpreterObjects {
  std::vector<std::unique_ptr<CheckedMemory>> buffers;
  std::vector<std::unique_ptr<CheckedSite>> sites;
  std::vector<std::unique_ptr<PipeState>> pipes;
  std::vector<std::unique_ptr<ChainState>> chains;
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<std::unique_ptr<LoopState>> loops;
  std::vector<std::unique_ptr<RoleGroup>> roles;
};

class InterpreterCompiler : public SlotCompiler {
 public:
  InterpreterCompiler(const std::map<std::string, CheckedMemory*>& tensors, const std::map<std::string, std::int64_t>& dims,
                      const InterpreterOptions& options, InterpreterObjects& objects)
      : SlotCompiler(FloatMode::Typed, false), tensors_(tensors), dims_(dims), options_(options), objects_(objects) {}

  SlotProgram compile_kernel(const Kernel& kernel);

 private:
  // A name in scope: a value, a scalar register (with the slot that says whether it was written), or a buffer.
  struct Symbol {
    enum class Kind : std::uint8_t { Value, Scalar, Buffer, Pipe, Chain };
    Kind kind = Kind::Value;
    Slot slot = 0;
    Slot is_written = 0;
    std::size_t each_depth = 0;  // of the declaration
    CheckedMemory* memory = nullptr;
    PipeState* pipe = nullptr;
    ChainState* chain = nullptr;
    Dtype dtype = Dtype::Index;
    std::shared_ptr<const Layout> layout = nullptr;  // of a buffer, where it has one
  };

  Slot variable(const std::string& name, const Expr& expr) override;
  Slot load(const Load& load, const Expr& expr) override;
  Slot reduce(const Reduce& reduce, const Expr& expr) override;
  Slot special_call(const Call& call, const Expr& expr) override;

  // ---- Names
  void declare(const std::string& name, Symbol symbol);
  const Symbol* find(const std::string& name) const;
  const Symbol& need(const std::string& name, Symbol::Kind kind, Span span) const;
  void leave_names(std::size_t mark);
  CheckedMemory* find_memory(const std::string& name) const;
  CheckedMemory& need_memory(const std::string& name, Span span) const;

  // ---- Statements (interpreter_compiler.cpp)
  void compile_body(const Block& body);
  // Takes the statements of roles at `at` and behind, and moves `at` behind them; false where those there are none of several.
  bool compile_roles(const Block& body, std::size_t& at);
  void compile_statement(const Stmt& stmt);
  void compile_loop(const Loop& loop, std::size_t axis);
  void compile_buffer(const Buffer& buffer, Span span);
  void compile_let(const Let& let, Span span);
  void compile_store(const Store& store, Span span);
  // Conditions: jumps to be landed where one does not hold.
  std::vector<std::size_t> emit_conditions(const std::vector<Expr>& conditions);
  // target = value by the target's rule; a scalar register or an element.
  void emit_store(const Access& target, Slot value, Dtype dtype, const std::optional<CombineOp>& atomic, Span span);
  CheckedSite* make_site(const Access& access, Span span);
  const std::string* text(std::string value);

  // ---- Tile operations, pipes, chains (interpreter_tile.cpp)
  // A tile operation is its reference nest.
  template <class Operation>
  void compile_nest(const Operation& operation);
  NestNames nest_names() const;
  void compile_pipe(const Pipe& pipe, Span span);
  void compile_verb(const Verb& verb, Span span);
  void emit_pipe_ends();
  void compile_chain(const Chain& chain);
  void compile_publish(const Publish& publish, Span span);
  void compile_lookback(const Lookback& lookback, Span span);

  const std::map<std::string, CheckedMemory*>& tensors_;
  const std::map<std::string, std::int64_t>& dims_;
  const InterpreterOptions& options_;
  InterpreterObjects& objects_;
  std::map<std::string, std::vector<Symbol>> symbols_;
  std::vector<std::string> declared_;
  std::size_t each_depth_ = 0;  // `each` loops around
  // Buffers that an `each` writes, and those that one both reads and writes.
  std::set<std::string> written_in_each_;
  std::set<std::string> exchanged_in_each_;
};

// Names of buffers and tensors that statements write and read.
void collect_accesses(const Block& body, std::set<std::string>& written, std::set<std::string>& read);

}  // namespace tilewright
