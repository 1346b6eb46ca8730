// Memory of tiles.
#include "passes/schedule/shared_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"
#include "passes/finish/deal.h"
#include "passes/schedule/kernel_threads.h"

namespace tilewright {

namespace {

// Axes from the fastest to the slowest.
std::vector<std::size_t> memory_order(std::size_t rank, bool transposed) {
  std::vector<std::size_t> order;
  for (std::size_t n = rank; n-- > 0;) order.push_back(n);
  if (transposed && rank > 1) std::swap(order[0], order[1]);
  return order;
}

Layout swizzled_layout(const std::vector<BufferAxis>& axes, const std::vector<std::size_t>& order, Dtype dtype,
                const LineNumber& bytes) {
  std::int64_t panel = bytes.value / bytes_of(dtype);
  const BufferAxis& fastest = axes[order[0]];
  bool known = bytes.value == 32 || bytes.value == 64 || bytes.value == 128;
  if (!known) throw UserError(bytes.span, fmt::format("swizzle {}: panels have 32, 64 or 128 bytes", bytes.value));
  if (fastest.extent % panel != 0)
    throw UserError(
        bytes.span,
        fmt::format("axis `{}` has {} elements in a row, no multiple of the {} that a panel of {} bytes holds",
                    fastest.name, fastest.extent, panel, bytes.value));
  std::vector<AxisLayout> layout(axes.size());
  std::int64_t stride = panel;
  for (std::size_t n = 1; n < order.size(); ++n) {
    layout[order[n]] = {axes[order[n]].name, {Factor{axes[order[n]].extent, Place::Mem, stride}}};
    stride *= axes[order[n]].extent;
  }
  std::vector<Factor> factors;
  if (fastest.extent > panel) factors.push_back(Factor{fastest.extent / panel, Place::Mem, stride});
  factors.push_back(Factor{panel, Place::Mem, 1});
  layout[order[0]] = {fastest.name, std::move(factors)};
  return Layout{std::move(layout), static_cast<int>(bytes.value)};
}

Layout in_order(const std::vector<BufferAxis>& axes, const std::vector<std::size_t>& order, std::int64_t pad) {
  std::vector<AxisLayout> layout(axes.size());
  std::int64_t stride = 1;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const BufferAxis& axis = axes[order[n]];
    layout[order[n]] = {axis.name, {Factor{axis.extent, Place::Mem, stride}}};
    stride *= axis.extent;
    if (n == 0) stride += pad;
  }
  return Layout{std::move(layout), 0};
}

}  // namespace

Layout tile_layout(const std::vector<BufferAxis>& axes, Dtype dtype, const TileOptions& options) {
  std::vector<std::size_t> order = memory_order(axes.size(), options.transposed);
  return options.swizzle.value ? swizzled_layout(axes, order, dtype, options.swizzle) : in_order(axes, order, options.pad);
}

std::optional<Layout> resized_layout(const Layout& layout, const std::vector<BufferAxis>& before,
                                     const std::vector<BufferAxis>& after) {
  if (layout.xor_bytes) return std::nullopt;
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < layout.axes.size(); ++n) {
    if (layout.axes[n].factors.size() != 1 || layout.axes[n].factors[0].place != Place::Mem) return std::nullopt;
    order.push_back(n);
  }
  auto stride = [&](std::size_t n) { return layout.axes[n].factors[0].stride; };
  // Of two axes of one stride, one has one element: the last in the list is the faster one, as in row-major.
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return stride(a) != stride(b) ? stride(a) < stride(b) : a > b; });
  std::int64_t pad = order.size() > 1 ? stride(order[1]) - before[order[0]].extent : 0;
  return in_order(after, order, pad);
}

std::int64_t tile_elements(const Layout& layout) {
  std::int64_t elements = 1;
  for (const AxisLayout& axis : layout.axes)
    for (const Factor& factor : axis.factors)
      if (factor.place == Place::Mem) elements = std::max(elements, factor.extent * factor.stride);
  return elements;
}

namespace {

std::int64_t bytes_of_buffer(const Buffer& buffer) {
  std::int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) elements *= axis.extent;
  if (buffer.layout) elements = memory_elements(*buffer.layout);
  return elements * bytes_of(buffer.dtype);
}

std::vector<Buffer> shared_buffers(const Block& kernel_body) {
  std::vector<Buffer> result;
  walk(kernel_body, [&](const Stmt& stmt) {
    if (const Buffer* buffer = as<Buffer>(stmt); buffer && buffer->space == Space::Shared) result.push_back(*buffer);
    return true;
  });
  return result;
}

}  // namespace

std::int64_t shared_bytes_of(const Block& kernel_body) {
  std::int64_t total = 0;
  for (const Buffer& buffer : shared_buffers(kernel_body)) total += (bytes_of_buffer(buffer) + 15) / 16 * 16;
  return total;
}

void require_shared_fits(const Block& kernel_body, const Target& target, Span span, const std::string& cure) {
  std::int64_t total = shared_bytes_of(kernel_body);
  if (total <= target.shared_bytes) return;
  std::string list;
  for (const Buffer& buffer : shared_buffers(kernel_body))
    list += fmt::format("{}`{}` {}", list.empty() ? "" : ", ", buffer.name, bytes_of_buffer(buffer));
  throw UserError(span,
                  fmt::format("{} bytes of shared memory are needed ({}), {} more than the {} that a block of {} has",
                              total, list, total - target.shared_bytes, target.shared_bytes, target.arch),
                  cure);
}

namespace {

// 32-bit registers of a thread.
std::int64_t registers_of(const Buffer& buffer) {
  std::int64_t elements = 1;
  for (const BufferAxis& axis : buffer.axes) elements *= axis.extent;
  if (buffer.layout) elements = extent_of(*buffer.layout, Place::Reg);
  return (elements * bytes_of(buffer.dtype) + 3) / 4;
}

}  // namespace

std::int64_t registers_of(const Block& kernel_body) {
  std::int64_t needed = 0;
  std::int64_t largest = 0;
  walk(kernel_body, [&](const Stmt& stmt) {
    const Buffer* buffer = as<Buffer>(stmt);
    if (!buffer || buffer->space != Space::Register) return true;
    if (buffer->layout)
      needed += registers_of(*buffer);
    else
      largest = std::max(largest, registers_of(*buffer));
    return true;
  });
  return needed + largest;
}

void require_registers_fit(const Kernel& kernel, const Target& target, Span span, const std::string& cure) {
  constexpr std::int64_t others = 40;
  if (roles_of(kernel).empty() && !stated_block_shape(kernel)) return;
  ComputingThreads threads = computing_threads(kernel, target);
  std::int64_t needed = registers_of(kernel.body);
  if (needed + others > threads.registers)
    throw UserError(span,
                    fmt::format("register buffers take {} registers a thread, which with {} for all else are more than "
                                "the {} that each of {} threads has",
                                needed, others, threads.registers, threads.count),
                    cure);
}

}  // namespace tilewright
