// Hand items and benches: names resolved against the fn that they belong to.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/items.h"
#include "frontend/parser.h"

namespace tilewright {

namespace {

// Launch shapes and arguments name dims and integer scalars alike; both are numbers of the call.
Expr as_numbers(const Expr& expr) {
  if (!expr) return {};
  return rewrite(expr, [](const Expr& part) {
    if (const Cast* conversion = as<Cast>(part); conversion && part->dtype == Dtype::Index)
      if (const Load* scalar = as<Load>(conversion->operand))
        return var(scalar->access.buffer, Dtype::Index, part->span);
    return part;
  });
}

class HandReader {
 public:
  HandReader(const TensorFn& signature, Sink& sink)
      : signature_(signature), sink_(sink), names_(signature, nullptr, sink) {}

  void read(const std::vector<AstHandStep>& steps, HandItem& item) {
    for (const AstHandStep& step : steps)
      match_variant(
          step.value, [&](const AstLaunch& launch) { read_launch(launch, step.span, item); },
          [&](const AstTemporary& temporary) { read_temporary(temporary, item); },
          [&](const AstZero& zero) {
            if (check_tensor(zero.tensor, item)) item.steps.push_back(HandItem::Zero{zero.tensor.text, step.span});
          },
          [&](const AstConstant& constant) {
            if (check_tensor(constant.tensor, item))
              item.steps.push_back(HandItem::Constant{constant.symbol.text, constant.tensor.text, step.span});
          });
  }

 private:
  bool is_tensor(const std::string& name, const HandItem& item) const {
    const auto is_named = [&](const auto& tensor) { return tensor.name == name; };
    return std::any_of(signature_.params.begin(), signature_.params.end(), is_named) ||
           std::any_of(item.temps.begin(), item.temps.end(), is_named);
  }

  std::vector<std::string> known(const HandItem& item) const {
    std::vector<std::string> names = signature_.dims;
    for (const Param& param : signature_.params) names.push_back(param.name);
    for (const Temp& temp : item.temps) names.push_back(temp.name);
    return names;
  }

  bool check_tensor(const AstWord& word, const HandItem& item) {
    if (is_tensor(word.text, item)) return true;
    sink_.error(word.span,
                fmt::format("`{}` is neither a parameter of `{}` nor a temporary", word.text, signature_.name),
                did_you_mean(word.text, known(item)));
    return false;
  }

  std::vector<Expr> read_sizes(const std::vector<Ast>& asts) {
    std::vector<Expr> sizes;
    for (const Ast& ast : asts)
      if (Expr size = as_numbers(names_.size_expression(ast))) sizes.push_back(std::move(size));
    return sizes;
  }

  void read_temporary(const AstTemporary& temporary, HandItem& item) {
    const std::string& name = temporary.name.text;
    if (is_tensor(name, item) || names_.has_dim(name))
      sink_.error(temporary.name.span, fmt::format("`{}` is declared already", name));
    item.temps.push_back(Temp{name, temporary.dtype, read_sizes(temporary.shape)});
  }

  void read_launch(const AstLaunch& launch, Span span, HandItem& item) {
    HandItem::Launch result;
    result.kernel = launch.kernel.text;
    result.span = span;
    result.grid = read_sizes(launch.grid);
    result.block = read_sizes(launch.block);
    if (launch.shared_bytes) result.shared_bytes = as_numbers(names_.size_expression(launch.shared_bytes));
    for (const Ast& argument : launch.arguments)
      if (Expr value = read_argument(argument, item)) result.arguments.push_back(std::move(value));
    item.steps.push_back(std::move(result));
  }

  Expr read_argument(const Ast& ast, const HandItem& item) {
    if (const AstName* name = as<AstName>(ast)) {
      const bool is_known = is_tensor(name->name, item) || names_.has_dim(name->name) || name->name == "error_word";
      if (is_known) return var(name->name, Dtype::Index, ast->span);
      sink_.error(
          ast->span,
          fmt::format("`{}` is neither a parameter nor a dim of `{}` nor a temporary", name->name, signature_.name),
          did_you_mean(name->name, known(item)));
      return {};
    }
    if (const AstNumber* number = as<AstNumber>(ast); number && number->is_float)
      return real(number->real, Dtype::F64, ast->span);
    if (const AstUnary* minus = as<AstUnary>(ast); minus && minus->op == UnaryOp::Neg)
      if (const AstNumber* number = as<AstNumber>(minus->operand); number && number->is_float)
        return real(-number->real, Dtype::F64, ast->span);
    return as_numbers(names_.size_expression(ast));
  }

  const TensorFn& signature_;
  Sink& sink_;
  FnBuilder names_;
};

std::optional<std::int64_t> constant_of(const Ast& ast, Sink& sink) {
  const TensorFn nothing;
  FnBuilder names(nothing, nullptr, sink);
  const Expr size = names.size_expression(ast);
  if (!size) return std::nullopt;
  const std::optional<std::int64_t> value = integer_value(size);
  if (!value) sink.error(ast->span, fmt::format("`{}` is not a constant whole number", sink.text_of(ast->span)));
  return value;
}

std::optional<double> real_of(const Ast& ast) {
  if (const AstNumber* number = as<AstNumber>(ast))
    return number->is_float ? number->real : static_cast<double>(number->integer);
  if (const AstUnary* minus = as<AstUnary>(ast); minus && minus->op == UnaryOp::Neg) {
    const std::optional<double> value = real_of(minus->operand);
    if (value) return -*value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<HandItem> resolve_hand(const AstHand& item, const TensorFn& signature, Sink& sink) {
  HandItem result;
  result.fn = item.fn.text;
  result.label = item.label.text;
  result.file = item.file.text;
  result.span = item.span;
  result.when = resolve_facts(item.when, signature, sink);
  HandReader(signature, sink).read(item.steps, result);
  return result;
}

std::vector<HandItem> resolve_hands(const std::vector<AstHand>& items, FnTable& table, Sink& sink) {
  std::vector<HandItem> result;
  for (const AstHand& item : items) {
    const TensorFn* signature = named_fn(item.fn, table, sink);
    if (!signature) continue;
    for (const HandItem& before : result)
      if (before.fn == item.fn.text && before.label == item.label.text)
        sink.error(item.label.span, fmt::format("`{}` has a hand kernel \"{}\" already", item.fn.text, item.label.text),
                   {}, {Note{before.span, "here"}});
    const bool has_launch = std::any_of(item.steps.begin(), item.steps.end(), [](const AstHandStep& step) {
      return std::holds_alternative<AstLaunch>(step.value);
    });
    if (!has_launch) sink.error(item.span, "a hand item without a launch");
    if (std::optional<HandItem> hand = resolve_hand(item, *signature, sink)) result.push_back(std::move(*hand));
  }
  return result;
}

std::vector<BenchItem> resolve_benches(const std::vector<AstBench>& items, FnTable& table, Sink& sink) {
  std::vector<BenchItem> result;
  for (const AstBench& item : items) {
    const TensorFn* fn = named_fn(item.fn, table, sink);
    if (!fn) continue;
    BenchItem bench{item.name.text, item.fn.text, {}, {}, item.span};
    std::set<std::string> given;
    for (const AstBenchValue& value : item.values) {
      const std::string& name = value.name.text;
      if (!given.insert(name).second) sink.error(value.name.span, fmt::format("`{}` is given twice", name));
      const bool is_dim = std::find(fn->dims.begin(), fn->dims.end(), name) != fn->dims.end();
      const auto scalar = std::find_if(fn->params.begin(), fn->params.end(), [&](const Param& param) {
        return param.name == name && param.kind == ParamKind::In && param.shape.empty();
      });
      if (!is_dim && scalar == fn->params.end()) {
        sink.error(value.name.span, fmt::format("`{}` is neither a dim nor a scalar of `{}`", name, fn->name),
                   did_you_mean(name, fn->dims));
      } else if (!is_dim && is_float(scalar->dtype)) {
        const std::optional<double> real = real_of(value.value);
        if (real)
          bench.reals.emplace_back(name, *real);
        else
          sink.error(value.value->span, fmt::format("`{}` is not a constant number", sink.text_of(value.value->span)));
      } else if (const std::optional<std::int64_t> size = constant_of(value.value, sink)) {
        if (is_dim && *size < 0)
          sink.error(value.value->span, fmt::format("`{}` is {}, but a size is 0 or more", name, *size));
        bench.sizes.emplace_back(name, *size);
      }
    }
    std::vector<std::string> missing;
    for (const std::string& dim : fn->dims)
      if (given.count(dim) == 0) missing.push_back("`" + dim + "`");
    if (!missing.empty())
      sink.error(item.span, fmt::format("bench \"{}\" does not say {}", item.name.text, fmt::join(missing, ", ")));
    result.push_back(std::move(bench));
  }
  return result;
}

HandItem parse_hand_steps(const std::string& text, const TensorFn& fn, int file) {
  Sink sink(text, file);
  const std::vector<Lexeme> tokens = lex_program(text, sink);
  const std::vector<AstHandStep> steps = ProgramParser(tokens, sink).parse_all_hand_steps();
  HandItem item;
  item.fn = fn.name;
  if (!sink.has_errors()) HandReader(fn, sink).read(steps, item);
  if (sink.has_errors()) throw UserError(sink.take());
  return item;
}

}  // namespace tilewright
