// Functions of the table, conversions, and calls of other fns: scalar ones inside of expressions, tensor ones as a
// statement of their own. Both are inlined.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/fn_builder.h"
#include "ir/operators.h"

namespace tilewright {

namespace {

// What inlining may make of one expression; more is printed by nobody and compiled slowly.
constexpr std::size_t most_nodes = 20000;
constexpr std::size_t most_inlined_levels = 600;

struct Measure {
  std::size_t nodes = 1;
  std::size_t levels = 1;
};

Measure measure(const Expr& expr) {
  Measure result;
  map_children(expr, [&](const Expr& child) {
    if (result.nodes > most_nodes) return child;
    const Measure below = measure(child);
    result.nodes += below.nodes;
    result.levels = std::max(result.levels, below.levels + 1);
    return child;
  });
  return result;
}

bool is_extremum(const std::string& name) { return name == "min" || name == "max"; }

const FunctionInfo* language_function(const std::string& name) {
  if (name.find('.') != std::string::npos) return nullptr;
  const FunctionInfo* function = find_function(name);
  return function && function->group != FunctionGroup::Structural && function->group != FunctionGroup::Fast ? function
                                                                                                            : nullptr;
}

std::optional<Dtype> conversion(const std::string& name) {
  const std::optional<Dtype> dtype = dtype_by_name(name);
  constexpr std::array<Dtype, 2> not_written = {Dtype::Index, Dtype::Mbarrier};
  return dtype && std::find(not_written.begin(), not_written.end(), *dtype) == not_written.end() ? dtype : std::nullopt;
}

}  // namespace

ValueType FnBuilder::type_of_call(const AstCall& ast, Span span) {
  const std::string& name = ast.function.text;
  const auto refuse = [&](Span place, std::string message, std::string help = {}) {
    sink_.error(place, std::move(message), std::move(help));
    return ValueType::unknown();
  };
  const auto refuse_count = [&](std::string_view needed) {
    return refuse(span, fmt::format("`{}` is given {} argument{}, but takes {}", name, ast.arguments.size(),
                                    ast.arguments.size() == 1 ? "" : "s", needed));
  };
  if (table_ && table_->has(name)) return type_of_inlined(ast, span);
  const std::optional<Dtype> dtype = conversion(name);
  const FunctionInfo* function = language_function(name);
  if (!dtype && !function && !is_extremum(name)) {
    std::vector<std::string> known = {"min", "max"};
    for (const FunctionInfo& row : all_functions())
      if (language_function(std::string(row.name))) known.emplace_back(row.name);
    if (table_)
      for (const std::string& fn : table_->names()) known.push_back(fn);
    if (tensors_.count(name) > 0)
      return refuse(ast.function.span, fmt::format("`{}` is a tensor, whose indices stand in brackets", name),
                    fmt::format("write `{}[…]`", name));
    sink_.error_once(fmt::format("{}: function {}", fn_.name, name), ast.function.span,
                     fmt::format("there is no function or fn `{}`", name), fmt::format("`{}` also stands here", name),
                     did_you_mean(name, known));
    return ValueType::unknown();
  }
  if (dtype) {
    if (ast.arguments.size() != 1) return refuse_count("one");
    return type_of(ast.arguments.front()).is_unknown() ? ValueType::unknown() : ValueType::of(*dtype);
  }
  if (is_extremum(name) && ast.arguments.size() < 2) return refuse_count("two or more");
  if (function && !is_extremum(name) && ast.arguments.size() != static_cast<std::size_t>(function->arity))
    return refuse_count(std::to_string(function->arity));
  ValueType common = type_of(ast.arguments.front());
  bool is_known = !common.is_unknown();
  for (std::size_t k = 1; k < ast.arguments.size(); ++k) {
    const ValueType next = type_of(ast.arguments[k]);
    is_known = is_known && !next.is_unknown();
    if (is_known) common = meet(ast.arguments[k - 1], common, ast.arguments[k], next);
    is_known = is_known && !common.is_unknown();
  }
  if (!is_known) return ValueType::unknown();
  if (common.is(Dtype::Bool)) return refuse(span, fmt::format("`{}` of bools, but numbers are needed", name));
  if (is_extremum(name)) return arithmetic_type(common);
  const Ast& first = ast.arguments.front();
  if (common.is_any_float() && !function->takes_float)
    return refuse(first->span, fmt::format("`{}` of {}, but integers are needed", name, describe(common)));
  if (common.is_typed() && common.is_any_integer() && !function->takes_integer)
    return refuse(first->span, fmt::format("`{}` of {}, but a float is needed", name, describe(common)),
                  fmt::format("write `{}(f32({}))`", name, sink_.text_of(first->span)));
  if (function->result) return ValueType::of(*function->result);
  if (common.is_whole() && !function->takes_integer) return ValueType::real();
  return arithmetic_type(common);
}

// Inside of brackets types are asked for only where a call has one, so type_of has not been there.
ValueType FnBuilder::type_of_call_once(const AstCall& ast, Span span) {
  const auto found = call_types_.find(&ast);
  if (found != call_types_.end()) return found->second;
  const ValueType type = type_of_call(ast, span);
  call_types_.emplace(&ast, type);
  return type;
}

Expr FnBuilder::call(const AstCall& ast, Dtype dtype, bool is_leaf, Span span) {
  const std::string& name = ast.function.text;
  const auto finished = [&](Expr own) -> Expr {
    if (!own) return {};
    if (dtype == Dtype::Index && !is_integer(own->dtype)) {
      sink_.error(span,
                  fmt::format("`{}` is {}, but an index is an integer", sink_.text_of(span), info(own->dtype).name));
      return {};
    }
    return is_leaf ? cast(dtype, own, span) : own;
  };
  const bool is_user_fn = table_ && table_->has(name);
  const std::optional<Dtype> converted = is_user_fn ? std::nullopt : conversion(name);
  const FunctionInfo* function = is_user_fn ? nullptr : language_function(name);
  // Inside of brackets an integer function is one of whole numbers; all else has a type of its own.
  const bool is_index_function = dtype == Dtype::Index && !converted && !is_user_fn &&
                                 (is_extremum(name) || (function && function->takes_integer && !function->result));
  if (!is_index_function) {
    const ValueType type = type_of_call_once(ast, span);
    if (type.is_unknown()) return {};
    if (is_user_fn) return finished(inlined_call(ast, span));
    if (converted) {
      const Ast& argument = ast.arguments.front();
      const ValueType from = type_of(argument);
      Expr own = from.is_real() ? leaf(argument, *converted == Dtype::F64 ? Dtype::F64 : Dtype::F32) : value(argument);
      return own ? finished(cast(*converted, own, span)) : Expr();
    }
  } else if (!is_extremum(name) && ast.arguments.size() != static_cast<std::size_t>(function->arity)) {
    sink_.error(span, fmt::format("`{}` takes {} argument{}", name, function->arity, function->arity == 1 ? "" : "s"));
    return {};
  }
  // A function of the same type as its arguments is evaluated in the type that is asked for; `isnan` in the arguments'
  // own.
  ValueType common = ValueType::of(dtype);
  const bool has_own_type = function && (function->result || (is_integer(dtype) && !function->takes_integer) ||
                                         (is_float(dtype) && !function->takes_float));
  if (has_own_type) {
    common = type_of(ast.arguments.front());
    for (const Ast& argument : ast.arguments) common = common_type(common, type_of(argument)).value_or(common);
    common = arithmetic_type(common);
    if (!common.is_typed()) common = ValueType::of(function->takes_float ? Dtype::F32 : Dtype::I64);
  }
  std::vector<Expr> arguments;
  for (const Ast& argument : ast.arguments) {
    Expr built = is_leaf && !has_own_type ? leaf(argument, dtype) : value_as(argument, common.dtype);
    if (!built) return {};
    arguments.push_back(std::move(built));
  }
  if (is_extremum(name)) {
    Expr result = arguments.front();
    for (std::size_t k = 1; k < arguments.size(); ++k)
      result = binary(name == "min" ? BinaryOp::Min : BinaryOp::Max, result, arguments[k], span);
    return result;
  }
  if (name == "ceildiv" && common.dtype == Dtype::Index) return ceildiv(arguments[0], arguments[1]);
  return finished(tilewright::call(name == "fma" ? "fma.kept" : name, std::move(arguments),
                                   function->result.value_or(common.dtype), span));
}

ValueType FnBuilder::type_of_inlined(const AstCall& ast, Span span) {
  const std::string& name = ast.function.text;
  const TensorFn* callee = table_->signature(name);
  if (!callee) return ValueType::unknown();
  if (!table_->is_scalar_fn(name)) {
    sink_.error(span, fmt::format("`{}` takes or gives tensors, so its call is a statement of its own", name),
                fmt::format("write `let t = {}`", sink_.text_of(span)));
    return ValueType::unknown();
  }
  const std::vector<Param>& params = callee->params;
  const std::size_t count = params.size() - 1;
  if (ast.arguments.size() != count) {
    sink_.error(span,
                fmt::format("`{}` is given {} argument{}, but takes {}", name, ast.arguments.size(),
                            ast.arguments.size() == 1 ? "" : "s", count),
                {}, {Note{callee->span, fmt::format("`{}` is declared here", name)}});
    return ValueType::unknown();
  }
  bool is_known = true;
  for (std::size_t k = 0; k < count; ++k) {
    const ValueType type = type_of(ast.arguments[k]);
    is_known = is_known && !type.is_unknown();
    const bool fits_in = type.is_unknown() || (type.is_typed() && holds(params[k].dtype, type.dtype)) ||
                         (type.is_whole() && params[k].dtype != Dtype::Bool) ||
                         (type.is_real() && is_float(params[k].dtype));
    if (fits_in) continue;
    const std::string words = sink_.text_of(ast.arguments[k]->span);
    sink_.error(ast.arguments[k]->span,
                fmt::format("`{}` is {}, but `{}` of `{}` is {}", words, describe(type), params[k].name, name,
                            info(params[k].dtype).name),
                fmt::format("write `{}({})`", info(params[k].dtype).name, words),
                {Note{callee->span, fmt::format("`{}` is declared here", name)}});
    is_known = false;
  }
  return is_known ? ValueType::of(params.back().dtype) : ValueType::unknown();
}

Expr FnBuilder::inlined_call(const AstCall& ast, Span span) {
  const std::string& name = ast.function.text;
  const Expr body = table_->inlined_result(name, span);
  if (!body) {
    // The fault is the callee's, and shown there.
    is_well_ = false;
    return {};
  }
  const TensorFn& callee = *table_->signature(name);
  std::map<std::string, Expr> arguments;
  for (std::size_t k = 0; k < ast.arguments.size(); ++k) {
    Expr argument = value_as(ast.arguments[k], callee.params[k].dtype);
    if (!argument) return {};
    arguments.emplace(callee.params[k].name, std::move(argument));
  }
  // An index of the callee's own reductions must not be one that an argument means.
  std::string captured;
  walk(body, [&](const Expr& part) {
    if (const Reduce* inner = as<Reduce>(part))
      for (const Axis& axis : inner->axes)
        if (has_dim(axis.name) ||
            std::any_of(indices_.begin(), indices_.end(), [&](const Index& index) { return index.name == axis.name; }))
          captured = axis.name;
    return captured.empty();
  });
  if (!captured.empty()) {
    sink_.error(span, fmt::format("`{}` reduces over `{}`, which is in scope here already", name, captured),
                "take another letter in one of them");
    return {};
  }
  Expr result = put_in_place(body, arguments);
  if (!result)
    sink_.error(span, fmt::format("the expression becomes too large when `{}` is put in place of its call", name),
                "give parts of it names with `let`");
  return result;
}

Expr put_in_place(const Expr& expr, const std::map<std::string, Expr>& values) {
  std::map<std::string, std::size_t> sizes;
  std::size_t nodes = 0;
  walk(expr, [&](const Expr& part) {
    const Load* loaded = as<Load>(part);
    const auto found = loaded ? values.find(loaded->access.buffer) : values.end();
    if (found == values.end()) {
      ++nodes;
    } else {
      const auto [size, is_new] = sizes.try_emplace(found->first, 0);
      if (is_new) size->second = measure(found->second).nodes;
      nodes += size->second;
    }
    return nodes <= most_nodes;
  });
  if (nodes > most_nodes) return {};
  Expr result = rewrite(expr, [&](const Expr& part) {
    const Load* loaded = as<Load>(part);
    const auto found = loaded ? values.find(loaded->access.buffer) : values.end();
    return found == values.end() ? part : found->second;
  });
  return measure(result).levels > most_inlined_levels ? Expr() : result;
}

}  // namespace tilewright
