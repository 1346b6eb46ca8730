// Comparison of a result with what is expected, and the words for what is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "ir/diagnostic.h"
#include "runtime/instruments.h"

namespace tilewright {

namespace {

std::vector<std::int64_t> index_of(std::int64_t element, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

// The wrong indices along one axis.
struct AxisOfWrong {
  std::int64_t extent = 1;
  std::set<std::int64_t> values;
};

// Gathers what is wrong and describes it.
class Report {
 public:
  Report(std::string name, const HostTensor& got, const TileSizes& tiles) : name_(std::move(name)), got_(got), tiles_(tiles) {
    for (const std::int64_t extent : got.shape) axes_.push_back({extent, {}});
    find_partial_tiles();
  }

  void count_right() { ++result_.compared; }
  void count_wrong(std::int64_t element, double got, double want, double bound) {
    ++result_.compared;
    const std::vector<std::int64_t> index = index_of(element, got_.shape);
    if (result_.wrong++ == 0) {
      result_.first = result_.lowest = result_.highest = index;
      result_.got = got;
      result_.want = want;
      result_.bound = bound;
    }
    if (is_poison(got_, element)) ++result_.unwritten;
    for (PartialTiles& partial : partial_tiles_) partial.wrong += partial.hold(index) ? 1 : 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      result_.lowest[axis] = std::min(result_.lowest[axis], index[axis]);
      result_.highest[axis] = std::max(result_.highest[axis], index[axis]);
      axes_[axis].values.insert(index[axis]);
    }
  }
  void note_ratio(double ratio) { result_.worst_ratio = std::max(result_.worst_ratio, ratio); }

  Comparison finish(bool is_sample, bool is_bounded) {
    if (result_.wrong == 0) {
      result_.text = fmt::format("`{}` is right: {} elements{}", name_, result_.compared, is_sample ? " of a sample" : "");
      result_.text += is_bounded ? fmt::format(", largest error / bound {:.3f}", result_.worst_ratio) : ", bit for bit";
      return std::move(result_);
    }
    const std::string place = result_.first.empty() ? name_ : fmt::format("{}[{}]", name_, fmt::join(result_.first, ", "));
    result_.text = fmt::format("`{}` is {}, the definition gives {}", place, result_.got, result_.want);
    if (result_.bound > 0) result_.text += fmt::format(" within {:.3g}", result_.bound);
    result_.text += fmt::format("\n  {} of {} elements {} wrong", result_.wrong, result_.compared, result_.wrong == 1 ? "is" : "are");
    if (!result_.first.empty() && result_.wrong > 1) result_.text += ", all in " + box();
    if (result_.unwritten == result_.wrong) result_.text += result_.wrong == 1 ? "; it was never written" : "; none of them was ever written";
    else if (result_.unwritten > 0) result_.text += fmt::format("; {} of them were never written", result_.unwritten);
    bool is_related = false;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis)
      if (std::string relation = relation_of(axis); !relation.empty()) {
        result_.text += fmt::format("\n  axis {}: {}", axis, relation);
        is_related = true;
      }
    if (!is_related) result_.text += relation_to_partial_tiles();
    return std::move(result_);
  }

 private:
  // The incomplete tiles of one size along several axes together: in a matrix, the last columns and the last rows.
  struct PartialTiles {
    std::int64_t size = 0;
    std::vector<std::int64_t> begins;  // an axis each; its extent where no tile is incomplete
    std::int64_t wrong = 0;
    bool hold(const std::vector<std::int64_t>& index) const {
      for (std::size_t axis = 0; axis < index.size(); ++axis)
        if (index[axis] >= begins[axis]) return true;
      return false;
    }
  };

  void find_partial_tiles() {
    std::set<std::int64_t, std::greater<>> sizes;
    for (const std::vector<std::int64_t>& of_axis : tiles_) sizes.insert(of_axis.begin(), of_axis.end());
    for (const std::int64_t size : sizes) {
      if (size < 2) continue;
      PartialTiles partial{size, {}, 0};
      int count = 0;
      for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        const std::int64_t extent = axes_[axis].extent;
        const bool is_tiled = axis < tiles_.size() && std::find(tiles_[axis].begin(), tiles_[axis].end(), size) != tiles_[axis].end();
        partial.begins.push_back(is_tiled ? extent / size * size : extent);
        count += partial.begins.back() < extent ? 1 : 0;
      }
      if (count > 1) partial_tiles_.push_back(std::move(partial));
    }
  }

  std::string relation_to_partial_tiles() const {
    for (const PartialTiles& partial : partial_tiles_) {
      if (partial.wrong != result_.wrong) continue;
      std::int64_t complete = 1, all = 1;
      std::string places;
      for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        complete *= partial.begins[axis];
        all *= axes_[axis].extent;
        if (partial.begins[axis] < axes_[axis].extent) places += fmt::format("{}from {} on along axis {}", places.empty() ? "" : " or ", partial.begins[axis], axis);
      }
      return fmt::format("\n  {} the partial tiles of {}: {}", partial.wrong == all - complete ? "exactly" : "all in", partial.size, places);
    }
    return "";
  }

  std::string box() const {
    std::vector<std::string> ranges;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis)
      ranges.push_back(result_.lowest[axis] == result_.highest[axis] ? fmt::format("{}", result_.lowest[axis])
                                                                     : fmt::format("{}..{}", result_.lowest[axis], result_.highest[axis] + 1));
    return fmt::format("`{}[{}]`", name_, fmt::join(ranges, ", "));
  }

  // How the wrong indices lie in the tiles of an axis; the largest tile that says something counts.
  std::string relation_of(std::size_t axis) const {
    const AxisOfWrong& wrong = axes_[axis];
    const std::int64_t lo = *wrong.values.begin(), hi = *wrong.values.rbegin();
    const auto count = static_cast<std::int64_t>(wrong.values.size());
    if (count == wrong.extent) return "";
    std::vector<std::int64_t> sizes = axis < tiles_.size() ? tiles_[axis] : std::vector<std::int64_t>{};
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    for (const std::int64_t size : sizes) {
      if (size < 2) continue;
      const std::int64_t last_tile = (wrong.extent - 1) / size * size;
      const bool is_whole_range = count == hi - lo + 1;
      if (lo == last_tile && hi == wrong.extent - 1 && is_whole_range)
        return wrong.extent % size == 0 ? fmt::format("exactly the last tile of {}", size)
                                        : fmt::format("exactly the last, partial tile of {} ({} of {} elements)", size, wrong.extent - last_tile, size);
      if (lo % size == 0 && (hi + 1) % size == 0 && is_whole_range)
        return fmt::format("whole tiles of {}, from tile {} to {}", size, lo / size, hi / size);
      if (lo / size == hi / size && wrong.extent > size) return fmt::format("within tile {} of {}, from its element {} to {}", lo / size, size, lo % size, hi % size);
      const bool is_one_column = std::all_of(wrong.values.begin(), wrong.values.end(), [&](std::int64_t v) { return v % size == lo % size; });
      if (is_one_column && count > 1) return fmt::format("always element {} of a tile of {}", lo % size, size);
      if (lo % size == 0 && lo > 0 && hi == wrong.extent - 1 && is_whole_range) return fmt::format("from tile {} of {} to the end", lo / size, size);
    }
    if (hi == wrong.extent - 1 && lo == hi) return "the last element only";
    return "";
  }

  std::string name_;
  const HostTensor& got_;
  const TileSizes& tiles_;
  std::vector<AxisOfWrong> axes_;
  std::vector<PartialTiles> partial_tiles_;
  Comparison result_;
};

void compare_float(Report& report, std::int64_t element, double got, double want, double bound, const ComparisonRule& rule) {
  const bool is_special = !std::isfinite(got) || !std::isfinite(want);
  bool is_right = false;
  if (is_special) {
    is_right = got == want || (std::isnan(got) && std::isnan(want));
  } else if (rule.is_bitwise) {
    is_right = got == want;
  } else {
    const double error = std::fabs(got - want);
    is_right = error <= bound;
    if (error > 0 && bound > 0) report.note_ratio(error / bound);
    if (is_right && rule.compares_zero_sign && got == 0 && want == 0) is_right = std::signbit(got) == std::signbit(want);
  }
  if (is_right) report.count_right();
  else report.count_wrong(element, got, want, rule.is_bitwise ? 0 : bound);
}

}  // namespace

Comparison compare(const OracleTensor& expected, const HostTensor& got, const ComparisonRule& rule, const TileSizes& tiles) {
  if (expected.shape != got.shape || expected.dtype != got.dtype) internal_error(fmt::format("`{}` is compared with a tensor of another shape", expected.name));
  Report report(expected.name, got, tiles);
  bool is_bounded = false;
  for (std::size_t position = 0; position < expected.count(); ++position) {
    const std::int64_t element = expected.element(position);
    const double bound = expected.bounds.empty() ? 0 : expected.bounds[position];
    if (std::isinf(bound)) {  // nothing is known of it but that it is written
      if (is_poison(got, element)) report.count_wrong(element, read_real(got, element), expected.values[position].f, bound);
      else report.count_right();
      continue;
    }
    if (is_float(expected.dtype)) {
      is_bounded = is_bounded || !rule.is_bitwise;
      compare_float(report, element, read_real(got, element), expected.values[position].f, bound, rule);
      continue;
    }
    const Scalar value = load_scalar(got.dtype, got.data.data() + element * bytes_of(got.dtype));
    const double have = convert(Dtype::F64, got.dtype, value).f, want = convert(Dtype::F64, got.dtype, expected.values[position]).f;
    // A bool that holds neither 0 nor 1 was not written.
    const bool is_odd_bool = got.dtype == Dtype::Bool && got.data[static_cast<std::size_t>(element)] > std::byte{1};
    const bool is_right = !is_odd_bool && (value.i == expected.values[position].i || (!rule.is_bitwise && std::fabs(have - want) <= bound));
    if (is_right) report.count_right();
    else report.count_wrong(element, have, want, rule.is_bitwise ? 0 : bound);
  }
  return report.finish(!expected.elements.empty(), is_bounded);
}

Comparison compare(const HostTensor& expected, const HostTensor& got, const std::string& name, const TileSizes& tiles) {
  if (expected.shape != got.shape || expected.dtype != got.dtype) internal_error(fmt::format("`{}` is compared with a tensor of another shape", name));
  Report report(name, got, tiles);
  const auto size = static_cast<std::size_t>(bytes_of(got.dtype));
  for (std::int64_t element = 0; element < got.elements(); ++element) {
    const auto offset = static_cast<std::size_t>(element) * size;
    const bool is_same = std::equal(got.data.begin() + static_cast<std::ptrdiff_t>(offset), got.data.begin() + static_cast<std::ptrdiff_t>(offset + size),
                                    expected.data.begin() + static_cast<std::ptrdiff_t>(offset));
    const double have = read_real(got, element), want = read_real(expected, element);
    const bool is_same_nan = is_float(got.dtype) && std::isnan(have) && std::isnan(want) && !is_poison(got, element);
    if (is_same || is_same_nan) report.count_right();
    else report.count_wrong(element, have, want, 0);
  }
  return report.finish(false, false);
}

}  // namespace tilewright
