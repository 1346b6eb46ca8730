// fuse: several kernels share one loop.
//
//   fuse m into Y at r
//   before   kernel m { parallel r in R { reg acc; …; serial d { acc = max(acc, X[r, d]) }; m[r] = acc } }
//            kernel Y { parallel r in R, d in D {
//              reg acc; …; serial c { acc = acc + exp(X[r, c] - m[r]) }; Y[r, d] = … / acc } }
//   after    kernel Y { parallel r in R {
//              reg m; reg acc.2; …; serial d { acc.2 = max(acc.2, X[r, d]) }; m = acc.2
//              reg acc; …; serial c { acc = acc + exp(X[r, c] - m) }
//              serial d in D { Y[r, d] = … / acc } } }
//
// A tensor over the shared loop becomes a scalar; what the reader reduces without its inner indices moves out of them.
//
// Needs: naive kernels; producers over exactly the loops down to the named one, read by the target alone.
#include <fmt/format.h>

#include <algorithm>

#include "passes/schedule/passes.h"
#include "passes/schedule/producer.h"

namespace tilewright {

namespace {

Plan without_kernels(const Plan& plan, const std::vector<LineName>& kernels) {
  Plan result = plan;
  for (const LineName& name : kernels) result = without_kernel(result, name.text);
  return result;
}

class Fusion {
 public:
  Fusion(const Plan& plan, std::vector<LineName> producers, LineName into, LineName at)
      : plan_(plan),
        names_(without_kernels(plan, producers)),
        producers_(std::move(producers)),
        into_(std::move(into)),
        at_(std::move(at)) {}

  Plan run() {
    const Kernel& target = kernel_named(plan_, into_);
    NaiveKernel reader = naive_kernel(target, into_.span, "fuse");
    auto last =
        std::find_if(reader.axes.begin(), reader.axes.end(), [&](const Axis& axis) { return axis.name == at_.text; });
    if (last == reader.axes.end()) {
      std::vector<std::string> known;
      for (const Axis& axis : reader.axes) known.push_back(axis.name);
      throw UserError(at_.span, fmt::format("`{}` is no parallel loop of kernel `{}`, which has {}", at_.text,
                                            into_.text, in_words(known)));
    }
    outer_.assign(reader.axes.begin(), last + 1);
    std::vector<Axis> inner(last + 1, reader.axes.end());
    for (const Axis& axis : outer_) element_.push_back(var(axis.name));

    Block body;
    Block own = reader.body;
    for (const LineName& name : producers_) {
      Producer producer = producer_of(plan_, name, "fuse");
      require_fitting(producer, name);
      std::set<std::string> around;
      for (const Axis& axis : outer_) around.insert(axis.name);
      Block made = as_scalar(producer, element_, name.text, around, names_);
      if (!is_temporary(plan_, name.text)) refuse_result(name);
      body.insert(body.end(), made.begin(), made.end());
    }
    for (const LineName& name : producers_) {
      body = read_scalar(body, name.text, element_, name.span);
      own = read_scalar(own, name.text, element_, name.span);
    }
    append_own(body, own, inner, reader.span);
    return map_kernels(without_kernels(plan_, producers_), [&](const Kernel& kernel) {
      return kernel.name == into_.text ? with_body(kernel, outer_, body, reader.span) : kernel;
    });
  }

 private:
  [[noreturn]] void refuse_result(const LineName& name) const {
    throw UserError(name.span, fmt::format("`{}` is a result of `{}`; only a `let` can become a part of another kernel",
                                           name.text, plan_.name));
  }

  void require_fitting(const Producer& producer, const LineName& name) const {
    if (name.text == into_.text) throw UserError(name.span, fmt::format("`{}` cannot go into itself", name.text));
    for (const std::string& reader : readers_of(plan_, name.text)) {
      bool inside = reader == into_.text || std::any_of(producers_.begin(), producers_.end(),
                                                        [&](const LineName& other) { return other.text == reader; });
      if (!inside)
        throw UserError(name.span,
                        fmt::format("kernel `{}` reads `{}` too, so it must stay in memory", reader, name.text));
    }
    bool fits = producer.axes.size() == outer_.size();
    for (std::size_t d = 0; fits && d < outer_.size(); ++d) fits = extent_of(producer.axes[d]) == extent_of(outer_[d]);
    if (fits) return;
    std::vector<std::string> axes;
    for (const Axis& axis : producer.axes) axes.push_back(axis.name);
    bool pointwise = producer.before.empty();
    throw UserError(name.span,
                    fmt::format("`{}` has the indices {}; fused at `{}` it needs those of the loops down to it",
                                name.text, in_words(axes), at_.text),
                    pointwise ? fmt::format("`inline {}` computes it where it is read", name.text) : std::string{});
  }

  // The target's statements: those that do not depend on the inner loops once, the rest inside of them.
  void append_own(Block& body, const Block& own, const std::vector<Axis>& inner, Span span) const {
    if (inner.empty()) {
      body.insert(body.end(), own.begin(), own.end());
      return;
    }
    std::set<std::string> inner_names;
    for (const Axis& axis : inner) inner_names.insert(axis.name);
    std::set<std::string> varying = varying_names(own, inner_names);
    Block rest;
    for (const Stmt& stmt : own) (is_once(stmt, inner_names, varying) ? body : rest).push_back(stmt);
    body.push_back(make_stmt(Loop{LoopKind::Serial, inner, std::nullopt, std::move(rest)}, span));
  }

  static bool is_once(const Stmt& stmt, const std::set<std::string>& inner, const std::set<std::string>& varying) {
    if (const Buffer* buffer = as<Buffer>(stmt)) return !varying.count(buffer->name);
    std::set<std::string> own;
    bool once = true;
    walk({stmt}, [&](const Stmt& nested) {
      const Store* store = as<Store>(nested);
      if (store) once = once && !varying.count(store->target.buffer) && store->target.index.empty();
      if (const Let* let = as<Let>(nested)) once = once && !varying.count(let->name);
      return once;
    });
    walk_expressions({stmt}, [&](const Expr& expr) { once = once && !is_varying(expr, inner, varying); });
    return once;
  }

  const Plan& plan_;
  Names names_;
  std::vector<LineName> producers_;
  LineName into_;
  LineName at_;
  std::vector<Axis> outer_;
  std::vector<Expr> element_;
};

}  // namespace

Plan fuse(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  std::vector<LineName> producers;
  do producers.push_back(reader.name("a tensor"));
  while (reader.accept(","));
  reader.expect("into");
  LineName into = reader.name("a tensor");
  reader.expect("at");
  LineName at = reader.name("the name of a loop");
  reader.end();
  return Fusion(plan, std::move(producers), std::move(into), std::move(at)).run();
}

}  // namespace tilewright
