// Linear forms of index expressions.
#include "passes/linear_form.h"

#include <algorithm>

namespace tilewright {

namespace {

void add_scaled(LinearForm& form, const Expr& atom, std::int64_t coefficient) {
  for (auto term = form.terms.begin(); term != form.terms.end(); ++term) {
    if (!(term->atom == atom)) continue;
    term->coefficient += coefficient;
    if (term->coefficient == 0) form.terms.erase(term);
    return;
  }
  if (coefficient != 0) form.terms.push_back({atom, coefficient});
}

void add_expr(LinearForm& form, const Expr& expr, std::int64_t factor) {
  if (auto value = integer_value(expr)) {
    form.constant += *value * factor;
    return;
  }
  if (const Binary* node = as<Binary>(expr); node && expr->dtype == Dtype::Index) {
    if (node->op == BinaryOp::Add || node->op == BinaryOp::Sub) {
      add_expr(form, node->lhs, factor);
      add_expr(form, node->rhs, node->op == BinaryOp::Add ? factor : -factor);
      return;
    }
    if (node->op == BinaryOp::Mul) {
      if (auto value = integer_value(node->rhs)) return add_expr(form, node->lhs, factor * *value);
      if (auto value = integer_value(node->lhs)) return add_expr(form, node->rhs, factor * *value);
    }
  }
  if (const Unary* node = as<Unary>(expr); node && node->op == UnaryOp::Neg && expr->dtype == Dtype::Index)
    return add_expr(form, node->operand, -factor);
  add_scaled(form, expr, factor);
}

}  // namespace

LinearForm linear_form(const Expr& expr) {
  LinearForm form;
  add_expr(form, expr, 1);
  return form;
}

LinearForm minus(const LinearForm& a, const LinearForm& b) {
  LinearForm result = a;
  for (const LinearForm::Term& term : b.terms) add_scaled(result, term.atom, -term.coefficient);
  result.constant -= b.constant;
  return result;
}

std::optional<std::int64_t> constant_difference(const LinearForm& a, const LinearForm& b) {
  LinearForm difference = minus(a, b);
  if (!difference.terms.empty()) return std::nullopt;
  return difference.constant;
}

bool is_same_index(const Expr& a, const Expr& b) {
  return a == b || constant_difference(linear_form(a), linear_form(b)) == 0;
}

}  // namespace tilewright
