// Expressions of the thread stage as CUDA C, with exactly the meaning that ir/expr.h states.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda_printer.h"
#include "codegen/cuda_types.h"
#include "codegen/nonnegative.h"
#include "ir/diagnostic.h"

namespace tilewright {

namespace {

struct Infix {
  std::string_view spelling;
  Binding binding;
};

// Operators that C has too. Min and Max are calls; integer Div and Mod floor and are printed by division().
Infix infix_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return {"+", Binding::Add};
    case BinaryOp::Sub:
      return {"-", Binding::Add};
    case BinaryOp::Mul:
      return {"*", Binding::Mul};
    case BinaryOp::Div:
      return {"/", Binding::Mul};
    case BinaryOp::Mod:
      return {"%", Binding::Mul};
    case BinaryOp::And:
      return {"&&", Binding::And};
    case BinaryOp::Or:
      return {"||", Binding::Or};
    case BinaryOp::Eq:
      return {"==", Binding::Equal};
    case BinaryOp::Ne:
      return {"!=", Binding::Equal};
    case BinaryOp::Lt:
      return {"<", Binding::Compare};
    case BinaryOp::Le:
      return {"<=", Binding::Compare};
    case BinaryOp::Gt:
      return {">", Binding::Compare};
    case BinaryOp::Ge:
      return {">=", Binding::Compare};
    case BinaryOp::BitAnd:
      return {"&", Binding::BitAnd};
    case BinaryOp::BitOr:
      return {"|", Binding::BitOr};
    case BinaryOp::BitXor:
      return {"^", Binding::BitXor};
    case BinaryOp::Shl:
      return {"<<", Binding::Shift};
    case BinaryOp::Shr:
      return {">>", Binding::Shift};
    case BinaryOp::Min:
    case BinaryOp::Max:
      break;
  }
  internal_error("print_cuda: min and max are no infix operators");
}

Binding above(Binding binding) { return static_cast<Binding>(static_cast<int>(binding) + 1); }

// The unsigned type in which arithmetic of this dtype wraps without undefined behaviour.
std::string wrapping_type(Dtype dtype) { return bytes_of(dtype) == 8 ? "unsigned long long" : "unsigned int"; }

bool is_power_of_two(std::int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

int log2_of(std::int64_t value) {
  int result = 0;
  while ((std::int64_t{1} << result) < value) ++result;
  return result;
}

// f64 and integers of more than 24 bits: rounding through f32 would round twice.
bool is_wider_than_f32(Dtype dtype) { return dtype == Dtype::F64 || (!is_float(dtype) && bytes_of(dtype) >= 4); }

std::string_view narrow_name(Dtype dtype) {
  if (is_narrow_float(dtype)) return info(dtype).name;
  internal_error(fmt::format("print_cuda: {} is no narrow float", info(dtype).name));
}

}  // namespace

std::string CudaPrinter::type(Dtype dtype) const { return cuda_type(dtype, plan_.index_bits); }

const std::string& CudaPrinter::c_name_of(const std::string& ir_name) const {
  const auto found = names_.find(ir_name);
  if (found == names_.end())
    internal_error(fmt::format("print_cuda: kernel `{}` does not declare `{}`", kernel_.name, ir_name));
  return found->second;
}

const CudaPrinter::Place& CudaPrinter::place_of(const std::string& buffer) const {
  const auto found = places_.find(buffer);
  if (found == places_.end())
    internal_error(fmt::format("print_cuda: kernel `{}` accesses `{}`, which is none of its buffers or arguments",
                               kernel_.name, buffer));
  return found->second;
}

bool CudaPrinter::is_nonnegative(const Expr& e) const {
  return tilewright::is_nonnegative(e, [&](const std::string& ir_name) { return nonnegative_.count(ir_name) != 0; });
}

std::string CudaPrinter::text(const Expr& e, Binding least) {
  const CudaText printed = expr(e);
  return printed.binding < least ? "(" + printed.text + ")" : printed.text;
}

CudaText CudaPrinter::expr(const Expr& e) {
  return match(
      e,
      [&](const Const& node) -> CudaText {
        if (is_narrow_float(e->dtype)) {
          if (node.bits == 0) return {"0"};
          return {convert(cuda_constant(node.bits, e->dtype), Dtype::F32, e->dtype)};
        }
        const std::string literal = cuda_constant(node.bits, e->dtype);
        return {literal, literal.front() == '-' ? Binding::Unary : Binding::Primary};
      },
      [&](const Var& node) -> CudaText { return {c_name_of(node.name)}; },
      [&](const Unary& node) { return unary_text(node, e->dtype); },
      [&](const Binary& node) { return binary_text(e, node); },
      [&](const Select& node) -> CudaText {
        // Branches of a type narrower than int would meet as int; each is of the node's type, so the value is the same.
        return {fmt::format("{} ? {} : {}", text(node.condition, Binding::Or), text(node.if_true, Binding::Or),
                            text(node.if_false, Binding::Conditional)),
                Binding::Conditional};
      },
      [&](const Cast& node) { return cast_text(node.operand, e->dtype); },
      [&](const Call& node) { return call_text(e, node); },
      [&](const Load& node) -> CudaText { return {access(node.access)}; },
      [&](const Reduce&) -> CudaText { internal_error("print_cuda: a reduction stands only in tensor IR"); });
}

CudaText CudaPrinter::unary_text(const Unary& node, Dtype dtype) {
  switch (node.op) {
    case UnaryOp::Not:
      return {"!" + text(node.operand, Binding::Unary), Binding::Unary};
    case UnaryOp::BitNot: {
      const std::string flipped = "~" + text(node.operand, Binding::Unary);
      if (bytes_of(dtype) >= 4) return {flipped, Binding::Unary};
      return {fmt::format("({})({})", type(dtype), flipped), Binding::Unary};
    }
    case UnaryOp::Neg:
      break;
  }
  if (is_narrow_float(dtype)) return {convert("-" + narrow_as_f32(node.operand), Dtype::F32, dtype)};
  const std::string operand = text(node.operand, Binding::Primary);
  if (is_float(dtype) || dtype == Dtype::Index) return {"-" + operand, Binding::Unary};
  return {fmt::format("({})(0u - ({}){})", type(dtype), wrapping_type(dtype), operand), Binding::Unary};
}

CudaText CudaPrinter::binary_text(const Expr& e, const Binary& node) {
  const Dtype operand = node.lhs->dtype;
  const bool is_comparison = e->dtype == Dtype::Bool && operand != Dtype::Bool;
  if (is_narrow_float(operand)) {
    const Expr a = cast(Dtype::F32, node.lhs);
    const Expr b = cast(Dtype::F32, node.rhs);
    const CudaText wide = expr(binary(node.op, a, b));
    return is_comparison ? wide : CudaText{convert(wide.text, Dtype::F32, operand)};
  }
  if (node.op == BinaryOp::Min || node.op == BinaryOp::Max) {
    const std::string_view word = node.op == BinaryOp::Min ? "min" : "max";
    if (is_float(operand)) {
      const std::string function = prelude_.use(fmt::format("{}_{}", word, operand == Dtype::F64 ? "f64" : "f32"));
      return {fmt::format("{}({}, {})", function, text(node.lhs), text(node.rhs))};
    }
    if (operand == Dtype::Bool)
      return {
          text(node.lhs, Binding::BitAnd) + (node.op == BinaryOp::Min ? " & " : " | ") + text(node.rhs, Binding::Equal),
          Binding::BitOr};
    // Of index arithmetic only what stands inside another of its kind: there the compiler proves more of plain ones.
    const auto is_same = [&](const Expr& side) {
      const Binary* inner = as<Binary>(side);
      return inner && inner->op == node.op;
    };
    const bool is_chain = operand == Dtype::Index ? plan_.index_bits == 32 && (is_same(node.lhs) || is_same(node.rhs))
                                                  : is_signed(operand) && bytes_of(operand) <= 4;
    const std::string function = is_chain ? prelude_.use(fmt::format("{}_i32", word)) : std::string(word);
    if (bytes_of(operand) < 4) {
      const std::string_view wide = is_signed(operand) ? "int" : "unsigned int";
      return {fmt::format("({}){}(({}){}, ({}){})", type(operand), function, wide, text(node.lhs, Binding::Unary), wide,
                          text(node.rhs, Binding::Unary)),
              Binding::Unary};
    }
    if (is_chain) return {fmt::format("{}({}, {})", function, text(node.lhs), text(node.rhs))};
    return {fmt::format("{}({}, {})", word, typed(node.lhs, operand), typed(node.rhs, operand))};
  }
  if (!is_float(operand) && operand != Dtype::Bool && !is_comparison) return integer_arithmetic(node, operand);
  if (is_float(operand) && node.op == BinaryOp::Mod) {
    const std::string function = prelude_.use(operand == Dtype::F64 ? "mod_f64" : "mod_f32");
    return {fmt::format("{}({}, {})", function, text(node.lhs), text(node.rhs))};
  }
  const Infix infix = infix_of(node.op);
  // `a && b` inside `||` and comparisons inside comparisons get parentheses: compilers (and readers) ask for them.
  const bool mixes_logic =
      node.op == BinaryOp::Or || infix.binding == Binding::Equal || infix.binding == Binding::Compare;
  const Binding left = mixes_logic ? (node.op == BinaryOp::Or ? Binding::BitOr : Binding::Shift) : infix.binding;
  const Binding right = mixes_logic ? left : above(infix.binding);
  const auto side = [&](const Expr& operand_expr, Binding least) {
    const Binary* inner = as<Binary>(operand_expr);
    if (node.op == BinaryOp::Or && inner && inner->op == BinaryOp::Or && &operand_expr == &node.lhs)
      return text(operand_expr);
    return text(operand_expr, least);
  };
  return {fmt::format("{} {} {}", side(node.lhs, left), infix.spelling, side(node.rhs, right)), infix.binding};
}

// Arithmetic of integers wraps; only index arithmetic that its class keeps in range is C's own signed arithmetic.
CudaText CudaPrinter::integer_arithmetic(const Binary& node, Dtype dtype) {
  const Infix infix = infix_of(node.op);
  const std::string as_type = "(" + type(dtype) + ")";
  const bool is_plain = (dtype == Dtype::Index && !is_from_tensor(node.lhs) && !is_from_tensor(node.rhs)) || (is_unsigned(dtype) && bytes_of(dtype) >= 4);
  switch (node.op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Mul: {
      if (is_plain) {
        // a + (b + c) of what is not negative is the same without parentheses: no part exceeds the whole.
        const Binary* inner = as<Binary>(node.rhs);
        const bool is_flat = dtype == Dtype::Index && node.op == BinaryOp::Add && inner && inner->op == BinaryOp::Add &&
                             is_nonnegative(node.lhs) && is_nonnegative(inner->lhs) && is_nonnegative(inner->rhs);
        const std::string rhs = text(node.rhs, is_flat ? infix.binding : above(infix.binding));
        return {fmt::format("{} {} {}", text(node.lhs, infix.binding), infix.spelling, rhs), infix.binding};
      }
      const std::string wide = dtype == Dtype::Index && plan_.index_bits == 32 ? "(unsigned int)" : "(" + wrapping_type(dtype) + ")";
      return {fmt::format("{}({}{} {} {}{})", as_type, wide, text(node.lhs, Binding::Unary), infix.spelling, wide,
                          text(node.rhs, Binding::Unary)),
              Binding::Unary};
    }
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return division(node, dtype);
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor: {
      const std::string both_sides =
          fmt::format("{} {} {}", text(node.lhs, Binding::Shift), infix.spelling, text(node.rhs, Binding::Shift));
      return {both_sides, infix.binding};  // the same bits at any width
    }
    case BinaryOp::Shl:
    case BinaryOp::Shr: {
      const int bits = dtype == Dtype::Index ? plan_.index_bits : info(dtype).bits;
      const auto constant_count = integer_value(node.rhs);
      const std::string count = constant_count ? fmt::format("{}", *constant_count & (bits - 1))
                                               : fmt::format("({} & {})", text(node.rhs, Binding::Shift), bits - 1);
      if (node.op == BinaryOp::Shr)
        return {fmt::format("{} >> {}", text(node.lhs, Binding::Shift), count), Binding::Shift};
      return {fmt::format("{}(({}){} << {})", as_type, wrapping_type(dtype), text(node.lhs, Binding::Unary), count),
              Binding::Unary};
    }
    case BinaryOp::Min:
    case BinaryOp::Max:
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge:
      break;
  }
  internal_error("print_cuda: not an integer operation");
}

// Div and Mod floor. C truncates, which is the same where nothing is negative; powers of two are shifts and masks.
CudaText CudaPrinter::division(const Binary& node, Dtype dtype) {
  const bool is_div = node.op == BinaryOp::Div;
  const auto divisor = integer_value(node.rhs);
  if (divisor && *divisor > 0) {
    if (is_nonnegative(node.lhs)) {
      return {fmt::format("{} {} {}", text(node.lhs, Binding::Mul), is_div ? "/" : "%", text(node.rhs, Binding::Unary)),
              Binding::Mul};
    }
    if (is_power_of_two(*divisor)) {
      if (is_div) return {fmt::format("{} >> {}", text(node.lhs, Binding::Shift), log2_of(*divisor)), Binding::Shift};
      return {fmt::format("{} & {}", text(node.lhs, Binding::Shift), *divisor - 1), Binding::BitAnd};
    }
  }
  const bool is_small = bytes_of(dtype) < 4;
  const Dtype wide = !is_small ? dtype : is_signed(dtype) ? Dtype::I32 : Dtype::U32;
  const std::string base = is_unsigned(dtype) ? "unsigned" : "floor";
  const std::string function = prelude_.use(fmt::format("{}_{}", base, is_div ? "div" : "mod"), type(wide));
  const std::string call = fmt::format("{}({}, {})", function, typed(node.lhs, wide), typed(node.rhs, wide));
  if (!is_small) return {call};
  return {fmt::format("({}){}", type(dtype), call), Binding::Unary};
}

std::string CudaPrinter::typed(const Expr& e, Dtype dtype) {
  const bool is_same = cuda_type(e->dtype, plan_.index_bits) == type(dtype);
  if (as<Const>(e) && is_same && type(dtype) == "long long" && e->dtype == Dtype::Index) return text(e) + "ll";
  if (is_same) return text(e);
  return fmt::format("({}){}", type(dtype), text(e, Binding::Unary));
}

std::string CudaPrinter::narrow_as_f32(const Expr& e) {
  return fmt::format("{}({})", prelude_.use(fmt::format("f32_from_{}", narrow_name(e->dtype))), text(e));
}

// `value` is text of type `from`. Float to integer truncates and saturates, everything else rounds once, to nearest
// even.
std::string CudaPrinter::convert(const std::string& value, Dtype from, Dtype to) {
  if (is_narrow_float(to)) {
    const std::string function = prelude_.use(fmt::format("{}_from_f32", narrow_name(to)));
    if (!is_wider_than_f32(from))
      return fmt::format("{}({})", function, from == Dtype::F32 ? value : "(float)(" + value + ")");
    if (from == Dtype::F64) return fmt::format("{}({}({}))", function, prelude_.use("f32_odd_from_f64"), value);
    const bool is_u64 = from == Dtype::U64;
    return fmt::format("{}({}({}))", function, prelude_.use(is_u64 ? "f32_odd_from_u64" : "f32_odd_from_i64"), value);
  }
  if (is_float(from) && !is_float(to) && to != Dtype::Bool) {
    const std::string source = from == Dtype::F64 ? "f64" : "f32";
    const bool is_wide = (to == Dtype::Index ? plan_.index_bits : info(to).bits) == 64;
    const bool is_signed_target = is_signed(to) || to == Dtype::Index;
    if (bytes_of(to) >= 4) {
      return fmt::format(
          "{}({})", prelude_.use(fmt::format("{}{}_from_{}", is_signed_target ? "i" : "u", is_wide ? 64 : 32, source)),
          value);
    }
    const int bits = info(to).bits;
    const int lowest = is_signed_target ? -(1 << (bits - 1)) : 0;
    const int highest = is_signed_target ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    return fmt::format("({})min(max({}({}), {}), {})", type(to), prelude_.use("i32_from_" + source), value, lowest,
                       highest);
  }
  internal_error("print_cuda: a conversion that C spells as a cast");
}

CudaText CudaPrinter::cast_text(const Expr& operand, Dtype to) {
  const Dtype from = operand->dtype;
  if (type(from) == type(to) && is_narrow_float(from) == is_narrow_float(to) && (!is_narrow_float(from) || from == to))
    return expr(operand);
  if (is_narrow_float(from)) {
    const std::string wide = narrow_as_f32(operand);
    if (to == Dtype::F32) return {wide};
    if (to == Dtype::Bool) return {wide + " != 0.0f", Binding::Equal};
    if (to == Dtype::F64) return {"(double)" + wide, Binding::Unary};
    return {convert(wide, Dtype::F32, to)};
  }
  if (to == Dtype::Bool)
    return {fmt::format("{} != {}", text(operand, Binding::Shift), is_float(from) ? "0.0f" : "0"), Binding::Equal};
  if (is_narrow_float(to) || (is_float(from) && !is_float(to))) {
    const std::string converted = convert(text(operand), from, to);
    return {converted, converted.front() == '(' ? Binding::Unary : Binding::Primary};
  }
  return {fmt::format("({}){}", type(to), text(operand, Binding::Unary)), Binding::Unary};
}

std::string CudaPrinter::access(const Access& access) {
  const Place& place = place_of(access.buffer);
  if (access.rule.kind != Rule::Kind::None)
    internal_error(fmt::format("print_cuda: the rule of an access to `{}` was not guarded", access.buffer));
  const std::string& base = c_name_of(access.buffer);
  switch (place.kind) {
    case Place::Kind::ByValue:
    case Place::Kind::Scalar:
      return base;
    case Place::Kind::Tensor:
    case Place::Kind::Array:
    case Place::Kind::Shared:
      break;
  }
  if (access.index.empty()) return base + "[0]";
  if (access.index.size() == 1) return fmt::format("{}[{}]", base, text(access.index[0]));
  if (access.index.size() != place.extents.size())
    internal_error(fmt::format("print_cuda: `{}` is accessed with {} indices", access.buffer, access.index.size()));
  // Slots lie one behind the other.
  Expr flat = cast(Dtype::Index, access.index[0]);
  for (std::size_t axis = 1; axis < access.index.size(); ++axis)
    flat = flat * place.extents[axis] + cast(Dtype::Index, access.index[axis]);
  return fmt::format("{}[{}]", base, text(flat));
}

std::string CudaPrinter::address(const Access& target) {
  const Place& place = place_of(target.buffer);
  const std::string element = access(target);
  if (target.index.empty() && place.kind != Place::Kind::Scalar) return c_name_of(target.buffer);
  return "&" + element;
}

}  // namespace tilewright
