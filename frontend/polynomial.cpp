// Arithmetic of polynomials, and Fourier-Motzkin elimination over their monomials.
#include "frontend/polynomial.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>

namespace tilewright {

namespace {
constexpr std::size_t most_constraints = 1500;
}  // namespace

using Constraint = Polynomial;  // >= 0

std::optional<Polynomial> scaled_sum(const Polynomial& a, std::int64_t factor_a, const Polynomial& b,
                                     std::int64_t factor_b) {
  bool fits = true;
  const auto weigh = [&](std::int64_t x, std::int64_t factor) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(x, factor, &product) || std::abs(product) > largest_coefficient) fits = false;
    return product;
  };
  Polynomial sum;
  sum.constant = weigh(a.constant, factor_a) + weigh(b.constant, factor_b);
  for (const auto& [monomial, coefficient] : a.terms) sum.terms[monomial] += weigh(coefficient, factor_a);
  for (const auto& [monomial, coefficient] : b.terms) sum.terms[monomial] += weigh(coefficient, factor_b);
  std::erase_if(sum.terms, [](const auto& term) { return term.second == 0; });
  if (!fits) return std::nullopt;
  return sum;
}

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  Polynomial total;
  std::optional<Polynomial> sum = Polynomial{};
  const auto add = [&](const std::vector<int>& x, std::int64_t cx, const std::vector<int>& y, std::int64_t cy) {
    std::int64_t coefficient = 0;
    if (!sum || __builtin_mul_overflow(cx, cy, &coefficient) || std::abs(coefficient) > largest_coefficient ||
        x.size() + y.size() > 3) {
      sum.reset();
      return;
    }
    std::vector<int> monomial = x;
    monomial.insert(monomial.end(), y.begin(), y.end());
    std::sort(monomial.begin(), monomial.end());
    Polynomial term;
    if (monomial.empty())
      term.constant = coefficient;
    else if (coefficient != 0)
      term.terms[monomial] = coefficient;
    sum = scaled_sum(*sum, 1, term, 1);
  };
  add({}, a.constant, {}, b.constant);
  for (const auto& [x, cx] : a.terms) {
    add(x, cx, {}, b.constant);
    for (const auto& [y, cy] : b.terms) add(x, cx, y, cy);
  }
  for (const auto& [y, cy] : b.terms) add({}, a.constant, y, cy);
  return sum;
}

namespace {

// Divides by the greatest common divisor of the coefficients; the constant is rounded down, for the sum is whole.
void tighten(Constraint& constraint) {
  std::int64_t divisor = 0;
  for (const auto& [monomial, coefficient] : constraint.terms) divisor = std::gcd(divisor, coefficient);
  if (divisor <= 1) return;
  for (auto& [monomial, coefficient] : constraint.terms) coefficient /= divisor;
  std::int64_t quotient = constraint.constant / divisor;
  if (constraint.constant % divisor != 0 && constraint.constant < 0) --quotient;
  constraint.constant = quotient;
}

}  // namespace

bool mentions_any(const Constraint& constraint, const std::set<std::vector<int>>& monomials) {
  return std::any_of(constraint.terms.begin(), constraint.terms.end(),
                     [&](const auto& term) { return monomials.count(term.first) > 0; });
}

// True where the constraints cannot all hold.
bool is_contradiction(std::vector<Constraint> constraints) {
  while (true) {
    std::map<std::vector<int>, std::pair<std::size_t, std::size_t>> counts;
    for (Constraint& constraint : constraints) {
      tighten(constraint);
      if (constraint.terms.empty() && constraint.constant < 0) return true;
      for (const auto& [monomial, coefficient] : constraint.terms) {
        auto& [positive, negative] = counts[monomial];
        ++(coefficient > 0 ? positive : negative);
      }
    }
    if (counts.empty()) return false;
    // The unknown whose elimination makes the fewest new constraints.
    const auto best = std::min_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
      return a.second.first * a.second.second < b.second.first * b.second.second;
    });
    const std::vector<int> unknown = best->first;
    std::vector<Constraint> above, below, next;
    for (Constraint& constraint : constraints) {
      const auto found = constraint.terms.find(unknown);
      if (found == constraint.terms.end()) {
        next.push_back(std::move(constraint));
      } else {
        (found->second > 0 ? above : below).push_back(std::move(constraint));
      }
    }
    for (const Constraint& up : above)
      for (const Constraint& down : below) {
        std::optional<Constraint> sum = scaled_sum(up, -down.terms.at(unknown), down, up.terms.at(unknown));
        if (!sum) continue;  // leaving a constraint out is safe
        if (sum->terms.empty() && sum->constant >= 0) continue;
        next.push_back(std::move(*sum));
        if (next.size() > most_constraints) return false;
      }
    std::sort(next.begin(), next.end(), [](const Constraint& a, const Constraint& b) {
      return std::tie(a.terms, a.constant) < std::tie(b.terms, b.constant);
    });
    // Of equal terms only the smallest constant says something.
    next.erase(std::unique(next.begin(), next.end(),
                           [](const Constraint& a, const Constraint& b) { return a.terms == b.terms; }),
               next.end());
    constraints = std::move(next);
  }
}

Polynomial unknown_term(int unknown, std::int64_t coefficient, std::int64_t constant) {
  Polynomial result;
  result.constant = constant;
  result.terms[{unknown}] = coefficient;
  return result;
}

}  // namespace tilewright
