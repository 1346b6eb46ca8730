// The state of printing one kernel as CUDA C; cuda_expr.cpp and cuda_stmt.cpp are its two halves.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/cuda_prelude.h"
#include "ir/instructions.h"
#include "ir/plan.h"

namespace tilewright {

// How tightly a printed expression binds, as in C.
enum class Binding : std::uint8_t {
  Conditional,
  Or,
  And,
  BitOr,
  BitXor,
  BitAnd,
  Equal,
  Compare,
  Shift,
  Add,
  Mul,
  Unary,
  Primary
};

struct CudaText {
  std::string text;
  Binding binding = Binding::Primary;
};

class CudaPrinter {
 public:
  CudaPrinter(const Plan& plan, const Kernel& kernel);
  KernelText print();

 private:
  // What a name that can be accessed stands for.
  struct Place {
    enum class Kind : std::uint8_t { Tensor, ByValue, Scalar, Array, Shared };
    Kind kind;
    Dtype dtype;
    std::vector<std::int64_t> extents;  // of the buffer's axes at thread stage: none, elements, or slots and elements
  };

  // ---- cuda.cpp: the frame
  void collect_names();
  void name(const std::string& ir_name);
  void find_written_tensors();
  std::string signature() const;
  std::string launch_comment() const;
  std::string thread_variables() const;
  std::string shared_declaration() const;

  // ---- cuda_stmt.cpp
  void print_block(const Block& block);
  void print_stmt(const Stmt& stmt);
  bool print_fill(const Loop& loop);
  void print_loop(const Loop& loop);
  void print_if(const If& node);
  void print_buffer(const Buffer& buffer);
  void print_let(const Let& let);
  void print_store(const Store& store);
  void print_instr(const Instr& instr);
  bool print_vector_access(const Instr& instr);  // cuda_instructions.cpp, as the next
  struct PtxCall;
  std::string instruction_function(const InstrInfo& row, const std::vector<Expr>& operands);
  void add_operand(PtxCall& call, const InstrInfo& row, std::size_t n, const Expr& operand);
  std::string descriptor(const std::vector<Expr>& operands);
  bool is_map(const std::string& ir_name) const;
  std::string atomic_call(const Store& store, const std::string& place, const std::string& value);
  void line(const std::string& text);
  void open(const std::string& head);  // a line that opens a brace
  void close(const std::string& tail = "}");

  // ---- cuda_expr.cpp
  CudaText expr(const Expr& e);
  std::string text(const Expr& e, Binding least = Binding::Conditional);  // in parentheses where it binds less
  CudaText unary_text(const Unary& node, Dtype dtype);
  CudaText binary_text(const Expr& e, const Binary& node);
  CudaText integer_arithmetic(const Binary& node, Dtype dtype);
  CudaText division(const Binary& node, Dtype dtype);
  CudaText cast_text(const Expr& operand, Dtype to);
  CudaText call_text(const Expr& e, const Call& node);
  CudaText float_function(const Expr& e, const Call& node);  // cuda_functions.cpp
  CudaText integer_function(const Expr& e, const Call& node);
  std::string instruction_call(const Expr& e, const Call& node);
  std::string convert(const std::string& value, Dtype from, Dtype to);  // one float or integer conversion, as a call
  std::string narrow_as_f32(const Expr& e);
  std::string typed(const Expr& e, Dtype dtype);  // a literal carries its type, so that an overload is found
  std::string access(const Access& access);
  std::string address(const Access& access);
  std::string type(Dtype dtype) const;
  const std::string& c_name_of(const std::string& ir_name) const;
  const Place& place_of(const std::string& buffer) const;
  bool is_nonnegative(const Expr& e) const;

  const Plan& plan_;
  const Kernel& kernel_;
  CudaPrelude prelude_;
  std::map<std::string, std::string> names_;  // IR name -> name in C
  std::set<std::string> taken_;
  std::map<std::string, Place> places_;
  std::set<std::string> nonnegative_;      // IR names
  std::set<std::string> written_;          // tensors that the kernel stores to
  std::set<std::string> index_variables_;  // thread.x, block.y, … that the body reads
  std::set<std::string> wide_arrays_;      // register arrays that a vector access touches
  std::string body_;
  int depth_ = 1;
  int line_ = 1;
  Span span_;
  std::vector<LineOrigin> origins_;
};

}  // namespace tilewright
