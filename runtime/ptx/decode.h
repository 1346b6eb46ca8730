// From a parsed module to the operations of one kernel.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/diagnostic.h"
#include "runtime/ptx/machine.h"
#include "runtime/ptx/module.h"

namespace tilewright::ptx {

// An instruction that the machine does not have. Not a fault of the kernel.
class Unsupported : public MachineError {
 public:
  using MachineError::MachineError;
};

// The address of a variable of the module; given by whoever placed them.
using AddressOf = std::function<std::uint64_t(const std::string&)>;

// Throws Unsupported, or MachineError for PTX that is none.
KernelProgram decode_kernel(const Module& module, const std::string& name, const AddressOf& address_of);

// What the decoders of instructions work with.
class Builder {
 public:
  Builder(const Module& module, KernelProgram& program, const AddressOf& address_of) : module_(module), program_(program), address_of_(address_of) {}
  void build(const Function& kernel);

  // The row of an operand as a value of so many bits; 1 for a predicate. Wider registers are narrowed first.
  Row read(const Operand& operand, int bits);
  Row read(const Instruction& instruction, std::size_t operand, int bits);
  // The row that takes a result. A wider register gets it extended behind the operation.
  Row write(const Operand& operand, int bits, bool extends_sign = false);
  Row write(const Instruction& instruction, std::size_t operand, int bits, bool extends_sign = false);
  Row constant(std::uint64_t value, int bits);
  Row scratch(int bits);
  Op& add(Op::Run run);

  // The address in an operand in brackets: the row of its base (64 bits; 0 for none), and the rest as a number.
  Row address(const Operand& operand, Space space, std::int64_t& offset);
  // A parameter of a call, or a local variable: it lies in local memory.
  bool is_local_variable(const Operand& operand) const;
  // What an operation points at lives as long as the program.
  template <class T>
  const T* keep_object(T object) {
    auto kept = std::make_shared<const T>(std::move(object));
    program_.objects.push_back(kept);
    return kept.get();
  }

  [[noreturn]] void unsupported(std::string_view why = {}) const;
  // The last word of an instruction that names a type; Unsupported where there is none.
  Type type_of(const Instruction& instruction) const;
  const Function& function() const { return *function_; }
  void call(const Instruction& instruction);
  // The last operation goes to a label.
  void jump_to(const std::string& label) { jumps_.emplace_back(static_cast<std::uint32_t>(program_.code.size()) - 1, label); }

 private:
  struct Placed {
    std::vector<Row> registers;
    std::vector<std::int64_t> locals;  // offsets of params and local variables in local memory; shared: in shared memory
    Row return_row = 0;
    std::uint32_t entry = 0;
  };
  struct Widening {
    Row from, to;
    int from_bits, to_bits;
    bool is_signed;
  };

  void place_shared(const Function& kernel);
  void collect(const Function& function, std::vector<const Function*>& order, std::vector<const Function*>& path);
  void decode(const Function& function);
  void decode(const Instruction& instruction);
  Row new_row(int bits);
  Row special(const std::string& name, int bits);
  std::uint64_t symbol_value(const Operand& operand) const;
  std::int64_t local_place(const Operand& operand) const;
  void copy_local(std::int64_t from, std::int64_t to, std::int64_t bytes);

  const Module& module_;
  KernelProgram& program_;
  const AddressOf& address_of_;
  const Function* function_ = nullptr;
  const Function* kernel_ = nullptr;
  const Instruction* instruction_ = nullptr;
  std::map<const Function*, Placed> placed_;
  std::vector<std::pair<std::string, std::int64_t>> shared_places_;  // of the module's shared variables
  std::map<std::pair<int, std::uint64_t>, Row> constants_;
  std::map<std::string, Row> special_rows_;
  std::vector<std::pair<Row, std::uint64_t>> constant_values_;
  std::map<Row, int> constant_bits_;
  std::vector<Widening> widenings_;
  std::vector<std::pair<std::uint32_t, std::string>> jumps_;
  std::uint32_t next_row_ = 8 * lane_count;  // row 0 is as wide as any
};

using Decode = void (*)(Builder& builder, const Instruction& instruction);
struct DecodeRow {
  std::string_view word;
  Decode decode;
};
// One list a family; see the files of their names.
std::span<const DecodeRow> integer_rows();
std::span<const DecodeRow> bit_rows();
std::span<const DecodeRow> float_rows();
std::span<const DecodeRow> compare_rows();
std::span<const DecodeRow> convert_rows();
std::span<const DecodeRow> move_rows();
std::span<const DecodeRow> access_rows();
std::span<const DecodeRow> atomic_rows();
std::span<const DecodeRow> warp_rows();
std::span<const DecodeRow> control_rows();
// add, sub, mul, mad, fma, div, min, max, abs, neg of floats of any width; see float.cpp and narrow.cpp.
void decode_float(Builder& builder, const Instruction& at);
void decode_narrow_float(Builder& builder, const Instruction& at);

}  // namespace tilewright::ptx
