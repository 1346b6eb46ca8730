// Polynomials with whole coefficients, and whether inequalities between them contradict each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tilewright {

// constant + Σ coefficient · product of unknowns, which are numbers. The key of a monomial is its sorted unknowns.
struct Polynomial {
  std::int64_t constant = 0;
  std::map<std::vector<int>, std::int64_t> terms;
  friend bool operator==(const Polynomial&, const Polynomial&) = default;
};

using Constraint = Polynomial;  // >= 0

// Coefficients beyond are not followed.
inline constexpr std::int64_t largest_coefficient = std::int64_t{1} << 40;

// Both are empty where a coefficient would be too large, or a monomial of more than three unknowns.
std::optional<Polynomial> scaled_sum(const Polynomial& a, std::int64_t factor_a, const Polynomial& b,
                                     std::int64_t factor_b);
std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b);
// coefficient · unknown + constant
Polynomial unknown_term(int unknown, std::int64_t coefficient = 1, std::int64_t constant = 0);

bool mentions_any(const Constraint& constraint, const std::set<std::vector<int>>& monomials);

// True only where the constraints cannot all hold (in whole numbers; false says nothing): Fourier-Motzkin elimination,
// monomials as the unknowns.
bool is_contradiction(std::vector<Constraint> constraints);

}  // namespace tilewright
