// Linear reasoning about integers: what an index can be, given what is known of indices, sizes and conditions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/polynomial.h"
#include "ir/expr.h"

namespace tilewright {

// An unknown of a polynomial is an atom: its number in the list of a Facts. It is a variable, or a term that the
// reasoning does not look into (`R / 2`, a loaded value).
class Facts {
 public:
  // `expr` is of Index dtype. Empty where a number would not fit.
  std::optional<Polynomial> polynomial(const Expr& expr);
  // Whether two Index expressions are equal for all values of their variables, as far as rearranging shows.
  bool are_equal(const Expr& a, const Expr& b);

  // Adds expr >= 0.
  void assume_not_negative(const Expr& expr);
  // Adds what a Bool expression says of integers (or what its falsity says); parts that say nothing linear are left
  // out.
  void assume(const Expr& condition, bool is_true = true);
  // How much is known now; `forget_since` takes back what was added behind.
  std::size_t mark() const { return known_.size(); }
  void forget_since(std::size_t mark) { known_.resize(mark); }

  // True only where expr >= 0 follows from the facts; false says nothing.
  bool proves_not_negative(const Expr& expr);

  // The expression with its terms gathered, as messages show it; and how often a variable is added in it, where it
  // stands in no other term.
  std::string gathered(const Expr& expr);
  std::optional<std::int64_t> coefficient(const Expr& expr, const std::string& variable);

 private:
  int atom(const Expr& expr);
  void describe_atom(const Expr& expr, int number);
  std::optional<Polynomial> of_operation(const Binary& binary, const Expr& expr);
  bool refutes(const Polynomial& assumption);

  std::vector<Expr> atoms_;
  std::vector<Polynomial> about_atoms_;  // >= 0, hold always
  std::vector<Polynomial> known_;        // >= 0
  int depth_ = 0;
};

}  // namespace tilewright
