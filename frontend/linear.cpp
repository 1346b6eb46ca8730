// Index expressions as polynomials, what is known of their terms, and proofs.
//
// To prove goal >= 0, goal <= -1 is assumed and shown to contradict the facts. Products of two unknowns count as
// unknowns of their own; where one occurs, the facts about its factors are multiplied up once, which is what
// `i*N + j < M*N` and `p / N < M` need.
#include "frontend/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "ir/plan.h"

namespace tilewright {

int Facts::atom(const Expr& expr) {
  for (std::size_t number = 0; number < atoms_.size(); ++number)
    if (atoms_[number] == expr) return static_cast<int>(number);
  const int number = static_cast<int>(atoms_.size());
  atoms_.push_back(expr);
  describe_atom(expr, number);
  return number;
}

// What holds of a term by what it is: a loaded u8 is 0 to 255, a quotient lies between two multiples.
void Facts::describe_atom(const Expr& expr, int number) {
  const auto add = [&](std::optional<Polynomial> fact) {
    if (fact) about_atoms_.push_back(std::move(*fact));
  };
  const auto add_range = [&](std::int64_t lo, std::int64_t hi) {
    add(unknown_term(number, 1, -lo));
    add(unknown_term(number, -1, hi));
  };
  const auto describe_quotient = [&](const Polynomial& value, const Polynomial& divisor, std::int64_t rounding) {
    // value - divisor·q in 0 .. divisor, both moved by `rounding` (0 for floor, divisor - 1 for ceil).
    const std::optional<Polynomial> multiple = product(divisor, unknown_term(number));
    if (!multiple) return;
    std::optional<Polynomial> rest = scaled_sum(value, 1, *multiple, -1);
    if (!rest) return;
    rest->constant += rounding;
    add(rest);
    std::optional<Polynomial> room = scaled_sum(divisor, 1, *rest, -1);
    if (room) room->constant -= 1;
    add(room);
  };
  if (const Cast* conversion = as<Cast>(expr)) {
    const DtypeInfo& facts = info(conversion->operand->dtype);
    if (facts.kind == DtypeKind::Bool) add_range(0, 1);
    if (facts.kind == DtypeKind::Unsigned && facts.bits < 40) add_range(0, (std::int64_t{1} << facts.bits) - 1);
    if (facts.kind == DtypeKind::Signed && facts.bits < 40)
      add_range(-(std::int64_t{1} << (facts.bits - 1)), (std::int64_t{1} << (facts.bits - 1)) - 1);
  } else if (const Call* function = as<Call>(expr)) {
    if (function->function == "within") {
      add(unknown_term(number));
      const std::optional<Polynomial> size = polynomial(function->arguments[1]);
      if (size) add(scaled_sum(*size, 1, unknown_term(number), -1));
    } else if (function->function == "ceildiv") {
      const std::optional<std::int64_t> divisor = integer_value(function->arguments[1]);
      const std::optional<Polynomial> value = polynomial(function->arguments[0]);
      if (divisor && *divisor > 0 && *divisor < largest_coefficient && value)
        describe_quotient(*value, Polynomial{*divisor, {}}, *divisor - 1);
    } else if (function->function == "abs") {
      const std::optional<Polynomial> value = polynomial(function->arguments[0]);
      if (value) {
        add(scaled_sum(unknown_term(number), 1, *value, -1));
        add(scaled_sum(unknown_term(number), 1, *value, 1));
      }
    }
  } else if (const Binary* binary = as<Binary>(expr)) {
    const std::optional<std::int64_t> count = integer_value(binary->rhs);
    if (binary->op == BinaryOp::BitAnd && count && *count >= 0 && *count < largest_coefficient) add_range(0, *count);
    const std::optional<Polynomial> value = polynomial(binary->lhs);
    if (binary->op == BinaryOp::Shr && count && *count >= 0 && *count < 40 && value)
      describe_quotient(*value, Polynomial{std::int64_t{1} << *count, {}}, 0);
    if (binary->op != BinaryOp::Div && binary->op != BinaryOp::Mod) return;
    const std::optional<Polynomial> divisor = polynomial(binary->rhs);
    if (!value || !divisor) return;
    // A divisor of unknown sign gives nothing.
    const bool is_positive = count ? *count > 0 : proves_not_negative(binary->rhs + integer(-1));
    if (!is_positive) return;
    if (binary->op == BinaryOp::Div) {
      describe_quotient(*value, *divisor, 0);
    } else {
      add(unknown_term(number));
      std::optional<Polynomial> room = scaled_sum(*divisor, 1, unknown_term(number), -1);
      if (room) room->constant -= 1;
      add(room);
    }
  }
}

std::optional<Polynomial> Facts::polynomial(const Expr& expr) {
  if (const std::optional<std::int64_t> value = integer_value(expr)) {
    if (std::abs(*value) > largest_coefficient) return std::nullopt;
    return Polynomial{*value, {}};
  }
  if (const Binary* binary = as<Binary>(expr)) {
    const bool is_sum = binary->op == BinaryOp::Add || binary->op == BinaryOp::Sub;
    if (is_sum || binary->op == BinaryOp::Mul) {
      const std::optional<Polynomial> lhs = polynomial(binary->lhs);
      const std::optional<Polynomial> rhs = polynomial(binary->rhs);
      if (!lhs || !rhs) return std::nullopt;
      const std::optional<Polynomial> result =
          is_sum ? scaled_sum(*lhs, 1, *rhs, binary->op == BinaryOp::Add ? 1 : -1) : product(*lhs, *rhs);
      if (result) return result;
    }
  }
  if (const Unary* unary = as<Unary>(expr); unary && unary->op == UnaryOp::Neg) {
    const std::optional<Polynomial> operand = polynomial(unary->operand);
    if (!operand) return std::nullopt;
    return scaled_sum(Polynomial{}, 1, *operand, -1);
  }
  return unknown_term(atom(expr));
}

bool Facts::are_equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  const std::optional<Polynomial> x = polynomial(a);
  const std::optional<Polynomial> y = polynomial(b);
  return x && y && *x == *y;
}

std::string Facts::gathered(const Expr& expr) {
  const std::optional<Polynomial> sum = polynomial(expr);
  if (!sum) return print(expr);
  std::string text;
  const auto add = [&](std::int64_t coefficient, const std::string& what) {
    const std::int64_t size = std::abs(coefficient);
    if (coefficient < 0)
      text += text.empty() ? "-" : " - ";
    else if (!text.empty())
      text += " + ";
    text += what.empty() ? fmt::format("{}", size) : size == 1 ? what : fmt::format("{}*{}", size, what);
  };
  for (const auto& [monomial, coefficient] : sum->terms) {
    std::string what;
    for (int number : monomial) {
      const Expr& part = atoms_[static_cast<std::size_t>(number)];
      if (!what.empty()) what += "*";
      const Cast* conversion = as<Cast>(part);
      what += as<Binary>(part) ? fmt::format("({})", print(part)) : print(conversion ? conversion->operand : part);
    }
    add(coefficient, what);
  }
  if (sum->constant != 0 || text.empty()) add(sum->constant, "");
  return text;
}

std::optional<std::int64_t> Facts::coefficient(const Expr& expr, const std::string& variable) {
  const std::optional<Polynomial> sum = polynomial(expr);
  if (!sum) return std::nullopt;
  std::optional<std::int64_t> result = 0;
  for (const auto& [monomial, coefficient] : sum->terms)
    for (int number : monomial) {
      const Expr& part = atoms_[static_cast<std::size_t>(number)];
      if (!uses_var(part, variable)) continue;
      if (monomial.size() > 1 || !as<Var>(part)) return std::nullopt;
      result = coefficient;
    }
  return result;
}

void Facts::assume_not_negative(const Expr& expr) {
  if (const std::optional<Polynomial> fact = polynomial(expr)) known_.push_back(*fact);
}

void Facts::assume(const Expr& condition, bool is_true) {
  if (const Unary* unary = as<Unary>(condition)) {
    if (unary->op == UnaryOp::Not) assume(unary->operand, !is_true);
    return;
  }
  const Binary* binary = as<Binary>(condition);
  if (!binary) return;
  // `a and b` true says both; `a or b` false denies both.
  if ((binary->op == BinaryOp::And && is_true) || (binary->op == BinaryOp::Or && !is_true)) {
    assume(binary->lhs, is_true);
    assume(binary->rhs, is_true);
    return;
  }
  Expr lhs = binary->lhs;
  Expr rhs = binary->rhs;
  if (!is_integer(lhs->dtype)) return;
  // Of narrower integers only values, which do not wrap.
  const auto is_value = [](const Expr& e) { return e->dtype == Dtype::Index || as<Const>(e) || as<Load>(e); };
  if (!is_value(lhs) || !is_value(rhs) || lhs->dtype == Dtype::U64 || rhs->dtype == Dtype::U64) return;
  lhs = cast(Dtype::Index, lhs);
  rhs = cast(Dtype::Index, rhs);
  switch (binary->op) {
    case BinaryOp::Lt:
      assume_not_negative(is_true ? rhs - lhs + -1 : lhs - rhs);
      return;
    case BinaryOp::Le:
      assume_not_negative(is_true ? rhs - lhs : lhs - rhs + -1);
      return;
    case BinaryOp::Gt:
      assume_not_negative(is_true ? lhs - rhs + -1 : rhs - lhs);
      return;
    case BinaryOp::Ge:
      assume_not_negative(is_true ? lhs - rhs : rhs - lhs + -1);
      return;
    case BinaryOp::Eq:
    case BinaryOp::Ne:
      if (is_true != (binary->op == BinaryOp::Eq)) return;
      assume_not_negative(lhs - rhs);
      assume_not_negative(rhs - lhs);
      return;
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Mod:
    case BinaryOp::Min:
    case BinaryOp::Max:
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor:
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return;
  }
}

bool Facts::refutes(const Polynomial& assumption) {
  std::vector<Constraint> constraints = {assumption};
  const auto consider = [&](const Polynomial& fact) { constraints.push_back(fact); };
  // Where products occur, facts about a factor times the other factor are facts about the product.
  std::vector<Polynomial> all = about_atoms_;
  all.insert(all.end(), known_.begin(), known_.end());
  std::set<int> factors;
  const auto find_factors = [&](const Polynomial& fact) {
    for (const auto& [monomial, coefficient] : fact.terms)
      if (monomial.size() > 1) factors.insert(monomial.begin(), monomial.end());
  };
  find_factors(assumption);
  for (const Polynomial& fact : all) find_factors(fact);
  std::vector<Polynomial> multiplied;
  if (factors.size() <= 8) {
    for (int factor : factors) {
      const Polynomial itself = unknown_term(factor);
      if (std::find(all.begin(), all.end(), itself) == all.end()) continue;  // not known to be >= 0
      if (const std::optional<Polynomial> up = product(assumption, itself)) consider(*up);
      for (const Polynomial& fact : all)
        if (std::any_of(fact.terms.begin(), fact.terms.end(), [&](const auto& term) {
              return term.first.size() == 1 && term.first[0] != factor && factors.count(term.first[0]) > 0;
            }))
          if (const std::optional<Polynomial> up = product(fact, itself)) multiplied.push_back(*up);
    }
  }
  all.insert(all.end(), multiplied.begin(), multiplied.end());
  // Only what is connected with the assumption by shared unknowns can contradict it.
  std::set<std::vector<int>> reached;
  for (const Constraint& constraint : constraints)
    for (const auto& [monomial, coefficient] : constraint.terms) reached.insert(monomial);
  std::vector<bool> is_taken(all.size(), false);
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (is_taken[k] || !mentions_any(all[k], reached)) continue;
      is_taken[k] = grows = true;
      consider(all[k]);
      for (const auto& [monomial, coefficient] : all[k].terms) reached.insert(monomial);
    }
  }
  return is_contradiction(std::move(constraints));
}

bool Facts::proves_not_negative(const Expr& expr) {
  if (depth_ > 8) return false;
  ++depth_;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  // A value that depends on a condition, and a minimum or maximum, is looked at case by case.
  Expr choice;
  walk(expr, [&](const Expr& part) {
    if (choice) return false;
    const Binary* binary = as<Binary>(part);
    if (part->dtype == Dtype::Index &&
        (as<Select>(part) || (binary && (binary->op == BinaryOp::Min || binary->op == BinaryOp::Max))))
      choice = part;
    // What is loaded is not looked into.
    return !choice && !as<Load>(part) && !as<Reduce>(part);
  });
  if (choice) {
    Expr condition, if_true, if_false;
    if (const Select* branch = as<Select>(choice)) {
      condition = branch->condition;
      if_true = branch->if_true;
      if_false = branch->if_false;
    } else {
      const Binary* binary = as<Binary>(choice);
      condition = less(binary->lhs, binary->rhs);
      if_true = binary->op == BinaryOp::Min ? binary->lhs : binary->rhs;
      if_false = binary->op == BinaryOp::Min ? binary->rhs : binary->lhs;
    }
    const auto holds_where = [&](bool is_true, const Expr& value) {
      const std::size_t before = mark();
      assume(condition, is_true);
      const bool holds =
          proves_not_negative(rewrite(expr, [&](const Expr& part) { return part == choice ? value : part; }));
      forget_since(before);
      return holds;
    };
    return holds_where(true, if_true) && holds_where(false, if_false);
  }
  const std::optional<Polynomial> goal = polynomial(expr);
  if (!goal) return false;
  if (goal->terms.empty()) return goal->constant >= 0;
  // expr <= -1
  std::optional<Polynomial> assumption = scaled_sum(Polynomial{}, 1, *goal, -1);
  if (!assumption) return false;
  assumption->constant -= 1;
  return refutes(*assumption);
}

}  // namespace tilewright
