// Facts about PTX's types, and look-up by name.
#include "runtime/ptx/module.h"

#include <algorithm>
#include <array>

namespace tilewright::ptx {

namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};
constexpr auto rows = std::to_array<TypeRow>({
    {"pred", 1}, {"b8", 8}, {"b16", 16}, {"b32", 32}, {"b64", 64}, {"b128", 128}, {"u8", 8}, {"u16", 16}, {"u32", 32}, {"u64", 64},
    {"s8", 8}, {"s16", 16}, {"s32", 32}, {"s64", 64}, {"f16", 16}, {"f16x2", 32}, {"bf16", 16}, {"bf16x2", 32}, {"f32", 32}, {"f64", 64},
    {"tf32", 32}, {"e4m3x2", 16}, {"e5m2x2", 16},
});

}  // namespace

std::optional<Type> type_by_name(std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const TypeRow& row) { return row.name == name; });
  if (found == rows.end()) return std::nullopt;
  return static_cast<Type>(found - rows.begin());
}
std::string_view name_of(Type type) { return rows[static_cast<std::size_t>(type)].name; }
int bits_of(Type type) { return rows[static_cast<std::size_t>(type)].bits; }
bool is_signed(Type type) { return type >= Type::S8 && type <= Type::S64; }
bool is_float(Type type) { return type >= Type::F16 && type <= Type::F64; }

std::string Instruction::text() const {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ".") + word;
  return text;
}

bool Instruction::has(std::string_view word) const { return std::find(words.begin() + 1, words.end(), word) != words.end(); }

const std::vector<std::string>* Function::targets_of(std::string_view wanted) const {
  for (const auto& [its_name, targets] : branch_targets)
    if (its_name == wanted) return &targets;
  return nullptr;
}

const Function* Module::function(std::string_view name) const {
  const Function* declared = nullptr;
  for (const Function& each : functions) {
    if (each.name != name) continue;
    if (!each.is_declaration) return &each;
    declared = &each;
  }
  return declared;
}

const Variable* Module::variable(std::string_view name) const {
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const Variable& each) { return each.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

}  // namespace tilewright::ptx
