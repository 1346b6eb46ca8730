// Orders of tiles.
#include "runtime/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/diagnostic.h"

namespace tilewright {

namespace {

// The position on the Hilbert curve through a square of 2^k: Wikipedia's d2xy ("Hilbert curve").
std::pair<std::int64_t, std::int64_t> hilbert_position(std::int64_t side, std::int64_t distance) {
  std::int64_t x = 0, y = 0;
  for (std::int64_t s = 1; s < side; s *= 2) {
    const std::int64_t rx = 1 & (distance / 2);
    const std::int64_t ry = 1 & (distance ^ rx);
    if (ry == 0) {
      if (rx == 1) {
        x = s - 1 - x;
        y = s - 1 - y;
      }
      std::swap(x, y);
    }
    x += s * rx;
    y += s * ry;
    distance /= 4;
  }
  return {y, x};
}

// A curve through squares as wide as the shorter side, along the longer one; what lies outside is left out.
template <class Put>
void put_along_curve(std::int64_t rows, std::int64_t columns, const Put& put) {
  std::int64_t side = 1;
  while (side < std::min(rows, columns)) side *= 2;
  const bool is_tall = rows > columns;
  const std::int64_t squares = rows == 0 || columns == 0 ? 0 : (std::max(rows, columns) + side - 1) / side;
  for (std::int64_t square = 0; square < squares; ++square)
    for (std::int64_t distance = 0; distance < side * side; ++distance) {
      auto [row, column] = hilbert_position(side, distance);
      if (is_tall) std::swap(row, column);  // each square is entered and left along the longer axis
      (is_tall ? row : column) += square * side;
      if (row < rows && column < columns) put(row, column);
    }
}

// Bands of `group` rows, each walked column by column.
template <class Put>
void put_in_groups(std::int64_t rows, std::int64_t columns, std::int64_t group, const Put& put) {
  for (std::int64_t first = 0; first < rows; first += group)
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t row = first; row < std::min(first + group, rows); ++row) put(row, column);
}

using Tile = std::pair<std::int64_t, std::int64_t>;

// Deals each wave, one tile a worker, again: its tiles go by rows (or columns) to the workers by GPCs, small GPCs first. The
// requests of one GPC for the same lines that are on their way together become one request to L2 (measured on an H200:
// docs/results); copies to several blocks of a cluster do not take part, so the operand that is not multicast counts.
void deal_by_gpc(std::vector<Tile>& tiles, const std::vector<int>& gpcs, std::int64_t axis) {
  std::map<int, std::size_t> sizes;
  for (const int gpc : gpcs) ++sizes[gpc];
  const std::size_t workers = gpcs.size();
  const auto place = [&](std::size_t worker) { return std::tuple(sizes.at(gpcs[worker]), gpcs[worker], worker); };
  for (std::size_t first = 0; first < tiles.size(); first += workers) {
    const std::size_t count = std::min(workers, tiles.size() - first);
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    const auto begin = tiles.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<Tile> wave(begin, begin + static_cast<std::ptrdiff_t>(count));
    std::sort(wave.begin(), wave.end(), [&](const Tile& a, const Tile& b) {
      return axis == 0 ? a < b : std::pair(a.second, a.first) < std::pair(b.second, b.first);
    });
    for (std::size_t n = 0; n < count; ++n) tiles[first + order[n]] = wave[n];
  }
}

// The function without `.gpc`.
std::string base_of(const std::string& function) { return function.substr(0, function.find('.')); }

// Every tile stands in the table once, or blocks would leave some out and others do some twice.
void check_is_permutation(const HostTensor& table, std::int64_t rows, std::int64_t columns) {
  std::vector<bool> is_seen(static_cast<std::size_t>(rows * columns), false);
  for (std::int64_t place = 0; place < rows * columns; ++place) {
    const std::int64_t row = read_integer(table, 2 * place), column = read_integer(table, 2 * place + 1);
    const bool is_inside = row >= 0 && row < rows && column >= 0 && column < columns;
    if (!is_inside || is_seen[static_cast<std::size_t>(row * columns + column)])
      internal_error(fmt::format("an order of {} by {} tiles has ({}, {}) at place {}, outside or for the second time", rows, columns, row, column, place));
    is_seen[static_cast<std::size_t>(row * columns + column)] = true;
  }
}

}  // namespace

bool is_by_gpc(const Table& table) {
  const Call* call = as<Call>(table.value);
  return call != nullptr && call->function.ends_with(".gpc");
}

HostTensor make_table(const Table& table, const std::vector<std::pair<std::string, std::int64_t>>& dims,
                      const std::vector<int>& gpcs) {
  const Call* call = as<Call>(table.value);
  const std::string formula = call == nullptr ? "" : base_of(call->function);
  const std::size_t expected = (formula == "grouped" ? 3u : 2u) + (is_by_gpc(table) ? 2u : 0u);
  if ((formula != "hilbert" && formula != "rows" && formula != "grouped") || call->arguments.size() != expected)
    throw UserError(table.value->span, fmt::format("table `{}` has a formula that is not known; `hilbert(a, b)`, `rows(a, b)` and "
                                                   "`grouped(a, b, rows)` are, and `.gpc` behind their names with `workers, axis`", table.name));
  const std::int64_t rows = evaluate_index(call->arguments[0], dims);
  const std::int64_t columns = evaluate_index(call->arguments[1], dims);
  HostTensor result = make_tensor(table.dtype, shape_of(table.shape, dims));
  if (rows < 0 || columns < 0 || result.shape != std::vector<std::int64_t>{rows * columns, 2})
    throw UserError(table.value->span, fmt::format("table `{}` has the shape [{}], but {} by {} tiles need [{}, 2]", table.name,
                                                   fmt::join(result.shape, ", "), rows, columns, rows * columns));
  std::vector<Tile> tiles;
  const auto put = [&](std::int64_t row, std::int64_t column) { tiles.emplace_back(row, column); };
  if (formula == "hilbert") {
    put_along_curve(rows, columns, put);
  } else {
    const std::int64_t group = formula == "grouped" ? evaluate_index(call->arguments[2], dims) : 1;
    if (group < 1) throw UserError(table.value->span, fmt::format("table `{}` has groups of {} rows", table.name, group));
    put_in_groups(rows, columns, group, put);
  }
  if (is_by_gpc(table) && !gpcs.empty()) {
    const std::int64_t workers = evaluate_index(call->arguments[expected - 2], dims);
    if (workers != static_cast<std::int64_t>(gpcs.size()))
      internal_error(fmt::format("the GPCs of {} workers are known, and table `{}` is for {}", gpcs.size(), table.name, workers));
    deal_by_gpc(tiles, gpcs, evaluate_index(call->arguments[expected - 1], dims));
  }
  std::int64_t next = 0;
  for (const auto& [row, column] : tiles) {
    write_integer(result, next++, row);
    write_integer(result, next++, column);
  }
  check_is_permutation(result, rows, columns);
  return result;
}

}  // namespace tilewright
