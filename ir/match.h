// match: visit a variant with one lambda an alternative; a missing alternative does not compile.
#pragma once

#include <utility>
#include <variant>

namespace tilewright {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class Variant, class... F>
decltype(auto) match_variant(Variant&& variant, F&&... functions) {
  return std::visit(Overloaded{std::forward<F>(functions)...}, std::forward<Variant>(variant));
}

}  // namespace tilewright
