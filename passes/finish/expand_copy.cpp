// A generic copy as the work of each thread, by its deal.
//
//   before   copy As[As.i, As.k] <- A[i.block*64 + As.i, k.block*16 + As.k; 0.0] on (As.i: 64 thread*4; As.k: 4 thread, 4 vector)
//   after    reg As.t: f32[4]
//            if i.block*64 + t/4 < M and k.block*16 + t%4*4 < K { load.v4(As.t[0], A[…]) } else { unroll v in 4 { As.t[v] = 0.0 } }
//            store.v4(As[…], As.t[0])
#include <fmt/format.h>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/expand.h"

namespace tilewright {

namespace {

class CopyExpansion {
 public:
  CopyExpansion(const Copy& copy, Span span, ExpandContext& context) : copy_(copy), span_(span), context_(context), ranges_(context.ranges) {
    if (!copy.deal) internal_error("a copy without a deal reached expand");
    if (context.is_register(copy.target.buffer) || context.is_register(copy.source.buffer))
      throw UserError(span, "a `copy` between registers and memory cannot be finished for this architecture by generic code",
                      "write it as an `each` over the register buffer");
    dtype_ = dtype_of(copy.target.buffer);
    deal();
    conditions();
  }

  bool is_single() const { return steps_ == 1 && width_ == 1; }

  // One element a thread: `As[…] = if … then A[…] else 0.0`.
  Block direct() {
    Stmt store = make_stmt(Store{flat(copy_.target), element_value(), {}, std::nullopt}, span_);
    return taking_part(guarded(target_conditions_, {store}));
  }

  // Each vector of the deal by one cp.async, of which nothing is read where it is out of range.
  Block async() {
    std::int64_t bytes = width_ * bytes_of(dtype_);
    Access target = flat(copy_.target);
    Access source = flat(copy_.source);
    Expr from = width_ == 1 ? source.index.back() : scalar_ ? Expr{} : vector_start(copy_.source, source, width_);
    Expr to = width_ == 1 ? target.index.back() : scalar_ ? Expr{} : vector_start(copy_.target, target, width_);
    if (!from || !to || (bytes != 4 && bytes != 8 && bytes != 16))
      throw UserError(span_, fmt::format("cp.async moves 4, 8 or 16 neighbouring bytes, and {} stand side by side here", from && to ? bytes : bytes_of(dtype_)),
                      "state in `when` that the rows are aligned, as in `when K % 8 == 0, aligned 16`");
    if (copy_.source.rule.fill && real_value(copy_.source.rule.fill) != 0.0 && !is_integer_constant(copy_.source.rule.fill, 0))
      throw UserError(span_, "cp.async fills what is out of range with 0, and the copy states another value");
    source.index.back() = from;
    target.index.back() = to;
    std::vector<Expr> operands = {load(target, dtype_, span_), load(source, dtype_, span_), integer(bytes)};
    Expr condition = all_of(source_conditions_);
    if (condition) operands.push_back(select(condition, integer(bytes), integer(0)));
    Stmt move = make_stmt(Instr{condition ? "cp.async.fill" : "cp.async", std::move(operands)}, span_);
    return taking_part(stepped(guarded(target_conditions_, {move})));
  }

  CopyParts parts() {
    temp_ = context_.fresh(copy_.target.buffer + ".t");
    CopyParts result;
    std::int64_t elements = steps_ * width_;
    result.declarations = {make_stmt(Buffer{Space::Register, temp_, dtype_, {BufferAxis{"", elements}}, std::nullopt, std::nullopt}, span_)};
    result.loads = taking_part(stepped(loads()));
    result.stores = taking_part(stepped(guarded(target_conditions_, stores())));
    return result;
  }

 private:
  Dtype dtype_of(const std::string& name) {
    if (const Buffer* buffer = context_.flattener.find(name)) return buffer->dtype;
    if (auto tensor = find_tensor(context_.plan, name)) return tensor->dtype;
    internal_error("a copy of an unknown buffer");
  }

  // Coordinates of each axis for this thread; steps and the vector element stay variables.
  void deal() {
    participation_ = participation(*copy_.deal, context_.block);
    std::vector<CopyAxis> axes = copy_axes(copy_, context_.buffers);
    for (const AxisLayout& axis : copy_.deal->axes) {
      std::vector<WalkedFactor> walked;
      std::int64_t product = 1;
      for (std::size_t n = 0; n < axis.factors.size(); ++n) {
        const Factor& factor = axis.factors[n];
        product *= factor.extent;
        if (is_thread_place(factor.place)) continue;
        if (factor.extent == 1) {
          walked.push_back({n, integer(0)});
          continue;
        }
        bool vector = factor.place == Place::Vector;
        std::string name = axis.axis + (vector ? ".v" : ".step");
        walked.push_back({n, var(name)});
        Axis loop{name, integer(0), integer(factor.extent), {}, span_};
        add_axis(ranges_, loop);
        if (vector) {
          width_ = factor.extent;
          vector_ = loop;
        } else {
          slot_ = slot_ * factor.extent + var(name);
          steps_ *= factor.extent;
          loops_.push_back(loop);
        }
      }
      Expr value = coordinate(axis, context_.block, walked);
      replacements_.emplace_back(axis.axis, value);
      for (const CopyAxis& own : axes)
        if (own.name == axis.axis && own.extent < product) edge_.push_back(less(value, integer(own.extent)));
    }
  }

  Expr placed(const Expr& expr) { return substitute(expr, replacements_); }

  void conditions() {
    auto shape_side = [&](const Access& access) {
      std::vector<Expr> index;
      for (const Expr& position : access.index) index.push_back(placed(position));
      auto shape = shape_of_access(context_.plan, context_.buffers, access.buffer);
      return in_range(index, shape.value_or(std::vector<Expr>{}), ranges_);
    };
    if (copy_.source.rule.kind == Rule::Kind::Fill) source_conditions_ = shape_side(copy_.source);
    else if (copy_.source.rule.kind != Rule::Kind::None)
      throw UserError(span_, "a staged access must state a value for what lies outside", "write `; 0` (or another value) behind its indices");
    for (const Expr& condition : copy_.where) source_conditions_.push_back(simplify_expr(placed(condition), ranges_));
    if (copy_.target.rule.kind == Rule::Kind::Skip) target_conditions_ = shape_side(copy_.target);
    if (width_ > 1)
      for (std::vector<Expr>* list : {&source_conditions_, &target_conditions_, &edge_})
        for (Expr& condition : *list) {
          auto uniform = uniform_over(condition, vector_.name, width_, context_.divisors);
          if (!uniform) {
            scalar_ = true;  // the vector is walked element by element
            continue;
          }
          if (!scalar_) condition = *uniform;
        }
    if (!scalar_) return;
    for (Expr& condition : edge_)
      if (auto uniform = uniform_over(condition, vector_.name, width_, context_.divisors)) condition = *uniform;
    load_elements_ = split_off_elements(edge_);
    store_elements_ = split_off_elements(target_conditions_);
    store_elements_.insert(store_elements_.end(), load_elements_.begin(), load_elements_.end());
  }

  // The conditions that differ between the elements of a vector; they stand inside of its walk.
  std::vector<Expr> split_off_elements(std::vector<Expr>& conditions) const {
    std::vector<Expr> elements;
    std::vector<Expr> others;
    for (const Expr& condition : conditions) (uses_var(condition, vector_.name) ? elements : others).push_back(condition);
    conditions = std::move(others);
    return elements;
  }

  Access flat(const Access& access) {
    Access bare = access;
    bare.rule = Rule{};
    Access result = context_.flattener.flat(bare);
    for (Expr& index : result.index) index = simplify_expr(placed(index), ranges_);
    return result;
  }

  Expr fill_value() { return copy_.source.rule.fill ? copy_.source.rule.fill : constant(0, dtype_); }

  Expr element_value() {
    Expr value = load(flat(copy_.source), dtype_, span_);
    Expr condition = all_of(source_conditions_);
    return condition ? select(condition, value, fill_value(), span_) : value;
  }

  // The start of a vector access of one instruction each, or nothing.
  Expr vector_start(const Access& tile, const Access& access, std::int64_t one) {
    if (context_.alignment_of(access.buffer) % (one * bytes_of(dtype_)) != 0) return {};
    const Buffer* buffer = context_.flattener.find(access.buffer);
    if (buffer && buffer->layout && buffer->layout->xor_bytes) return swizzled_start(tile, *buffer, access, one);
    for (std::size_t d = 0; d + 1 < access.index.size(); ++d)
      if (uses_var(access.index[d], vector_.name)) return {};
    auto form = linear_in(access.index.back(), vector_.name);
    if (!form || form->coefficient != 1 || known_divisor(form->rest, context_.divisors) % one != 0) return {};
    return form->rest;
  }

  // A swizzle moves whole chunks of 16 bytes, so that a vector which starts at a multiple of its width stays together.
  Expr swizzled_start(const Access& tile, const Buffer& buffer, const Access& access, std::int64_t one) {
    if (width_ != one) return {};
    for (std::size_t d = 0; d < tile.index.size(); ++d) {
      Expr position = placed(tile.index[d]);
      if (!uses_var(position, vector_.name)) continue;
      auto form = linear_in(position, vector_.name);
      const Factor& innermost = buffer.layout->axes[d].factors.back();
      bool is_contiguous = innermost.place == Place::Mem && innermost.stride == 1 && innermost.extent % one == 0;
      if (!is_contiguous || !form || form->coefficient != 1 || known_divisor(form->rest, context_.divisors) % one != 0) return {};
    }
    return simplify_expr(substitute(access.index.back(), {{vector_.name, integer(0)}}), ranges_);
  }

  Access temp(const Expr& element) { return Access{temp_, {slot_ * width_ + element}, {}, span_}; }

  Block over_vector(Block body) {
    if (width_ == 1) return body;
    return {make_stmt(Loop{LoopKind::Unroll, {vector_}, std::nullopt, std::move(body)}, span_)};
  }

  Block loads() {
    Access source = flat(copy_.source);
    std::int64_t one = instruction_width(width_, dtype_);
    Expr start = width_ > 1 && !scalar_ ? vector_start(copy_.source, source, one) : Expr{};
    Expr element = width_ > 1 ? var(vector_.name) : integer(0);
    if (!start) return over_vector(guarded(load_elements_, {make_stmt(Store{temp(element), element_value(), {}, std::nullopt}, span_)}));
    Block moves;
    for (std::int64_t x = 0; x < width_; x += one) {
      Access memory = source;
      memory.index.back() = start + x;
      moves.push_back(vector_load(temp(integer(x)), memory, one, dtype_, span_));
    }
    Expr condition = all_of(source_conditions_);
    if (!condition) return moves;
    Block fill = over_vector({make_stmt(Store{temp(element), fill_value(), {}, std::nullopt}, span_)});
    return {make_stmt(If{condition, std::move(moves), std::move(fill)}, span_)};
  }

  Block stores() {
    Access target = flat(copy_.target);
    std::int64_t one = instruction_width(width_, dtype_);
    Expr start = width_ > 1 && !scalar_ ? vector_start(copy_.target, target, one) : Expr{};
    if (!start) {
      Expr element = width_ > 1 ? var(vector_.name) : integer(0);
      return over_vector(guarded(store_elements_, {make_stmt(Store{target, load(temp(element), dtype_, span_), {}, std::nullopt}, span_)}));
    }
    Block moves;
    for (std::int64_t x = 0; x < width_; x += one) {
      Access memory = target;
      memory.index.back() = start + x;
      moves.push_back(vector_store(memory, temp(integer(x)), one, dtype_, span_));
    }
    return moves;
  }

  Block guarded(const std::vector<Expr>& conditions, Block body) {
    Expr condition = all_of(conditions);
    return condition ? Block{make_stmt(If{condition, std::move(body), {}}, span_)} : body;
  }

  // The step loops around a body; what a step beyond the tile would do is left out.
  Block stepped(Block body) {
    if (Expr condition = all_of(edge_)) body = {make_stmt(If{condition, std::move(body), {}}, span_)};
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
      body = {make_stmt(Loop{LoopKind::Unroll, {*loop}, std::nullopt, std::move(body)}, span_)};
    return body;
  }

  Block taking_part(Block body) {
    std::vector<Expr> all = participation_;
    if (is_single()) all.insert(all.end(), edge_.begin(), edge_.end());
    Expr condition = all_of(all);
    return condition ? Block{make_stmt(If{condition, std::move(body), {}}, span_)} : body;
  }

  const Copy& copy_;
  Span span_;
  ExpandContext& context_;
  Ranges ranges_;
  Dtype dtype_ = Dtype::F32;
  std::vector<Expr> participation_;
  std::vector<Expr> edge_;
  std::vector<Expr> source_conditions_;
  std::vector<Expr> target_conditions_;
  std::vector<Expr> load_elements_;   // conditions of single elements of a vector that is walked
  std::vector<Expr> store_elements_;
  std::vector<std::pair<std::string, Expr>> replacements_;
  std::vector<Axis> loops_;
  Axis vector_;
  std::int64_t width_ = 1;
  std::int64_t steps_ = 1;
  Expr slot_ = integer(0);  // which step, in order
  bool scalar_ = false;
  std::string temp_;
};

}  // namespace

CopyParts expand_copy(const Copy& copy, Span span, ExpandContext& context) { return CopyExpansion(copy, span, context).parts(); }

Block expand_async_copy(const Copy& copy, Span span, ExpandContext& context) { return CopyExpansion(copy, span, context).async(); }

Block expand_whole_copy(const Copy& copy, Span span, ExpandContext& context) {
  CopyExpansion expansion(copy, span, context);
  if (expansion.is_single()) return expansion.direct();
  CopyParts parts = expansion.parts();
  Block out = std::move(parts.declarations);
  out.insert(out.end(), parts.loads.begin(), parts.loads.end());
  out.insert(out.end(), parts.stores.begin(), parts.stores.end());
  return out;
}

}  // namespace tilewright
