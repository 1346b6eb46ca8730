// Instructions of the table in ir/instructions.h as CUDA C: CUDA's own functions where there is one, one wide access
// for load.vN and store.vN, a function of inline PTX with the table's text for the rest.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "codegen/cuda_printer.h"
#include "codegen/cuda_types.h"
#include "codegen/descriptor_offset.h"
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

// `%0` … `%9` and `#0` … `#9` of a text by what `operand` gives.
template <class F>
std::string fill_operands(std::string_view text, const F& operand) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((text[at] == '%' || text[at] == '#') && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9') {
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

// Eight to a line.
std::string constraint_list(const std::vector<std::string>& constraints) {
  std::string list;
  for (std::size_t at = 0; at < constraints.size(); ++at)
    list += (at == 0 ? " " : at % 8 == 0 ? ",\n               " : ", ") + constraints[at];
  return list;
}

}  // namespace

// How a row's operands are handed to its function and from there to the inline PTX.
struct CudaPrinter::PtxCall {
  std::vector<std::string> parameters;
  std::vector<std::string> arguments;
  std::vector<std::string> outputs;   // `"+f"(a[0])`
  std::vector<std::string> inputs;    // `"r"(b)`
  std::string name_suffix;            // the values of constant operands
  std::vector<std::string> spelling;  // of each operand in the text: `$o3`, `$i0` (output 3, input 0), or a constant
};

void CudaPrinter::add_operand(PtxCall& call, const InstrInfo& row, std::size_t n, const Expr& operand) {
  const std::string name(1, static_cast<char>('a' + n));
  const auto pass = [&](const std::string& parameter, const std::string& argument) {
    call.parameters.push_back(parameter + name);
    call.arguments.push_back(argument);
  };
  const auto take = [&](std::string_view constraint, const std::string& value) {
    call.spelling.push_back(fmt::format("$i{}", call.inputs.size()));
    call.inputs.push_back(fmt::format("\"{}\"({})", constraint, value));
  };
  if (takes_constant(row, n)) {
    const auto value = integer_value(operand);
    if (!value) internal_error(fmt::format("print_cuda: operand {} of `{}` is no constant", n + 1, row.name));
    call.name_suffix += fmt::format("_{}", *value);
    call.spelling.push_back(fmt::format("{}", *value));
    return;
  }
  const Var* variable = as<Var>(operand);
  if (variable && is_map(variable->name)) {
    pass("const TensorMap& ", c_name_of(variable->name));
    prelude_.use("TensorMap");
    return take("l", "&" + name);
  }
  const Load* load = as<Load>(operand);
  const Place* place = load ? &place_of(load->access.buffer) : nullptr;
  if (place && place->kind == Place::Kind::Shared) {
    pass("const void* ", address(load->access));
    return take("r", prelude_.use("shared_address") + "(" + name + ")");
  }
  if (place && place->kind == Place::Kind::Tensor) {
    pass("const void* ", address(load->access));
    return take("l", name);
  }
  const auto wgmma = wgmma_form(row.name);
  const bool is_part = n == 0 && wgmma && place && !load->access.index.empty();  // the registers from an element on
  const bool is_array = place && place->kind == Place::Kind::Array && (load->access.index.empty() || is_part);
  const bool is_target = is_array ? n == 0 || row.ptx.find(fmt::format("%{}", n)) == std::string_view::npos
                                  : sets_register(row, n);
  const Dtype dtype = operand->dtype == Dtype::Index || operand->dtype == Dtype::Bool ? Dtype::I32 : operand->dtype;
  const std::string_view constraint = dtype == Dtype::F32      ? "f"
                                      : dtype == Dtype::F64    ? "d"
                                      : bytes_of(dtype) == 8   ? "l"
                                      : bytes_of(dtype) == 2   ? "h"
                                                               : "r";
  if (!is_array) {
    pass(type(dtype == Dtype::I32 ? Dtype::I32 : dtype) + (is_target ? "& " : " "), text(operand));
    if (!is_target) return take(constraint, name);
    call.spelling.push_back(fmt::format("$o{}", call.outputs.size()));
    call.outputs.push_back(fmt::format("\"{}{}\"({})", row.name.starts_with("mma.") ? '+' : '=', constraint, name));
    return;
  }
  // Registers that are only announced are left to ptxas, which knows what wgmma holds: NVRTC takes long over lists.
  if (row.ptx.find(fmt::format("%{}", n)) == std::string_view::npos) return call.spelling.emplace_back(), void();
  std::int64_t elements = 1;
  for (const std::int64_t extent : place->extents) elements *= extent;
  if (is_part) elements = wgmma->n / 2;
  call.parameters.push_back(fmt::format("{} (&{})[{}]", type(dtype), name, elements));
  call.arguments.push_back(is_part ? fmt::format("({} (&)[{}]){}", type(dtype), elements, text(operand)) : c_name_of(load->access.buffer));
  std::vector<std::string> registers;
  for (std::int64_t at = 0; at < elements; ++at) {
    std::vector<std::string>& list = is_target ? call.outputs : call.inputs;
    registers.push_back(fmt::format("${}{}", is_target ? 'o' : 'i', list.size()));
    list.push_back(fmt::format("\"{}{}\"({}[{}])", is_target ? "+" : "", constraint, name, at));
  }
  call.spelling.push_back(fmt::format("{{{}}}", fmt::join(registers, ", ")));
}

// A row of the table as a device function in front of the kernel, `mbarrier_arrive(&p_full[s])`. Operands that the text
// wants as constants are part of its name: `bulk_wait_group_read_1()`.
std::string CudaPrinter::instruction_function(const InstrInfo& row, const std::vector<Expr>& operands) {
  if (row.ptx.empty()) no_text(std::string(row.name));
  PtxCall call;
  for (std::size_t n = 0; n < operands.size(); ++n) add_operand(call, row, n, operands[n]);
  std::string ptx = fill_operands(row.ptx, [&](std::size_t n) { return call.spelling.at(n); });
  // Outputs are numbered first.
  for (std::size_t at = ptx.find('$'); at != std::string::npos; at = ptx.find('$', at)) {
    const std::size_t end = ptx.find_first_not_of("0123456789", at + 2);
    const std::size_t number = std::stoul(ptx.substr(at + 2, end - at - 2));
    ptx.replace(at, end - at, fmt::format("%{}", ptx[at + 1] == 'o' ? number : number + call.outputs.size()));
  }
  std::string name(row.name);
  std::replace(name.begin(), name.end(), '.', '_');
  name += call.name_suffix;
  const std::string head = fmt::format("__device__ __forceinline__ void {}({})", name, fmt::join(call.parameters, ", "));
  prelude_.add(name, head, fmt::format("{} {{\n  asm volatile(\"{}\" :{} :{} : \"memory\");\n}}", head, ptx,
                                       constraint_list(call.outputs), constraint_list(call.inputs)));
  return fmt::format("{}({})", name, fmt::join(call.arguments, ", "));
}

// The matrix descriptor: the low word holds address and leading offset, the high word stride offset and swizzle.
std::string CudaPrinter::descriptor(const std::vector<Expr>& operands) {
  const Load* place = as<Load>(operands.at(0));
  if (!place || place_of(place->access.buffer).kind != Place::Kind::Shared)
    internal_error("print_cuda: a descriptor is of a place in shared memory");
  const int swizzle = operands.size() > 3 ? static_cast<int>(integer_value(operands[3]).value_or(-1)) : 128;
  const int code = swizzle == 0 ? 0 : swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : -1;
  if (code < 0) internal_error("print_cuda: the swizzle of a descriptor is 0, 32, 64 or 128");
  prelude_.use("shared_address");
  const std::string name = fmt::format("desc_{}", swizzle);
  prelude_.add(name, name, fmt::format(R"(__device__ __forceinline__ unsigned long long {}(const void* place, int sixteens, int leading_bytes, int stride_bytes) {{
  const unsigned int low = (shared_address(place) >> 4 & 0x3fff | (unsigned int)leading_bytes >> 4 << 16) + sixteens;
  const unsigned int high = (unsigned int)stride_bytes >> 4 | {}u << 30;
  return (unsigned long long)high << 32 | low;
}})", name, code));
  const Access& access = place->access;
  const std::optional<Expr> offset = descriptor_offset(access, place_of(access.buffer).dtype, place_of(access.buffer).extents);
  return fmt::format("{}({}, {}, {}, {})", name, offset ? c_name_of(access.buffer) : address(access), offset ? text(*offset) : "0", text(operands.at(1)), text(operands.at(2)));
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
  if (row.name == "desc") return descriptor(node.arguments);
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
  line(instruction_function(*row, instr.operands) + ";");
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
