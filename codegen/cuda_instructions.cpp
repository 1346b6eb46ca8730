// Instructions of the table in ir/instructions.h as CUDA C: CUDA's own functions where there is one, one wide access
// for load.vN and store.vN, inline PTX with the table's text for the rest.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "codegen/cuda_printer.h"
#include "codegen/cuda_types.h"
#include "ir/diagnostic.h"
#include "ir/instructions.h"

namespace tilewright {

namespace {

struct Builtin {
  std::string_view instruction;
  std::string_view call;  // `%0`, `%1` its operands
};

constexpr auto builtins = std::to_array<Builtin>({
    {"barrier.block", "__syncthreads()"},
    {"barrier.warp", "__syncwarp()"},
    {"uniform", "__shfl_sync(0xffffffff, %0, 0)"},
    {"shuffle.xor", "__shfl_xor_sync(0xffffffff, %0, %1)"},
    {"shuffle.up", "__shfl_up_sync(0xffffffff, %0, %1)"},
    {"shuffle.down", "__shfl_down_sync(0xffffffff, %0, %1)"},
    {"shuffle.index", "__shfl_sync(0xffffffff, %0, %1)"},
    {"vote.any", "__any_sync(0xffffffff, %0)"},
    {"vote.all", "__all_sync(0xffffffff, %0)"},
});

std::string_view builtin_of(std::string_view instruction) {
  for (const Builtin& row : builtins)
    if (row.instruction == instruction) return row.call;
  return {};
}

// `%0` … `%9` of a text by what `operand` gives.
template <class F>
std::string fill_operands(std::string_view text, const F& operand) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9') {
      result += operand(static_cast<std::size_t>(text[++at] - '0'));
    } else {
      result += text[at];
    }
  }
  return result;
}

[[noreturn]] void no_text(const std::string& instruction) {
  throw MachineError(fmt::format("CUDA C: this version does not generate the instruction `{}` yet", instruction));
}

}  // namespace

// `asm volatile("text" : results : operands : "memory")`. A shared place is its 32-bit address, a global one its
// pointer.
std::string CudaPrinter::inline_ptx(const InstrInfo& row, const std::vector<Expr>& operands,
                                    const std::string& result) {
  if (row.ptx.empty()) no_text(std::string(row.name));
  const std::size_t first = result.empty() ? 0 : 1;
  std::string inputs;
  for (const Expr& operand : operands) {
    std::string input;
    const Load* load = as<Load>(operand);
    if (load && place_of(load->access.buffer).kind == Place::Kind::Shared) {
      input = fmt::format("\"r\"((unsigned int)__cvta_generic_to_shared({}))", address(load->access));
    } else if (load && place_of(load->access.buffer).kind == Place::Kind::Tensor) {
      input = fmt::format("\"l\"({})", address(load->access));
    } else if (integer_value(operand)) {
      input = fmt::format("\"n\"({})", *integer_value(operand));
    } else {
      const Dtype dtype = operand->dtype;
      const bool is_wide = type(dtype) == "long long" || bytes_of(dtype) == 8;
      const std::string_view constraint = dtype == Dtype::F32                ? "f"
                                          : dtype == Dtype::F64              ? "d"
                                          : is_wide && dtype != Dtype::Index ? "l"
                                          : bytes_of(dtype) == 2             ? "h"
                                                                             : "r";
      // Coordinates and counts are 32-bit operands whatever the class of the indices.
      input = fmt::format("\"{}\"({}{})", constraint, dtype == Dtype::Index && is_wide ? "(int)" : "",
                          text(operand, dtype == Dtype::Index && is_wide ? Binding::Unary : Binding::Conditional));
    }
    inputs += (inputs.empty() ? "" : ", ") + input;
  }
  std::string ptx = fill_operands(row.ptx, [&](std::size_t index) { return fmt::format("%{}", index + first); });
  for (std::size_t at = ptx.find("%r"); at != std::string::npos; at = ptx.find("%r", at)) ptx.replace(at, 2, "%0");
  const bool touches_memory = row.effect != Effect::None;
  return fmt::format("asm {}(\"{}\" :{}{} : {}{})", result.empty() || touches_memory ? "volatile" : "", ptx,
                     result.empty() ? "" : " ", result, inputs,
                     touches_memory || result.empty() ? " : \"memory\"" : "");
}

std::string CudaPrinter::instruction_call(const Expr& e, const Call& node) {
  const InstrInfo& row = *find_instruction(node.function);
  const std::string_view call = builtin_of(row.name);
  if (!call.empty()) {
    const std::string built = fill_operands(call, [&](std::size_t index) { return text(node.arguments.at(index)); });
    return e->dtype == Dtype::Bool ? "(bool)" + built : built;
  }
  if (row.name == "elect") return prelude_.use("elect") + "()";
  if (row.name == "bf16x2" || row.name == "f16x2") {
    return fmt::format("{}({}, {})", prelude_.use(std::string(row.name)), text(node.arguments.at(0)),
                       text(node.arguments.at(1)));
  }
  no_text(node.function);
}

void CudaPrinter::print_instr(const Instr& instr) {
  if (instr.op == "error.report") {
    line(fmt::format("{}(error_word, {}, {});", prelude_.use("report"), text(instr.operands.at(0)),
                     text(instr.operands.at(1))));
    return;
  }
  const InstrInfo* row = find_instruction(instr.op);
  if (!row) internal_error(fmt::format("print_cuda: `{}` is not in the table of instructions", instr.op));
  if (print_vector_access(instr)) return;
  const std::string_view call = builtin_of(instr.op);
  if (!call.empty()) {
    line(fill_operands(call, [&](std::size_t index) { return text(instr.operands.at(index)); }) + ";");
    return;
  }
  line(inline_ptx(*row, instr.operands, "") + ";");
}

// load.vN(destination, source) and store.vN(destination, source): both sides as one vector of the same bytes.
bool CudaPrinter::print_vector_access(const Instr& instr) {
  const std::size_t dot = instr.op.find(".v");
  if (dot == std::string::npos || (instr.op.substr(0, dot) != "load" && instr.op.substr(0, dot) != "store"))
    return false;
  const int elements = std::stoi(instr.op.substr(dot + 2));
  const Load* destination = as<Load>(instr.operands.at(0));
  const Load* source = as<Load>(instr.operands.at(1));
  if (!destination || !source)
    internal_error(fmt::format("print_cuda: the operands of `{}` are places in memory", instr.op));
  const Dtype dtype = place_of(destination->access.buffer).dtype;
  const std::string vector = cuda_vector_type(dtype, elements);
  line(fmt::format("*({0}*){1} = *(const {0}*){2};", vector, address(destination->access), address(source->access)));
  return true;
}

}  // namespace tilewright
