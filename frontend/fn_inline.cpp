// Calls of tensor fns: `let h = layer(X, W)`, `Y = layer(X, W)`, `(V, I) = f(X)`. The callee's statements come in place
// of the call, its dims replaced by what the arguments say and its intermediates named after the target.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "ir/operators.h"

namespace tilewright {

bool FnBuilder::is_tensor_call(const Ast& ast) {
  const AstCall* call = as<AstCall>(ast);
  return call && table_ && table_->has(call->function.text) && table_->signature(call->function.text) &&
         !table_->is_scalar_fn(call->function.text);
}

// Learns the callee's dims from an argument's shape.
bool FnBuilder::bind_shape(const TensorFn& callee, const Param& param, const std::vector<Expr>& shape,
                           const Ast& argument, Binding& binding) {
  const std::string words = sink_.text_of(argument->span);
  const std::vector<Note> notes = {
      Note{param.span, fmt::format("`{}` of `{}` is declared here", param.name, callee.name)}};
  if (shape.size() != param.shape.size()) {
    sink_.error(argument->span,
                fmt::format("`{}` has {} dims, but `{}` of `{}` has {}", words, shape.size(), param.name, callee.name,
                            param.shape.size()),
                {}, notes);
    return false;
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const Expr& wanted = param.shape[dim];
    const Var* name = as<Var>(wanted);
    const bool is_new = name && std::none_of(binding.dims.begin(), binding.dims.end(),
                                             [&](const auto& known) { return known.first == name->name; });
    if (is_new) {
      binding.dims.emplace_back(name->name, shape[dim]);
      continue;
    }
    const Expr expected = substitute(wanted, binding.dims);
    if (facts_.are_equal(expected, shape[dim])) continue;
    sink_.error(argument->span,
                fmt::format("dim {} of `{}` is {}, but `{}` of `{}` needs {}", dim, words, print(shape[dim]),
                            param.name, callee.name, print(expected)),
                {}, notes);
    return false;
  }
  return true;
}

std::optional<FnBuilder::Binding> FnBuilder::bind_arguments(const TensorFn& callee, const AstCall& call) {
  Binding binding;
  std::vector<const Param*> inputs;
  for (const Param& param : callee.params) {
    if (param.kind == ParamKind::InOut) {
      sink_.error(call.function.span,
                  fmt::format("`{}` updates `{}` in place, which a call inside of a fn does not support", callee.name,
                              param.name));
      return std::nullopt;
    }
    if (param.kind == ParamKind::In) inputs.push_back(&param);
  }
  if (inputs.size() != call.arguments.size()) {
    sink_.error(
        call.function.span,
        fmt::format("`{}` is given {} arguments, but takes {}", callee.name, call.arguments.size(), inputs.size()), {},
        {Note{callee.span, fmt::format("`{}` is declared here", callee.name)}});
    return std::nullopt;
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Param& param = *inputs[k];
    const Ast& argument = call.arguments[k];
    if (param.shape.empty()) {
      const ValueType type = type_of(argument);
      if (type.is_unknown()) return std::nullopt;
      const bool fits_in = (type.is_typed() && holds(param.dtype, type.dtype)) ||
                           (type.is_whole() && param.dtype != Dtype::Bool) || (type.is_real() && is_float(param.dtype));
      if (!fits_in) {
        sink_.error(argument->span, fmt::format("`{}` is {}, but `{}` of `{}` is {}", sink_.text_of(argument->span),
                                                describe(type), param.name, callee.name, info(param.dtype).name));
        return std::nullopt;
      }
      Expr value = value_as(argument, param.dtype);
      if (!value) return std::nullopt;
      binding.scalars.emplace(param.name, std::move(value));
      continue;
    }
    const AstName* name = as<AstName>(argument);
    const auto found = name ? tensors_.find(name->name) : tensors_.end();
    if (found == tensors_.end()) {
      sink_.error(argument->span,
                  fmt::format("`{}` is no tensor, but `{}` of `{}` is one", sink_.text_of(argument->span), param.name,
                              callee.name),
                  "give it a name with `let` first");
      return std::nullopt;
    }
    const Tensor& tensor = found->second;
    if (tensor.is_faulty) return std::nullopt;
    if (!tensor.is_defined) {
      sink_.error(argument->span, fmt::format("`{}` is read before it is defined", name->name));
      return std::nullopt;
    }
    if (tensor.dtype != param.dtype) {
      sink_.error(argument->span,
                  fmt::format("`{}` is {}, but `{}` of `{}` is {}", name->name, info(tensor.dtype).name, param.name,
                              callee.name, info(param.dtype).name),
                  "convert it with a `let` first");
      return std::nullopt;
    }
    if (!bind_shape(callee, param, tensor.shape, argument, binding)) return std::nullopt;
    binding.tensors.emplace(param.name, name->name);
  }
  return binding;
}

// The callee's expression in the caller's names.
Expr FnBuilder::rebound(const Expr& expr, const Binding& binding, int first_error) const {
  if (!expr) return {};
  const Expr in_dims = substitute(expr, binding.dims);
  return rewrite(in_dims, [&](const Expr& part) {
    if (const Load* loaded = as<Load>(part)) {
      const auto scalar = binding.scalars.find(loaded->access.buffer);
      if (scalar != binding.scalars.end()) return scalar->second;
      Access access = loaded->access;
      const auto tensor = binding.tensors.find(access.buffer);
      if (tensor != binding.tensors.end()) access.buffer = tensor->second;
      if (access.rule.kind == Rule::Kind::Check) access.rule.check_id += first_error;
      return load(std::move(access), part->dtype, part->span);
    }
    if (const Call* function = as<Call>(part); function && function->function == "within") {
      std::vector<Expr> arguments = function->arguments;
      arguments[2] = arguments[2] + first_error;
      return tilewright::call("within", std::move(arguments), part->dtype, part->span);
    }
    return part;
  });
}

void FnBuilder::append_callee(const TensorFn& callee, const Binding& binding) {
  const int first_error = static_cast<int>(fn_.errors.size());
  const auto moved = [&](const Expr& expr) { return rebound(expr, binding, first_error); };
  for (const ErrorSite& site : callee.errors)
    fn_.errors.push_back(ErrorSite{site.id + first_error, moved(site.access)});
  for (const Temp& let : callee.lets) {
    Temp temp{binding.tensors.at(let.name), let.dtype, {}};
    for (const Expr& extent : let.shape) temp.shape.push_back(moved(extent));
    fn_.lets.push_back(std::move(temp));
  }
  for (TensorStmt statement : callee.statements) {
    statement.target = binding.tensors.at(statement.target);
    for (Axis& axis : statement.axes) {
      axis.lo = moved(axis.lo);
      axis.hi = moved(axis.hi);
    }
    for (Expr& index : statement.index) index = moved(index);
    for (Expr& condition : statement.where) condition = moved(condition);
    if (statement.rule.kind == Rule::Kind::Check) statement.rule.check_id += first_error;
    statement.value = moved(statement.value);
    fn_.statements.push_back(std::move(statement));
  }
}

void FnBuilder::build_tensor_call(const AstStatement& statement) {
  const AstCall& call = *as<AstCall>(statement.value);
  const auto refuse = [&](Span span, std::string message, std::string help = {}) {
    sink_.error(span, std::move(message), std::move(help));
  };
  if (statement.has_index)
    return refuse(statement.span,
                  fmt::format("`{}` gives whole tensors, so its target has no indices", call.function.text),
                  fmt::format("write `{}{} = …`", statement.is_let ? "let " : "", statement.targets.front().text));
  if (statement.combine) return refuse(statement.span, "a call defines its target with `=`");
  const TensorFn* callee = table_->built(call.function.text, call.function.span);
  if (!callee) return;
  std::optional<Binding> binding = bind_arguments(*callee, call);
  if (!binding) return;
  std::vector<const Param*> results;
  for (const Param& param : callee->params)
    if (param.kind == ParamKind::Out) results.push_back(&param);
  if (results.size() != statement.targets.size())
    return refuse(
        statement.span,
        fmt::format("`{}` gives {} results, but {} are named", callee->name, results.size(), statement.targets.size()),
        results.size() > 1 ? "write `let (a, b) = …`" : std::string());
  // The callee's indices keep their names, which must not be sizes here.
  std::vector<Axis> axes;
  for (const TensorStmt& inner : callee->statements) {
    axes.insert(axes.end(), inner.axes.begin(), inner.axes.end());
    walk(inner.value, [&](const Expr& part) {
      if (const Reduce* reduced = as<Reduce>(part)) axes.insert(axes.end(), reduced->axes.begin(), reduced->axes.end());
      return true;
    });
  }
  for (const Axis& axis : axes)
    if (has_dim(axis.name))
      return refuse(call.function.span,
                    fmt::format("index `{}` of `{}` has the name of a dim of `{}`", axis.name, callee->name, fn_.name),
                    "take another letter in one of them");
  std::vector<std::pair<std::string, Tensor>> defined;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const AstWord& target = statement.targets[k];
    Tensor result;
    result.is_let = statement.is_let;
    result.is_defined = true;
    result.dtype = results[k]->dtype;
    result.span = target.span;
    for (const Expr& extent : results[k]->shape) result.shape.push_back(substitute(extent, binding->dims));
    binding->tensors[results[k]->name] = target.text;
    const auto found = tensors_.find(target.text);
    if (statement.is_let) {
      if (found != tensors_.end() || has_dim(target.text))
        return refuse(target.span, fmt::format("`{}` is declared already", target.text));
      if (statement.dtype && *statement.dtype != result.dtype)
        return refuse(target.span, fmt::format("`{}` gives {}, not {}", callee->name, info(result.dtype).name,
                                               info(*statement.dtype).name));
      defined.emplace_back(target.text, std::move(result));
      continue;
    }
    if (found == tensors_.end() || found->second.kind != ParamKind::Out || found->second.is_let ||
        found->second.is_defined)
      return refuse(target.span, fmt::format("`{}` is not a result that is still to be defined", target.text));
    const Tensor& declared = found->second;
    bool is_equal = declared.dtype == result.dtype && declared.shape.size() == result.shape.size();
    for (std::size_t dim = 0; is_equal && dim < result.shape.size(); ++dim)
      is_equal = facts_.are_equal(declared.shape[dim], result.shape[dim]);
    if (!is_equal) {
      std::vector<std::string> extents;
      for (const Expr& extent : result.shape) extents.push_back(print(extent));
      sink_.error(target.span,
                  fmt::format("`{}` gives {}[{}], which is not what `{}` is", callee->name, info(result.dtype).name,
                              fmt::join(extents, ", "), target.text),
                  {}, {Note{declared.span, fmt::format("`{}` is declared here", target.text)}});
      return;
    }
    result.kind = ParamKind::Out;
    result.span = declared.span;
    defined.emplace_back(target.text, std::move(result));
  }
  for (const Temp& let : callee->lets) binding->tensors[let.name] = statement.targets.front().text + "." + let.name;
  append_callee(*callee, *binding);
  for (std::size_t k = 0; k < defined.size(); ++k) {
    if (statement.is_let) fn_.lets.push_back(Temp{defined[k].first, defined[k].second.dtype, defined[k].second.shape});
    tensors_.insert_or_assign(defined[k].first, defined[k].second);
  }
}

}  // namespace tilewright
