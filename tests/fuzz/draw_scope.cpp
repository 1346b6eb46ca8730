// Names and tensors of a drawn program.
#include "tests/fuzz/draw_scope.h"

#include <fmt/format.h>

namespace tilewright::fuzz {

Scope::Scope(Random& random) : random_(random) {
  const std::vector<std::string> names = {"M", "N", "K", "P"};
  const std::size_t count = 1 + random.below(3);
  dims_.assign(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count + (random.chance(20) ? 1 : 0)));
}

std::string Scope::extent(bool may_be_constant) {
  if (may_be_constant && random_.chance(12)) return random_.pick({"1", "3", "4", "7", "8", "16"});
  if (may_be_constant && random_.chance(6)) return random_.pick({"2*", "3*"}) + dim() + random_.pick({"", " + 1"});
  return dim();
}

std::string Scope::fresh_index() {
  static const std::vector<std::string> names = {"i", "j", "k", "l", "a", "b", "c", "d", "p", "q", "r", "s"};
  const int number = next_index_++;
  const auto size = static_cast<int>(names.size());
  return number < size ? names[static_cast<std::size_t>(number)] : names[static_cast<std::size_t>(number % size)] + std::to_string(number / size + 1);
}

std::string Scope::fresh_tensor(bool is_let) { return is_let ? fmt::format("t{}", next_let_++) : fmt::format("Y{}", next_output_++); }

const DrawnTensor& Scope::tensor(Dtype dtype, const std::vector<std::string>& shape, bool may_be_new) {
  std::vector<const DrawnTensor*> same, like;
  for (const DrawnTensor& tensor : readable_) {
    if (tensor.dtype != dtype || tensor.name == own_target) continue;
    if (tensor.shape == shape) same.push_back(&tensor);
    if (!tensor.shape.empty()) like.push_back(&tensor);
  }
  if (!same.empty() && random_.chance(70)) return *random_.pick(same);
  if (!may_be_new && !like.empty()) return *random_.pick(like);
  if (inputs.size() >= 6 && !same.empty()) return *random_.pick(same);
  fresh_input(dtype, shape);
  return readable_.back();
}

std::string Scope::fresh_input(Dtype dtype, const std::vector<std::string>& shape) {
  static const std::vector<std::string> letters = {"A", "B", "C", "D", "E", "F", "G", "H"};
  const int number = next_input_++;
  const auto size = static_cast<int>(letters.size());
  const std::string name = letters[static_cast<std::size_t>(number % size)] + (number < size ? "" : std::to_string(number / size + 1));
  inputs.push_back(Parameter{ParamKind::In, name, dtype, shape});
  readable_.push_back(DrawnTensor{name, dtype, shape});
  return name;
}

std::string Scope::scalar(Dtype dtype) {
  for (const DrawnTensor& tensor : readable_)
    if (tensor.dtype == dtype && tensor.shape.empty() && tensor.name != own_target && random_.chance(70)) return tensor.name;
  const std::string name = fmt::format("s{}", next_scalar_++);
  inputs.push_back(Parameter{ParamKind::In, name, dtype, {}});
  readable_.push_back(DrawnTensor{name, dtype, {}});
  return name;
}

}  // namespace tilewright::fuzz
