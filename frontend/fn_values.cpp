// Expressions to typed IR: every conversion that the language makes unasked becomes a Cast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"

namespace tilewright {

namespace {

bool is_shift(BinaryOp op) { return op == BinaryOp::Shl || op == BinaryOp::Shr; }

// A float literal of any width.
Expr real_number(double value, Dtype dtype, Span span) {
  return is_narrow_float(dtype) ? cast(dtype, real(value, Dtype::F32, span), span) : real(value, dtype, span);
}

}  // namespace

Expr FnBuilder::value(const Ast& ast) {
  const ValueType type = type_of(ast);
  if (type.is_unknown()) return {};
  if (!type.is_typed()) return leaf(ast, type.is_whole() ? Dtype::Index : Dtype::F32);
  return match(
      ast, [](const AstNumber&) { return Expr(); },
      [&](const AstName& name) { return leaf_name(name, type.dtype, ast->span); },
      [&](const AstAccess& ast_access) { return access(ast_access, ast->span); },
      [&](const AstCall& ast_call) { return call(ast_call, type.dtype, false, ast->span); },
      [&](const AstUnary& ast_unary) {
        Expr operand = value_as(ast_unary.operand, type.dtype);
        return operand ? unary(ast_unary.op, operand, ast->span) : Expr();
      },
      [&](const AstBinary& ast_binary) {
        return info(ast_binary.op).is_logical ? logical(ast_binary, ast->span)
                                              : own_binary(ast_binary, type.dtype, ast->span);
      },
      [&](const AstCompare& compare) { return comparison(compare); },
      [&](const AstIf& branch) {
        return conditional(
            branch, [&](const Ast& part) { return value_as(part, type.dtype); }, ast->span);
      },
      [&](const AstReduction& ast_reduction) { return reduction(ast_reduction, ast->span); });
}

Expr FnBuilder::own_binary(const AstBinary& ast, Dtype dtype, Span span) {
  Expr lhs = value_as(ast.lhs, dtype);
  const ValueType count = type_of(ast.rhs);
  Expr rhs = is_shift(ast.op) && count.is_typed() ? value(ast.rhs) : value_as(ast.rhs, dtype);
  return lhs && rhs ? binary(ast.op, lhs, rhs, span) : Expr();
}

Expr FnBuilder::value_as(const Ast& ast, Dtype dtype) {
  const ValueType type = type_of(ast);
  if (type.is_unknown()) return {};
  if (!type.is_typed()) {
    if (type.is_whole() && is_float(dtype) && !check_integer_division(ast)) return {};
    return leaf(ast, dtype);
  }
  if (is_float(dtype) && is_integer(type.dtype) && !check_integer_division(ast)) return {};
  Expr own = value(ast);
  return own ? cast(dtype, own, ast->span) : Expr();
}

Expr FnBuilder::assigned(const Ast& ast, Dtype dtype) {
  const ValueType type = type_of(ast);
  if (type.is_unknown()) return {};
  if (type.is_typed() || type.is_whole()) return value_as(ast, dtype);
  Expr number = leaf(ast, is_narrow_float(dtype) ? Dtype::F32 : dtype);
  return number ? cast(dtype, number, ast->span) : Expr();
}

// `1 / N` inside a float expression would be 0.
bool FnBuilder::check_integer_division(const Ast& ast) {
  return match(
      ast, [](const AstNumber&) { return true; }, [](const AstName&) { return true; },
      [](const AstAccess&) { return true; }, [](const AstCall&) { return true; },
      [&](const AstUnary& unary) { return check_integer_division(unary.operand); },
      [&](const AstBinary& binary) {
        if (binary.op != BinaryOp::Div) return check_integer_division(binary.lhs) && check_integer_division(binary.rhs);
        if (!type_of(binary.lhs).is_any_integer() || !type_of(binary.rhs).is_any_integer()) return true;
        const std::string lhs = sink_.text_of(binary.lhs->span);
        const std::string cure = as<AstNumber>(binary.lhs) ? fmt::format("{}.0", lhs) : fmt::format("f32({})", lhs);
        sink_.error(ast->span,
                    fmt::format("`{}` divides integers inside a float expression, and would round down",
                                sink_.text_of(ast->span)),
                    fmt::format("write `{} / {}`, or `i64({})` if rounding down is meant", cure,
                                sink_.text_of(binary.rhs->span), sink_.text_of(ast->span)));
        return false;
      },
      [](const AstCompare&) { return true; },
      [&](const AstIf& branch) {
        return check_integer_division(branch.if_true) && check_integer_division(branch.if_false);
      },
      [](const AstReduction&) { return true; });
}

Expr FnBuilder::leaf(const Ast& ast, Dtype dtype) {
  // Inside of brackets types are not asked for: all is Index. Elsewhere a whole number stays one until it meets a
  // value.
  if (dtype != Dtype::Index) {
    const ValueType type = type_of(ast);
    if (type.is_unknown()) return {};
    if (type.is_whole()) {
      const AstNumber* number = as<AstNumber>(ast);
      if (number) return leaf_number(*number, dtype, ast->span, false);
      if (is_float(dtype) && !check_integer_division(ast)) return {};
      Expr whole = leaf(ast, Dtype::Index);
      if (!whole) return {};
      const std::optional<std::int64_t> constant = integer_value(whole);
      if (constant && is_integer(dtype) && !fits(*constant, dtype)) {
        sink_.error(ast->span, fmt::format("{} is no value of {}", *constant, info(dtype).name));
        return {};
      }
      return cast(dtype, whole, ast->span);
    }
  }
  const auto convert = [&](Expr own) -> Expr {
    if (!own) return {};
    if (dtype == Dtype::Index && !is_integer(own->dtype)) {
      sink_.error(
          ast->span,
          fmt::format("`{}` is {}, but an index is an integer", sink_.text_of(ast->span), info(own->dtype).name),
          is_float(own->dtype) ? fmt::format("write `i32({})`", sink_.text_of(ast->span)) : std::string());
      return {};
    }
    return cast(dtype, own, ast->span);
  };
  return match(
      ast, [&](const AstNumber& number) { return leaf_number(number, dtype, ast->span, false); },
      [&](const AstName& name) { return leaf_name(name, dtype, ast->span); },
      [&](const AstAccess& ast_access) { return convert(access(ast_access, ast->span)); },
      [&](const AstCall& ast_call) { return call(ast_call, dtype, true, ast->span); },
      [&](const AstUnary& ast_unary) -> Expr {
        if (const AstNumber* number = as<AstNumber>(ast_unary.operand); number && ast_unary.op == UnaryOp::Neg)
          return leaf_number(*number, dtype, ast->span, true);
        if (ast_unary.op == UnaryOp::Not || (ast_unary.op == UnaryOp::BitNot && is_float(dtype)))
          return convert(value(ast));
        Expr operand = leaf(ast_unary.operand, dtype);
        if (const std::optional<double> number =
                operand && ast_unary.op == UnaryOp::Neg ? real_value(operand) : std::nullopt)
          return real(-*number, dtype, ast->span);
        return operand ? unary(ast_unary.op, operand, ast->span) : Expr();
      },
      [&](const AstBinary& ast_binary) { return leaf_binary(ast_binary, dtype, ast->span); },
      [&](const AstCompare& compare) { return convert(comparison(compare)); },
      [&](const AstIf& branch) {
        return conditional(
            branch, [&](const Ast& part) { return leaf(part, dtype); }, ast->span);
      },
      [&](const AstReduction& ast_reduction) -> Expr {
        if (dtype == Dtype::Index) {
          sink_.error(ast->span, "a reduction inside of an index or a bound", "give it a name with `let` first");
          return {};
        }
        return convert(reduction(ast_reduction, ast->span));
      });
}

Expr FnBuilder::leaf_number(const AstNumber& number, Dtype dtype, Span span, bool is_negative) {
  const double sign = is_negative ? -1 : 1;
  if (is_float(dtype))
    return real_number(sign * (number.is_float ? number.real : static_cast<double>(number.integer)), dtype, span);
  if (number.is_float) {
    sink_.error(span, fmt::format("`{}` is a float, but {} is needed", sink_.text_of(span),
                                  dtype == Dtype::Index ? "an integer" : info(dtype).name));
    return {};
  }
  const std::int64_t value = is_negative ? -number.integer : number.integer;
  if (dtype == Dtype::Bool || !fits(value, dtype)) {
    sink_.error(span, fmt::format("{} is no value of {}", value, info(dtype).name),
                dtype == Dtype::Bool ? "the values of bool are `true` and `false`" : "");
    return {};
  }
  return integer(value, dtype, span);
}

Expr FnBuilder::leaf_name(const AstName& name, Dtype dtype, Span span) {
  if (name.name == "true" || name.name == "false") {
    Expr constant = integer(name.name == "true" ? 1 : 0, Dtype::Bool, span);
    return dtype == Dtype::Bool ? constant : cast(dtype, constant, span);
  }
  if (name.name == "inf" || name.name == "nan") {
    if (is_float(dtype)) return real_number(name.name == "inf" ? HUGE_VAL : NAN, dtype, span);
    sink_.error(span, fmt::format("`{}` is a float, but an integer is needed", name.name));
    return {};
  }
  const bool is_index =
      std::any_of(indices_.begin(), indices_.end(), [&](const Index& index) { return index.name == name.name; });
  if (is_index || has_dim(name.name)) return cast(dtype, var(name.name, Dtype::Index, span), span);
  if (tensors_.count(name.name) == 0) {
    unknown_name(name.name, span);
    return {};
  }
  const Tensor* tensor = readable(AstWord{name.name, span}, {}, span);
  if (!tensor) return {};
  if (dtype == Dtype::Index && !is_integer(tensor->dtype)) {
    sink_.error(span, fmt::format("`{}` is {}, but an index is an integer", name.name, info(tensor->dtype).name));
    return {};
  }
  return cast(dtype, load(Access{name.name, {}, {}, span}, tensor->dtype, span), span);
}

Expr FnBuilder::leaf_binary(const AstBinary& ast, Dtype dtype, Span span) {
  const BinaryInfo& facts = info(ast.op);
  if (facts.is_logical) {
    Expr own = logical(ast, span);
    return own ? cast(dtype, own, span) : Expr();
  }
  if (is_float(dtype)) {
    // Bits and remainders are an integer's affair, also inside of a float expression.
    const bool is_whole_affair = is_shift(ast.op) || ast.op == BinaryOp::Mod || ast.op == BinaryOp::BitAnd ||
                                 ast.op == BinaryOp::BitOr || ast.op == BinaryOp::BitXor;
    const ValueType lhs = type_of(ast.lhs);
    const ValueType rhs = type_of(ast.rhs);
    if (is_whole_affair) {
      const std::optional<ValueType> own = is_shift(ast.op) ? lhs : common_type(lhs, rhs);
      Expr result = own && own->is_typed() ? own_binary(ast, own->dtype, span) : Expr();
      return result ? cast(dtype, result, span) : Expr();
    }
    if (ast.op == BinaryOp::Div && lhs.is_any_integer() && rhs.is_any_integer()) {
      sink_.error(
          span,
          fmt::format("`{}` divides integers inside a float expression, and would round down", sink_.text_of(span)),
          fmt::format("write `f32({}) / {}`, or `i64({})` if rounding down is meant", sink_.text_of(ast.lhs->span),
                      sink_.text_of(ast.rhs->span), sink_.text_of(span)));
      return {};
    }
  }
  Expr lhs = leaf(ast.lhs, dtype);
  Expr rhs = leaf(ast.rhs, dtype);
  return lhs && rhs ? binary(ast.op, lhs, rhs, span) : Expr();
}

// a < b <= c is a < b and b <= c; b is one value, however often it is written.
Expr FnBuilder::comparison(const AstCompare& compare) {
  std::vector<Expr> links;
  for (std::size_t k = 0; k + 1 < compare.operands.size(); ++k) {
    const Ast& lhs_ast = compare.operands[k];
    const Ast& rhs_ast = compare.operands[k + 1];
    for (const Ast& side : {lhs_ast, rhs_ast})
      if (type_of(side).is_unknown()) return {};
    const ValueType lhs_type = type_of(lhs_ast);
    const ValueType rhs_type = type_of(rhs_ast);
    const bool are_integers = lhs_type.is_any_integer() && rhs_type.is_any_integer();
    if (!are_integers && !common_type(lhs_type, rhs_type)) return {};
    const Dtype dtype = comparison_type(lhs_ast, rhs_ast);
    const auto side = [&](const Ast& ast) -> Expr {
      if (dtype != Dtype::Index || type_of(ast).is_whole()) return value_as(ast, dtype);
      Expr own = value(ast);
      return own ? cast(Dtype::Index, own, ast->span) : Expr();
    };
    Expr lhs = side(lhs_ast);
    Expr rhs = side(rhs_ast);
    if (!lhs || !rhs) return {};
    links.push_back(binary(compare.ops[k], lhs, rhs, join(lhs_ast->span, rhs_ast->span)));
  }
  Expr chain = links.front();
  for (std::size_t k = 1; k < links.size(); ++k)
    chain = binary(BinaryOp::And, chain, links[k], join(compare.operands.front()->span, compare.operands[k + 1]->span));
  return chain;
}

// The right side is evaluated only where the left does not decide, so the left bounds the indices in it.
Expr FnBuilder::logical(const AstBinary& ast, Span span) {
  for (const Ast& side : {ast.lhs, ast.rhs})
    if (!type_of(side).is(Dtype::Bool)) return {};
  Expr lhs = value(ast.lhs);
  if (!lhs) return {};
  const std::size_t before = facts_.mark();
  const bool is_and = ast.op == BinaryOp::And;
  facts_.assume(lhs, is_and);
  guards_.push_back(is_and ? lhs : unary(UnaryOp::Not, lhs));
  Expr rhs = value(ast.rhs);
  guards_.pop_back();
  facts_.forget_since(before);
  return rhs ? binary(ast.op, lhs, rhs, span) : Expr();
}

Expr FnBuilder::conditional(const AstIf& branch, const std::function<Expr(const Ast&)>& build, Span span) {
  if (!type_of(branch.condition).is(Dtype::Bool)) {
    // Elsewhere the types were asked before; inside of brackets they were not.
    if (!type_of(branch.condition).is_unknown())
      sink_.error(branch.condition->span, fmt::format("the condition of `if` is {}, but a bool is needed",
                                                      describe(type_of(branch.condition))));
    return {};
  }
  Expr condition = value(branch.condition);
  if (!condition) return {};
  const auto branch_where = [&](const Ast& ast, bool is_true) {
    const std::size_t before = facts_.mark();
    facts_.assume(condition, is_true);
    guards_.push_back(is_true ? condition : unary(UnaryOp::Not, condition));
    Expr result = build(ast);
    guards_.pop_back();
    facts_.forget_since(before);
    return result;
  };
  Expr if_true = branch_where(branch.if_true, true);
  Expr if_false = branch_where(branch.if_false, false);
  return if_true && if_false ? select(condition, if_true, if_false, span) : Expr();
}

void FnBuilder::unknown_name(const std::string& name, Span span) {
  if (reduction_by_name(name)) {
    sink_.error(span, fmt::format("`{}` without brackets, but a reduction names its indices", name),
                fmt::format("write `{}[k] …`", name));
    return;
  }
  if (!statement_) {
    // In a launch, a bench, a condition of a schedule.
    if (fn_.name.empty()) {
      sink_.error(span, fmt::format("`{}` is a name, but a constant is needed", name));
      return;
    }
    std::string help = did_you_mean(name, fn_.dims);
    if (help.empty() && !fn_.dims.empty())
      help = fmt::format("the dims of `{}` are {}", fn_.name, fmt::join(fn_.dims, ", "));
    sink_.error(span, fmt::format("`{}` is not a dim of `{}`", name, fn_.name), help);
    return;
  }
  std::vector<std::string> known = fn_.dims;
  for (const auto& [tensor, symbol] : tensors_) known.push_back(tensor);
  for (const Index& index : indices_) known.push_back(index.name);
  std::string help = did_you_mean(name, known);
  if (help.empty()) help = "an index stands on the left side of its statement, or is named by a reduction";
  sink_.error_once(fmt::format("{}: unknown {}", fn_.name, name), span,
                   fmt::format("`{}` is neither an index nor a dim nor a parameter", name),
                   fmt::format("`{}` also stands here", name), help);
}

bool FnBuilder::has_dim(const std::string& name) const {
  return std::find(fn_.dims.begin(), fn_.dims.end(), name) != fn_.dims.end();
}

Expr FnBuilder::size_expression(const Ast& ast) { return leaf(ast, Dtype::Index); }

Expr FnBuilder::size_condition(const Ast& ast) {
  const ValueType type = type_of(ast);
  if (type.is_unknown()) return {};
  if (!type.is(Dtype::Bool)) {
    sink_.error(ast->span,
                fmt::format("`{}` is {}, but a condition is needed", sink_.text_of(ast->span), describe(type)),
                "for example `N % 4 == 0`");
    return {};
  }
  return value(ast);
}

}  // namespace tilewright
