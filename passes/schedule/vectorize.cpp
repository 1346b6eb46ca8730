// vectorize: the neighbouring elements of a thread move in one access.
//
//   vectorize 4, behind `coarsen i 8 by 4, j 8 by 4`
//   before   serial k in 16 { unroll i.coarse in 2, i.by in 4, j.coarse in 2, j.by in 4 {
//              acc[…] = fma(As[(i.coarse*16 + i)*4 + i.by, k], Bs[k, (j.coarse*16 + j)*4 + j.by], acc[…]) } }
//            unroll i.coarse …, i.by …, j.coarse …, j.by … { C[…, … + j.by] = acc[…] where … }
//   after    serial k in 16 {
//              reg As.r: f32[i.coarse 2, i.by 4]
//              unroll i.coarse in 2 { vector i.by in 4 { As.r[i.coarse, i.by] = As[(i.coarse*16 + i)*4 + i.by, k] } }
//              reg Bs.r: …
//              unroll i.coarse …, i.by …, j.coarse …, j.by … {
//                acc[…] = fma(As.r[i.coarse, i.by], Bs.r[j.coarse, j.by], acc[…]) } }
//            unroll i.coarse …, i.by …, j.coarse … { vector j.by in 4 { C[…, … + j.by] = acc[…] where … } }
//
// An operand used by several elements is read once into registers; a loop along which an access is not contiguous stays
// `unroll`. A statement whose operand lies along another loop than its target turns the elements round in registers.
//
// Needs: loops `.by` of this length; of tensors, the facts that make vectors whole and aligned. Refuses where no access
// is contiguous.
#include "passes/schedule/vector_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/finish/conditions.h"
#include "passes/schedule/passes.h"

namespace tilewright {

namespace {

class Vectorizing {
 public:
  Vectorizing(const Plan& plan, const Kernel& kernel, LineNumber width)
      : names_(plan), accesses_(plan, buffers_in(kernel.body), width.value), width_(width) {
    for (const Buffer& buffer : buffers_in(kernel.body))
      if (buffer.space == Space::Register) registers_.insert(buffer.name);
  }

  Kernel apply(const Kernel& kernel) {
    Kernel result = kernel;
    result.body = visit(kernel.body);
    if (loops_ == 0)
      throw UserError(width_.span, fmt::format("kernel `{}` has no loop over {} neighbours", kernel.name, width_.value),
                      fmt::format("`coarsen i {} by {}` makes one", width_.value, width_.value));
    accesses_.refuse_missing_facts(width_.span);
    if (vectors_ == 0)
      throw UserError(width_.span,
                      fmt::format("no access of kernel `{}` is contiguous along {}", kernel.name,
                                  in_words({by_loops_.begin(), by_loops_.end()})),
                      "coarsen along the last index of a tensor, or stage the other one `transposed`");
    return result;
  }

 private:
  Block visit(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) {
      if (const Loop* nest = as<Loop>(stmt); nest && is_leaf(*nest)) {
        ++loops_;
        for (Stmt& made : leaf(*nest, *as<Store>(nest->body[0]), stmt->span)) result.push_back(std::move(made));
        continue;
      }
      result.push_back(map_bodies(stmt, [&](const Block& inner) { return visit(inner); }));
    }
    return result;
  }

  // An unrolled nest of parts around one store, with a loop of the width among them.
  bool is_leaf(const Loop& nest) {
    bool parts = nest.kind == LoopKind::Unroll &&
                 std::all_of(nest.axes.begin(), nest.axes.end(), [](const Axis& axis) { return is_part(axis.name); });
    if (!parts || nest.body.size() != 1 || !as<Store>(nest.body[0])) return false;
    auto by = by_axes(nest);
    by_loops_.insert(by.begin(), by.end());
    return !by.empty();
  }

  std::vector<std::string> by_axes(const Loop& nest) const {
    std::vector<std::string> result;
    for (const Axis& axis : nest.axes)
      if (axis.name.ends_with(".by") && constant_extent(axis) == width_.value) result.push_back(axis.name);
    return result;
  }

  // The loop along which an access is contiguous: `preferred` where it is one, else the innermost; empty for none.
  std::string contiguous_loop(const Access& access, const std::vector<std::string>& by,
                              const std::string& preferred = {}) const {
    if (!preferred.empty() && accesses_.is_contiguous(access, preferred)) return preferred;
    std::string found;
    for (const std::string& name : by)
      if (accesses_.is_contiguous(access, name)) found = name;
    return found;
  }

  struct Operand {
    Access access;
    Dtype dtype;
    Span span;
    std::string along;              // the loop it is contiguous along, empty for none
    std::vector<std::string> axes;  // loops of the nest that it uses
  };

  // Loads of memory that are always executed; each access once.
  std::vector<Operand> operands_of(const Loop& nest, const Store& store, const std::vector<std::string>& by,
                                   const std::string& preferred) const {
    std::vector<Operand> result;
    walk(store.value, [&](const Expr& node) {
      if (as<Select>(node)) return false;
      const Binary* binary = as<Binary>(node);
      if (binary && (binary->op == BinaryOp::And || binary->op == BinaryOp::Or)) return false;
      const Load* found = as<Load>(node);
      if (!found || registers_.count(found->access.buffer)) return true;
      bool known = std::any_of(result.begin(), result.end(),
                               [&](const Operand& other) { return other.access == found->access; });
      if (known || found->access.rule.kind == Rule::Kind::Check) return false;
      Operand operand{found->access, node->dtype, node->span, contiguous_loop(found->access, by, preferred), {}};
      for (const Axis& axis : nest.axes)
        if (uses_var(node, axis.name)) operand.axes.push_back(axis.name);
      result.push_back(std::move(operand));
      return false;
    });
    return result;
  }

  Block leaf(const Loop& nest, const Store& store, Span span) {
    std::vector<std::string> by = by_axes(nest);
    bool to_register = registers_.count(store.target.buffer) > 0;
    std::string along = to_register || store.atomic ? "" : contiguous_loop(store.target, by);
    if (!along.empty()) accesses_.need_facts(store.target, store.value->dtype), ++vectors_;
    std::vector<Operand> operands = operands_of(nest, store, by, along);
    if (!to_register && along.empty() && !store.atomic)
      for (const Operand& operand : operands)
        if (!operand.along.empty()) along = operand.along;

    Block result;
    Store changed = store;
    for (const Operand& operand : operands) {
      if (!operand.along.empty()) accesses_.need_facts(operand.access, operand.dtype), ++vectors_;
      bool reused = operand.axes.size() < nest.axes.size();
      bool apart = to_register ? !operand.axes.empty() && (reused || !operand.along.empty())
                               : !operand.along.empty() && operand.along != along;
      auto where = conditions_for(operand, nest, store);
      if (!apart || !where) continue;
      changed.value = read_into_registers(operand, nest, *where, changed.value, span, result);
    }
    result.push_back(nested(nest, along, make_stmt(std::move(changed), span), span));
    return result;
  }

  // The predicates that an operand needs when it is read outside of the nest; nothing where one of them also depends on
  // another loop of the nest.
  std::optional<std::vector<Expr>> conditions_for(const Operand& operand, const Loop& nest, const Store& store) const {
    std::vector<Expr> result;
    if (accesses_.is_buffer(operand.access.buffer)) return result;
    for (const Expr& condition : store.where) {
      bool own = false;
      bool other = false;
      for (const Axis& axis : nest.axes) {
        bool is_own = std::find(operand.axes.begin(), operand.axes.end(), axis.name) != operand.axes.end();
        if (uses_var(condition, axis.name)) (is_own ? own : other) = true;
      }
      if (own && other) return std::nullopt;
      if (!other) result.push_back(condition);
    }
    return result;
  }

  Expr read_into_registers(const Operand& operand, const Loop& nest, const std::vector<Expr>& where, const Expr& value,
                           Span span, Block& out) {
    Buffer fragment{Space::Register, names_.fresh(operand.access.buffer + ".r"), operand.dtype, {}, std::nullopt,
                    std::nullopt};
    registers_.insert(fragment.name);
    Access place{fragment.name, {}, {}, operand.access.span};
    Loop loops{LoopKind::Unroll, {}, std::nullopt, {}};
    for (const Axis& axis : nest.axes) {
      if (std::find(operand.axes.begin(), operand.axes.end(), axis.name) == operand.axes.end()) continue;
      fragment.axes.push_back({axis.name, constant_extent(axis).value_or(1)});
      place.index.push_back(var(axis.name));
      loops.axes.push_back(axis);
    }
    out.push_back(make_stmt(fragment, span));
    Stmt move = make_stmt(Store{place, load(operand.access, operand.dtype, operand.span), where, std::nullopt}, span);
    out.push_back(nested(loops, operand.along, move, span));
    return rewrite(value, [&](const Expr& node) {
      const Load* access = as<Load>(node);
      return access && access->access == operand.access ? load(place, node->dtype, node->span) : node;
    });
  }

  // The nest around a statement, with one loop made `vector` and innermost.
  static Stmt nested(const Loop& nest, const std::string& along, const Stmt& stmt, Span span) {
    std::vector<Axis> outer;
    std::vector<Axis> inner;
    for (const Axis& axis : nest.axes) (axis.name == along ? inner : outer).push_back(axis);
    Stmt result = inner.empty() ? stmt : make_stmt(Loop{LoopKind::Vector, inner, std::nullopt, {stmt}}, span);
    return outer.empty() ? result : make_stmt(Loop{LoopKind::Unroll, outer, std::nullopt, {result}}, span);
  }

  Names names_;
  VectorAccess accesses_;
  LineNumber width_;
  std::set<std::string> registers_;
  std::set<std::string> by_loops_;
  int loops_ = 0;
  int vectors_ = 0;
};

bool has_neighbours(const Kernel& kernel, std::int64_t width) {
  for (const std::string& name : loop_names(kernel.body))
    if (name.ends_with(".by") && constant_extent(find_loop(kernel.body, name)->axis) == width) return true;
  return false;
}

}  // namespace

Plan vectorize(const Plan& plan, const ScheduleLine& line, const Target&) {
  LineReader reader(line);
  LineNumber width = reader.number("a number of elements", 2);
  reader.end();
  if (width.value != 2 && width.value != 4 && width.value != 8 && width.value != 16)
    throw UserError(width.span, fmt::format("vectors of {} elements: there are those of 2, 4, 8 and 16", width.value));
  std::vector<const Kernel*> kernels = kernels_of(plan);
  bool any = std::any_of(kernels.begin(), kernels.end(),
                         [&](const Kernel* kernel) { return has_neighbours(*kernel, width.value); });
  return map_kernels_with(plan, line, {}, [&](const Kernel& kernel) {
    if (line.target.empty() && any && !has_neighbours(kernel, width.value)) return kernel;
    return Vectorizing(plan, kernel, width).apply(kernel);
  });
}

}  // namespace tilewright
