// Placing registers and variables, and decoding the functions of a kernel one behind the other, callees first: lanes that
// are in a call then have the lower program counters, and come back before the others go on.
#include "runtime/ptx/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tilewright::ptx {

namespace {

constexpr std::int64_t shared_gap = 256;  // behind each shared variable

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

const std::unordered_map<std::string_view, Decode>& decoders() {
  static const auto all = [] {
    std::unordered_map<std::string_view, Decode> result;
    for (const std::span<const DecodeRow> family : {integer_rows(), bit_rows(), float_rows(), compare_rows(), convert_rows(), move_rows(), access_rows(),
                                                    atomic_rows(), warp_rows(), control_rows()})
      for (const DecodeRow& row : family) result.emplace(row.word, row.decode);
    return result;
  }();
  return all;
}

struct SpecialName {
  std::string_view name;
  SpecialRow row;
};
constexpr auto special_names = std::to_array<SpecialName>({
    {"%tid.x", SpecialRow::TidX}, {"%tid.y", SpecialRow::TidY}, {"%tid.z", SpecialRow::TidZ},
    {"%ntid.x", SpecialRow::NtidX}, {"%ntid.y", SpecialRow::NtidY}, {"%ntid.z", SpecialRow::NtidZ},
    {"%ctaid.x", SpecialRow::CtaidX}, {"%ctaid.y", SpecialRow::CtaidY}, {"%ctaid.z", SpecialRow::CtaidZ},
    {"%nctaid.x", SpecialRow::NctaidX}, {"%nctaid.y", SpecialRow::NctaidY}, {"%nctaid.z", SpecialRow::NctaidZ},
    {"%laneid", SpecialRow::Lane}, {"%warpid", SpecialRow::WarpIndex}, {"%nwarpid", SpecialRow::Warps},
    {"%lanemask_eq", SpecialRow::LanemaskEq}, {"%lanemask_lt", SpecialRow::LanemaskLt}, {"%lanemask_le", SpecialRow::LanemaskLe},
    {"%lanemask_gt", SpecialRow::LanemaskGt}, {"%lanemask_ge", SpecialRow::LanemaskGe},
    {"%smid", SpecialRow::Zero}, {"%nsmid", SpecialRow::One}, {"%gridid", SpecialRow::Zero},
    {"%cluster_ctarank", SpecialRow::Zero}, {"%cluster_nctarank", SpecialRow::One}, {"%cluster_ctaid.x", SpecialRow::Zero},
    {"%dynamic_smem_size", SpecialRow::DynamicShared}, {"%total_smem_size", SpecialRow::TotalShared},
});

template <class To, class From>
void run_resize(const Op& op, Warp& warp, LaneMask lanes) {
  To* to = warp.row<To>(op.dst);
  const From* from = warp.row<From>(op.a);
  for_lanes(lanes, [&](int lane) { to[lane] = static_cast<To>(from[lane]); });
}

// Between rows of 16, 32 and 64 bits; rows of 8 bits do not exist (loads and conversions know their own 8).
Op::Run resize(int to, int from, bool is_signed) {
  if (to == 16) return from == 32 ? run_resize<std::uint16_t, std::uint32_t> : run_resize<std::uint16_t, std::uint64_t>;
  if (to == 32 && from == 64) return run_resize<std::uint32_t, std::uint64_t>;
  if (to == 32) return is_signed ? run_resize<std::int32_t, std::int16_t> : run_resize<std::uint32_t, std::uint16_t>;
  if (from == 16) return is_signed ? run_resize<std::int64_t, std::int16_t> : run_resize<std::uint64_t, std::uint16_t>;
  return is_signed ? run_resize<std::int64_t, std::int32_t> : run_resize<std::uint64_t, std::uint32_t>;
}

}  // namespace

KernelProgram decode_kernel(const Module& module, const std::string& name, const AddressOf& address_of) {
  const Function* kernel = module.function(name);
  if (kernel == nullptr || !kernel->is_entry || kernel->is_declaration) throw MachineError(fmt::format("the PTX has no kernel `{}`", name));
  KernelProgram program;
  program.name = name;
  program.files = module.files;
  Builder(module, program, address_of).build(*kernel);
  return program;
}

void Builder::build(const Function& kernel) {
  kernel_ = &kernel;
  for (const int index : kernel.parameters) {
    const Variable& parameter = kernel.variables[static_cast<std::size_t>(index)];
    program_.parameter_bytes = (program_.parameter_bytes + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    program_.parameters.push_back(parameter);
    program_.parameter_offsets.push_back(program_.parameter_bytes);
    program_.parameter_bytes += parameter.bytes;
  }
  std::vector<const Function*> order, path;
  collect(kernel, order, path);
  for (const Function* function : order) {
    Placed& placed = placed_[function];
    for (const Register& reg : function->registers) {
      placed.registers.push_back(new_row(bits_of(reg.type)));
      program_.registers.push_back(placed.registers.back());
    }
    placed.locals.resize(function->variables.size(), -1);
    for (std::size_t index = 0; index < function->variables.size(); ++index) {
      const Variable& variable = function->variables[index];
      if (variable.space != Space::Local && variable.space != Space::Param) continue;
      if (function->is_entry && variable.space == Space::Param && std::find(function->parameters.begin(), function->parameters.end(), static_cast<int>(index)) != function->parameters.end()) continue;
      program_.local_bytes = round_up(program_.local_bytes, static_cast<std::int64_t>(variable.alignment));
      placed.locals[index] = program_.local_bytes;
      program_.local_bytes += static_cast<std::int64_t>(variable.bytes);
    }
    if (!function->is_entry) placed.return_row = new_row(32);
  }
  program_.local_bytes = round_up(program_.local_bytes, 16);
  place_shared(kernel);
  for (const Function* function : order) decode(*function);
  program_.entry = placed_[&kernel].entry;
  // Constants stand in front of nothing in particular: the image is the whole file with zeros elsewhere.
  program_.file_bytes = next_row_;
  program_.image.assign(next_row_, std::byte{0});
  for (const auto& [row, value] : constant_values_) {
    const int bits = constant_bits_.at(row);
    const std::size_t bytes = bits == 1 ? 4 : static_cast<std::size_t>(bits) / 8;
    const std::uint64_t filled = bits == 1 ? (value != 0 ? every_lane : 0u) : value;
    for (std::size_t lane = 0; lane < (bits == 1 ? 1u : static_cast<unsigned>(lane_count)); ++lane) std::memcpy(program_.image.data() + row + lane * bytes, &filled, bytes);
  }
}

// Callees in front of their callers. Registers have one place each, so a function cannot be inside itself.
void Builder::collect(const Function& function, std::vector<const Function*>& order, std::vector<const Function*>& path) {
  if (std::find(path.begin(), path.end(), &function) != path.end()) throw Unsupported(fmt::format("unsupported: `{}` calls itself, and recursion does not run without a GPU", function.name));
  if (std::find(order.begin(), order.end(), &function) != order.end()) return;
  path.push_back(&function);
  for (const Instruction& instruction : function.instructions)
    if (instruction.words[0] == "call" && instruction.operands[0].kind == Operand::Kind::Symbol)
      if (const Function* callee = module_.function(instruction.operands[0].name); callee != nullptr && !callee->is_declaration) collect(*callee, order, path);
  path.pop_back();
  order.push_back(&function);
}

// Only variables that the kernel and its callees speak of take shared memory. The gaps make an access behind a variable
// land nowhere; they are not counted.
void Builder::place_shared(const Function&) {
  std::int64_t at = 0;
  bool has_dynamic = false;
  const auto place = [&](const Variable& variable) {
    at = round_up(at, std::max<std::int64_t>(16, static_cast<std::int64_t>(variable.alignment)));
    const std::int64_t begin = at;
    program_.static_bytes = round_up(program_.static_bytes, static_cast<std::int64_t>(variable.alignment)) + static_cast<std::int64_t>(variable.bytes);
    program_.shared.push_back({variable.name, begin, static_cast<std::int64_t>(variable.bytes), variable.type});
    at += static_cast<std::int64_t>(variable.bytes) + shared_gap;
    return begin;
  };
  for (auto& [function, placed] : placed_)
    for (std::size_t index = 0; index < function->variables.size(); ++index)
      if (const Variable& variable = function->variables[index]; variable.space == Space::Shared && !variable.is_unsized) placed.locals[index] = place(variable);
  const auto is_named = [&](const std::string& name) {
    for (const auto& [function, placed] : placed_)
      for (const Instruction& instruction : function->instructions)
        for (const Operand& operand : instruction.operands)
          if (operand.kind == Operand::Kind::Symbol && operand.index < 0 && operand.name == name) return true;
    return false;
  };
  for (const Variable& variable : module_.variables) {
    if (variable.space != Space::Shared || !is_named(variable.name)) continue;
    if (variable.is_unsized) has_dynamic = true;
    else shared_places_.emplace_back(variable.name, place(variable));
  }
  program_.dynamic_begin = round_up(at, 128);
  program_.shared_bytes = has_dynamic ? program_.dynamic_begin : at;
  for (const Variable& variable : module_.variables)
    if (variable.space == Space::Shared && variable.is_unsized) shared_places_.emplace_back(variable.name, program_.dynamic_begin);
  for (auto& [function, placed] : placed_)
    for (std::size_t index = 0; index < function->variables.size(); ++index)
      if (function->variables[index].space == Space::Shared && function->variables[index].is_unsized) placed.locals[index] = program_.dynamic_begin, program_.shared_bytes = program_.dynamic_begin;
}

void Builder::decode(const Function& function) {
  function_ = &function;
  placed_[&function].entry = static_cast<std::uint32_t>(program_.code.size());
  std::vector<std::uint32_t> starts;
  jumps_.clear();
  for (const Instruction& instruction : function.instructions) {
    starts.push_back(static_cast<std::uint32_t>(program_.code.size()));
    instruction_ = &instruction;
    program_.places.push_back({instruction.text(), instruction.line, instruction.source});
    decode(instruction);
    if (instruction.words[0] == "bra") jump_to(instruction.operands.at(0).name);
  }
  starts.push_back(static_cast<std::uint32_t>(program_.code.size()));
  std::unordered_map<std::string_view, std::size_t> labels(function.labels.begin(), function.labels.end());
  for (const auto& [op, name] : jumps_) {
    const auto label = labels.find(name);
    if (label == labels.end()) throw MachineError(fmt::format("the PTX of `{}` has no label `{}`", function.name, name));
    program_.code[op].target = starts[label->second];
  }
  // A function that runs into its end returns.
  program_.places.push_back({"ret", function.instructions.empty() ? 0 : function.instructions.back().line, {}});
  instruction_ = nullptr;
  Op& end = add(nullptr);
  end.step = function.is_entry ? Step::Exit : Step::Return;
  end.a = placed_[&function].return_row;
}

void Builder::decode(const Instruction& instruction) {
  if (instruction.words[0] == "call") return call(instruction);
  if (instruction.words[0] == "ret" || instruction.words[0] == "exit") {
    Op& end = add(nullptr);
    end.step = function_->is_entry || instruction.words[0] == "exit" ? Step::Exit : Step::Return;
    end.a = placed_[function_].return_row;
    return;
  }
  const auto decoder = decoders().find(instruction.words[0]);
  if (decoder == decoders().end()) unsupported();
  decoder->second(*this, instruction);
  for (const Widening& widening : widenings_) {
    Op& op = add(resize(widening.to_bits, widening.from_bits, widening.is_signed));
    op.dst = widening.to;
    op.a = widening.from;
  }
  widenings_.clear();
}

void Builder::unsupported(std::string_view why) const {
  const Instruction& at = *instruction_;
  const auto file = static_cast<std::size_t>(at.source.file);
  const std::string source = at.source.line > 0 && file < module_.files.size() ? fmt::format("{} line {}, ", module_.files[file], at.source.line) : "";
  throw Unsupported(fmt::format("unsupported: instruction `{}` ({}line {} of the PTX of `{}`) does not run without a GPU{}{}", at.text(), source, at.line, kernel_->name,
                                why.empty() ? "" : ": ", why));
}

Type Builder::type_of(const Instruction& instruction) const {
  for (auto word = instruction.words.rbegin(); word != instruction.words.rend(); ++word)
    if (const auto type = type_by_name(*word)) return *type;
  unsupported("a type is needed");
}

Op& Builder::add(Op::Run run) {
  Op& op = program_.code.emplace_back();
  op.run = run;
  op.instruction = static_cast<std::uint32_t>(program_.places.size()) - 1;
  if (instruction_ != nullptr && instruction_->guard >= 0) {
    op.guard = placed_[function_].registers[static_cast<std::size_t>(instruction_->guard)];
    op.is_guard_negated = instruction_->is_guard_negated;
  }
  return op;
}

Row Builder::new_row(int bits) {
  const Row row = next_row_;
  const int bytes = bits == 1 ? 4 : std::max(bits, 16) / 8 * lane_count;
  next_row_ += (static_cast<std::uint32_t>(bytes) + row_unit - 1) / row_unit * row_unit;
  return row;
}

Row Builder::scratch(int bits) { return new_row(bits); }

Row Builder::constant(std::uint64_t value, int bits) {
  if (bits == 8) bits = 16;
  if (bits < 64 && bits > 1) value &= (std::uint64_t{1} << bits) - 1;
  const auto [place, is_new] = constants_.try_emplace({bits, value}, 0);
  if (is_new) {
    place->second = new_row(bits);
    constant_values_.emplace_back(place->second, value);
    constant_bits_[place->second] = bits;
  }
  return place->second;
}

Row Builder::special(const std::string& name, int bits) {
  if (name == "WARP_SZ") return constant(32, bits);
  auto row = special_rows_.find(name);
  if (row == special_rows_.end()) {
    const auto known = std::find_if(special_names.begin(), special_names.end(), [&](const SpecialName& each) { return each.name == name; });
    if (known == special_names.end()) unsupported(fmt::format("the register `{}`", name));
    row = special_rows_.emplace(name, new_row(32)).first;
    program_.specials.emplace_back(known->row, row->second);
  }
  if (bits == 32) return row->second;
  const Row result = scratch(bits);
  Op& op = add(resize(bits, 32, false));
  op.dst = result;
  op.a = row->second;
  return result;
}

std::uint64_t Builder::symbol_value(const Operand& operand) const {
  const auto offset = static_cast<std::uint64_t>(operand.integer);
  if (operand.index >= 0) {
    const Placed& placed = placed_.at(function_);
    const std::int64_t at = placed.locals[static_cast<std::size_t>(operand.index)];
    if (at >= 0) return static_cast<std::uint64_t>(at) + offset;
    for (std::size_t n = 0; n < function_->parameters.size(); ++n)
      if (function_->parameters[n] == operand.index) return address_of_("") + program_.parameter_offsets[n] + offset;
    unsupported(fmt::format("the address of `{}`", operand.name));
  }
  for (const auto& [name, place] : shared_places_)
    if (name == operand.name) return static_cast<std::uint64_t>(place) + offset;
  if (module_.variable(operand.name) == nullptr) unsupported(fmt::format("the address of `{}`", operand.name));
  return address_of_(operand.name) + offset;
}

Row Builder::read(const Instruction& instruction, std::size_t operand, int bits) {
  if (operand >= instruction.operands.size()) unsupported("an operand is missing");
  return read(instruction.operands[operand], bits);
}

Row Builder::read(const Operand& operand, int bits) {
  switch (operand.kind) {
    case Operand::Kind::Register: {
      const auto index = static_cast<std::size_t>(operand.index);
      const int its_bits = std::max(bits_of(function_->registers[index].type), bits_of(function_->registers[index].type) == 1 ? 1 : 16);
      const Row row = placed_[function_].registers[index];
      if (its_bits == std::max(bits, bits == 1 ? 1 : 16)) return row;
      if (its_bits < bits || bits == 1) unsupported(fmt::format("`{}` has {} bits, and {} are read", operand.name, its_bits, bits));
      const Row narrow = scratch(bits);
      Op& op = add(resize(std::max(bits, 16), its_bits, false));
      op.dst = narrow;
      op.a = row;
      return narrow;
    }
    case Operand::Kind::Integer: return constant(static_cast<std::uint64_t>(operand.integer), bits);
    case Operand::Kind::Real:
      if (operand.real_bits == 64 && bits == 32) {
        const auto narrow = static_cast<float>(std::bit_cast<double>(operand.real));
        return constant(std::bit_cast<std::uint32_t>(narrow), 32);
      }
      if (operand.real_bits == 32 && bits == 64) return constant(std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.real)))), 64);
      return constant(operand.real, bits);
    case Operand::Kind::Special: return special(operand.name, bits);
    case Operand::Kind::Symbol: return constant(symbol_value(operand), bits);
    case Operand::Kind::Label: case Operand::Kind::Vector: case Operand::Kind::Sink: break;
  }
  unsupported("an operand of this form");
}

Row Builder::write(const Instruction& instruction, std::size_t operand, int bits, bool extends_sign) {
  if (operand >= instruction.operands.size()) unsupported("an operand is missing");
  return write(instruction.operands[operand], bits, extends_sign);
}

Row Builder::write(const Operand& operand, int bits, bool extends_sign) {
  if (operand.kind == Operand::Kind::Sink) return scratch(bits);
  if (operand.kind != Operand::Kind::Register) unsupported("a result that is no register");
  const auto index = static_cast<std::size_t>(operand.index);
  const Row row = placed_[function_].registers[index];
  const int declared = bits_of(function_->registers[index].type);
  const int its_bits = declared == 1 ? 1 : std::max(declared, 16);
  const int row_bits = bits == 1 ? 1 : std::max(bits, 16);
  if (its_bits == row_bits) return row;
  if (its_bits < row_bits || row_bits == 1) unsupported(fmt::format("`{}` has {} bits, and the result {}", operand.name, its_bits, bits));
  const Row result = scratch(row_bits);
  widenings_.push_back({result, row, row_bits, its_bits, extends_sign});
  return result;
}

bool Builder::is_local_variable(const Operand& operand) const {
  return operand.kind == Operand::Kind::Symbol && operand.index >= 0 && function_->variables[static_cast<std::size_t>(operand.index)].space != Space::Shared &&
         placed_.at(function_).locals[static_cast<std::size_t>(operand.index)] >= 0;
}

Row Builder::address(const Operand& operand, Space space, std::int64_t& offset) {
  offset = operand.integer;
  if (operand.kind == Operand::Kind::Register) {
    const auto index = static_cast<std::size_t>(operand.index);
    const int its_bits = bits_of(function_->registers[index].type);
    if (its_bits == 64) return read(operand, 64);
    if (its_bits != 32 || (space != Space::Shared && space != Space::Local)) unsupported("an address of 32 bits");
    const Row wide = scratch(64);
    Op& op = add(resize(64, 32, false));
    op.dst = wide;
    op.a = read(operand, 32);
    return wide;
  }
  if (operand.kind == Operand::Kind::Symbol) {
    offset = static_cast<std::int64_t>(symbol_value(operand));
    return 0;
  }
  if (operand.kind == Operand::Kind::Integer) return 0;
  unsupported("an address of this form");
}

}  // namespace tilewright::ptx
