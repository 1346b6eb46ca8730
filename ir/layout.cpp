// Facts about layouts, by enumeration of their factors.
#include "ir/layout.h"

#include <fmt/format.h>

#include <array>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {
constexpr std::array<std::string_view, 11> place_names = {"mem",      "reg",      "lane",     "warp",   "warpgroup", "thread.x",
                                                          "thread.y", "thread.z", "thread", "step", "vector"};
}

std::string_view name_of(Place place) { return place_names[static_cast<std::size_t>(place)]; }

std::optional<Place> place_by_name(std::string_view name) {
  for (std::size_t row = 0; row < place_names.size(); ++row)
    if (place_names[row] == name) return static_cast<Place>(row);
  return std::nullopt;
}

std::string print(const Layout& layout) {
  std::string out = "(";
  for (std::size_t n = 0; n < layout.axes.size(); ++n) {
    const AxisLayout& axis = layout.axes[n];
    out += fmt::format("{}{}: ", n ? "; " : "", axis.axis);
    for (std::size_t k = 0; k < axis.factors.size(); ++k) {
      const Factor& factor = axis.factors[k];
      out += fmt::format("{}{} {}", k ? ", " : "", factor.extent, name_of(factor.place));
      if (factor.stride != 1) out += fmt::format("*{}", factor.stride);
    }
  }
  out += ")";
  if (layout.xor_bytes) out += fmt::format(" xor {}", layout.xor_bytes);
  return out;
}

Layout row_major(const std::vector<std::pair<std::string, std::int64_t>>& axes) {
  Layout layout;
  std::int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    layout.axes.insert(layout.axes.begin(), AxisLayout{axis->first, {Factor{axis->second, Place::Mem, stride}}});
    stride *= axis->second;
  }
  return layout;
}

std::int64_t extent_of(const Layout& layout, Place place) {
  std::int64_t last = 0;
  for (const AxisLayout& axis : layout.axes)
    for (const Factor& factor : axis.factors)
      if (factor.place == place) last += (factor.extent - 1) * factor.stride;
  return last + 1;
}

std::int64_t place_value(const Layout& layout, Place place, const std::vector<std::int64_t>& coordinates) {
  if (coordinates.size() != layout.axes.size()) internal_error("a layout is asked with coordinates of another rank");
  std::int64_t value = 0;
  for (std::size_t n = 0; n < layout.axes.size(); ++n) {
    std::int64_t rest = coordinates[n];
    const std::vector<Factor>& factors = layout.axes[n].factors;
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
      std::int64_t digit = factor == factors.rend() - 1 ? rest : rest % factor->extent;
      rest /= factor->extent;
      if (factor->place == place) value += digit * factor->stride;
    }
  }
  return value;
}

std::int64_t memory_elements(const Layout& layout) { return extent_of(layout, Place::Mem); }

}  // namespace tilewright
