// Deals as expressions of the thread index, and the default deals.
#include "passes/finish/deal.h"

#include <algorithm>
#include <numeric>

#include "ir/diagnostic.h"
#include "passes/finish/conditions.h"
#include "passes/finish/flatten.h"

namespace tilewright {

std::optional<BlockShape> stated_block_shape(const Kernel& kernel) {
  if (!kernel.block_shape.empty()) {
    BlockShape block;
    block.x = kernel.block_shape[0];
    if (kernel.block_shape.size() > 1) block.y = kernel.block_shape[1];
    if (kernel.block_shape.size() > 2) block.z = kernel.block_shape[2];
    return block;
  }
  if (kernel.warps > 0) return BlockShape{kernel.warps * 32, 1, 1};
  int warps = 0;  // of roles
  for (const Stmt& stmt : kernel.body)
    if (const Role* role = as<Role>(stmt)) warps = std::max(warps, role->last_warp);
  if (warps > 0) return BlockShape{warps * 32, 1, 1};
  return std::nullopt;
}

Expr linear_thread(const BlockShape& block) {
  Expr linear = var("thread.x") - integer(block.first);
  if (block.y > 1) linear = var("thread.y") * block.x + linear;
  if (block.z > 1) linear = var("thread.z") * (block.x * block.y) + linear;
  return linear;
}

bool is_thread_place(Place place) {
  switch (place) {
    case Place::Lane: case Place::Warp: case Place::Warpgroup: case Place::ThreadX: case Place::ThreadY: case Place::ThreadZ:
    case Place::Thread: return true;
    case Place::Mem: case Place::Reg: case Place::Step: case Place::Vector: return false;
  }
  return false;
}

namespace {

struct Position {
  Expr value;
  std::int64_t extent;
};

Position position_of(Place place, const BlockShape& block) {
  Expr linear = linear_thread(block);
  std::int64_t total = block.total();
  switch (place) {
    case Place::ThreadX: return {var("thread.x") - integer(block.first), block.x};
    case Place::ThreadY: return {block.y > 1 ? var("thread.y") : integer(0), block.y};
    case Place::ThreadZ: return {block.z > 1 ? var("thread.z") : integer(0), block.z};
    case Place::Thread: return {linear, total};
    case Place::Lane: return {binary(BinaryOp::Mod, linear, integer(32)), std::min<std::int64_t>(32, total)};
    case Place::Warp: return {binary(BinaryOp::Div, linear, integer(32)), std::max<std::int64_t>(1, total / 32)};
    case Place::Warpgroup: return {binary(BinaryOp::Div, linear, integer(128)), std::max<std::int64_t>(1, total / 128)};
    case Place::Mem: case Place::Reg: case Place::Step: case Place::Vector: break;
  }
  internal_error("a place that is no thread's has no thread index");
}

}  // namespace

Expr coordinate(const AxisLayout& axis, const BlockShape& block, const std::vector<WalkedFactor>& walked) {
  Expr value = integer(0);
  for (std::size_t n = 0; n < axis.factors.size(); ++n) {
    const Factor& factor = axis.factors[n];
    Expr digit;
    for (const WalkedFactor& own : walked)
      if (own.factor == n) digit = own.digit;
    if (!digit) {
      Position position = position_of(factor.place, block);
      digit = binary(BinaryOp::Div, position.value, integer(factor.stride));
      if (factor.stride * factor.extent < position.extent) digit = binary(BinaryOp::Mod, digit, integer(factor.extent));
    }
    value = value * factor.extent + digit;
  }
  return value;
}

std::vector<Expr> participation(const Layout& deal, const BlockShape& block) {
  std::vector<Expr> result;
  bool whole_block = false;
  for (const AxisLayout& axis : deal.axes)
    for (const Factor& factor : axis.factors)
      whole_block |= factor.place == Place::Thread || factor.place == Place::Lane || factor.place == Place::Warp || factor.place == Place::Warpgroup;
  auto need = [&](Place place, std::int64_t available) {
    std::int64_t used = extent_of(deal, place);
    if (used < available) result.push_back(less(position_of(place, block).value, integer(used)));
  };
  if (whole_block) {
    std::int64_t used = extent_of(deal, Place::Thread);
    if (extent_of(deal, Place::Lane) > 1 || extent_of(deal, Place::Warp) > 1 || extent_of(deal, Place::Warpgroup) > 1)
      used = extent_of(deal, Place::Lane) + 32 * (extent_of(deal, Place::Warp) - 1) + 128 * (extent_of(deal, Place::Warpgroup) - 1);
    if (used < block.total()) result.push_back(less(linear_thread(block), integer(used)));
    return result;
  }
  need(Place::ThreadX, block.x);
  need(Place::ThreadY, block.y);
  need(Place::ThreadZ, block.z);
  return result;
}

std::vector<CopyAxis> copy_axes(const Copy& copy, const std::vector<Buffer>& buffers) {
  for (const Access* side : {&copy.target, &copy.source}) {
    auto buffer = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == side->buffer; });
    if (buffer == buffers.end()) continue;
    std::vector<CopyAxis> axes;
    for (std::size_t d = 0; d < side->index.size() && d < buffer->axes.size(); ++d) {
      const Var* name = as<Var>(side->index[d]);
      if (name && name->name.rfind(side->buffer + ".", 0) == 0) axes.push_back(CopyAxis{name->name, buffer->axes[d].extent});
    }
    if (!axes.empty()) return axes;
  }
  return {};
}

std::int64_t base_alignment(const Plan& plan, Dtype dtype) {
  std::int64_t bytes = bytes_of(dtype);
  for (const Fact& fact : plan.facts)
    if (fact.kind == Fact::Kind::Aligned) bytes = std::max<std::int64_t>(bytes, fact.alignment);
  return bytes;
}

bool is_vector_access(const Expr& flat, const std::string& name, std::int64_t width, int element_bytes, std::int64_t alignment,
                      const Divisors& divisors) {
  auto form = linear_in(flat, name);
  return form && form->coefficient == 1 && known_divisor(form->rest, divisors) % width == 0 && alignment % (width * element_bytes) == 0;
}

namespace {

// Steps of several axes count through, the last axis first, so that no two elements share a place.
void number_step_factors(Layout& deal) {
  std::int64_t stride = 1;
  for (auto axis = deal.axes.rbegin(); axis != deal.axes.rend(); ++axis)
    for (auto factor = axis->factors.rbegin(); factor != axis->factors.rend(); ++factor) {
      if (factor->place != Place::Step) continue;
      factor->stride = stride;
      stride *= factor->extent;
    }
}

// Whether all conditions of the copy hold for a whole vector along `name` or for none of it.
bool is_uniform(const Plan& plan, const Copy& copy, const std::vector<Buffer>& buffers, const std::string& name, std::int64_t width) {
  Divisors divisors = divisors_of(plan.facts);
  Ranges ranges = ranges_of_dims(plan);
  std::vector<Expr> conditions = copy.where;
  for (const Access* side : {&copy.source, &copy.target}) {
    if (side->rule.kind == Rule::Kind::None) continue;
    auto shape = shape_of_access(plan, buffers, side->buffer);
    for (std::size_t d = 0; shape && d < side->index.size(); ++d)
      if (uses_var(side->index[d], name))
        conditions.push_back(less(side->index[d], (*shape)[d]));
  }
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Expr& condition) { return uniform_over(condition, name, width, divisors).has_value(); });
}

}  // namespace

Layout choose_copy_deal(const Plan& plan, const Copy& copy, const std::vector<Buffer>& buffers, const BlockShape& block) {
  std::vector<CopyAxis> axes = copy_axes(copy, buffers);
  bool from_global = find_tensor(plan, copy.source.buffer).has_value();
  const Access& global = from_global ? copy.source : copy.target;
  // Fastest axis first: in order of the global side's indices, innermost first.
  std::vector<std::size_t> order;
  for (auto index = global.index.rbegin(); index != global.index.rend(); ++index)
    for (std::size_t n = 0; n < axes.size(); ++n)
      if (uses_var(*index, axes[n].name) && std::find(order.begin(), order.end(), n) == order.end()) order.push_back(n);
  for (std::size_t n = 0; n < axes.size(); ++n)
    if (std::find(order.begin(), order.end(), n) == order.end()) order.push_back(n);

  Dtype dtype = Dtype::F32;
  if (auto tensor = find_tensor(plan, global.buffer)) dtype = tensor->dtype;
  std::int64_t width = 1;
  if (!order.empty()) {
    const CopyAxis& fastest = axes[order[0]];
    Flattener flattener(plan, buffers);
    Expr flat = flattener.flat_index(global);
    for (std::int64_t candidate = 16 / bytes_of(dtype); candidate > 1; candidate /= 2) {
      if (fastest.extent % candidate != 0) continue;
      if (!is_vector_access(flat, fastest.name, candidate, bytes_of(dtype), base_alignment(plan, dtype), divisors_of(plan.facts))) continue;
      if (!is_uniform(plan, copy, buffers, fastest.name, candidate)) continue;
      width = candidate;
      break;
    }
  }
  std::vector<std::vector<Factor>> factors(axes.size());
  std::int64_t left = block.total();
  std::int64_t stride = 1;
  for (std::size_t k = 0; k < order.size(); ++k) {
    std::vector<Factor>& own = factors[order[k]];
    std::int64_t extent = axes[order[k]].extent;
    if (k == 0 && width > 1) {
      own.push_back(Factor{width, Place::Vector, 1});
      extent /= width;
    }
    // Threads in powers of two, so that the axes share a block exactly; what they do not cover is a step.
    std::int64_t threads = 1;
    while (threads * 2 <= left && left % (threads * 2) == 0 && threads < extent) threads *= 2;
    std::int64_t steps = (extent + threads - 1) / threads;
    if (threads > 1) own.insert(own.begin(), Factor{threads, Place::Thread, stride});
    if (steps > 1) own.insert(own.begin(), Factor{steps, Place::Step, 1});
    if (own.empty()) own.push_back(Factor{1, Place::Step, 1});
    left /= threads;
    stride *= threads;
  }
  Layout deal;
  for (std::size_t n = 0; n < axes.size(); ++n) deal.axes.push_back(AxisLayout{axes[n].name, factors[n]});
  number_step_factors(deal);
  return deal;
}

Layout default_deal(const std::vector<std::pair<std::string, std::int64_t>>& axes, const BlockShape& block) {
  Layout deal;
  std::vector<std::pair<Place, std::int64_t>> places = {{Place::ThreadX, block.x}, {Place::ThreadY, block.y}, {Place::ThreadZ, block.z}};
  std::size_t next = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    std::vector<Factor> factors;
    std::int64_t threads = 1;
    if (next < places.size() && places[next].second > 1) {
      threads = std::min(axis->second, places[next].second);
      factors.push_back(Factor{threads, places[next].first, 1});
      ++next;
    }
    std::int64_t steps = (axis->second + threads - 1) / threads;
    if (steps > 1 || factors.empty()) factors.insert(factors.begin(), Factor{steps, Place::Step, 1});
    deal.axes.insert(deal.axes.begin(), AxisLayout{axis->first, factors});
  }
  number_step_factors(deal);
  return deal;
}

}  // namespace tilewright
