// From a thread-stage kernel to a flat instruction list for one call: dims, addresses and what follows from them are constants.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/stmt.h"
#include "runtime/sim/machine.h"

namespace tilewright {

struct SimEnvironment {
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::map<std::string, GlobalTensor*> tensors;
  bool checks = true;
  std::vector<int> ir_lines;  // of the kernel's statements in the order of printing; empty: not asked for
  bool counts = false;        // KernelProgram says what the counters have to know
};

// Throws UserError `unsupported: …` for what the simulator does not execute.
KernelProgram compile_for_simulator(const Plan& plan, const Kernel& kernel, const SimEnvironment& environment);

// A value behind the steps emitted so far.
struct LaneValue {
  Operand at;
  bool is_register = false;        // lies in a register that a later store may change
  std::optional<Scalar> constant;  // known now

  Dtype dtype() const { return at.dtype; }
  bool is_uniform() const { return at.is_uniform; }
};

class KernelCompiler {
 public:
  KernelCompiler(const Plan& plan, const Kernel& kernel, const SimEnvironment& environment);
  KernelProgram compile();

  // ---- For the instructions of runtime/sim/instructions.cpp.
  LaneValue value(const Expr& expr);
  // The element that a place in memory names; fails for a register.
  MemorySite& memory_site(const Access& access, Operand& element);
  RegisterSite& register_site(const Access& access, Operand& element);
  BarrierSite barrier_site(const Access& access);
  const MapInfo& tensor_map(const Expr& expr) const;
  bool is_register_buffer(const std::string& name) const;
  KernelProgram& program() { return program_; }
  WarpOp& emit(WarpOp::Run run);
  // The step emitted last is counted: as an instruction, as an access (a thread moves `width` elements), as a branch.
  void count_as(std::string kind);
  void count_access(AccessKind kind, const Access& access, const MemorySite& memory, int width = 1, const MapInfo* map = nullptr);
  void count_branch(std::string text);
  Operand new_operand(Dtype dtype, bool is_uniform);
  [[noreturn]] void unsupported(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what, Span span) const;
  // The statement is wrong, whatever the values.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  struct RegisterBuffer {
    RegisterSite site;  // without text and index
    std::vector<std::int64_t> extents;
  };
  struct SharedBuffer {
    Dtype dtype;
    std::int64_t offset;
    std::int64_t first_object;  // of an mbarrier
    std::vector<std::int64_t> extents;
  };
  using Symbol = std::variant<LaneValue, RegisterBuffer, SharedBuffer>;
  struct Scope {
    std::size_t symbols;
    std::uint32_t cells;
  };

  void header();
  void find_names();
  void tensor_maps();
  void note_shared(const Buffer& buffer);
  void place_shared(const Buffer& buffer, std::int64_t& offset);

  // ---- Statements (compiler.cpp)
  void body(const Block& statements);
  void statement(const Stmt& stmt);
  void loop(const Loop& node, std::size_t axis);
  void branch(const If& node);
  void buffer(const Buffer& node);
  void let(const Let& node);
  void store(const Store& node);
  void store_value(const Store& node);

  // ---- Expressions (compile_expr.cpp)
  LaneValue constant(Scalar value, Dtype dtype);
  LaneValue variable(const Var& node);
  LaneValue unary(const Unary& node, Dtype dtype);
  LaneValue binary(const Binary& node, Dtype dtype);
  LaneValue logical(const Binary& node);
  LaneValue select(const Select& node, Dtype dtype);
  LaneValue cast(const Cast& node, Dtype dtype);
  LaneValue call(const Call& node, Dtype dtype);
  LaneValue within(const Call& node);
  LaneValue load(const Load& node);
  LaneValue convert(const LaneValue& value, Dtype dtype);
  LaneValue binary_of(BinaryOp op, const LaneValue& a, const LaneValue& b, Dtype dtype);
  // The same value where no store can change it.
  LaneValue settled(const LaneValue& value);
  void move(Operand to, const LaneValue& from);
  // The flat element of an access, from its indices.
  Operand flat_index(const Access& access, const std::vector<std::int64_t>& extents, std::vector<Operand>& index);
  // Whether all lanes get one value, and whether evaluating it anywhere is harmless.
  bool is_uniform(const Expr& expr) const;
  bool is_pure(const Expr& expr) const;

  const Symbol* find(const std::string& name) const;
  void declare(const std::string& name, Symbol symbol) { symbols_.emplace_back(name, std::move(symbol)); }
  Scope enter() const { return {symbols_.size(), next_cell_}; }
  void leave(const Scope& scope);
  void find_asynchronous();
  std::uint32_t statement_number();
  void skip(const Block& statements);
  std::size_t position() const { return program_.code.size(); }
  // The step at `from` jumps to the next one emitted.
  void land(std::size_t from) { program_.code[from].jump = static_cast<std::int32_t>(position()) - static_cast<std::int32_t>(from); }
  void land_at(std::size_t from, std::size_t target) { program_.code[from].jump = static_cast<std::int32_t>(target) - static_cast<std::int32_t>(from); }

  const Plan& plan_;
  const Kernel& kernel_;
  const SimEnvironment& environment_;
  KernelProgram program_;
  std::vector<std::pair<std::string, Symbol>> symbols_;
  std::map<std::pair<std::int64_t, int>, Cell> constants_;
  std::map<std::string, int> accumulators_;  // arrays that wgmma works on, numbered from 1
  std::map<const void*, std::int64_t> shared_offsets_;  // of buffers without an offset of their own
  std::map<const void*, std::int64_t> first_objects_;   // of buffers of mbarriers
  std::uint32_t constant_end_ = 0;  // bytes of constants so far; they have `first_cell_` bytes at most
  std::uint32_t next_cell_ = 0;
  std::vector<LoopName> loops_;  // around the statement
  std::size_t next_statement_ = 0;  // in the order of printing
  int ir_line_ = 0;
  Span span_;
  std::string text_;  // of the statement, for messages
};

}  // namespace tilewright
