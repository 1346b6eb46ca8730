// PTX as its text says it: functions, variables and instructions with names resolved, before anything is decided about
// how they run. The subset that NVRTC 13 and LLVM 22 emit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::ptx {

enum class Type : std::uint8_t {
  Pred, B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F16, F16x2, BF16, BF16x2, F32, F64, TF32, E4M3x2, E5M2x2
};
std::optional<Type> type_by_name(std::string_view name);
std::string_view name_of(Type type);
int bits_of(Type type);   // a predicate counts as 1
bool is_signed(Type type);
bool is_float(Type type);  // f16 … f64, packed ones too
inline std::size_t bytes_of(Type type) { return static_cast<std::size_t>(bits_of(type) + 7) / 8; }

enum class Space : std::uint8_t { Register, Generic, Global, Shared, Local, Const, Param };

// A line of the `.cu`; line 0: unknown.
struct SourceLine {
  int file = 0;
  int line = 0;
  friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

struct Variable {
  std::string name;
  Space space = Space::Global;
  Type type = Type::B8;
  std::size_t alignment = 1;
  std::size_t bytes = 0;
  bool is_unsized = false;          // `.extern .shared … dyn[]`
  std::vector<std::byte> content;   // of a global or constant; empty: zeros
  // 8 bytes at an offset of `content` are the address of a variable, plus an offset.
  struct Address {
    std::size_t at = 0;
    std::string symbol;
    std::int64_t offset = 0;
  };
  std::vector<Address> addresses;
};

struct Register {
  std::string name;
  Type type = Type::B32;
};

struct Operand {
  enum class Kind : std::uint8_t { Register, Integer, Real, Symbol, Special, Label, Vector, Sink };
  Kind kind = Kind::Sink;
  std::string name;             // of a symbol, special register or label
  int index = -1;               // of a register; of a variable of the function, -1 for one of the module
  std::int64_t integer = 0;     // value of an integer; the offset behind `[base + offset]` or a symbol
  std::uint64_t real = 0;       // bits of a real
  int real_bits = 0;            // 32 or 64
  bool is_address = false;      // stood in brackets
  bool is_negated = false;      // `!%p1`
  std::vector<Operand> elements;  // of `{a, b}`; of `%p1|%p2` too
};

struct Instruction {
  std::vector<std::string> words;  // "ld", "global", "v4", "f32"
  int guard = -1;                  // register of `@%p1`
  bool is_guard_negated = false;
  std::vector<Operand> operands;
  // Of a call: where the results go, and what is passed.
  std::vector<Operand> results, arguments;
  std::uint32_t used_bytes = ~0u;  // of a load: a bit a byte; the others may lie outside (`.pragma "used_bytes_mask 4095"`)
  int line = 0;                    // of the PTX
  SourceLine source;
  std::string text() const;        // "ld.global.v4.f32"
  bool has(std::string_view word) const;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;
  std::vector<int> results, parameters;   // indices into variables
  std::vector<Variable> variables;        // params, locals and shared variables of its own
  std::vector<Register> registers;
  std::vector<Instruction> instructions;
  std::vector<std::pair<std::string, std::size_t>> labels;  // name, instruction that follows
  std::vector<std::pair<std::string, std::vector<std::string>>> branch_targets;  // by the label of `.branchtargets`
  const std::vector<std::string>* targets_of(std::string_view name) const;
};

struct Module {
  std::string target;                   // "sm_90a"
  std::vector<std::string> files;       // by the number of `.file`
  std::vector<Variable> variables;
  std::vector<Function> functions;
  const Function* function(std::string_view name) const;  // a definition where there is one
  const Variable* variable(std::string_view name) const;
};

// Throws MachineError that names the line of PTX and what stands there.
Module parse_module(const std::string& text);

}  // namespace tilewright::ptx
