// The verifier's rules of tile operations, pipes, roles and chains, and of layouts.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/operators.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace tilewright {

namespace {

// The axes on which each factor's digit counts, as one list per place.
bool strides_tell(const Layout& layout) {
  std::vector<Factor> factors;
  for (const AxisLayout& axis : layout.axes)
    for (const Factor& factor : axis.factors)
      if (factor.extent > 1) factors.push_back(factor);
  std::sort(factors.begin(), factors.end(), [](const Factor& a, const Factor& b) {
    return a.place != b.place ? a.place < b.place : a.stride < b.stride;
  });
  std::int64_t reach = 0;
  for (std::size_t n = 0; n < factors.size(); ++n) {
    if (n == 0 || factors[n].place != factors[n - 1].place) reach = 0;
    if (factors[n].stride <= reach) return false;
    reach += (factors[n].extent - 1) * factors[n].stride;
  }
  return true;
}

std::int64_t factor_product(const AxisLayout& axis) {
  std::int64_t product = 1;
  for (const Factor& factor : axis.factors)
    if (factor.extent > 0 && product < (std::int64_t{1} << 40)) product *= factor.extent;
  return product;
}

constexpr Place all_places[] = {Place::Mem,     Place::Reg,     Place::Lane,    Place::Warp,   Place::Warpgroup, Place::ThreadX,
                                Place::ThreadY, Place::ThreadZ, Place::Thread, Place::Step, Place::Vector};

bool holds_word(std::string_view words, std::string_view word) {
  for (std::size_t from = 0; from < words.size();) {
    const std::size_t to = std::min(words.find(' ', from), words.size());
    if (words.substr(from, to - from) == word) return true;
    from = to + 1;
  }
  return false;
}

}  // namespace

bool is_one_to_one(const Layout& layout) {
  if (strides_tell(layout)) return true;
  std::int64_t elements = 1;
  std::vector<std::int64_t> extents;
  for (const AxisLayout& axis : layout.axes) {
    extents.push_back(factor_product(axis));
    elements *= extents.back();
    constexpr std::int64_t most = 1 << 16;
    if (elements > most) return true;  // not decided here
  }
  std::set<std::vector<std::int64_t>> taken;
  std::vector<std::int64_t> coordinates(extents.size());
  for (std::int64_t element = 0; element < elements; ++element) {
    std::int64_t rest = element;
    for (std::size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) coordinates[axis] = rest % extents[axis];
    std::vector<std::int64_t> place;
    for (Place kind : all_places) place.push_back(place_value(layout, kind, coordinates));
    if (!taken.insert(std::move(place)).second) return false;
  }
  return true;
}

void Verifier::check_layout(const Layout& layout, const std::vector<NamedAxis>& axes, std::string_view what, std::string_view places) {
  const bool is_deal = what == "deal";
  bool is_whole = layout.axes.size() == axes.size();
  for (std::size_t n = 0; is_whole && n < axes.size(); ++n) is_whole = layout.axes[n].axis == axes[n].name;
  if (!is_whole) {
    std::string names;
    for (const NamedAxis& axis : axes) names += (names.empty() ? "" : ", ") + axis.name;
    return fault(fmt::format("{} {} does not have the axes {}", what, print(layout), names));
  }
  for (std::size_t n = 0; n < axes.size(); ++n) {
    const AxisLayout& axis = layout.axes[n];
    for (const Factor& factor : axis.factors) {
      if (factor.extent < 1 || factor.stride < 1) return fault(fmt::format("{} {}: extents and strides are positive", what, print(layout)));
      if (!holds_word(places, name_of(factor.place))) fault(fmt::format("{} {}: `{}` is no place for it", what, print(layout), name_of(factor.place)));
    }
    const std::int64_t product = factor_product(axis);
    if (!axes[n].extent) {
      fault(fmt::format("{} {}: axis `{}` has no constant extent", what, print(layout), axis.axis));
    } else if (is_deal ? product < *axes[n].extent : product != *axes[n].extent) {
      fault(fmt::format("{} {} holds {} of the {} elements of axis `{}`", what, print(layout), product, *axes[n].extent, axis.axis));
    }
  }
  if (layout.xor_bytes != 0 && layout.xor_bytes != 32 && layout.xor_bytes != 64 && layout.xor_bytes != 128)
    fault(fmt::format("`xor {}`: 32, 64 or 128 bytes are possible", layout.xor_bytes));
  if (layout.xor_bytes && !holds_word(places, "mem")) fault(fmt::format("{} {}: only memory is swizzled", what, print(layout)));
  if (!is_one_to_one(layout)) fault(fmt::format("{} {} puts two elements in one place", what, print(layout)));
}

void Verifier::new_names(const Access& access, std::vector<NamedAxis>& axes) {
  const Symbol* symbol = find_buffer(access.buffer);
  for (std::size_t n = 0; n < access.index.size(); ++n) {
    const Var* name = as<Var>(access.index[n]);
    if (!name) continue;
    std::optional<std::int64_t> extent;
    if (symbol && symbol->buffer && n < symbol->buffer->axes.size()) extent = symbol->buffer->axes[n].extent;
    const auto known = std::find_if(axes.begin(), axes.end(), [&](const NamedAxis& axis) { return axis.name == name->name; });
    if (known != axes.end()) {
      if (known->extent && extent && *known->extent != *extent)
        fault(fmt::format("axis `{}` is of {} and of {}", name->name, *known->extent, *extent), access.span);
      continue;
    }
    const bool is_slot = name->name.ends_with(".in") || name->name.ends_with(".out");
    const Symbol* declared = find(name->name);
    const bool is_variable = declared && (declared->kind == Kind::Loop || declared->kind == Kind::Let || declared->kind == Kind::Dim);
    if (is_variable || is_slot) continue;
    axes.push_back({name->name, extent});
    replace(name->name, {Kind::Loop});
  }
}

void Verifier::check_copy(const Copy& node) {
  if (!needs_block_level("`copy`")) return;
  const std::size_t mark = declared_.size();
  std::vector<NamedAxis> axes;
  new_names(node.target, axes);
  if (axes.empty()) new_names(node.source, axes);
  const Symbol* target = check_access(node.target);
  const Symbol* source = check_access(node.source);
  check_where(node.where);
  if (target && source) {
    if (target->dtype != source->dtype)
      fault(fmt::format("`copy` converts nothing, and stands between {} and {}", info(target->dtype).name, info(source->dtype).name));
    if (!target->is_writable) fault(fmt::format("`{}` is an input and is written", node.target.buffer));
    check_rule(node.source.rule, source->dtype);
    check_rule(node.target.rule, target->dtype);
    const Rule::Kind kind = node.target.rule.kind;
    if (kind != Rule::Kind::None && kind != Rule::Kind::Skip && kind != Rule::Kind::Check)
      fault(fmt::format("`{}`: the target of a copy skips or checks", print_access(node.target)));
  }
  if (!node.multicast.empty()) {
    const Symbol* loop = find(node.multicast);
    if (!loop || loop->kind != Kind::Loop || loop->loop != LoopKind::Cluster) fault(fmt::format("`multicast {}`: no such `cluster` loop", node.multicast));
  }
  if (node.deal) check_layout(*node.deal, axes, "deal", "thread.x thread.y thread.z thread lane warp warpgroup step vector");
  leave_scope(mark);
}

void Verifier::check_fill(const Fill& node) {
  if (!needs_block_level("`fill`")) return;
  check(node.value);
  const Symbol* symbol = find(node.buffer);
  if (!symbol || (symbol->kind != Kind::Register && symbol->kind != Kind::Shared)) return fault(fmt::format("`fill {}`: no such buffer", node.buffer));
  if (node.value && node.value->dtype != symbol->dtype)
    fault(fmt::format("`{}` of {} is filled with {}", node.buffer, info(symbol->dtype).name, info(node.value->dtype).name));
}

void Verifier::check_mma(const Mma& node) {
  if (!needs_block_level("`mma`")) return;
  const std::size_t mark = declared_.size();
  std::vector<NamedAxis> axes;
  for (const Access* access : {&node.target, &node.a, &node.b}) new_names(*access, axes);
  const Symbol* target = check_access(node.target);
  const Symbol* a = check_access(node.a);
  const Symbol* b = check_access(node.b);
  if (target && target->kind != Kind::Register) fault(fmt::format("`{}` accumulates and is no register buffer", node.target.buffer));
  for (const Symbol* operand : {a, b})
    if (operand && operand->kind == Kind::Tensor) fault("an operand of `mma` stands in global memory, not in shared memory or registers");
  if (a && b && a->dtype != b->dtype) fault(fmt::format("`mma` of {} and {}", info(a->dtype).name, info(b->dtype).name));
  leave_scope(mark);
}

void Verifier::check_fold(const Fold& node) {
  const std::string_view word = node.is_scan ? "`scan`" : "`reduce`";
  if (!needs_block_level(word)) return;
  const std::size_t mark = declared_.size();
  std::vector<NamedAxis> axes;
  new_names(node.source, axes);
  whole_arrays_ = node.is_scan;
  const Symbol* target = check_access(node.target);
  whole_arrays_ = false;
  const Symbol* source = check_access(node.source);
  for (const auto& [symbol, name] : {std::pair(target, node.target.buffer), std::pair(source, node.source.buffer)})
    if (symbol && symbol->kind != Kind::Register) fault(fmt::format("{}: `{}` is no register buffer", word, name));
  if (target && source && target->dtype != source->dtype) fault(fmt::format("{} of {} into {}", word, info(source->dtype).name, info(target->dtype).name));
  if (!node.total.empty()) {
    const Symbol* total = find(node.total);
    if (!total || total->kind != Kind::Register || total->rank != 0) fault(fmt::format("total `{}` is no scalar register", node.total));
  }
  leave_scope(mark);
}

void Verifier::check_pipe(const Pipe& node) {
  if (!needs_block_level("`pipe`")) return;
  for (const std::string& name : node.buffers) {
    const Symbol* symbol = find(name);
    if (!symbol || symbol->kind != Kind::Shared) {
      fault(fmt::format("pipe `{}`: `{}` is no shared buffer", node.name, name));
    } else if (symbol->buffer->axes.empty() || symbol->buffer->axes[0].extent != node.slots) {
      fault(fmt::format("pipe `{}`: the first axis of `{}` is not its {} slots", node.name, name, node.slots));
    }
  }
  if (node.slots < 1 || node.in_flight < 0 || node.in_flight >= node.slots)
    fault(fmt::format("pipe `{}`: {} in flight of {} slots", node.name, node.in_flight, node.slots));
  if (!holds_word("registers cp.async tma tma.store", node.mechanism)) fault(fmt::format("pipe `{}`: `via {}` is not known", node.name, node.mechanism));
  bool is_shared_copy = false;
  walk(kernel_->body, [&](const Stmt& stmt) {
    const Copy* copy = as<Copy>(stmt);
    is_shared_copy |= copy && !copy->multicast.empty() && std::find(node.buffers.begin(), node.buffers.end(), copy->target.buffer) != node.buffers.end();
    return true;
  });
  if (is_shared_copy && node.scope == PipeScope::Cta) fault(fmt::format("pipe `{}` is of scope block, and a copy into it is multicast", node.name));
  if (!is_shared_copy && node.scope == PipeScope::Cluster) fault(fmt::format("pipe `{}` is of scope cluster, and no copy into it is multicast", node.name));
  Symbol symbol{Kind::Pipe};
  symbol.pipe = &node;
  declare(node.name, symbol);
  windows_[node.name] = Window{};
}

void Verifier::check_verb(const Verb& node) {
  if (!needs_block_level("a verb")) return;
  const Symbol* symbol = find(node.pipe);
  if (!symbol || symbol->kind != Kind::Pipe) return fault(fmt::format("`{}` is no pipe", node.pipe));
  Window& window = windows_[node.pipe];
  auto step = [&](bool& state, bool from, std::string_view why) {
    if (state != from) fault(fmt::format("pipe `{}` {}", node.pipe, why));
    state = !from;
  };
  switch (node.kind) {
    case VerbKind::Acquire: return step(window.is_acquired, false, "has acquired a slot that it has not committed");
    case VerbKind::Commit: return step(window.is_acquired, true, "commits without an acquired slot");
    case VerbKind::Wait: return step(window.is_waited, false, "has waited for a slot that it has not released");
    case VerbKind::Release: return step(window.is_waited, true, "releases without a slot that it waited for");
  }
}

void Verifier::check_window(const std::string& pipe, bool is_in) {
  const Window& window = windows_[pipe];
  if (is_in && !window.is_acquired) fault(fmt::format("`{}.in` stands outside `acquire {}` … `commit {}`", pipe, pipe, pipe));
  if (!is_in && !window.is_waited) fault(fmt::format("`{}.out` stands outside `wait {}` … `release {}`", pipe, pipe, pipe));
}

void Verifier::check_role(const Role& node) {
  if (!needs_block_level("`role`")) return;
  if (path_.size() != 1) fault("a role is declared outside of all loops");
  if (node.first_warp < 0 || node.last_warp <= node.first_warp || node.last_warp > 32)
    fault(fmt::format("role `{}`: warps {} .. {}", node.name, node.first_warp, node.last_warp));
  if (node.registers && (node.registers % 8 != 0 || node.registers < 24 || node.registers > 256))
    fault(fmt::format("role `{}`: registers {}: a multiple of 8 from 24 to 256 is needed", node.name, node.registers));
  for (const Stmt& other : kernel_->body) {
    const Role* role = as<Role>(other);
    if (role && role->name != node.name && role->first_warp < node.last_warp && node.first_warp < role->last_warp)
      fault(fmt::format("roles `{}` and `{}` share warps", node.name, role->name));
  }
  declare(node.name, {Kind::Role});
}

void Verifier::check_labelled(const Labelled& node) {
  if (!needs_block_level("a role's label")) return;
  const Symbol* symbol = find(node.role);
  if (!symbol || symbol->kind != Kind::Role) fault(fmt::format("`@{}`: no such role", node.role));
  if (!label_.empty()) fault(fmt::format("`@{}` stands inside `@{}`", node.role, label_));
  const std::string outer = std::exchange(label_, node.role);
  check(node.statement);
  label_ = outer;
}

void Verifier::check_chain(const Chain& node) {
  if (!needs_block_level("`chain`")) return;
  check_typed(node.start, node.dtype, "the start of a chain");
  declare(node.name, {Kind::Chain, node.dtype});
}

void Verifier::check_publish(const Publish& node) {
  if (!needs_block_level("`publish`")) return;
  check(node.value);
  const Symbol* chain = find(node.chain);
  if (!chain || chain->kind != Kind::Chain) return fault(fmt::format("`{}` is no chain", node.chain));
  if (node.value && node.value->dtype != chain->dtype)
    fault(fmt::format("chain `{}` of {} is given {}", node.chain, info(chain->dtype).name, info(node.value->dtype).name));
  if (std::find(loops_.begin(), loops_.end(), LoopKind::Ordered) == loops_.end()) fault("`publish` stands outside `ordered`");
}

void Verifier::check_lookback(const Lookback& node) {
  if (!needs_block_level("`lookback`")) return;
  const Symbol* target = check_access(node.target);
  const Symbol* chain = find(node.chain);
  if (!chain || chain->kind != Kind::Chain) return fault(fmt::format("`{}` is no chain", node.chain));
  if (target && target->dtype != chain->dtype)
    fault(fmt::format("chain `{}` of {} is read into {}", node.chain, info(chain->dtype).name, info(target->dtype).name));
  if (std::find(loops_.begin(), loops_.end(), LoopKind::Ordered) == loops_.end()) fault("`lookback` stands outside `ordered`");
}

}  // namespace tilewright
