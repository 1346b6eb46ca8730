// epilogue: results leave by way of shared memory, slice by slice, and the copy engine stores them.
//
//   epilogue C via shared tma, tile j 64 buffers 2
//   before   reg acc: f32[i 128, j 256] (…; j: 32 reg*4, 4 lane, 2 reg)
//            each i in 128, j in 256 { C[i.block*128 + i, j.block*256 + j] = bf16(acc[i, j]) where … }
//   after    reg Cr: bf16[i 128, j 64] (…; j: 8 reg*4, 4 lane, 2 reg)
//            shared Cs: bf16[slot 2, i 128, j 64] (…) xor 128
//            pipe q: Cs slots 2 via tma.store scope block
//            unroll j.store in 4 {
//              each i in 128, j in 64 { Cr[i, j] = bf16(acc[i, j.store*64 + j]) }
//              acquire q; copy Cs[q.in, Cs.i, Cs.j] <- Cr[Cs.i, Cs.j]; commit q
//              wait q; copy C[i.block*128 + Cs.i, j.block*256 + j.store*64 + Cs.j; skip] <- Cs[q.out, Cs.i, Cs.j];
//              release q }
//
// What is computed of the accumulator stays where it was; outside of C it is computed with 0 for what it reads there,
// and left out by the copy. The engine still reads one slot while the next is filled.
//
// Needs: the result in registers with a layout, cut at a multiple of a register factor; conditions that say no more
// than "inside C"; room in shared memory; sm_90, and the facts that a tensor map needs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "passes/fragments.h"
#include "passes/linear_form.h"
#include "passes/loops.h"
#include "passes/schedule/asynchronous_copy.h"
#include "passes/schedule/cut.h"
#include "passes/schedule/passes.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

struct EpilogueLine {
  LineName tensor;
  Span mechanism;
  LineName axis;
  LineNumber size;
  LineNumber buffers;
};

EpilogueLine read_epilogue_line(const ScheduleLine& line) {
  LineReader reader(line);
  EpilogueLine result;
  result.tensor = reader.name("the tensor that the kernel writes");
  reader.expect("via");
  reader.expect("shared");
  result.mechanism = reader.here();
  reader.expect("tma");
  reader.expect(",");
  reader.expect("tile");
  result.axis = reader.name("an axis of the result");
  result.size = reader.number("the size of a slice");
  reader.expect("buffers");
  result.buffers = reader.number("a number of slots");
  reader.end();
  return result;
}

class Epilogue {
 public:
  Epilogue(const Plan& plan, const Target& target, Names& names, const EpilogueLine& line)
      : plan_(plan), target_(target), names_(names), line_(line) {}

  Block apply(const Block& block) {
    walk(block, [&](const Stmt& stmt) {
      if (const Buffer* buffer = as<Buffer>(stmt)) buffers_[buffer->name] = *buffer;
      return true;
    });
    Block result = rewrite_statements(block, [&](const Stmt& stmt) -> Block {
      const Loop* each = as<Loop>(stmt);
      if (!each || each->kind != LoopKind::Each || each->body.empty()) return {stmt};
      const Store* store = as<Store>(each->body.back());
      if (!store || store->target.buffer != line_.tensor.text) return {stmt};
      if (!slice_.name.empty())
        throw UserError(line_.tensor.span, fmt::format("`{}` is stored at several places", line_.tensor.text));
      return {in_slices(*each, *store, stmt->span)};
    });
    if (slice_.name.empty())
      throw UserError(line_.tensor.span,
                      fmt::format("no `each` over a tile ends with a store of `{}`", line_.tensor.text));
    return with_declarations(result);
  }

 private:
  Stmt in_slices(const Loop& each, const Store& store, Span span) {
    const Buffer& source = accumulator_of(each);
    std::size_t axis = axis_of(each);
    std::int64_t extent = constant_extent(each.axes[axis]).value_or(0);
    std::int64_t size = line_.size.value;
    if (extent % size != 0)
      throw UserError(line_.size.span, fmt::format("a slice of {} does not divide the {} elements of `{}`", size,
                                                   extent, line_.axis.text));
    require_inside_only(store);
    auto layout = sliced(*source.layout, axis, size);
    if (!layout)
      throw UserError(line_.size.span,
                      fmt::format("`{}` lies as {}: slices of {} along `{}` are not the same registers of every thread",
                                  source.name, print(*source.layout), size, line_.axis.text),
                      fmt::format("`tile {} {}` stores the tile in one piece", line_.axis.text, extent));
    accumulator_ = source.name;
    declare_buffers(each, store, axis, std::move(*layout), span);
    std::string part = names_.fresh(line_.axis.text + ".store");
    std::string pipe = pipe_.name;

    Expr offset = var(part) * size;
    Loop rounding = each;
    rounding.axes[axis] = counted(line_.axis.text, size, each.axes[axis].span);
    rounding.deal.reset();
    Store rounded{Access{registers_.name, {}, {}, store.target.span}, store.value, {}, std::nullopt};
    rounding.body.back() = make_stmt(rounded, each.body.back()->span);
    rounding.body = replace(rounding.body, {{line_.axis.text, offset + var(line_.axis.text)}});
    rounding.body = rewrite_expressions(rounding.body, [&](const Expr& expr) { return inside_only(expr); });
    for (const Axis& each_axis : each.axes) rounded.target.index.push_back(var(each_axis.name));
    rounded.value = as<Store>(rounding.body.back())->value;
    rounding.body.back() = make_stmt(std::move(rounded), each.body.back()->span);

    Block body = {make_stmt(std::move(rounding), span)};
    auto verb = [&](VerbKind kind) { body.push_back(make_stmt(Verb{kind, pipe}, span)); };
    verb(VerbKind::Acquire);
    body.push_back(make_stmt(into_slot(each), span));
    verb(VerbKind::Commit);
    verb(VerbKind::Wait);
    body.push_back(make_stmt(out_of_slot(each, store, offset), span));
    verb(VerbKind::Release);
    return make_stmt(Loop{LoopKind::Unroll, {counted(part, extent / size, each.axes[axis].span)}, std::nullopt, body},
                     span);
  }

  // The register buffer that the `each` follows.
  const Buffer& accumulator_of(const Loop& each) const {
    for (const auto& [name, buffer] : buffers_) {
      if (buffer.space != Space::Register || !buffer.layout || !mentions_buffer(each.body, name)) continue;
      bool same = buffer.axes.size() == each.axes.size();
      for (std::size_t n = 0; same && n < each.axes.size(); ++n)
        same = constant_extent(each.axes[n]) == buffer.axes[n].extent;
      if (same) return buffer;
    }
    throw UserError(line_.tensor.span,
                    fmt::format("what is stored to `{}` stands in no register buffer of the block", line_.tensor.text),
                    "`stage` the operands and `mma` first");
  }

  std::size_t axis_of(const Loop& each) const {
    for (std::size_t n = 0; n < each.axes.size(); ++n)
      if (each.axes[n].name == line_.axis.text) return n;
    std::vector<std::string> names;
    for (const Axis& axis : each.axes) names.push_back(axis.name);
    throw UserError(line_.axis.span, fmt::format("`{}` is no axis of the tile that is stored; there are {}",
                                                 line_.axis.text, in_words(names)));
  }

  // Each condition of the store says `index < extent of the tensor`, which the copy's `skip` says, too.
  void require_inside_only(const Store& store) const {
    if (store.atomic)
      throw UserError(line_.tensor.span,
                      fmt::format("`{}` is combined atomically; the engine only stores", line_.tensor.text));
    auto tensor = find_tensor(plan_, store.target.buffer);
    if (!tensor) throw UserError(line_.tensor.span, fmt::format("`{}` is no tensor", line_.tensor.text));
    for (const Expr& condition : store.where) {
      const Binary* bound = as<Binary>(condition);
      bool is_inside = false;
      for (std::size_t d = 0; bound && bound->op == BinaryOp::Lt && d < tensor->shape.size(); ++d)
        is_inside |= is_same_index(bound->lhs, store.target.index[d]) && is_same_index(bound->rhs, tensor->shape[d]);
      if (!is_inside)
        throw UserError(line_.tensor.span, fmt::format("`{}` is stored where `{}`, which the engine does not look at",
                                                       line_.tensor.text, print(condition)));
    }
  }

  // Loads of tensors give 0 outside: what is made of it is never stored.
  Expr inside_only(const Expr& expr) const {
    const Load* element = as<Load>(expr);
    auto tensor = element ? find_tensor(plan_, element->access.buffer) : std::nullopt;
    if (!tensor || element->access.index.empty()) return expr;
    if (element->access.rule.kind == Rule::Kind::Check)
      throw UserError(line_.tensor.span, fmt::format("`{}` is checked, and would be read for elements outside of `{}`",
                                                     print(expr), line_.tensor.text));
    if (element->access.rule.kind != Rule::Kind::None) return expr;
    Access access = element->access;
    access.rule = Rule{Rule::Kind::Fill, constant(0, expr->dtype), 0};
    return load(std::move(access), expr->dtype, expr->span);
  }

  void declare_buffers(const Loop& each, const Store& store, std::size_t axis, Layout layout, Span span) {
    const std::string& tensor = line_.tensor.text;
    Dtype dtype = find_tensor(plan_, tensor)->dtype;
    std::vector<BufferAxis> axes;
    for (std::size_t n = 0; n < each.axes.size(); ++n)
      axes.push_back({each.axes[n].name, n == axis ? line_.size.value : constant_extent(each.axes[n]).value_or(1)});
    for (std::size_t n = 0; n < axes.size(); ++n) layout.axes[n].axis = axes[n].name;
    registers_ = Buffer{Space::Register, names_.fresh(tensor + "r"), dtype, axes, std::move(layout), std::nullopt};
    slice_ = Buffer{Space::Shared, names_.fresh(tensor + "s"), dtype, {}, std::nullopt, std::nullopt};
    // In the order of the tensor's dims, so that a row of the slice is one of the tensor.
    for (const Expr& index : store.target.index)
      for (const BufferAxis& own : axes)
        if (uses_var(index, own.name)) slice_.axes.push_back(own);
    TileOptions options;
    std::int64_t row = slice_.axes.empty() ? 0 : slice_.axes.back().extent * bytes_of(dtype);
    for (std::int64_t bytes : {32, 64, 128})
      if (row % bytes == 0) options.swizzle = {bytes, line_.size.span};
    slice_.layout = tile_layout(slice_.axes, dtype, options);
    pipe_ =
        Pipe{names_.fresh("q"), {slice_.name}, static_cast<int>(line_.buffers.value), "tma.store", 0, PipeScope::Cta};
    span_ = span;
  }

  std::vector<Expr> slice_index(const char* side) const {
    std::vector<Expr> index = {var(pipe_.name + side)};
    for (const BufferAxis& axis : slice_.axes) index.push_back(var(slice_.name + "." + axis.name));
    return index;
  }

  Copy into_slot(const Loop& each) const {
    Copy copy;
    copy.target = Access{slice_.name, slice_index(".in"), {}, {}};
    copy.source.buffer = registers_.name;
    for (const Axis& axis : each.axes) copy.source.index.push_back(var(slice_.name + "." + axis.name));
    return copy;
  }

  Copy out_of_slot(const Loop& each, const Store& store, const Expr& offset) const {
    Copy copy;
    copy.target = store.target;
    copy.target.rule = Rule{Rule::Kind::Skip, {}, 0};
    std::vector<std::pair<std::string, Expr>> places;
    for (const Axis& axis : each.axes) {
      Expr place = var(slice_.name + "." + axis.name);
      places.emplace_back(axis.name, axis.name == line_.axis.text ? offset + place : place);
    }
    for (Expr& index : copy.target.index) index = replace(index, places);
    copy.source = Access{slice_.name, slice_index(".out"), {}, {}};
    AsynchronousCopies conditions(plan_, target_, "tma", line_.mechanism,
                                  "without this line threads store the registers themselves");
    conditions.need(copy, slice_);
    conditions.refuse_missing_facts();
    return copy;
  }

  Buffer with_slots() const {
    Buffer result = slice_;
    std::int64_t slots = line_.buffers.value;
    std::int64_t elements = tile_elements(*slice_.layout);
    result.axes.insert(result.axes.begin(), BufferAxis{"slot", slots});
    result.layout->axes.insert(result.layout->axes.begin(), AxisLayout{"slot", {Factor{slots, Place::Mem, elements}}});
    return result;
  }

  // The registers stand behind the accumulator; the slots and the pipe behind the declarations that open the block.
  Block with_declarations(const Block& block) const {
    Block result = rewrite_statements(block, [&](const Stmt& stmt) -> Block {
      const Buffer* buffer = as<Buffer>(stmt);
      if (!buffer || buffer->name != accumulator_) return {stmt};
      return {stmt, make_stmt(registers_, span_)};
    });
    result.insert(std::find_if(result.begin(), result.end(), [](const Stmt& stmt) { return !as<Buffer>(stmt); }),
                  make_stmt(with_slots(), span_));
    result.insert(std::find_if(result.begin(), result.end(),
                               [](const Stmt& stmt) { return !as<Buffer>(stmt) && !as<Pipe>(stmt); }),
                  make_stmt(pipe_, span_));
    return result;
  }

  const Plan& plan_;
  const Target& target_;
  Names& names_;
  const EpilogueLine& line_;
  std::map<std::string, Buffer> buffers_;
  std::string accumulator_;
  Buffer registers_;
  Buffer slice_;  // without slots
  Pipe pipe_;
  Span span_;
};

}  // namespace

Plan epilogue(const Plan& plan, const ScheduleLine& line, const Target& target) {
  EpilogueLine read = read_epilogue_line(line);
  const Kernel& meant = kernel_named(plan, read.tensor);
  if (!line.target.empty() && line.target != meant.name)
    throw UserError(read.tensor.span, fmt::format("kernel `{}` does not write `{}`", line.target, read.tensor.text));
  Names names(plan);
  return map_kernels(plan, [&](const Kernel& kernel) {
    if (kernel.name != meant.name) return kernel;
    Kernel result = kernel;
    result.body = map_block_body(kernel.body,
                                 [&](const Block& block) { return Epilogue(plan, target, names, read).apply(block); });
    require_shared_fits(result.body, target, line.span, "a smaller slice, fewer buffers or a pipeline of less depth");
    require_registers_fit(result, target, line.span, "a smaller slice");
    return result;
  });
}

}  // namespace tilewright
