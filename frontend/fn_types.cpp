// The type of every expression outside of brackets, found before anything is built; faults of names and types are
// reported here.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"

namespace tilewright {

namespace {
std::string mixed(const Sink& sink, const Ast& ast, ValueType type) {
  return fmt::format("`{}`, which is {},", sink.text_of(ast->span), describe(type));
}
}  // namespace

ValueType FnBuilder::type_of(const Ast& ast) {
  const auto found = types_.find(ast.get());
  if (found != types_.end()) return found->second;
  const ValueType type = find_type(ast);
  types_.emplace(ast.get(), type);
  return type;
}

ValueType FnBuilder::find_type(const Ast& ast) {
  return match(
      ast, [](const AstNumber& number) { return number.is_float ? ValueType::real() : ValueType::whole(); },
      [&](const AstName& name) { return type_of_name(name, ast->span); },
      [&](const AstAccess& access) {
        const Tensor* tensor = readable(access.tensor, access.index, ast->span);
        return tensor ? ValueType::of(tensor->dtype) : ValueType::unknown();
      },
      [&](const AstCall& call) { return type_of_call_once(call, ast->span); },
      [&](const AstUnary& unary) { return type_of_unary(unary); },
      [&](const AstBinary& binary) { return type_of_binary(binary, ast->span); },
      [&](const AstCompare& compare) { return type_of_compare(compare); },
      [&](const AstIf& branch) { return type_of_if(branch, ast->span); },
      [&](const AstReduction& reduction) { return type_of_reduction(reduction, ast->span); });
}

ValueType FnBuilder::type_of_name(const AstName& name, Span span) {
  if (name.name == "true" || name.name == "false") return ValueType::of(Dtype::Bool);
  if (name.name == "inf" || name.name == "nan") return ValueType::real();
  if (std::any_of(indices_.begin(), indices_.end(), [&](const Index& index) { return index.name == name.name; }))
    return ValueType::whole();
  if (has_dim(name.name)) return ValueType::whole();
  if (tensors_.count(name.name) > 0) {
    const Tensor* tensor = readable(AstWord{name.name, span}, {}, span);
    return tensor ? ValueType::of(tensor->dtype) : ValueType::unknown();
  }
  unknown_name(name.name, span);
  return ValueType::unknown();
}

ValueType FnBuilder::type_of_unary(const AstUnary& unary) {
  const ValueType type = type_of(unary.operand);
  if (type.is_unknown()) return type;
  const auto refuse = [&](std::string_view op, std::string_view needed) {
    sink_.error(unary.operand->span, fmt::format("`{}` of {}, but {} is needed", op, describe(type), needed));
    return ValueType::unknown();
  };
  switch (unary.op) {
    case UnaryOp::Neg:
      return type.is(Dtype::Bool) ? refuse("-", "a number") : arithmetic_type(type);
    case UnaryOp::Not:
      return type.is(Dtype::Bool) ? type : refuse("not", "a bool");
    case UnaryOp::BitNot:
      return type.is_any_integer() ? type : refuse("~", "an integer");
  }
  return ValueType::unknown();
}

ValueType FnBuilder::meet(const Ast& a, ValueType type_a, const Ast& b, ValueType type_b) {
  const std::optional<ValueType> common = common_type(type_a, type_b);
  if (common) return *common;
  // The narrowest place is the operand that a conversion would stand at.
  const bool is_a = type_a.is(Dtype::Bool) || (type_a.is_any_integer() && type_b.is_any_float());
  const Ast& odd = is_a ? a : b;
  const std::string words = sink_.text_of(odd->span);
  const ValueType other = is_a ? type_b : type_a;
  std::string help;
  if (other.is_typed()) {
    const Dtype dtype = is_narrow_float(other.dtype) ? Dtype::F32 : other.dtype;
    help = fmt::format("write the conversion that is meant, such as `{}({})`", info(dtype).name, words);
    if (type_of(odd).is_real() && is_integer(other.dtype)) {
      const std::string rest = sink_.text_of(is_a ? b->span : a->span);
      help = fmt::format("write the conversion that is meant, such as `f32({})`", rest);
    }
  } else if (other.is_real()) {
    help = fmt::format("write the conversion that is meant, such as `f32({})`", words);
  }
  sink_.error(odd->span,
              fmt::format("{} stands beside {}, and neither type holds the other", mixed(sink_, odd, type_of(odd)),
                          describe(other)),
              help);
  return ValueType::unknown();
}

ValueType FnBuilder::type_of_binary(const AstBinary& binary, Span span) {
  const ValueType lhs = type_of(binary.lhs);
  const ValueType rhs = type_of(binary.rhs);
  if (lhs.is_unknown() || rhs.is_unknown()) return ValueType::unknown();
  const std::string_view spelling = info(binary.op).spelling;
  if (info(binary.op).is_logical) {
    bool are_bools = true;
    for (const auto& [operand, type] : {std::pair(binary.lhs, lhs), std::pair(binary.rhs, rhs)})
      if (!type.is(Dtype::Bool)) {
        sink_.error(operand->span, fmt::format("`{}` of {}, but bools are needed", spelling, describe(type)),
                    "compare it with something");
        are_bools = false;
      }
    return are_bools ? lhs : ValueType::unknown();
  }
  const bool is_bitwise =
      binary.op == BinaryOp::BitAnd || binary.op == BinaryOp::BitOr || binary.op == BinaryOp::BitXor;
  const bool is_shift = binary.op == BinaryOp::Shl || binary.op == BinaryOp::Shr;
  if (is_shift && lhs.is_any_integer() && rhs.is_any_integer()) return lhs;
  const ValueType common = meet(binary.lhs, lhs, binary.rhs, rhs);
  if (common.is_unknown()) return common;
  if (common.is(Dtype::Bool)) {
    if (is_bitwise) return common;
    sink_.error(span, fmt::format("`{}` of bools, but numbers are needed", spelling),
                fmt::format("write `i32({})`", sink_.text_of(binary.lhs->span)));
    return ValueType::unknown();
  }
  if ((is_bitwise || is_shift || binary.op == BinaryOp::Mod) && !common.is_any_integer()) {
    sink_.error(span, fmt::format("`{}` of {}, but integers are needed", spelling, describe(common)));
    return ValueType::unknown();
  }
  return arithmetic_type(common);
}

ValueType FnBuilder::type_of_compare(const AstCompare& compare) {
  ValueType result = ValueType::of(Dtype::Bool);
  for (const Ast& operand : compare.operands)
    if (type_of(operand).is_unknown()) result = ValueType::unknown();
  if (result.is_unknown()) return result;
  for (std::size_t k = 0; k + 1 < compare.operands.size(); ++k) {
    const ValueType lhs = type_of(compare.operands[k]);
    const ValueType rhs = type_of(compare.operands[k + 1]);
    // Of integers every two can be compared: they meet in 64 bits.
    const bool are_integers =
        lhs.is_any_integer() && rhs.is_any_integer() && !lhs.is(Dtype::U64) && !rhs.is(Dtype::U64);
    if (!are_integers && meet(compare.operands[k], lhs, compare.operands[k + 1], rhs).is_unknown())
      result = ValueType::unknown();
    const bool is_equality = compare.ops[k] == BinaryOp::Eq || compare.ops[k] == BinaryOp::Ne;
    if (!result.is_unknown() && lhs.is(Dtype::Bool) && !is_equality) {
      sink_.error(compare.operands[k]->span, "bools are equal or not, but neither is less");
      result = ValueType::unknown();
    }
  }
  return result;
}

ValueType FnBuilder::type_of_if(const AstIf& branch, Span) {
  const ValueType condition = type_of(branch.condition);
  const ValueType if_true = type_of(branch.if_true);
  const ValueType if_false = type_of(branch.if_false);
  if (!condition.is_unknown() && !condition.is(Dtype::Bool)) {
    sink_.error(branch.condition->span,
                fmt::format("the condition of `if` is {}, but a bool is needed", describe(condition)),
                "compare it with something");
    return ValueType::unknown();
  }
  if (condition.is_unknown() || if_true.is_unknown() || if_false.is_unknown()) return ValueType::unknown();
  return meet(branch.if_true, if_true, branch.if_false, if_false);
}

ValueType FnBuilder::type_of_reduction(const AstReduction& reduction, Span span) {
  // Names are enough for types; the ranges follow when it is built.
  const std::size_t outer = indices_.size();
  for (const AstRange& axis : reduction.axes) {
    if (!check_new_index(axis.name)) {
      indices_.resize(outer);
      return ValueType::unknown();
    }
    indices_.push_back(Index{axis.name.text, axis.name.span, {}, {}, false});
  }
  const ValueType body = type_of(reduction.body);
  indices_.resize(outer);
  if (body.is_unknown()) return body;
  const auto refuse = [&](std::string message, std::string help = {}) {
    sink_.error(reduction.body->span, std::move(message), std::move(help));
    return ValueType::unknown();
  };
  const std::string word(name_of(reduction.word));
  switch (reduction.word) {
    case ReductionWord::Any:
    case ReductionWord::All:
    case ReductionWord::Count:
      if (!body.is(Dtype::Bool))
        return refuse(fmt::format("`{}` of {}, but a bool is needed", word, describe(body)),
                      fmt::format("compare it: `{}[k] A[k] > 0`", word));
      return ValueType::of(reduction.word == ReductionWord::Count ? reduction.accumulator.value_or(Dtype::I32)
                                                                  : Dtype::Bool);
    case ReductionWord::Mean: {
      if (body.is(Dtype::Bool)) return refuse("`mean` of a bool, but a number is needed", "write `mean[…] f32(…)`");
      const Dtype dtype = reduction.accumulator.value_or(body.is(Dtype::F64) ? Dtype::F64 : Dtype::F32);
      if (!is_float(dtype)) return refuse(fmt::format("a mean is a float, and {} is none", info(dtype).name));
      return ValueType::of(dtype);
    }
    case ReductionWord::ArgMax:
    case ReductionWord::ArgMin:
      if (body.is(Dtype::Bool)) return refuse(fmt::format("`{}` of a bool, but a number is needed", word), fmt::format("write `{}[…] i32(…)`", word));
      return ValueType::of(reduction.accumulator.value_or(Dtype::I32));
    case ReductionWord::Sum:
    case ReductionWord::Prod:
    case ReductionWord::Max:
    case ReductionWord::Min:
      break;
  }
  // `sum[k] A[k] / 2` of integers: is each term rounded, or the sum?
  if (const AstBinary* division = as<AstBinary>(reduction.body);
      division && division->op == BinaryOp::Div && !reduction.body->has_parentheses && body.is_any_integer())
    return refuse(fmt::format("the body of `{}` divides integers, and each term would be rounded", word),
                  fmt::format("write `{}[…] ({})` if that is meant, or `({}[…] …) / …` to round once", word,
                              sink_.text_of(reduction.body->span), word));
  const Dtype own = accumulator_of(settled(body));
  const Dtype dtype = reduction.accumulator.value_or(own);
  const bool is_lossless = !body.is_typed() || body.is(Dtype::Bool) || holds(dtype, body.dtype) ||
                           (is_float(dtype) && is_integer(body.dtype));
  if (!is_lossless || (body.is_real() && !is_float(dtype)))
    return refuse(
        fmt::format("the terms are {}, which an accumulator of {} does not hold", describe(body), info(dtype).name),
        fmt::format("write the conversion that is meant, `{}({})`", info(dtype).name,
                    sink_.text_of(reduction.body->span)));
  (void)span;
  return ValueType::of(dtype);
}

bool FnBuilder::check_assignable(const Ast& ast, ValueType type, Dtype target, const std::string& what) {
  if (type.is_unknown()) return false;
  const std::string words = sink_.text_of(ast->span);
  if (type.is_any_float() && !is_float(target)) {
    sink_.error(ast->span,
                fmt::format("{} is {}, but the value is {}: how to make an integer of a float must be written", what,
                            info(target).name, describe(type)),
                target == Dtype::Bool ? fmt::format("write `{} != 0.0`", words)
                                      : fmt::format("write `{}(round({}))`, or `{}({})` to cut", info(target).name,
                                                    words, info(target).name, words));
    return false;
  }
  if (target == Dtype::Bool && !type.is(Dtype::Bool)) {
    sink_.error(ast->span, fmt::format("{} is bool, but the value is {}", what, describe(type)),
                fmt::format("write `{} != 0`", words));
    return false;
  }
  return true;
}

// Integers meet in Index where a size or an index is on one side, for there no value is lost.
Dtype FnBuilder::comparison_type(const Ast& lhs, const Ast& rhs) {
  const ValueType a = type_of(lhs);
  const ValueType b = type_of(rhs);
  if (a.is_any_integer() && b.is_any_integer() && !a.is(Dtype::U64) && !b.is(Dtype::U64)) {
    const std::optional<ValueType> common = common_type(a, b);
    const bool is_named = (a.is_whole() && has_names(lhs)) || (b.is_whole() && has_names(rhs));
    if (is_named || !common || !common->is_typed()) return Dtype::Index;
    // A literal that its neighbour's type does not hold is compared as a number all the same.
    for (const Ast& side : {lhs, rhs})
      if (type_of(side).is_whole()) {
        const Expr number = leaf(side, Dtype::Index);
        const std::optional<std::int64_t> value = number ? integer_value(number) : std::nullopt;
        if (!value || !fits(*value, common->dtype)) return Dtype::Index;
      }
    return common->dtype;
  }
  return settled(arithmetic_type(*common_type(a, b)));
}

// Whether a whole number is more than a literal.
bool FnBuilder::has_names(const Ast& ast) {
  return match(
      ast, [](const AstNumber&) { return false; }, [](const AstName&) { return true; },
      [](const AstAccess&) { return true; },
      [&](const AstCall& call) {
        return std::any_of(call.arguments.begin(), call.arguments.end(), [&](const Ast& a) { return has_names(a); });
      },
      [&](const AstUnary& unary) { return has_names(unary.operand); },
      [&](const AstBinary& binary) { return has_names(binary.lhs) || has_names(binary.rhs); },
      [](const AstCompare&) { return true; }, [](const AstIf&) { return true; },
      [](const AstReduction&) { return true; });
}

}  // namespace tilewright
