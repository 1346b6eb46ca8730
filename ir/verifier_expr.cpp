// The verifier's rules of expressions: names, ranks, dtypes, functions.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/instructions.h"
#include "ir/operators.h"
#include "ir/printer.h"
#include "ir/scalar.h"
#include "ir/verifier.h"

namespace tilewright {

namespace {

bool is_thread_name(const std::string& name) {
  for (const char* known : {"thread.x", "thread.y", "thread.z", "block.x", "block.y", "block.z", "lane", "warp", "cluster.rank"})
    if (name == known) return true;
  return false;
}

bool is_computed(Dtype dtype) { return dtype != Dtype::Bool && dtype != Dtype::Mbarrier; }

}  // namespace

void Verifier::check(const Expr& expr) {
  if (!expr) return fault("an expression is missing");
  const bool whole = std::exchange(whole_arrays_, whole_arrays_ && as<Load>(expr));
  match(
      expr, [&](const Const& node) { check_const(node, expr->dtype); }, [&](const Var& node) { check_var(node, expr->dtype); },
      [&](const Unary& node) { check_unary(node); }, [&](const Binary& node) { check_binary(node, expr->dtype); },
      [&](const Select& node) {
        check_condition(node.condition);
        check(node.if_true);
        check(node.if_false);
        if (node.if_true->dtype != expr->dtype || node.if_false->dtype != expr->dtype)
          fault(fmt::format("`if` chooses between {} and {}", info(node.if_true->dtype).name, info(node.if_false->dtype).name), expr->span);
      },
      [&](const Cast& node) {
        check(node.operand);
        if (expr->dtype == Dtype::Mbarrier || node.operand->dtype == Dtype::Mbarrier) fault("an mbarrier is not converted", expr->span);
      },
      [&](const Call& node) { check_call(node, expr->dtype); }, [&](const Load& node) { check_load(node, expr->dtype); },
      [&](const Reduce& node) {
        if (tensor_stmt_.empty()) fault(fmt::format("`{}`: a reduction stands in tensor IR only", print(expr)), expr->span);
        check_reduce(node, expr->dtype);
      });
  whole_arrays_ = whole;
}

void Verifier::check_typed(const Expr& expr, Dtype dtype, std::string_view what) {
  check(expr);
  if (expr && expr->dtype != dtype)
    fault(fmt::format("{} is of {}, not of {}: `{}`", what, info(expr->dtype).name, info(dtype).name, print(expr)), expr->span);
}

void Verifier::check_integer(const Expr& expr, std::string_view what) {
  check(expr);
  if (expr && !is_integer(expr->dtype)) fault(fmt::format("{} is of {}, not an integer: `{}`", what, info(expr->dtype).name, print(expr)), expr->span);
}

void Verifier::check_condition(const Expr& expr) { check_typed(expr, Dtype::Bool, "a condition"); }

void Verifier::check_const(const Const& node, Dtype dtype) {
  bool is_value = true;
  if (dtype == Dtype::Bool) is_value = node.bits == 0 || node.bits == 1;
  if (dtype == Dtype::Mbarrier) is_value = false;
  if (is_integer(dtype)) is_value = wrap(dtype, node.bits) == node.bits;
  if (is_float(dtype)) {
    const double value = std::bit_cast<double>(node.bits);
    is_value = !std::isfinite(value) || round_to(dtype, value) == value;
  }
  if (!is_value) fault(fmt::format("constant {} is no value of {}", print_digits(node, dtype), info(dtype).name));
}

void Verifier::check_var(const Var& node, Dtype dtype) {
  const std::string& name = node.name;
  const Symbol* symbol = find(name);
  if (!symbol) {
    const bool is_in = name.size() > 3 && name.ends_with(".in");
    const bool is_out = name.size() > 4 && name.ends_with(".out");
    const std::string pipe = is_in ? name.substr(0, name.size() - 3) : is_out ? name.substr(0, name.size() - 4) : std::string();
    const Symbol* owner = pipe.empty() ? nullptr : find(pipe);
    if (owner && owner->kind == Kind::Pipe) return check_window(pipe, is_in);
    if (is_thread_name(name)) {
      if (!at_thread_stage()) fault(fmt::format("`{}` stands at the thread stage only", name));
      return;
    }
    return fault(fmt::format("`{}` is not declared", name));
  }
  const bool is_variable = symbol->kind == Kind::Dim || symbol->kind == Kind::Loop || symbol->kind == Kind::Let;
  if (symbol->kind == Kind::Tensor || symbol->kind == Kind::Register || symbol->kind == Kind::Shared)
    return fault(fmt::format("`{}` has axes and stands here without indices", name));
  if (!is_variable && symbol->kind != Kind::Map) return fault(fmt::format("`{}` is no value", name));
  if (symbol->dtype != dtype) fault(fmt::format("`{}` is of {}, and is read as {}", name, info(symbol->dtype).name, info(dtype).name));
}

void Verifier::check_unary(const Unary& node) {
  check(node.operand);
  const Dtype dtype = node.operand->dtype;
  switch (node.op) {
    case UnaryOp::Neg:
      if (!is_computed(dtype)) fault(fmt::format("`-` of {}", info(dtype).name), node.operand->span);
      break;
    case UnaryOp::Not:
      if (dtype != Dtype::Bool) fault(fmt::format("`not` of {}, not of a bool", info(dtype).name), node.operand->span);
      break;
    case UnaryOp::BitNot:
      if (!is_integer(dtype)) fault(fmt::format("`~` of {}, not of an integer", info(dtype).name), node.operand->span);
      break;
  }
}

void Verifier::check_binary(const Binary& node, Dtype dtype) {
  check(node.lhs);
  check(node.rhs);
  const BinaryInfo& facts = info(node.op);
  const Dtype lhs = node.lhs->dtype;
  const Dtype rhs = node.rhs->dtype;
  auto refuse = [&](std::string_view why) {
    fault(fmt::format("`{}` of {} and {}{}", facts.spelling, info(lhs).name, info(rhs).name, why), node.rhs->span);
  };
  if ((facts.is_comparison || facts.is_logical) && dtype != Dtype::Bool) refuse(" gives a bool");
  switch (node.op) {
    case BinaryOp::Add: case BinaryOp::Sub: case BinaryOp::Mul: case BinaryOp::Div: case BinaryOp::Mod:
      if (lhs != rhs || !is_computed(lhs)) return refuse("");
      if (is_narrow_float(lhs)) refuse(": f16, bf16 and fp8 are computed in f32");
      break;
    case BinaryOp::Min: case BinaryOp::Max: case BinaryOp::Lt: case BinaryOp::Le: case BinaryOp::Gt: case BinaryOp::Ge:
      if (lhs != rhs || lhs == Dtype::Mbarrier) refuse("");
      break;
    case BinaryOp::Eq: case BinaryOp::Ne:
      if (lhs != rhs || lhs == Dtype::Mbarrier) refuse("");
      break;
    case BinaryOp::And: case BinaryOp::Or:
      if (lhs != Dtype::Bool || rhs != Dtype::Bool) refuse(", not of bools");
      break;
    case BinaryOp::BitAnd: case BinaryOp::BitOr: case BinaryOp::BitXor:
      if (lhs != rhs || (!is_integer(lhs) && lhs != Dtype::Bool)) refuse(", not of two integers of one type");
      break;
    case BinaryOp::Shl: case BinaryOp::Shr:
      if (!is_integer(lhs) || !is_integer(rhs)) refuse(", not of integers");
      break;
  }
}

void Verifier::check_call(const Call& node, Dtype dtype) {
  if (const InstrInfo* row = find_instruction(node.function)) {
    for (const Expr& argument : node.arguments) check(argument);
    if (!at_thread_stage()) fault(fmt::format("instruction `{}` stands at the thread stage only", node.function));
    if (!row->result) fault(fmt::format("instruction `{}` gives no value", node.function));
    const auto count = static_cast<int>(node.arguments.size());
    if (count < row->min_operands || count > row->max_operands)
      fault(fmt::format("`{}` takes {} operands, and {} stand here", node.function, row->min_operands, count));
    return;
  }
  const FunctionInfo* row = find_function(node.function);
  if (!row) return fault(fmt::format("function `{}` is not known", node.function));
  if (static_cast<int>(node.arguments.size()) != row->arity)
    return fault(fmt::format("`{}` takes {} arguments, and {} stand here", node.function, row->arity, node.arguments.size()));
  if (row->group == FunctionGroup::Structural) {
    if (node.function != "within") return fault(fmt::format("`{}` stands in a dim or table of the plan only", node.function));
    for (const Expr& argument : node.arguments) check_integer(argument, "an argument of `within`");
    if (!integer_value(node.arguments[2])) fault("`within` ends with the number of an access");
  } else {
    for (const Expr& argument : node.arguments) {
      check(argument);
      const Dtype of = argument->dtype;
      if (of != node.arguments[0]->dtype)
        fault(fmt::format("`{}` of {} and {}", node.function, info(node.arguments[0]->dtype).name, info(of).name), argument->span);
      const bool is_taken = (row->takes_float && (of == Dtype::F32 || of == Dtype::F64)) || (row->takes_integer && is_integer(of));
      if (!is_taken) fault(fmt::format("`{}` of {}", node.function, info(of).name), argument->span);
      if (row->group == FunctionGroup::Fast && of != Dtype::F32) fault(fmt::format("`{}` is of f32 only", node.function), argument->span);
    }
  }
  const Dtype result = row->result.value_or(node.arguments[0]->dtype);
  if (result != dtype) fault(fmt::format("`{}` gives {}, not {}", node.function, info(result).name, info(dtype).name));
}

void Verifier::check_load(const Load& node, Dtype dtype) {
  const Symbol* symbol = check_access(node.access);
  if (!symbol) return;
  if (symbol->dtype != dtype)
    fault(fmt::format("`{}` is of {}, and is read as {}", node.access.buffer, info(symbol->dtype).name, info(dtype).name), node.access.span);
  check_rule(node.access.rule, symbol->dtype);
  if (node.access.rule.kind == Rule::Kind::Skip) fault(fmt::format("`{}`: a load does not skip", print_access(node.access)), node.access.span);
}

const Verifier::Symbol* Verifier::check_access(const Access& access) {
  const bool whole = std::exchange(whole_arrays_, false);
  for (const Expr& index : access.index) check_integer(index, "an index");
  whole_arrays_ = whole;
  const Symbol* symbol = find_buffer(access.buffer);
  if (!symbol) {
    fault(fmt::format("`{}` is no tensor or buffer", access.buffer), access.span);
    return nullptr;
  }
  // Tensors are flat at the thread stage.
  const bool is_flat = at_thread_stage() && symbol->kind == Kind::Tensor && symbol->rank > 0;
  const std::size_t rank = is_flat ? 1 : symbol->rank;
  if (access.index.size() != rank && !(access.index.empty() && whole))
    fault(fmt::format("`{}` needs {} indices, and {} stand here", access.buffer, rank, access.index.size()), access.span);
  return symbol;
}

void Verifier::check_rule(const Rule& rule, Dtype dtype) {
  if (rule.kind == Rule::Kind::None) return;
  if (at_thread_stage()) fault("a rule for indices out of range stands at the tile stage only");
  if (rule.kind == Rule::Kind::Fill) check_typed(rule.fill, dtype, "a fill");
  if (rule.kind != Rule::Kind::Check) return;
  for (const ErrorSite& site : plan_.errors)
    if (site.id == rule.check_id) return;
  fault(fmt::format("`check {}`: `error` has no such number", rule.check_id));
}

}  // namespace tilewright
