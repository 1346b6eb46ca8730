// Vector loops: every access that is contiguous along the loop becomes one instruction, the rest is unrolled.
//
//   before   vector x in 4 { Z[e*4 + x] = X[e*4 + x] + y }
//   after    reg X.v: f32[4]; load.v4(X.v[0], X[e*4]); reg Z.v: f32[4]; unroll x in 4 { Z.v[x] = X.v[x] + y }; store.v4(Z[e*4], Z.v[0])
#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expand.h"

namespace tilewright {

std::int64_t instruction_width(std::int64_t width, Dtype dtype) {
  std::int64_t widest = 16 / bytes_of(dtype);
  std::int64_t result = 1;
  while (result * 2 <= widest && width % (result * 2) == 0) result *= 2;
  return result;
}

Stmt vector_load(const Access& registers, const Access& memory, std::int64_t width, Dtype dtype, Span span) {
  return make_stmt(Instr{fmt::format("load.v{}", width), {load(registers, dtype, span), load(memory, dtype, span)}}, span);
}

Stmt vector_store(const Access& memory, const Access& registers, std::int64_t width, Dtype dtype, Span span) {
  return make_stmt(Instr{fmt::format("store.v{}", width), {load(memory, dtype, span), load(registers, dtype, span)}}, span);
}

namespace {

class VectorLoop {
 public:
  VectorLoop(const Loop& loop, Span span, ExpandContext& context)
      : loop_(loop), span_(span), context_(context), name_(loop.axes[0].name), width_(integer_value(loop.axes[0].hi).value_or(0)) {
    if (width_ <= 0) internal_error("a vector loop without a constant extent");
  }

  Block expand() {
    Block out;
    for (const Stmt& stmt : loop_.body) {
      const Store* store = as<Store>(stmt);
      if (!store || store->atomic) out.push_back(unrolled({stmt}));
      else expand_store(*store, out);
    }
    return out;
  }

 private:
  Stmt unrolled(Block body) {
    Loop node = loop_;
    node.kind = LoopKind::Unroll;
    node.body = std::move(body);
    return make_stmt(std::move(node), span_);
  }

  // The flat index at x = 0 if the elements lie side by side in memory or registers, aligned for one instruction.
  Expr contiguous_start(const Access& access, Dtype dtype) {
    if (access.index.empty()) return {};
    for (std::size_t d = 0; d + 1 < access.index.size(); ++d)
      if (uses_var(access.index[d], name_)) return {};
    Ranges ranges = context_.ranges;
    add_axis(ranges, loop_.axes[0]);
    Expr flat = simplify_expr(access.index.back(), ranges);
    auto form = linear_in(flat, name_);
    if (!form || form->coefficient != 1) return {};
    if (context_.is_register(access.buffer)) return form->rest;
    std::int64_t one = instruction_width(width_, dtype);
    if (one == 1) return {};
    if (known_divisor(form->rest, context_.divisors) % one != 0) return {};
    if (context_.alignment_of(access.buffer) % (one * bytes_of(dtype)) != 0) return {};
    return form->rest;
  }

  Access at(const Access& access, const Expr& start, std::int64_t offset) {
    Access result = access;
    result.rule = Rule{};
    result.index.back() = start + offset;
    return result;
  }

  Access array(const std::string& name, std::int64_t element) { return Access{name, {integer(element)}, {}, span_}; }

  void declare(Block& out, const std::string& name, Dtype dtype) {
    out.push_back(make_stmt(Buffer{Space::Register, name, dtype, {BufferAxis{"", width_}}, std::nullopt, std::nullopt}, span_));
  }

  void expand_store(const Store& store, Block& out) {
    // A plain move from memory into registers needs no array between.
    const Load* moved = as<Load>(store.value);
    bool to_register = context_.is_register(store.target.buffer);
    Dtype dtype = store.value->dtype;
    Expr target_start = contiguous_start(store.target, dtype);
    if (moved && to_register && target_start && !context_.is_register(moved->access.buffer))
      if (Expr start = contiguous_start(moved->access, dtype)) {
        std::int64_t one = instruction_width(width_, dtype);
        for (std::int64_t x = 0; x < width_; x += one)
          out.push_back(vector_load(at(store.target, target_start, x), at(moved->access, start, x), one, dtype, span_));
        return;
      }
    Expr value = with_vector_loads(store.value, out);
    const Load* ready = as<Load>(value);
    if (to_register || !target_start) {
      out.push_back(unrolled({make_stmt(Store{store.target, value, store.where, std::nullopt}, span_)}));
      return;
    }
    Access source;
    Expr source_start;
    if (ready && context_.is_register(ready->access.buffer)) {
      source = ready->access;
      source_start = contiguous_start(source, dtype);
    } else if (ready && !arrays_.empty() && ready->access.buffer == arrays_.back()) {
      source = ready->access;
      source_start = integer(0);
    }
    if (!source_start) {
      std::string name = context_.fresh(store.target.buffer + ".v");
      declare(out, name, dtype);
      Access element{name, {var(name_)}, {}, span_};
      out.push_back(unrolled({make_stmt(Store{element, value, {}, std::nullopt}, span_)}));
      source = element;
      source_start = integer(0);
    }
    std::int64_t one = instruction_width(width_, dtype);
    for (std::int64_t x = 0; x < width_; x += one)
      out.push_back(vector_store(at(store.target, target_start, x), at(source, source_start, x), one, dtype, span_));
  }

  // Loads that are contiguous along the loop are made in front of it; a branch keeps its own, for it may guard them.
  Expr with_vector_loads(const Expr& expr, Block& out) {
    if (as<Select>(expr)) return expr;
    const Load* access = as<Load>(expr);
    if (access && !context_.is_register(access->access.buffer)) {
      Expr start = contiguous_start(access->access, expr->dtype);
      if (!start) return expr;
      for (const auto& [known, name] : made_)
        if (known == expr) return load(Access{name, {var(name_)}, {}, span_}, expr->dtype, span_);
      std::string name = context_.fresh(access->access.buffer + ".v");
      declare(out, name, expr->dtype);
      std::int64_t one = instruction_width(width_, expr->dtype);
      for (std::int64_t x = 0; x < width_; x += one)
        out.push_back(vector_load(array(name, x), at(access->access, start, x), one, expr->dtype, span_));
      made_.emplace_back(expr, name);
      arrays_.push_back(name);
      return load(Access{name, {var(name_)}, {}, span_}, expr->dtype, span_);
    }
    return map_children(expr, [&](const Expr& child) { return with_vector_loads(child, out); });
  }

  const Loop& loop_;
  Span span_;
  ExpandContext& context_;
  std::string name_;
  std::int64_t width_;
  std::vector<std::pair<Expr, std::string>> made_;
  std::vector<std::string> arrays_;
};

}  // namespace

Block expand_vectors(const Block& body, ExpandContext& context) {
  Block out;
  for (const Stmt& stmt : body) {
    const Loop* loop = as<Loop>(stmt);
    Ranges outer = context.ranges;
    if (loop)
      for (const Axis& axis : loop->axes) add_axis(context.ranges, axis);
    if (loop && loop->kind == LoopKind::Vector) {
      Block made = VectorLoop(*loop, stmt->span, context).expand();
      out.insert(out.end(), made.begin(), made.end());
    } else {
      out.push_back(map_bodies(stmt, [&](const Block& inner) { return expand_vectors(inner, context); }));
    }
    context.ranges = std::move(outer);
  }
  return out;
}

}  // namespace tilewright
