// Signatures: the dims of a fn, its parameters and results, and whether the inputs say every size.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/fn_builder.h"
#include "frontend/parser.h"
#include "ir/operators.h"

namespace tilewright {

namespace {

class SignatureReader {
 public:
  SignatureReader(const AstFn& ast, Sink& sink) : ast_(ast), sink_(sink) {}

  std::optional<TensorFn> run() {
    fn_.name = ast_.name.text;
    fn_.span = ast_.span;
    check_names();
    for (const AstParam& param : ast_.params) read(param);
    if (is_well_) check_sizes();
    if (!is_well_) return std::nullopt;
    return fn_;
  }

 private:
  void fault(Span span, std::string message, std::string help = {}, std::vector<Note> notes = {}) {
    is_well_ = false;
    sink_.error(span, std::move(message), std::move(help), std::move(notes));
  }

  void check_names() {
    std::map<std::string, Span> places;
    for (const AstParam& param : ast_.params) {
      if (param.name.text.find('.') != std::string::npos)
        fault(param.name.span, fmt::format("`{}` has a dot, but the name of a parameter is one word", param.name.text));
      const auto [found, is_new] = places.emplace(param.name.text, param.span);
      if (!is_new)
        fault(param.name.span, fmt::format("`{}` is declared twice", param.name.text), {},
              {Note{found->second, "the first one is here"}});
    }
  }

  void read(const AstParam& param) {
    Param result{param.kind, param.name.text, param.dtype, {}, param.span};
    for (const Ast& extent : param.shape) {
      Expr size = read_size(extent);
      if (!size) {
        is_well_ = false;
        return;
      }
      const std::optional<std::int64_t> constant = integer_value(size);
      if (constant && *constant < 0) fault(extent->span, fmt::format("a dim of size {}", *constant));
      result.shape.push_back(std::move(size));
    }
    fn_.params.push_back(std::move(result));
  }

  // An integer expression of names, each of which becomes a dim.
  Expr read_size(const Ast& ast) {
    const auto refuse = [&] {
      fault(ast->span, fmt::format("`{}` is not the size of a dim", sink_.text_of(ast->span)),
            "a size is made of whole numbers and names with `+ - * / %`, `ceildiv`, `min` and `max`");
      return Expr();
    };
    if (const AstNumber* number = as<AstNumber>(ast); number && !number->is_float)
      return integer(number->integer, Dtype::Index, ast->span);
    if (const AstName* name = as<AstName>(ast)) return read_dim(name->name, ast->span);
    if (const AstUnary* unary_op = as<AstUnary>(ast); unary_op && unary_op->op == UnaryOp::Neg) {
      Expr operand = read_size(unary_op->operand);
      return operand ? unary(UnaryOp::Neg, operand, ast->span) : Expr();
    }
    if (const AstBinary* binary_op = as<AstBinary>(ast)) {
      if (info(binary_op->op).is_logical) return refuse();
      Expr lhs = read_size(binary_op->lhs);
      Expr rhs = read_size(binary_op->rhs);
      return lhs && rhs ? binary(binary_op->op, lhs, rhs, ast->span) : Expr();
    }
    if (const AstCall* call = as<AstCall>(ast); call && call->arguments.size() == 2) {
      const std::string& function = call->function.text;
      if (function != "ceildiv" && function != "min" && function != "max") return refuse();
      Expr lhs = read_size(call->arguments[0]);
      Expr rhs = read_size(call->arguments[1]);
      if (!lhs || !rhs) return Expr();
      if (function == "ceildiv") return ceildiv(lhs, rhs);
      return binary(function == "min" ? BinaryOp::Min : BinaryOp::Max, lhs, rhs, ast->span);
    }
    return refuse();
  }

  Expr read_dim(const std::string& name, Span span) {
    const auto param =
        std::find_if(ast_.params.begin(), ast_.params.end(), [&](const AstParam& p) { return p.name.text == name; });
    if (param != ast_.params.end()) {
      fault(span,
            fmt::format("`{}` is a parameter, but a size is made of dims, which the shapes of the inputs say", name),
            {}, {Note{param->span, fmt::format("`{}` is declared here", name)}});
      return {};
    }
    if (is_reserved(name) || name.find('.') != std::string::npos) {
      fault(span, fmt::format("`{}` cannot name a dim", name));
      return {};
    }
    if (std::find(fn_.dims.begin(), fn_.dims.end(), name) == fn_.dims.end()) {
      fn_.dims.push_back(name);
      places_.push_back(span);
    }
    return var(name, Dtype::Index, span);
  }

  // Every dim must follow from the shapes of the inputs, one after the other; an input's dims are affine in them.
  void check_sizes() {
    Facts facts;
    std::set<std::string> known;
    std::vector<std::set<std::string>> open;
    for (const Param& param : fn_.params) {
      if (param.kind == ParamKind::Out) continue;
      for (const Expr& extent : param.shape) {
        std::set<std::string> names = names_in(extent);
        const std::optional<Polynomial> size = facts.polynomial(extent);
        const bool is_affine = size &&
                               std::all_of(size->terms.begin(), size->terms.end(),
                                           [](const auto& term) { return term.first.size() == 1; }) &&
                               !has_division(extent);
        if (!is_affine && !names.empty())
          fault(extent->span.is_known() ? extent->span : param.span,
                fmt::format("`{}` is not affine in its names, so that a size could not be solved for them",
                            print(extent)),
                "the dims of inputs are such as `N`, `2*R + 1`, `R + C`");
        open.push_back(std::move(names));
      }
    }
    for (bool grows = true; grows;) {
      grows = false;
      for (const std::set<std::string>& names : open) {
        std::vector<std::string> unknown;
        for (const std::string& name : names)
          if (known.count(name) == 0) unknown.push_back(name);
        if (unknown.size() == 1) grows = known.insert(unknown[0]).second || grows;
      }
    }
    for (std::size_t k = 0; k < fn_.dims.size(); ++k) {
      const std::string& dim = fn_.dims[k];
      if (known.count(dim) > 0) continue;
      std::string help = did_you_mean(dim, {known.begin(), known.end()});
      fault(places_[k], fmt::format("nothing says how large `{}` is: no shape of an input can be solved for it", dim),
            help.empty() ? fmt::format("an input with `{}` as one of its dims says it", dim) : help);
    }
  }

  static std::set<std::string> names_in(const Expr& expr) {
    std::set<std::string> names;
    walk(expr, [&](const Expr& part) {
      if (const Var* variable = as<Var>(part)) names.insert(variable->name);
      return true;
    });
    return names;
  }

  static bool has_division(const Expr& expr) {
    bool found = false;
    walk(expr, [&](const Expr& part) {
      const Binary* operation = as<Binary>(part);
      if (as<Call>(part) || (operation && operation->op != BinaryOp::Add && operation->op != BinaryOp::Sub &&
                             operation->op != BinaryOp::Mul))
        found = true;
      return true;
    });
    return found;
  }

  const AstFn& ast_;
  Sink& sink_;
  TensorFn fn_;
  std::vector<Span> places_;  // of the dims
  bool is_well_ = true;
};

}  // namespace

std::optional<TensorFn> declare_signature(const AstFn& ast, Sink& sink) { return SignatureReader(ast, sink).run(); }

}  // namespace tilewright
