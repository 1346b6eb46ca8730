// Conditions of asynchronous copies.
#include "passes/schedule/asynchronous_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "passes/affine.h"
#include "passes/linear_form.h"
#include "passes/schedule/kernel_threads.h"
#include "passes/schedule/shared_tile.h"

namespace tilewright {

namespace {

constexpr std::int64_t chunk = 16;  // bytes of the widest access, and what a tensor map's strides are multiples of

std::string text_of(const Access& access) { return print(load(access, Dtype::F32)); }

}  // namespace

AsynchronousCopies::AsynchronousCopies(const Plan& plan, const Target& target, std::string mechanism, Span span,
                                       const std::string& cure)
    : plan_(plan), target_(target), mechanism_(std::move(mechanism)), span_(span) {
  int needed = mechanism_ == "tma" ? 90 : 80;
  if (capability(target_) < needed)
    throw UserError(span_, fmt::format("{} has no `{}`, sm_{} has", target_.arch, mechanism_, needed), cure);
}

void AsynchronousCopies::need_fact(const std::string& clause, const std::string& reason) {
  if (std::find(missing_.begin(), missing_.end(), clause) != missing_.end()) return;
  missing_.push_back(clause);
  reasons_.push_back(reason);
}

bool AsynchronousCopies::is_aligned(std::int64_t bytes) const {
  return std::any_of(plan_.facts.begin(), plan_.facts.end(),
                     [&](const Fact& fact) { return fact.kind == Fact::Kind::Aligned && fact.alignment % bytes == 0; });
}

void AsynchronousCopies::need(const Copy& copy, const Buffer& tile) {
  bool loads = copy.target.buffer == tile.name;
  const Access& global = loads ? copy.source : copy.target;
  auto tensor = find_tensor(plan_, global.buffer);
  if (!tensor)
    throw UserError(span_, fmt::format("`{}` is no tensor; `{}` copies between tensors and shared memory",
                                       text_of(global), mechanism_));
  auto fill = global.rule.kind == Rule::Kind::Fill ? real_value(global.rule.fill) : std::nullopt;
  auto integer_fill = global.rule.kind == Rule::Kind::Fill ? integer_value(global.rule.fill) : std::nullopt;
  bool is_zero = (fill && *fill == 0) || (integer_fill && *integer_fill == 0);
  if (loads && !is_zero)
    throw UserError(span_,
                    fmt::format("the copy of `{}` does not give 0 outside of the tensor, and `{}` gives nothing "
                                "else",
                                text_of(global), mechanism_),
                    "leave the tensor out of this pipeline, or `pipeline … via registers`");
  std::int64_t bytes = bytes_of(tensor->dtype);
  bool is_temporary =
      std::any_of(plan_.temps.begin(), plan_.temps.end(), [&](const Temp& temp) { return temp.name == global.buffer; });
  if (mechanism_ == "tma") need_box(copy, tile, loads);
  constexpr std::int64_t least = 4;  // bytes of one cp.async
  if (mechanism_ != "tma") {
    if (bytes >= least) return;
    need_neighbours(copy, tile);
  }

  const Expr& row = tensor->shape.back();
  bool has_stride = tensor->shape.size() > 1;
  std::int64_t multiple = (mechanism_ == "tma" ? chunk : least) / bytes;
  if (has_stride && known_divisor(row, divisors_of(plan_.facts)) % multiple != 0) {
    if (integer_value(row))
      throw UserError(span_,
                      fmt::format("the rows of `{}` have {} elements, no multiple of {}; `{}` cannot start there",
                                  global.buffer, print(row), multiple, mechanism_));
    need_fact(fmt::format("{} % {} == 0", print(row), chunk / bytes),
              fmt::format("the rows of `{}` have `{}` elements, which need not be a multiple of {}", global.buffer,
                          print(row), multiple));
  }
  if (!is_temporary && !is_aligned(multiple * bytes))
    need_fact(fmt::format("aligned {}", chunk),
              fmt::format("`{}` need not start at a multiple of {} bytes", global.buffer, multiple * bytes));
}

// Elements that lie side by side in the tensor do so in the tile.
void AsynchronousCopies::need_neighbours(const Copy& copy, const Buffer& tile) const {
  std::size_t first = copy.target.index.size() - tile.axes.size();
  for (std::size_t n = 0; n < tile.axes.size(); ++n) {
    const Var* name = as<Var>(copy.target.index[first + n]);
    if (name && uses_var(copy.source.index.back(), name->name) && tile.layout->axes[n].factors.back().stride == 1)
      return;
  }
  throw UserError(span_,
                  fmt::format("`{}` lies as {}, so that rows of `{}` are not side by side; `cp.async` moves at "
                              "least 4 bytes and an element has {}",
                              tile.name, print(*tile.layout), copy.source.buffer, bytes_of(tile.dtype)),
                  "`stage` it without `transposed`, or `pipeline … via registers`");
}

// A box of the tensor: each index is something fixed and at most one axis of the tile, once.
void AsynchronousCopies::need_box(const Copy& copy, const Buffer& tile, bool loads) {
  const Access& global = loads ? copy.source : copy.target;
  const Access& shared = loads ? copy.target : copy.source;
  constexpr std::size_t most_dims = 5;
  constexpr std::int64_t most_extent = 256;
  if (global.index.size() > most_dims)
    throw UserError(span_, fmt::format("`{}` has {} dims; a tensor map has at most {}", global.buffer,
                                       global.index.size(), most_dims));
  if (!copy.where.empty())
    throw UserError(span_, fmt::format("the copy of `{}` has the condition `{}`; the copy engine takes whole boxes",
                                       text_of(global), print(copy.where[0])));
  std::size_t first = shared.index.size() - tile.axes.size();  // behind the slot
  std::vector<std::int64_t> walked;                            // the tile's axis in each dim
  for (const Expr& index : global.index) {
    std::int64_t own = -1;
    for (std::size_t n = 0; n < tile.axes.size(); ++n) {
      const Var* name = as<Var>(shared.index[first + n]);
      if (!name || !uses_var(index, name->name)) continue;
      auto linear = linear_in(index, name->name);
      if (own >= 0 || !linear || linear->coefficient != 1)
        throw UserError(span_, fmt::format("`{}` in `{}` is not something fixed and one axis of the tile", print(index),
                                           text_of(global)));
      own = static_cast<std::int64_t>(n);
      // Panels of a swizzle are a box each.
      std::int64_t extent = tile.layout->axes[n].factors.back().extent;
      if (extent > most_extent)
        throw UserError(span_,
                        fmt::format("axis `{}` of `{}` has {} elements in a row; a box has at most {}",
                                    tile.axes[n].name, tile.name, extent, most_extent),
                        fmt::format("`tile` it by {} or less, or `stage … swizzle 128`", most_extent));
    }
    walked.push_back(own);
  }
  for (std::size_t n = 0; n < tile.axes.size(); ++n)
    if (std::count(walked.begin(), walked.end(), static_cast<std::int64_t>(n)) != 1)
      throw UserError(span_, fmt::format("axis `{}` of `{}` does not walk one dim of `{}`", tile.axes[n].name,
                                         tile.name, global.buffer));
  // The box lies densely, the tensor's last dim fastest, cut into panels of the swizzle.
  std::int64_t stride = 1;
  std::int64_t panel = 0;
  bool is_dense = true;
  std::vector<std::int64_t> order(walked.rbegin(), walked.rend());
  order.erase(std::remove(order.begin(), order.end(), -1), order.end());
  for (std::size_t d = 0; d < order.size(); ++d) {
    const std::vector<Factor>& factors = tile.layout->axes[static_cast<std::size_t>(order[d])].factors;
    if (d == 0 && factors.size() == 2) panel = factors[0].stride;
    const Factor& inner = factors.back();
    is_dense = is_dense && inner.stride == stride && factors.size() <= (d == 0 ? 2U : 1U);
    stride *= inner.extent;
  }
  is_dense = is_dense && (panel == 0 || panel == stride) && !walked.empty() && walked.back() >= 0;
  if (!is_dense)
    throw UserError(span_,
                    fmt::format("`{}` lies as {}; the copy engine fills rows side by side in the order of `{}`",
                                tile.name, print(*tile.layout), global.buffer),
                    "`stage` it without `pad` and `transposed`");
  std::int64_t bytes =
      tile.layout->axes[static_cast<std::size_t>(order[0])].factors.back().extent * bytes_of(tile.dtype);
  if (bytes % chunk != 0)
    throw UserError(span_, fmt::format("a row of `{}` has {} bytes; the copy engine moves multiples of {}", tile.name,
                                       bytes, chunk));
  // Each slot, and each panel in it, starts where a box may, and a swizzle repeats after 8 rows of a panel.
  const char* part = panel > 0 ? "panel" : "slot";
  std::int64_t start = std::max<std::int64_t>(128, 8 * tile.layout->xor_bytes);
  std::int64_t part_bytes = (panel > 0 ? panel : tile_elements(*tile.layout)) * bytes_of(tile.dtype);
  if (part_bytes % start != 0)
    throw UserError(span_, fmt::format("a {} of `{}` has {} bytes; the copy engine needs {}s that start at multiples of {}",
                                       part, tile.name, part_bytes, part, start), "take larger tiles");
}

void AsynchronousCopies::refuse_missing_facts() const {
  if (missing_.empty()) return;
  std::string clauses;
  std::vector<std::string> ordered = missing_;
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const std::string& clause) { return !clause.starts_with("aligned"); });
  for (const std::string& clause : ordered) clauses += (clauses.empty() ? "" : ", ") + clause;
  throw UserError(span_, fmt::format("`{}`: {}", mechanism_, reasons_[0]),
                  fmt::format("add `when {}` to the schedule", clauses));
}

}  // namespace tilewright
